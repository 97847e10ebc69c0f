//! One thread that finds out which fences are done, and does what waits for them. It never enters Python.
//!
//! | who | does |
//! |---|---|
//! | anybody | adds a job; the first one starts the thread |
//! | the thread | looks at the oldest fence of each stream, runs the jobs whose fences are done, in the order of the fences |
//! | nobody | waits for the thread, but for [`Poller::shut_down`]: host threads look at fences themselves |
//!
//! It looks and naps instead of blocking in the driver, because a blocked thread would not hear of new jobs.

use crate::backoff::Backoff;
use crate::error::CudaError;
use crate::fence::Fence;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Then = Box<dyn FnOnce(Result<(), CudaError>) + Send>;

/// Something to do when a fence is done, or at once.
struct Job {
    fence: Option<Fence>,
    then: Then,
}

#[derive(Default)]
struct State {
    added: Vec<Job>,
    /// Jobs added and not done.
    pending: usize,
    thread: Option<JoinHandle<()>>,
    /// Whether there is a thread that will look at what is added.
    running: bool,
    /// Whether the thread is to end when nothing is pending.
    ending: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A job was added, the last one was done, or the thread is to end.
    changed: Condvar,
}

/// The poller's face to the rest of the crate.
#[derive(Default)]
pub(crate) struct Poller(Arc<Shared>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Poller {
    /// Runs `then` with what has become of the fence.
    pub(crate) fn after(&self, fence: Fence, then: impl FnOnce(Result<(), CudaError>) + Send + 'static) {
        self.add(Job { fence: Some(fence), then: Box::new(then) });
    }

    /// Runs `then` soon.
    pub(crate) fn soon(&self, then: impl FnOnce() + Send + 'static) {
        self.add(Job { fence: None, then: Box::new(move |_| then()) });
    }

    fn add(&self, job: Job) {
        let mut state = self.0.lock();
        state.added.push(job);
        state.pending += 1;
        if !state.running {
            state.ending = false;
            let shared = Arc::clone(&self.0);
            // Where no thread can be had, a later job tries again.
            state.thread = std::thread::Builder::new().name("weft-cuda".to_owned()).spawn(move || shared.poll()).ok();
            state.running = state.thread.is_some();
        }
        drop(state);
        self.0.changed.notify_all();
    }

    /// Lets the thread end when nothing is pending, and waits for that.
    pub(crate) fn shut_down(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.0.lock();
        state.ending = true;
        self.0.changed.notify_all();
        while state.pending > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let thread = state.thread.take();
        drop(state);
        thread.is_none_or(|thread| thread.join().is_ok())
    }
}

impl Drop for Poller {
    /// Nothing is pending: a job keeps the device of its fence, and that keeps the poller.
    fn drop(&mut self) {
        self.0.lock().ending = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// Jobs by stream, so that one look at the oldest fence tells whether more looks are worth while.
    fn poll(&self) {
        let mut lanes: Vec<(usize, VecDeque<Job>)> = Vec::new();
        let mut backoff = Backoff::new();
        loop {
            let Some(added) = self.next(lanes.is_empty(), &backoff) else { return };
            let news = !added.is_empty();
            let mut done = 0;
            for job in added {
                match &job.fence {
                    None => {
                        (job.then)(Ok(()));
                        done += 1;
                    }
                    Some(fence) => {
                        let stream = fence.stream().number();
                        match lanes.iter_mut().find(|(number, _)| *number == stream) {
                            Some((_, jobs)) => enqueue(jobs, job),
                            None => lanes.push((stream, VecDeque::from([job]))),
                        }
                    }
                }
            }
            done += lanes.iter_mut().map(|(_, jobs)| run_done(jobs)).sum::<usize>();
            if done > 0 {
                self.finished(done);
            }
            lanes.retain(|(_, jobs)| !jobs.is_empty());
            if done > 0 || news {
                backoff = Backoff::new();
            }
        }
    }

    /// The jobs that were added; waits for some, or for the next look. Nothing if the thread is to end.
    fn next(&self, idle: bool, backoff: &Backoff) -> Option<Vec<Job>> {
        let mut state = self.lock();
        loop {
            if !state.added.is_empty() {
                return Some(std::mem::take(&mut state.added));
            }
            if !idle {
                if let Some(pause) = backoff.pause() {
                    state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
                }
                return Some(std::mem::take(&mut state.added));
            }
            if state.ending {
                state.running = false;
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finished(&self, jobs: usize) {
        let mut state = self.lock();
        state.pending -= jobs;
        if state.pending == 0 {
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// Puts a job behind those whose fences come before its own: jobs may be added in another order.
fn enqueue(jobs: &mut VecDeque<Job>, job: Job) {
    let number = |job: &Job| job.fence.as_ref().map_or(0, |fence| fence.cell().number);
    let before = jobs.iter().rposition(|other| number(other) <= number(&job));
    jobs.insert(before.map_or(0, |at| at + 1), job);
}

/// Runs the jobs whose fences are done. Answers how many.
fn run_done(jobs: &mut VecDeque<Job>) -> usize {
    let mut done = 0;
    while let Some(job) = jobs.front() {
        let outcome = match job.fence.as_ref().map(Fence::is_done) {
            Some(Ok(false)) => break,
            Some(Err(fault)) => Err(fault),
            None | Some(Ok(true)) => Ok(()),
        };
        if let Some(job) = jobs.pop_front() {
            // The fence first: what waits may let go of the last of its device.
            drop(job.fence);
            (job.then)(outcome);
        }
        done += 1;
    }
    done
}
