//! Ops made of one strided loop.
//!
//! # Life of one
//!
//! | state | who may act | next |
//! |---|---|---|
//! | open | pushers of ops that read what it fills, who may join it as *followers* | taken, by whoever runs it |
//! | taken | the worker that runs it, and those that help; when the engine comes to it after that, there is nothing left to do | |
//!
//! A large op that has its turn takes its followers along, and theirs, as far as all that they read is there: the
//! loops then run block by block, so that what one writes the next finds in the cache. A follower's own op stays
//! where it is in the queues. It is granted only when the ones before it are settled, and finds itself done.
//!
//! Why that is no race: a follower reads a buffer that an op in hand fills, or one whose version at the push of the
//! follower has finished; its read holds off later writers of both, for as long as its op is pending. It writes to a
//! buffer that nobody had touched when it was pushed, or to the one it reads if nobody else had looked at it since.
//!
//! Idle workers are asked to help with the blocks; who finishes the last one completes the op. Results do not depend
//! on any of this: each element is computed by itself.

use crate::buffer::Storage;
use crate::dtype::Element;
use crate::kernel::{Pointers, StridedLoop, Walk};
use crate::order::{self, Access, Pushing};
use crate::{Array, ArrayError, Buffer, DType, Scalar, Strides};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use weft_engine::{Accesses, Cause, Completion, Device, Engine, OpContext, Payload, PushOptions};

/// Elements of a block: with a few operands it fits the cache of one core.
const BLOCK: usize = 32_768;
/// Followers taken along at most.
const TAKEN: usize = 64;
/// Results below this size are not counted as bytes held by pending ops.
const COUNTED: usize = 4096;

/// What an op reads.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// An array, broadcast to the shape of the result.
    Array(&'a Array),
    /// The same number for every element, of this type.
    Scalar(Scalar, DType),
}

/// An operand of a pushed op.
enum Source {
    Buffer {
        buffer: Arc<Buffer>,
        offset: usize,
        /// Mutations pushed before, if they are those of the buffer's one variable.
        version: Option<u64>,
        /// The op that fills the buffer, if it may be followed.
        producer: Weak<Job>,
        /// Whether the output overlaps it elsewhere: then it is read before anything is written.
        copied: bool,
    },
    Scalar(Element),
}

/// An output that is written once more, and the op that filled it last.
struct Rewritten {
    _buffer: Arc<Buffer>,
    producer: Weak<Job>,
}

enum State {
    Open(Vec<Arc<Job>>),
    Taken,
}

/// One op.
pub(crate) struct Job {
    kernel: StridedLoop,
    engine: Engine,
    sources: Mutex<SmallVec<[Source; 2]>>,
    outputs: SmallVec<[(Arc<Storage>, usize); 1]>,
    /// Outputs that others have had before: while they are held, nobody takes their place.
    rewritten: Mutex<SmallVec<[Rewritten; 1]>>,
    walk: Walk,
    /// Bytes of the elements of each operand.
    items: SmallVec<[u8; 4]>,
    /// Whether all arrays are whole buffers of one layout, so that blocks of one op are blocks of the next.
    flat: bool,
    state: Mutex<State>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// Joins the followers of the op that fills `buffer`, unless it is too late.
    fn follow(self: &Arc<Self>, producer: &Self) {
        if let State::Open(followers) = &mut *lock(&producer.state) {
            followers.push(Arc::clone(self));
        }
    }

    /// Whether all it reads is there or made by an op in hand, and what it rewrites too.
    fn is_ready_after(&self, hand: &[Arc<Self>]) -> bool {
        let in_hand = |producer: &Weak<Self>| hand.iter().any(|job| std::ptr::eq(Arc::as_ptr(job), producer.as_ptr()));
        let rewrites = lock(&self.rewritten).iter().all(|output| in_hand(&output.producer));
        rewrites
            && lock(&self.sources).iter().all(|source| match source {
                Source::Scalar(_) => true,
                Source::Buffer { buffer, version, producer, copied, .. } => {
                    let variable = &buffer.variable;
                    let there = || {
                        version.is_some_and(|version| variable.completed_version() >= version) && !variable.has_failed()
                    };
                    !copied && (in_hand(producer) || there())
                }
            })
    }

    /// Takes the right to run it. Answers the ops that want to follow; nothing if it was taken before.
    fn take(&self) -> Option<Vec<Arc<Self>>> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Open(followers) => Some(followers),
            other => {
                *state = other;
                None
            }
        }
    }

    /// The ops to be run with this one, in the order in which they were pushed.
    fn gather(self: &Arc<Self>, mut waiting: Vec<Arc<Self>>) -> SmallVec<[Arc<Self>; 1]> {
        let mut hand: SmallVec<[Arc<Self>; 1]> = SmallVec::from_elem(Arc::clone(self), 1);
        let mut at = 0;
        while at < waiting.len() && hand.len() < TAKEN {
            let job = Arc::clone(&waiting[at]);
            at += 1;
            if job.walk.size() == self.walk.size()
                && job.is_ready_after(&hand)
                && let Some(more) = job.take()
            {
                waiting.extend(more);
                hand.push(job);
            }
        }
        hand
    }

    /// Where the operands lie. Allocates what is to be written, or takes the place of an operand that nobody else
    /// can see any more.
    fn pointers(&self) -> Result<Prepared, Cause> {
        let mut pointers = Pointers::new();
        let mut elements: SmallVec<[Box<Element>; 2]> = SmallVec::new();
        let mut copies: SmallVec<[Vec<u8>; 1]> = SmallVec::new();
        let mut sources = lock(&self.sources);
        if self.flat
            && let [(storage, 0)] = &self.outputs[..]
        {
            let item = self.items[self.kernel.inputs()];
            for (operand, source) in sources.iter_mut().enumerate() {
                // With the handles gone and no other op reading, the count is ours: get_mut() sees to it that what
                // they did is over.
                if let Source::Buffer { buffer, offset: 0, copied: false, .. } = source
                    && self.items[operand] == item
                    && self.walk.step(0, operand) != 0
                    && let Some(last) = Arc::get_mut(buffer)
                    && storage.take_place(&last.storage)
                {
                    break;
                }
            }
        }
        for (operand, source) in sources.iter().enumerate() {
            let pointer = match source {
                Source::Scalar(element) => {
                    let element = Box::new(*element);
                    let pointer = (&raw const element.0).cast_mut().cast();
                    elements.push(element);
                    pointer
                }
                Source::Buffer { buffer, offset, copied, .. } => {
                    let pointer = buffer.start()?.wrapping_add(*offset);
                    if *copied { self.copy(operand, pointer, &mut copies) } else { pointer }
                }
            };
            pointers.push(pointer);
        }
        for (storage, offset) in &self.outputs {
            pointers.push(storage.start()?.wrapping_add(*offset));
        }
        Ok(Prepared { pointers, _elements: elements, copies })
    }

    /// Copies an operand to where the output does not reach.
    fn copy(&self, operand: usize, from: *mut u8, copies: &mut SmallVec<[Vec<u8>; 1]>) -> *mut u8 {
        let (mut low, mut high) = (0_isize, 0_isize);
        for (axis, &length) in self.walk.shape.iter().enumerate() {
            let far = self.walk.step(axis, operand) * (crate::kernel::signed(length) - 1);
            if far < 0 { low += far } else { high += far }
        }
        let length = (high - low).unsigned_abs() + usize::from(self.items[operand]);
        // SAFETY: the operand's elements reach these bytes, which are inside its buffer.
        let mut bytes = unsafe { std::slice::from_raw_parts(from.wrapping_offset(low), length) }.to_vec();
        let first = bytes.as_mut_ptr().wrapping_offset(-low);
        copies.push(bytes); // what it points to stays where it is
        first
    }

    /// Gives the right to run it back: the engine will come to it.
    fn put_back(&self) {
        *lock(&self.state) = State::Open(Vec::new());
    }

    /// Lets go of what it held.
    fn finish(&self) {
        // Not dropped under a lock: buffers may go with them.
        let held = (std::mem::take(&mut *lock(&self.sources)), std::mem::take(&mut *lock(&self.rewritten)));
        drop(held);
    }
}

/// Where operands lie, and what has to live until the loops have run.
struct Prepared {
    pointers: Pointers,
    _elements: SmallVec<[Box<Element>; 2]>,
    copies: SmallVec<[Vec<u8>; 1]>,
}

// SAFETY: it points into storage that its op may access, and into what it owns.
unsafe impl Send for Prepared {}
// SAFETY: as above; blocks are disjoint.
unsafe impl Sync for Prepared {}

/// Some ops that are run together, block by block.
struct Team {
    jobs: SmallVec<[Arc<Job>; 1]>,
    prepared: Vec<Prepared>,
    blocks: usize,
    /// Steps along the outermost axis for each block.
    step: usize,
    progress: Mutex<Progress>,
}

struct Progress {
    next: usize,
    left: usize,
    completion: Option<Completion>,
}

impl Team {
    fn new(mut jobs: SmallVec<[Arc<Job>; 1]>) -> Result<Self, Cause> {
        let mut prepared = Vec::with_capacity(jobs.len());
        for at in 0..jobs.len() {
            match jobs[at].pointers() {
                Ok(pointers) => prepared.push(pointers),
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
        let walk = &jobs[0].walk;
        let step =
            if prepared[0].copies.is_empty() { (BLOCK / walk.row().max(1)).max(1) } else { walk.shape[0].max(1) };
        let blocks = walk.shape[0].div_ceil(step);
        let progress = Mutex::new(Progress { next: 0, left: blocks, completion: None });
        Ok(Self { jobs, prepared, blocks, step, progress })
    }

    fn block(&self, number: usize) {
        let outermost = self.jobs[0].walk.shape[0];
        let part: Range<usize> = number * self.step..((number + 1) * self.step).min(outermost);
        for (job, prepared) in self.jobs.iter().zip(&self.prepared) {
            // SAFETY: the accesses are granted, or those of a follower, which the module's head speaks of; blocks
            // are disjoint, and each is run once.
            unsafe { job.walk.run(&job.kernel, &prepared.pointers, part.clone()) };
        }
    }

    /// Runs blocks until none is left to be begun.
    fn work(&self) {
        loop {
            let number = {
                let mut progress = lock(&self.progress);
                if progress.next == self.blocks {
                    return;
                }
                progress.next += 1;
                progress.next - 1
            };
            self.block(number);
            let completion = {
                let mut progress = lock(&self.progress);
                progress.left -= 1;
                if progress.left > 0 {
                    continue;
                }
                progress.completion.take()
            };
            self.finish();
            if let Some(completion) = completion {
                // Nobody else has the token.
                let _ = completion.complete(Ok(()));
            }
        }
    }

    fn finish(&self) {
        self.jobs.iter().for_each(|job| job.finish());
    }
}

/// The payload of an op.
struct Run(Arc<Job>);

impl Payload for Run {
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let job = self.0;
        let Some(followers) = job.take() else { return Ok(()) }; // it was taken along
        if job.walk.size() < 2 * BLOCK {
            drop(followers);
            let prepared = job.pointers()?;
            // SAFETY: the accesses are granted.
            unsafe { job.walk.run(&job.kernel, &prepared.pointers, 0..job.walk.shape[0]) };
            job.finish();
            return Ok(());
        }
        let jobs = if job.flat { job.gather(followers) } else { SmallVec::from_elem(Arc::clone(&job), 1) };
        let team = Team::new(jobs)?;
        let engine = &job.engine;
        let helpers = if team.blocks > 1 { engine.idle_workers(Device::default()).min(team.blocks - 1) } else { 0 };
        if helpers == 0 {
            (0..team.blocks).for_each(|number| team.block(number));
            team.finish();
            return Ok(());
        }
        lock(&team.progress).completion = Some(context.defer());
        let team = Arc::new(team);
        for _ in 0..helpers {
            let team = Arc::clone(&team);
            let help = move |_: &mut OpContext<'_>| {
                team.work();
                Ok(())
            };
            // An engine that is closed takes no helpers.
            let _ = engine.push_unlimited(help, &mut Accesses::new(engine), &PushOptions::default());
        }
        team.work();
        Ok(())
    }
}

/// Pushes an op that runs `kernel` over operands broadcast to the outputs' shape, element by element.
///
/// The caller has waited for room for the outputs' bytes, and answers for the types: they are the loop's.
pub fn push_elementwise(
    kernel: StridedLoop,
    outputs: &[&Array],
    inputs: &[Operand<'_>],
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    if inputs.len() != kernel.inputs() || outputs.len() != kernel.outputs() || outputs.is_empty() {
        let message = format!("the loop has {} inputs and {} outputs", kernel.inputs(), kernel.outputs());
        return Err(ArrayError::Invalid(message));
    }
    let engine = outputs[0].engine();
    let shape = &outputs[0].layout().shape;
    let mut strides: SmallVec<[Strides; 3]> = SmallVec::new();
    let mut sources: SmallVec<[Source; 2]> = SmallVec::new();
    let mut items: SmallVec<[u8; 4]> = SmallVec::new();
    let mut flat = true;
    for input in inputs {
        match input {
            Operand::Scalar(scalar, dtype) => {
                let refuse = || ArrayError::Invalid(format!("{scalar:?} is no {}", dtype.name()));
                sources.push(Source::Scalar(scalar.element(*dtype).ok_or_else(refuse)?));
                strides.push(Strides::from_elem(0, shape.len()));
                items.push(0);
            }
            Operand::Array(array) => {
                strides.push(array.layout().broadcast(shape)?);
                let copied = outputs.iter().any(|output| is_elsewhere(output, array, &strides[strides.len() - 1]));
                flat &= is_flat(array) && array.layout().shape == *shape;
                let (buffer, offset) = (Arc::clone(array.buffer()), array.layout().offset);
                sources.push(Source::Buffer { buffer, offset, version: None, producer: Weak::new(), copied });
                items.push(item_of(array));
            }
        }
    }
    for output in outputs {
        output.buffer().check_writable()?;
        if output.layout().shape != *shape {
            let (from, to) = (output.layout().shape.to_vec(), shape.to_vec());
            return Err(ArrayError::Broadcast { from, to });
        }
        flat &= is_flat(output);
        strides.push(output.layout().strides.clone());
        items.push(item_of(output));
        if output.bytes() >= COUNTED {
            options.bytes += output.bytes() as u64;
        }
    }
    let walk = {
        let strides: SmallVec<[&[isize]; 4]> = strides.iter().map(|strides| &strides[..]).collect();
        Walk::new(shape, &strides)
    };
    flat &= walk.shape.len() == 1;
    let outputs_of_job =
        outputs.iter().map(|output| (Arc::clone(&output.buffer().storage), output.layout().offset)).collect();
    let request = Request { engine, inputs, outputs, options };
    request.push(Job {
        kernel,
        engine: engine.clone(),
        sources: Mutex::new(sources),
        outputs: outputs_of_job,
        rewritten: Mutex::default(),
        flat: flat && walk.size() >= 2 * BLOCK,
        walk,
        items,
        state: Mutex::new(State::Open(Vec::new())),
    })
}

#[allow(clippy::cast_possible_truncation)] // elements have 16 bytes at most
fn item_of(array: &Array) -> u8 {
    array.dtype().size() as u8
}

/// Whether the array is all of its buffer, row after row.
fn is_flat(array: &Array) -> bool {
    array.buffer().is_whole(&array.range()) && array.is_contiguous()
}

/// Whether the output reaches bytes of the input at another element than the one it is computed from.
fn is_elsewhere(output: &Array, input: &Array, strides: &Strides) -> bool {
    if !Arc::ptr_eq(output.buffer(), input.buffer()) {
        return false;
    }
    let (written, read) = (output.range(), input.range());
    let overlap = written.start < read.end && read.start < written.end;
    let same = output.layout().offset == input.layout().offset
        && output.layout().strides == *strides
        && output.dtype().size() == input.dtype().size();
    overlap && !same
}

struct Request<'a> {
    engine: &'a Engine,
    inputs: &'a [Operand<'a>],
    outputs: &'a [&'a Array],
    options: PushOptions<'a>,
}

impl Request<'_> {
    fn push(self, job: Job) -> Result<(), ArrayError> {
        let engine = self.engine;
        let arrays: SmallVec<[&Array; 3]> = self
            .inputs
            .iter()
            .filter_map(|input| if let Operand::Array(array) = input { Some(*array) } else { None })
            .collect();
        for array in &arrays {
            order::check_engine(engine, array.buffer())?;
        }
        let flat = job.flat;
        let mut producers: SmallVec<[Arc<Job>; 2]> = SmallVec::new();
        let mut pushing = Pushing::lock();
        self.note_outputs(&mut pushing, &job);
        if flat {
            self.note_sources(&mut pushing, &job, &arrays, &mut producers);
        }
        let (mut parts, mut kinds) = (SmallVec::new(), SmallVec::<[_; 4]>::new());
        for array in &arrays {
            kinds.push(order::enter(&mut pushing, array.buffer(), &array.range(), Access::Read, &mut parts)?);
        }
        for output in self.outputs {
            let all = is_flat(output);
            let access = if all { Access::Overwrite } else { Access::Mutate };
            kinds.push(order::enter(&mut pushing, output.buffer(), &output.range(), access, &mut parts)?);
        }
        let mut accesses = Accesses::new(engine);
        for (array, kind) in arrays.iter().chain(self.outputs).zip(&kinds) {
            accesses.add(&array.buffer().variable, *kind)?;
        }
        for (variable, kind) in &parts {
            accesses.add(variable, *kind)?;
        }
        let job = Arc::new(job);
        let pushed = engine.enqueue(Run(Arc::clone(&job)), &mut accesses, &self.options);
        if flat && pushed.is_ok() {
            producers.iter().for_each(|producer| job.follow(producer));
            for output in self.outputs {
                let ranges = output.buffer().ranges.get(&mut pushing);
                (ranges.producer, ranges.seen) = (Some(Arc::downgrade(&job)), false);
            }
        }
        drop(pushing);
        engine.follow_up();
        Ok(pushed?)
    }

    /// Notes which outputs are written once more.
    fn note_outputs(&self, pushing: &mut Pushing, job: &Job) {
        for output in self.outputs {
            let ranges = output.buffer().ranges.get(pushing);
            if ranges.version() > 0 {
                // Who has looked at what was there before must have done so when it is rewritten.
                let producer = ranges.producer.clone().filter(|_| !ranges.seen).unwrap_or_default();
                lock(&job.rewritten).push(Rewritten { _buffer: Arc::clone(output.buffer()), producer });
            }
        }
    }

    /// Notes the versions of what the op reads, and the ops that it may follow.
    fn note_sources(
        &self,
        pushing: &mut Pushing,
        job: &Job,
        arrays: &[&Array],
        producers: &mut SmallVec<[Arc<Job>; 2]>,
    ) {
        let mut sources = lock(&job.sources);
        let sources = sources.iter_mut().filter_map(|source| match source {
            Source::Buffer { version, producer, .. } => Some((version, producer)),
            Source::Scalar(_) => None,
        });
        for (array, (version, producer)) in arrays.iter().zip(sources) {
            let ranges = array.buffer().ranges.get(pushing);
            if ranges.is_split() {
                continue;
            }
            *version = Some(array.buffer().variable.version());
            if let Some(known) = ranges.producer.as_ref().and_then(Weak::upgrade) {
                *producer = Arc::downgrade(&known);
                if !producers.iter().any(|other| Arc::ptr_eq(other, &known)) {
                    producers.push(known);
                }
            }
        }
    }
}
