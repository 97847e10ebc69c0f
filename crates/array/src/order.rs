//! Which variables an access to some bytes of a buffer touches.
//!
//! A buffer has one variable for the whole, and variables for ranges that were written on their own. It is in one of
//! two states, which change only by an op of their own:
//!
//! | state | an access to the whole | an access to a range | becomes |
//! |---|---|---|---|
//! | whole | the buffer's variable | to read: the buffer's variable | to write a range: *split*, by a barrier behind all before |
//! | split | becomes whole first | reads the buffer's variable; and the variables of all ranges that it overlaps, its own among them | whole, by a *join*: reads the ranges' variables, mutates the buffer's |
//!
//! So writes to disjoint ranges run side by side, and two accesses to overlapping ranges meet at the variable of the
//! one whose range was named first. A range's failure reaches the whole through the join.
//!
//! What ranges there are is decided together with the push that follows from it, under one lock for all buffers:
//! ops on several buffers would else see them in different orders. Nothing that a user wrote runs under it.

use crate::{Array, ArrayError, Buffer};
use smallvec::SmallVec;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::{AccessKind, Accesses, Engine, EngineError, OpContext, Payload, PushOptions, Variable};

/// Ranges of one buffer before they are joined: looking through them takes time.
const RANGES: usize = 256;

/// The lock, held.
pub(crate) struct Pushing {
    _guard: MutexGuard<'static, ()>,
}

impl Pushing {
    #[inline]
    pub(crate) fn lock() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        Self { _guard: LOCK.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// What only the holder of the lock may touch.
#[derive(Default)]
pub(crate) struct Guarded<T>(UnsafeCell<T>);

// SAFETY: reached with a `Pushing` alone, of which there is one.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    #[inline]
    pub(crate) fn get<'a>(&'a self, _pushing: &'a mut Pushing) -> &'a mut T {
        // SAFETY: there is one `Pushing`, and it is borrowed for as long as the answer is.
        unsafe { &mut *self.0.get() }
    }
}

/// What was pushed on a buffer.
#[derive(Default)]
pub(crate) struct Ranges {
    split: bool,
    parts: Vec<(Range<usize>, Variable)>,
    /// Mutations pushed.
    version: u64,
    /// The op that fills the whole buffer, while nothing else has written to it since.
    pub(crate) producer: Option<std::sync::Weak<crate::elementwise::Job>>,
    /// Whether anybody has looked at what it fills since.
    pub(crate) seen: bool,
}

impl Ranges {
    /// Mutations pushed.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn is_split(&self) -> bool {
        self.split
    }
}

/// What an op does with an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looks at it.
    Read,
    /// Changes it.
    Mutate,
    /// Writes all its elements without looking at them.
    Overwrite,
}

/// An op to be pushed: its arrays, and what the engine is told besides.
pub struct PushRequest<'a> {
    /// The engine of all arrays.
    pub engine: &'a Engine,
    /// The arrays, each with what is done to it.
    pub arrays: &'a [(&'a Array, Access)],
    /// Name, priority, device, bytes.
    pub options: PushOptions<'a>,
}

type Parts = SmallVec<[(Variable, AccessKind); 4]>;

/// Notes the access, changes the buffer's state if need be, and collects the variables of ranges.
#[inline]
pub(crate) fn enter(
    pushing: &mut Pushing,
    buffer: &Buffer,
    range: &Range<usize>,
    access: Access,
    parts: &mut Parts,
) -> Result<AccessKind, EngineError> {
    let whole = buffer.is_whole(range);
    if range.is_empty() && !whole {
        return Ok(AccessKind::Read); // there is nothing to write
    }
    let ranges = buffer.ranges.get(pushing);
    if access == Access::Read {
        ranges.seen = true;
        if !ranges.split {
            return Ok(AccessKind::Read);
        }
    } else {
        ranges.version += 1;
        ranges.producer = None;
    }
    if !whole {
        if !ranges.split {
            barrier(buffer)?;
            ranges.split = true;
        }
        if ranges.parts.len() < RANGES {
            part(ranges, buffer, range, access, parts);
            return Ok(AccessKind::Read);
        }
    }
    if ranges.split {
        join(ranges, buffer)?;
        if !whole {
            barrier(buffer)?;
            ranges.split = true;
            part(ranges, buffer, range, access, parts);
            return Ok(AccessKind::Read);
        }
    }
    Ok(match access {
        Access::Read => AccessKind::Read,
        Access::Mutate => AccessKind::Mutate,
        Access::Overwrite => AccessKind::Overwrite,
    })
}

/// The variables of a range of a split buffer.
fn part(ranges: &mut Ranges, buffer: &Buffer, range: &Range<usize>, access: Access, parts: &mut Parts) {
    let kind = if access == Access::Read { AccessKind::Read } else { AccessKind::Mutate };
    let mut known = false;
    for (other, variable) in &ranges.parts {
        if other.start < range.end && range.start < other.end {
            let same = other == range;
            known |= same;
            // Only who writes all of it makes a new version of it.
            let kind = if same && access == Access::Overwrite { AccessKind::Overwrite } else { kind };
            parts.push((variable.clone(), kind));
        }
    }
    if !known {
        let variable = buffer.engine().new_variable(None);
        parts.push((variable.clone(), kind));
        ranges.parts.push((range.clone(), variable));
    }
}

#[allow(clippy::unnecessary_wraps)] // a payload
fn nothing(_: &mut OpContext<'_>) -> Result<(), weft_engine::Cause> {
    Ok(())
}

/// Waits, as an op, for all accesses before.
#[cold]
fn barrier(buffer: &Buffer) -> Result<(), EngineError> {
    let mut accesses = Accesses::new(buffer.engine());
    accesses.add(&buffer.variable, AccessKind::Exclusive)?;
    buffer.engine().enqueue(nothing, &mut accesses, &PushOptions::default())
}

/// Makes a split buffer whole.
#[cold]
fn join(ranges: &mut Ranges, buffer: &Buffer) -> Result<(), EngineError> {
    let parts = std::mem::take(&mut ranges.parts);
    let mut accesses = Accesses::new(buffer.engine());
    for (_, variable) in &parts {
        accesses.add(variable, AccessKind::Read)?;
    }
    accesses.add(&buffer.variable, AccessKind::Mutate)?;
    let joined = buffer.engine().enqueue(nothing, &mut accesses, &PushOptions::default());
    if joined.is_ok() {
        ranges.split = false;
    }
    drop(accesses);
    if joined.is_err() {
        ranges.parts = parts;
    }
    joined
}

/// Makes the buffer whole, so that its one variable tells of all of it.
pub(crate) fn make_whole(buffer: &Buffer) -> Result<(), EngineError> {
    let mut pushing = Pushing::lock();
    let ranges = buffer.ranges.get(&mut pushing);
    let joined = if ranges.split { join(ranges, buffer) } else { return Ok(()) };
    drop(pushing);
    buffer.engine().follow_up();
    joined
}

/// Pushes an op. The caller has waited for room.
pub fn push<P: Payload>(payload: P, request: &PushRequest<'_>) -> Result<(), ArrayError> {
    for (array, access) in request.arrays {
        if *access != Access::Read {
            array.buffer().check_writable()?;
        }
    }
    let mut pushing = Pushing::lock();
    let (mut parts, mut kinds) = (Parts::new(), SmallVec::<[AccessKind; 8]>::new());
    for (array, access) in request.arrays {
        check_engine(request.engine, array.buffer())?;
        let access = if *access == Access::Overwrite && !array.is_contiguous() { Access::Mutate } else { *access };
        kinds.push(enter(&mut pushing, array.buffer(), &array.range(), access, &mut parts)?);
    }
    let mut accesses = Accesses::new(request.engine);
    for ((array, _), kind) in request.arrays.iter().zip(kinds) {
        accesses.add(&array.buffer().variable, kind)?;
    }
    for (variable, kind) in &parts {
        accesses.add(variable, *kind)?;
    }
    let pushed = request.engine.enqueue(payload, &mut accesses, &request.options);
    drop(pushing);
    request.engine.follow_up();
    Ok(pushed?)
}

/// Refuses a buffer of another engine.
#[inline]
pub(crate) fn check_engine(engine: &Engine, buffer: &Buffer) -> Result<(), EngineError> {
    if engine.is_same(buffer.engine()) {
        return Ok(());
    }
    Err(EngineError::WrongEngine {
        variable: buffer.variable.label(),
        owner: buffer.engine().name().to_owned(),
        engine: engine.name().to_owned(),
    })
}

/// Mutations of the buffer that were pushed.
pub(crate) fn version(buffer: &Arc<Buffer>) -> u64 {
    buffer.ranges.get(&mut Pushing::lock()).version()
}
