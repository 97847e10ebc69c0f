//! Pushes of callables and native functions whose accesses include arrays.

use super::accesses::Held as Arguments;
use crate::array::raised;
use crate::engine::Engine;
use crate::interpreter::devices;
use crate::interpreter::exceptions::Exceptions;
use crate::interpreter::failures::Raised;
use crate::interpreter::location::Location;
use crate::payloads::announce;
use crate::payloads::trace::Traced;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::mem::offset_of;
use std::sync::Arc;
use weft_array::{
    Access, Array, ArrayError, Call, Opaque, Operands, Repeatable, granting, standing, submit, submit_overwriting,
};
use weft_engine::{AccessKind, Cause, OpContext, Payload, PlaceOffset, PushOptions, Variable};

/// The arrays that an op keeps.
type Held = Vec<(Array, Access)>;

/// A payload that may touch these arrays while it runs.
pub(crate) struct Granting<P> {
    payload: P,
    arrays: Held,
    /// The arrays of the push, if others stand for some of them.
    pushed: Option<Box<[Array]>>,
    location: Location,
}

impl<P> Granting<P> {
    fn new(payload: P, location: Location, pushed: &[(&Array, Access)], arrays: &[(&Array, Access)]) -> Self {
        let is_other = |((pushed, _), (array, _)): (&(&Array, Access), &(&Array, Access))| {
            !Arc::ptr_eq(pushed.buffer(), array.buffer())
        };
        let others = pushed.iter().zip(arrays).any(is_other);
        let pushed = others.then(|| pushed.iter().map(|(array, _)| (*array).clone()).collect());
        let arrays = arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect();
        Self { payload, arrays, pushed, location }
    }

    /// Runs `body` with the rights of the op. Code that knows the arrays of the push is shown those that stand for them, and is refused
    /// pushes on both.
    fn granting<T>(arrays: &[(Array, Access)], pushed: Option<&[Array]>, body: impl FnOnce() -> T) -> T {
        let Some(pushed) = pushed else { return granting(arrays, body) };
        let known = pushed.iter().zip(arrays).map(|(array, (_, access))| (array.clone(), *access));
        let both: Held = arrays.iter().cloned().chain(known).collect();
        standing(pushed, arrays, || granting(&both, body))
    }
}

impl<P: Payload> Payload for Granting<P> {
    const HOSTED: bool = P::HOSTED;
    const PLACE: Option<PlaceOffset<Self>> = match P::PLACE {
        // SAFETY: the payload lies at this offset.
        Some(place) => Some(unsafe { place.within(offset_of!(Self, payload)) }),
        None => None,
    };

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        Self::granting(&self.arrays, self.pushed.as_deref(), || {
            if !P::HOSTED || !self.arrays.iter().any(|(array, _)| array.buffer().is_elsewhere()) {
                return self.payload.run(context);
            }
            on_stream(&self.arrays, self.location, context, |context| self.payload.run(context))
        })
    }

    fn discard(self) {
        self.payload.discard();
    }
}

/// Runs a hosted payload on one of its arrays' streams.
fn on_stream(
    arrays: &[(Array, Access)],
    location: Location,
    context: &mut OpContext<'_>,
    run: impl FnOnce(&mut OpContext<'_>) -> Result<(), Cause>,
) -> Result<(), Cause> {
    // SAFETY: hosted payloads run inside `Gil::enter`.
    let py = unsafe { Python::assume_attached() };
    let label = context.label();
    let (mut outcome, mut run) = (Ok(()), Some(run));
    let mut body = || {
        outcome = run.take().map_or(Ok(()), |run| run(context));
        Ok(())
    };
    let issued = devices::run(py, arrays, (label.as_str(), location.bits()), &mut body);
    outcome.and(issued.map_err(|error| Cause::Error(Box::new(Raised::new(py, Exceptions::of(context), &error)))))
}

/// A hosted step with some of its arrays on a device.
struct OnStream {
    step: Arc<dyn Opaque>,
    location: Location,
}

impl Opaque for OnStream {
    fn is_hosted(&self) -> bool {
        true
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        on_stream(arrays, self.location, context, |context| unsafe { self.step.run(arrays, context) })
    }

    fn completes_later(&self) -> bool {
        self.step.completes_later()
    }

    fn discard(&self) {
        self.step.discard();
    }

    fn place(&self) -> u64 {
        self.step.place()
    }
}

impl<P: Traced> Repeatable for Granting<P> {
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        let (step, location) = (self.payload.into_step()?, self.location);
        if P::HOSTED && self.arrays.iter().any(|(array, _)| array.buffer().is_elsewhere()) {
            return Ok(Arc::new(OnStream { step, location }));
        }
        Ok(step)
    }
}

/// Pushes an op on arrays and variables, after a wait for room. The op keeps the arrays. It runs on the device of its arrays,
/// unless the caller has named one.
pub(crate) fn push<P: Traced>(
    py: Python<'_>,
    engine: &Engine,
    mut payload: P,
    arrays: &[(&Array, Access)],
    variables: &[(&Variable, AccessKind)],
    mut options: PushOptions<'_>,
    at_arrays: bool,
) -> PyResult<()> {
    engine.make_way(py, options.bytes, || announce(py, &payload, options.name))?;
    if engine.inner.is_observed() {
        (payload, options.note) = engine.traced(py, payload, options.name)?;
    }
    let location = payload.location();
    let request = Call { variables, at_arrays, anywhere: P::HOSTED, ..Call::on(&engine.inner, arrays, options) };
    let granting = |given: &[(&Array, Access)]| Granting::new(payload, location, arrays, given);
    let pushed = if P::HOSTED {
        // SAFETY: the payload shows its arrays, which are those that it is given, to a callable that takes any.
        unsafe { submit_overwriting(&request, granting) }
    } else {
        // SAFETY: as above; a native function may know where the arrays of the push lie, and gets no others.
        unsafe { submit(granting(arrays), &request) }
    };
    pushed.map_err(|error| raised(py, error))?;
    engine.hand_over(py);
    Ok(())
}

/// The same for the arguments held by a push from Python.
pub(crate) fn push_held<P: Traced>(
    py: Python<'_>,
    engine: &Engine,
    payload: P,
    held: &Arguments<'_>,
    options: PushOptions<'_>,
    at_arrays: bool,
) -> PyResult<()> {
    let variables: SmallVec<[_; 6]> =
        held.variables.iter().map(|(variable, kind)| (&variable.get().inner, *kind)).collect();
    let arrays: SmallVec<[_; 6]> = held.arrays.iter().map(|(array, access)| (&array.get().inner, *access)).collect();
    push(py, engine, payload, &arrays, &variables, options, at_arrays)
}
