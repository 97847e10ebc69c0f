//! Calls: the step, its operands, and the engine's options.

use super::recording;
use crate::access::{enqueue, place, refuse};
use crate::memory::Pushing;
use crate::memory::recorded::{is_open, is_recording};
use crate::step::{Hosted, Native, Opaque, Operands, Step};
use crate::tuple::Tuple;
use crate::{Access, Array, ArrayError};
use std::sync::Arc;
use weft_engine::{AccessKind, Accesses, Device, Engine, EngineError, Payload, PushOptions, Variable};

/// A call, but for what it runs.
pub struct Call<'a> {
    /// The engine of all arrays.
    pub engine: &'a Engine,
    /// The arrays, each with what is done to it.
    pub arrays: &'a [(&'a Array, Access)],
    /// What it accesses besides.
    pub variables: &'a [(&'a Variable, AccessKind)],
    /// Arrays whose memory it is the first to use after them: it comes behind all that was pushed on them.
    pub after: &'a [&'a Array],
    /// Name, priority, device, bytes.
    pub options: PushOptions<'a>,
    /// Whether it runs where its arrays belong, whatever device the options say.
    pub at_arrays: bool,
    /// Whether it knows what to do with arrays whose memory is not the host's.
    pub anywhere: bool,
}

impl<'a> Call<'a> {
    /// An op of the host on arrays alone, to run where they belong.
    #[must_use]
    pub fn on(engine: &'a Engine, arrays: &'a [(&'a Array, Access)], options: PushOptions<'a>) -> Self {
        Self { engine, arrays, variables: &[], after: &[], options, at_arrays: true, anywhere: false }
    }

    /// The same for an op that takes arrays wherever their memory is.
    #[must_use]
    pub fn anywhere(engine: &'a Engine, arrays: &'a [(&'a Array, Access)], options: PushOptions<'a>) -> Self {
        Self { anywhere: true, ..Self::on(engine, arrays, options) }
    }

    /// Refuses what cannot be pushed. Nothing has been changed then.
    #[inline]
    fn check(&self) -> Result<(), ArrayError> {
        let suits = |(array, access): &(&Array, Access)| {
            let buffer = array.buffer();
            (*access == Access::Read || !buffer.is_readonly())
                && self.engine.is_same(buffer.engine())
                && (buffer.is_host() || (self.anywhere && buffer.is_elsewhere() && buffer.recording().is_none()))
        };
        if !self.arrays.iter().all(suits) {
            self.refuse()?;
        }
        refuse(self.arrays.iter().map(|(array, _)| *array))?;
        self.variables
            .iter()
            .try_for_each(|(variable, kind)| Accesses::new(self.engine).add(variable, *kind).map_err(ArrayError::from))
    }

    /// Says why the arrays cannot be pushed.
    #[cold]
    fn refuse(&self) -> Result<(), ArrayError> {
        for (array, access) in self.arrays {
            if *access != Access::Read {
                array.buffer().check_writable()?;
            }
        }
        for (array, _) in self.arrays {
            check_engine(self.engine, array)?;
            if !self.anywhere || !array.buffer().is_elsewhere() {
                check_memory(array)?;
            } else if let Some(tag) = array.buffer().recording().filter(|tag| !is_open(tag)) {
                return Err(ArrayError::Recorded { recording: tag.name().to_owned() });
            }
        }
        Ok(())
    }

    fn enqueue<P: Payload>(&self, pushing: &mut Pushing, payload: P) -> Result<(), EngineError> {
        let mut options = self.options;
        let index = place(pushing, self.arrays);
        if self.at_arrays {
            options.device = Device { index, ..options.device };
        }
        enqueue(pushing, self.engine, (self.arrays, self.variables, self.after), &options, payload)
    }
}

/// What runs a call: once, as a payload, or again and again, as a step.
pub trait Repeatable: Payload {
    /// The step that does the same each time, for a recording.
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError>;
}

/// Hands a call over that somebody else wrote. The caller has waited for room.
///
/// # Safety
///
/// As for [`record`]: the arrays of the call are those of the payload.
pub unsafe fn submit<P: Repeatable>(payload: P, call: &Call<'_>) -> Result<(), ArrayError> {
    if is_recording() {
        // SAFETY: the caller's promise.
        return unsafe { record(Step::Opaque(payload.into_step()?), call) };
    }
    push(payload, call)
}

/// Appends a step that somebody else wrote, an opaque one, to the recording of this thread.
///
/// # Safety
///
/// The step may [run](Opaque::run) on arrays that are like those of the call.
pub unsafe fn record(step: Step, call: &Call<'_>) -> Result<(), ArrayError> {
    if !matches!(step, Step::Opaque(_)) {
        let message = "only opaque steps can be recorded on arrays for which they were not made".to_owned();
        return Err(ArrayError::Invalid(message));
    }
    note(step, call)
}

/// Appends a step to the recording of this thread, which was made for the arrays of the call.
pub(crate) fn note(step: Step, call: &Call<'_>) -> Result<(), ArrayError> {
    call.check()?;
    recording::append(step, call)
}

/// Pushes an op that cannot be recorded. The caller has waited for room.
pub fn push<P: Payload>(payload: P, call: &Call<'_>) -> Result<(), ArrayError> {
    recording::refuse_push(call.options.name)?;
    call.check()?;
    enter_engine(call, |pushing| call.enqueue(pushing, payload))
}

/// Decides what an op does to its arrays and pushes it, under the lock.
pub(crate) fn enter_engine(
    call: &Call<'_>,
    enter: impl FnOnce(&mut Pushing) -> Result<(), EngineError>,
) -> Result<(), ArrayError> {
    let mut pushing = Pushing::lock();
    let pushed = enter(&mut pushing);
    drop(pushing);
    call.engine.follow_up();
    Ok(pushed?)
}

/// Pushes two ops of one engine, the second right behind the first: no push on their arrays comes between.
pub fn push_pair<P: Payload, Q: Payload>(
    (first, call): (P, &Call<'_>),
    (second, follower): (Q, &Call<'_>),
) -> Result<(), ArrayError> {
    recording::refuse_push(call.options.name)?;
    call.check()?;
    follower.check()?;
    let mut second = Some(second); // if it is refused, it does not go under the lock
    enter_engine(call, |pushing| {
        call.enqueue(pushing, first)?;
        second.take().map_or(Ok(()), |second| follower.enqueue(pushing, second))
    })
}

/// Pushes an opaque step on these arrays, which are `call`'s.
///
/// # Safety
///
/// The step may [run](Opaque::run) on them.
pub(crate) unsafe fn push_opaque(
    step: &Arc<dyn Opaque>,
    operands: Operands,
    call: &Call<'_>,
) -> Result<(), ArrayError> {
    if step.is_hosted() {
        // SAFETY: the caller's promise.
        push(unsafe { Hosted::new(Arc::clone(step), operands) }, call)
    } else {
        // SAFETY: as above.
        push(unsafe { Native::new(Arc::clone(step), operands) }, call)
    }
}

/// Refuses an array for an op of the host.
#[inline]
pub(crate) fn check(engine: &Engine, array: &Array) -> Result<(), ArrayError> {
    check_engine(engine, array)?;
    if array.buffer().is_host() { Ok(()) } else { check_memory(array) }
}

/// Refuses an array whose memory the host does not reach, unless it belongs to the recording of this thread.
#[cold]
fn check_memory(array: &Array) -> Result<(), ArrayError> {
    match array.buffer().recording() {
        Some(tag) if is_open(tag) && !array.buffer().is_elsewhere() => Ok(()),
        _ => array.buffer().check_host(),
    }
}

/// Refuses an array of another engine.
#[inline]
pub(crate) fn check_engine(engine: &Engine, array: &Array) -> Result<(), EngineError> {
    let buffer = array.buffer();
    if !engine.is_same(buffer.engine()) {
        let variable = format!("an array of shape {}", Tuple(&array.layout().shape));
        let (owner, engine) = (buffer.engine().name().to_owned(), engine.name().to_owned());
        return Err(EngineError::WrongEngine { variable, owner, engine });
    }
    Ok(())
}
