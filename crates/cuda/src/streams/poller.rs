//! One thread that finds the fences that are done, and wakes their waiters. It never enters Python.
//!
//! | who | does |
//! |---|---|
//! | anybody | adds a job; the first one starts the thread, or, where none can be had, does what the thread would |
//! | the thread | looks at the oldest fence of each stream, runs the jobs whose fences are done, in the order of the fences |
//! | nobody | waits for the thread, but for [`Poller::shut_down`]: host threads look at fences themselves |
//!
//! It looks and naps instead of blocking in the driver, because a blocked thread would not hear of new jobs.

use super::backoff::Backoff;
use super::fence::Fence;
use super::timer_slack;
use crate::driver::own_thread;
use crate::error::CudaError;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Then = Box<dyn FnOnce(Result<(), CudaError>) + Send>;

/// The condition of a job.
enum Until {
    Done(Fence),
    Due(Instant),
}

/// Something to do.
struct Job {
    until: Until,
    then: Then,
}

impl Job {
    /// Does it. A panic has been told where it happened; other jobs go on.
    fn run(self, outcome: Result<(), CudaError>) {
        // The fence first: the waiting job may let go of the last of its device.
        drop(self.until);
        let then = self.then;
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| then(outcome))) {
            // Its own end may panic in turn.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        }
    }
}

#[derive(Default)]
struct State {
    added: Vec<Job>,
    /// Jobs added and not done.
    pending: usize,
    thread: Option<JoinHandle<()>>,
    /// Whether there is somebody who will look at new jobs.
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

/// How somebody came to poll.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is the poller's thread, which waits for further jobs.
    Thread,
    /// It added a job when no thread could be had, and goes when all jobs are done: nobody else would do them.
    StandIn,
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
    /// Runs `then` with the fence's outcome.
    pub(crate) fn after(&self, fence: Fence, then: impl FnOnce(Result<(), CudaError>) + Send + 'static) {
        self.add(Job { until: Until::Done(fence), then: Box::new(then) });
    }

    /// Runs `then` when so much time has passed.
    pub(crate) fn in_a(&self, while_: Duration, then: impl FnOnce() + Send + 'static) {
        self.add(Job { until: Until::Due(Instant::now() + while_), then: Box::new(move |_| then()) });
    }

    fn add(&self, job: Job) {
        let mut state = self.0.lock();
        state.added.push(job);
        state.pending += 1;
        if !state.running {
            state.ending = false;
            state.running = true;
            let shared = Arc::clone(&self.0);
            let started = std::thread::Builder::new().name("weft-cuda".to_owned()).spawn(move || {
                own_thread();
                timer_slack::lower();
                shared.poll(Role::Thread);
            });
            state.thread = started.ok();
            if state.thread.is_none() {
                drop(state);
                return self.0.poll(Role::StandIn);
            }
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
    fn poll(&self, role: Role) {
        let mut lanes: Vec<(Option<usize>, VecDeque<Job>)> = Vec::new();
        let mut backoff = Backoff::new();
        loop {
            let Some(added) = self.next(role, lanes.is_empty(), &backoff) else { return };
            let news = !added.is_empty();
            let mut done = 0;
            for job in added {
                let stream = match &job.until {
                    Until::Done(fence) => Some(fence.stream().number()),
                    Until::Due(_) => None,
                };
                match lanes.iter_mut().find(|(number, _)| *number == stream) {
                    Some((_, jobs)) => enqueue(jobs, job),
                    None => lanes.push((stream, VecDeque::from([job]))),
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

    /// The jobs that were added; waits for some, or for the next look. Nothing if the caller is to end.
    fn next(&self, role: Role, idle: bool, backoff: &Backoff) -> Option<Vec<Job>> {
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
            if state.ending || role == Role::StandIn {
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

/// Puts a job behind those of its stream with earlier fences, or that are due before it: jobs may be added in another
/// order.
fn enqueue(jobs: &mut VecDeque<Job>, job: Job) {
    let is_later = |other: &Job| match (&other.until, &job.until) {
        (Until::Done(other), Until::Done(fence)) => other.number() > fence.number(),
        (Until::Due(other), Until::Due(due)) => other > due,
        // Each lane is of one kind.
        _ => false,
    };
    let before = jobs.iter().rposition(|other| !is_later(other));
    jobs.insert(before.map_or(0, |at| at + 1), job);
}

/// Runs the jobs of one lane that are due or have their fences done. Answers how many.
fn run_done(jobs: &mut VecDeque<Job>) -> usize {
    let mut done = 0;
    while let Some(job) = jobs.front() {
        let outcome = match &job.until {
            Until::Due(due) if *due > Instant::now() => break,
            Until::Due(_) => Ok(()),
            Until::Done(fence) => match fence.is_done() {
                Ok(false) => break,
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            },
        };
        if let Some(job) = jobs.pop_front() {
            job.run(outcome);
        }
        done += 1;
    }
    done
}
