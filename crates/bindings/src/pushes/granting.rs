//! Pushes of callables and native functions whose accesses include arrays.

use super::accesses::Held as Arguments;
use crate::array::{NDArray, raised};
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
use weft_array::{Access, Array, ArrayError, Call, Opaque, Operands, Repeatable, granting, submit};
use weft_engine::{AccessKind, Cause, OpContext, Payload, PlaceOffset, PushOptions, Variable};

/// The arrays that an op keeps.
type Held = Vec<(Array, Access)>;

/// A payload that may touch these arrays while it runs.
pub(crate) struct Granting<P> {
    payload: P,
    arrays: Held,
    location: Location,
}

impl<P: Payload> Payload for Granting<P> {
    const HOSTED: bool = P::HOSTED;
    const PLACE: Option<PlaceOffset<Self>> = match P::PLACE {
        // SAFETY: the payload lies at this offset.
        Some(place) => Some(unsafe { place.within(offset_of!(Self, payload)) }),
        None => None,
    };

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        granting(&self.arrays, || {
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

/// The held arrays, without Python's handles.
pub(crate) fn arrays_of(held: &[(Bound<'_, NDArray>, Access)]) -> Held {
    held.iter().map(|(array, access)| (array.get().inner.clone(), *access)).collect()
}

/// Pushes an op on arrays and variables, after a wait for room. The op keeps the arrays of `held`. It runs on the
/// device of its arrays, unless the caller has named one.
pub(crate) fn push<P: Traced>(
    py: Python<'_>,
    engine: &Engine,
    mut payload: P,
    (arrays, held): (&[(&Array, Access)], Held),
    variables: &[(&Variable, AccessKind)],
    mut options: PushOptions<'_>,
    at_arrays: bool,
) -> PyResult<()> {
    engine.make_way(py, options.bytes, || announce(py, &payload, options.name))?;
    if engine.inner.is_observed() {
        (payload, options.note) = engine.traced(py, payload, options.name)?;
    }
    let location = payload.location();
    let payload = Granting { payload, arrays: held, location };
    let request = Call { variables, at_arrays, anywhere: P::HOSTED, ..Call::on(&engine.inner, arrays, options) };
    // SAFETY: the payload shows its arrays, which are these, to a callable that takes any.
    unsafe { submit(payload, &request) }.map_err(|error| raised(py, error))?;
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
    push(py, engine, payload, (&arrays, arrays_of(&held.arrays)), &variables, options, at_arrays)
}
