//! Calls: the step, its operands, and the engine's options.

use super::recording;
use crate::access::{Renaming, enqueue, place, refuse};
use crate::memory::Pushing;
use crate::memory::recorded::{is_open, is_recording};
use crate::step::{Hosted, Native, Opaque, Operands, Step};
use crate::tuple::Tuple;
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use std::sync::Arc;
use weft_engine::{AccessKind, Accesses, Device, Engine, EngineError, Payload, PushOptions, Variable};

/// A call without its payload.
pub struct Call<'a> {
    /// The engine of all arrays.
    pub engine: &'a Engine,
    /// The arrays with their accesses.
    pub arrays: &'a [(&'a Array, Access)],
    /// Further variables with their accesses.
    pub variables: &'a [(&'a Variable, AccessKind)],
    /// Arrays whose old memory the call is the first to use again: it runs after all ops pushed on them.
    pub after: &'a [&'a Array],
    /// Name, priority, device, bytes.
    pub options: PushOptions<'a>,
    /// Whether it runs on the device of its arrays, whatever device the options say.
    pub at_arrays: bool,
    /// Whether it accepts arrays whose memory is not the host's.
    pub anywhere: bool,
}

impl<'a> Call<'a> {
    /// An op of the host on arrays alone, run on the device of the arrays.
    #[must_use]
    pub fn on(engine: &'a Engine, arrays: &'a [(&'a Array, Access)], options: PushOptions<'a>) -> Self {
        Self { engine, arrays, variables: &[], after: &[], options, at_arrays: true, anywhere: false }
    }

    /// The same for an op that accepts arrays in any memory.
    #[must_use]
    pub fn anywhere(engine: &'a Engine, arrays: &'a [(&'a Array, Access)], options: PushOptions<'a>) -> Self {
        Self { anywhere: true, ..Self::on(engine, arrays, options) }
    }

    /// Refuses a call that cannot be pushed, before any change.
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

    /// Gives the reason why the arrays cannot be pushed.
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
        let pushed = self.enqueue_walk(pushing, payload);
        for (array, access) in self.arrays {
            array.buffer().ranges.get(pushing).readers.long |= *access == Access::Read;
        }
        pushed
    }

    /// The same of a payload that walks over memory once.
    fn enqueue_walk<P: Payload>(&self, pushing: &mut Pushing, payload: P) -> Result<(), EngineError> {
        let mut options = self.options;
        let index = place(pushing, self.arrays);
        if self.at_arrays {
            options.device = Device { index, ..options.device };
        }
        enqueue(pushing, self.engine, (self.arrays, self.variables, self.after), &options, payload)
    }
}

/// The payload of a call, which runs once, and can become a step, which runs many times.
pub trait Repeatable: Payload {
    /// The step that does the same each time, for a recording.
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError>;
}

/// Pushes or records a payload of another crate. The caller has waited for room.
///
/// # Safety
///
/// As for [`record`]: the payload's arrays are those of the call.
pub unsafe fn submit<P: Repeatable>(payload: P, call: &Call<'_>) -> Result<(), ArrayError> {
    if is_recording() {
        // SAFETY: the caller's promise.
        return unsafe { record(Step::Opaque(payload.into_step()?), call) };
    }
    push(payload, call)
}

/// Appends another crate's opaque step to the recording of this thread.
///
/// # Safety
///
/// The step may [run](Opaque::run) on arrays like those of the call.
pub unsafe fn record(step: Step, call: &Call<'_>) -> Result<(), ArrayError> {
    if !matches!(step, Step::Opaque(_)) {
        let message = "only opaque steps can be recorded on arrays for which they were not made".to_owned();
        return Err(ArrayError::Invalid(message));
    }
    note(step, call)
}

/// Appends a step, made for the call's arrays, to the recording of this thread.
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

/// The same of an op that walks over memory once.
pub(crate) fn push_walk<P: Payload>(payload: P, call: &Call<'_>) -> Result<(), ArrayError> {
    recording::refuse_push(call.options.name)?;
    call.check()?;
    enter_engine(call, |pushing| call.enqueue_walk(pushing, payload))
}

/// Pushes an op that is made for the arrays of the call, or for others like them: arrays that it overwrites, if they are all of their
/// buffers and others still use these, may be new memory for the buffers (`access::rename`). The caller has waited for room.
pub(crate) fn push_renaming<P: Payload>(
    call: &Call<'_>,
    payload: impl FnOnce(&[(&Array, Access)]) -> P,
) -> Result<(), ArrayError> {
    recording::refuse_push(call.options.name)?;
    call.check()?;
    let renamings = if call.after.is_empty() { Renaming::of_all(call.arrays) } else { SmallVec::new() };
    if renamings.is_empty() {
        let payload = payload(call.arrays);
        return enter_engine(call, |pushing| call.enqueue(pushing, payload));
    }
    let values: SmallVec<[Array; 1]> = renamings.iter().map(|(_, renaming)| renaming.values().clone()).collect();
    let spares: SmallVec<[(Variable, AccessKind); 1]> =
        renamings.iter().map(|(_, renaming)| renaming.access()).collect();
    let mut arrays: SmallVec<[(&Array, Access); 4]> = call.arrays.into();
    for ((at, _), values) in renamings.iter().zip(&values) {
        arrays[*at] = (values, Access::Overwrite);
    }
    let mut variables: SmallVec<[(&Variable, AccessKind); 4]> = call.variables.into();
    variables.extend(spares.iter().map(|(spare, kind)| (spare, *kind)));
    let payload = payload(&arrays);
    let call = Call { arrays: &arrays, variables: &variables, ..*call };
    enter_engine(&call, |pushing| {
        call.enqueue(pushing, payload)?;
        renamings.into_iter().try_for_each(|(_, renaming)| renaming.enqueue(pushing, call.engine, &call.options))
    })
}

/// Pushes or records a payload of another crate, as [`submit`] does; if it is pushed, arrays that it overwrites may be others, whose
/// memory becomes that of the call's.
///
/// # Safety
///
/// As for [`record`]: the payload's arrays are those that `payload` is given.
pub unsafe fn submit_overwriting<P: Repeatable>(
    call: &Call<'_>,
    payload: impl FnOnce(&[(&Array, Access)]) -> P,
) -> Result<(), ArrayError> {
    if is_recording() {
        // SAFETY: the caller's promise.
        return unsafe { record(Step::Opaque(payload(call.arrays).into_step()?), call) };
    }
    push_renaming(call, payload)
}

/// Decides the op's effect on its arrays and pushes it, under one lock.
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

/// Pushes two ops of one engine, the second directly behind the first: no push on their arrays comes between.
pub fn push_pair<P: Payload, Q: Payload>(
    (first, call): (P, &Call<'_>),
    (second, follower): (Q, &Call<'_>),
) -> Result<(), ArrayError> {
    recording::refuse_push(call.options.name)?;
    call.check()?;
    follower.check()?;
    let mut second = Some(second); // if it is refused, it is dropped after the lock
    enter_engine(call, |pushing| {
        call.enqueue(pushing, first)?;
        second.take().map_or(Ok(()), |second| follower.enqueue(pushing, second))
    })
}

/// Pushes an opaque step on the arrays of `call`.
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

/// Refuses an array that an op of the host cannot use.
#[inline]
pub(crate) fn check(engine: &Engine, array: &Array) -> Result<(), ArrayError> {
    check_engine(engine, array)?;
    if array.buffer().is_host() { Ok(()) } else { check_memory(array) }
}

/// Refuses an array in memory that the host does not reach, unless it belongs to the recording of this thread.
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
