//! Large ops made of one strided loop: run block by block and by several workers.
//!
//! | state | who may act | next |
//! |---|---|---|
//! | open | pushers of ops that read the filled buffer: they may join it as *followers* | taken, by the thread that runs it |
//! | taken | the worker that runs it, and its helpers; when the engine comes to it later, nothing is left to do | |
//!
//! A large op that has its turn takes its followers along, and theirs, as far as their inputs are ready. The loops then
//! run block by block, so that each finds its inputs in the cache. A follower's own op keeps its place in the queues.
//! Its grant comes only after the ops before it have settled, and finds the work done.
//!
//! Why that is no race: a follower reads a buffer that an op in hand fills, or one whose version at the push of the
//! follower has finished; its read holds off later writers of both, for as long as its op is pending. It writes to a
//! buffer that was untouched at its push, or to one that an op in hand has filled and that no other op has read in
//! between.
//!
//! Idle workers help with the blocks. The thread that finishes the last one completes the op. Results do not depend on
//! any of this: each element is computed by itself.

use super::elementwise::note_long;
use super::team::{self, Blocks, Crew};
use crate::ArrayError;
use crate::access::{Renaming, enqueue, place};
use crate::door::Call;
use crate::memory::Pushing;
use crate::step::{Bound, Lifetimes, Prepared, Source};
use smallvec::SmallVec;
use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use weft_engine::trace::{Note, Span};
use weft_engine::{Cause, Device, Engine, OpContext, Payload, PlaceOffset};

/// Elements of a block: with a few operands it fits the cache of one core.
const BLOCK: usize = 32_768;
/// Elements per turn in a block of several ops: with a few operands these fit the nearest cache.
const STRETCH: usize = 4096;
/// Ops of fewer elements run without blocks.
pub(crate) const LARGE: usize = 2 * BLOCK;
/// Followers taken along at most.
const TAKEN: usize = 64;

enum State {
    Open(Vec<Arc<Job>>),
    Taken,
}

/// A large op.
struct Job {
    /// The engine, unless an input knows it. To clone the handle writes to a cache line that all workers share.
    engine: Option<Engine>,
    device: Device,
    /// Number of elements.
    size: usize,
    flat: bool,
    note: Note,
    /// The time of its computation, if that came before its turn and the engine is traced.
    span: OnceLock<Span>,
    step: Mutex<Bound>,
    needs: Mutex<Needs>,
    state: Mutex<State>,
}

/// The conditions for a run ahead of its turn.
#[derive(Default)]
struct Needs {
    /// For each source that is a buffer.
    sources: SmallVec<[Need; 2]>,
    /// The ops that filled the buffers that it rewrites.
    rewrites: SmallVec<[Weak<Job>; 1]>,
}

struct Need {
    /// Mutations pushed before, if the buffer has one variable.
    version: Option<u64>,
    /// The op that fills the buffer, if it may be followed.
    producer: Weak<Job>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Jobs = SmallVec<[Arc<Job>; 1]>;

impl Job {
    /// Calls `ask` with the engine, as long as the step still holds its inputs.
    fn with_engine<T>(&self, ask: impl FnOnce(&Engine) -> T) -> T {
        let step = lock(&self.step);
        match self.engine.as_ref().or_else(|| step.engine()) {
            Some(engine) => ask(engine),
            None => unreachable!("a job keeps the engine where its sources do not"),
        }
    }

    /// Joins the followers of `producer`, unless it is too late. It does not wait for the lock: in a forked child, a
    /// thread that no longer exists may hold it.
    fn follow(self: &Arc<Self>, producer: &Self) {
        if let Ok(mut state) = producer.state.try_lock()
            && let State::Open(followers) = &mut *state
        {
            followers.push(Arc::clone(self));
        }
    }

    /// Whether all its inputs, and the buffers that it rewrites, are ready or made by an op in hand.
    fn is_ready_after(&self, hand: &[Arc<Self>]) -> bool {
        let in_hand = |producer: &Weak<Self>| hand.iter().any(|job| std::ptr::eq(Arc::as_ptr(job), producer.as_ptr()));
        let (step, needs) = (lock(&self.step), lock(&self.needs));
        let buffers = step.sources.iter().enumerate().filter_map(|(at, source)| match source {
            Source::Buffer { buffer, .. } => Some((buffer.variable(), step.strided().is_copied(at))),
            Source::Scalar => None,
        });
        needs.rewrites.iter().all(in_hand)
            && buffers.zip(&needs.sources).all(|((variable, copied), need)| {
                let there = || {
                    need.version.is_some_and(|version| variable.known_version() >= version) && !variable.known_failed()
                };
                !copied && (in_hand(&need.producer) || there())
            })
    }

    /// Takes the right to run it. Returns the waiting followers; None if it was taken before.
    fn take(&self) -> Option<Vec<Arc<Self>>> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Open(followers) => Some(followers),
            State::Taken => None,
        }
    }

    /// Returns the right to run it: the engine will come to it.
    fn put_back(&self) {
        *lock(&self.state) = State::Open(Vec::new());
    }

    /// The ops to run with this one, in the order of their pushes.
    fn gather(self: &Arc<Self>, mut waiting: Vec<Arc<Self>>) -> Jobs {
        let mut hand: Jobs = SmallVec::from_elem(Arc::clone(self), 1);
        let mut at = 0;
        while self.flat && at < waiting.len() && hand.len() < TAKEN {
            let job = Arc::clone(&waiting[at]);
            at += 1;
            if job.size == self.size
                && job.is_ready_after(&hand)
                && let Some(more) = job.take()
            {
                waiting.extend(more);
                hand.push(job);
            }
        }
        hand
    }
}

/// Ops that run together, block by block.
struct Hand {
    jobs: Jobs,
    prepared: Vec<Prepared>,
    blocks: usize,
    /// Lengths along the outermost axis: of the whole, and of a block.
    length: usize,
    step: usize,
    /// The start of its work, if the engine is traced.
    span: Option<Span>,
}

impl Hand {
    fn new(mut jobs: Jobs) -> Result<Self, Cause> {
        let span = jobs[0].with_engine(Engine::start_span);
        let mut prepared = Vec::with_capacity(jobs.len());
        let mut lifetimes = Lifetimes::default();
        jobs.iter().enumerate().for_each(|(at, job)| lifetimes.note(at, &lock(&job.step).sources));
        for at in 0..jobs.len() {
            let next = lock(&jobs[at].step).prepare(&mut lifetimes, at);
            match next {
                Ok(next) => prepared.push(next),
                Err(cause) => {
                    // A follower fails on its own, when the engine comes to it.
                    jobs.drain(at.max(1)..).for_each(|job| job.put_back());
                    if at == 0 {
                        return Err(cause);
                    }
                    break;
                }
            }
        }
        let (length, row) = {
            let first = lock(&jobs[0].step);
            (first.strided().walk().shape[0], first.strided().walk().row())
        };
        let step = if prepared[0].has_overlap() { length } else { (BLOCK / row.max(1)).max(1) };
        let blocks = length.div_ceil(step.max(1));
        Ok(Self { jobs, prepared, blocks, length, step, span })
    }
}

impl Blocks for Hand {
    fn count(&self) -> usize {
        self.blocks
    }

    fn block(&self, number: usize) {
        let part: Range<usize> = number * self.step..((number + 1) * self.step).min(self.length);
        // Ops with followers are flat: their steps are elements.
        let stride = if self.prepared.len() > 1 { STRETCH } else { self.step };
        let mut from = part.start;
        while from < part.end {
            // The last stretch is never short: loops may treat few elements unlike the end of many.
            let to = if part.end - from < 2 * stride { part.end } else { from + stride };
            for prepared in &self.prepared {
                // SAFETY: the accesses are granted, or are those of a follower (see the module's head); stretches are
                // disjoint, and each runs once.
                unsafe { prepared.run(from..to) };
            }
            from = to;
        }
    }

    /// Drops the ops' arrays, and gives each follower the time of its computation.
    fn finish(&self) -> Result<(), Cause> {
        if let Some(mut span) = self.span {
            span.end();
            for job in &self.jobs[1..] {
                // It was computed only here.
                let _ = job.span.set(span);
            }
        }
        for job in &self.jobs {
            let held = lock(&job.step).release();
            drop(held); // after the lock: a buffer may go with it
        }
        Ok(())
    }
}

/// The payload of a large op.
struct Run {
    job: Arc<Job>,
    /// The place of its push.
    place: u64,
}

impl Payload for Run {
    // SAFETY: a number of eight bytes.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Self, place)) });

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let job = self.job;
        let Some(followers) = job.take() else {
            // It was taken along as a follower.
            if let Some(span) = job.span.get() {
                context.was_done_in(*span);
            }
            return Ok(());
        };
        let hand = Hand::new(job.gather(followers))?;
        let crew = |engine: &Engine| Crew { engine: engine.clone(), device: job.device, note: job.note };
        let crew = (hand.blocks > 1).then(|| job.with_engine(crew));
        team::run(hand, context, crew)
    }
}

/// The op that fills a buffer, if it is a large one and still exists.
fn producer_of(producer: Option<&Weak<dyn Any + Send + Sync>>) -> Option<Arc<Job>> {
    producer.and_then(Weak::upgrade).and_then(|producer| producer.downcast().ok())
}

/// Pushes a large op; the first `read` of its arrays are inputs.
pub(crate) fn push_large(
    mut step: Bound,
    call: &Call<'_>,
    read: usize,
    renaming: Option<Renaming>,
) -> Result<(), ArrayError> {
    let (engine, arrays) = (call.engine, call.arrays);
    let mut options = call.options;
    let mut needs = Needs::default();
    // Dropped after the lock, because an op may hold objects of a user's.
    let mut producers: SmallVec<[Arc<Job>; 2]> = SmallVec::new();
    let mut rewritten: SmallVec<[Arc<Job>; 1]> = SmallVec::new();
    let mut pushing = Pushing::lock();
    options.device.index = place(&mut pushing, arrays);
    for (array, _) in &arrays[..read] {
        let ranges = array.buffer().ranges.get(&mut pushing);
        let mut need = Need { version: None, producer: Weak::new() };
        if !ranges.is_split() {
            need.version = Some(array.buffer().variable().version());
            if let Some(producer) = producer_of(ranges.producer.as_ref()) {
                need.producer = Arc::downgrade(&producer);
                if !producers.iter().any(|known| Arc::ptr_eq(known, &producer)) {
                    producers.push(producer);
                }
            }
        }
        needs.sources.push(need);
    }
    for (output, _) in &arrays[read..] {
        let ranges = output.buffer().ranges.get(&mut pushing);
        if ranges.is_used() {
            step.rewrite(output.buffer());
            // Readers of the old values must be done before the rewrite.
            let producer = producer_of(ranges.producer.as_ref().filter(|_| !ranges.seen));
            needs.rewrites.push(producer.as_ref().map(Arc::downgrade).unwrap_or_default());
            rewritten.extend(producer);
        }
    }
    let (size, flat, kernel) = (step.size(), step.is_flat(), *step.strided().kernel());
    let job = Arc::new(Job {
        engine: step.engine().is_none().then(|| engine.clone()),
        device: options.device,
        size,
        flat,
        note: options.note,
        span: OnceLock::new(),
        step: Mutex::new(step),
        needs: Mutex::new(needs),
        state: Mutex::new(State::Open(Vec::new())),
    });
    let run = Run { job: Arc::clone(&job), place: options.note.key() };
    let mut pushed = enqueue(&mut pushing, engine, (arrays, call.variables, call.after), &options, run);
    note_long(&mut pushing, &kernel, &arrays[..read]);
    if let Some(renaming) = renaming
        && pushed.is_ok()
    {
        pushed = renaming.enqueue(&mut pushing, engine, &options);
    }
    if pushed.is_ok() && flat {
        // An op that waits for more than its arrays cannot run ahead of its turn.
        let follows = call.variables.is_empty() && call.after.is_empty();
        producers.iter().filter(|_| follows).for_each(|producer| job.follow(producer));
        for (output, _) in &arrays[read..] {
            let ranges = output.buffer().ranges.get(&mut pushing);
            let producer: Weak<Job> = Arc::downgrade(&job);
            ranges.producer = Some(producer);
            ranges.seen = false;
        }
    }
    drop(pushing);
    engine.follow_up();
    Ok(pushed?)
}
