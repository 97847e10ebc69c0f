//! Callables and native functions as steps, which run at each replay.

use super::callable::{AsyncCallable, Callable};
use super::native::Native;
use super::trace::Traced;
use crate::interpreter::location::Location;
use pyo3::prelude::*;
use std::sync::Arc;
use weft_array::{ArrayError, Opaque, Operands, recording};
use weft_engine::{Cause, OpContext, Payload};

/// Refuses a callable that answers somebody, once.
pub(crate) fn refuse_answering(dropped: Option<&Py<PyAny>>) -> Result<(), ArrayError> {
    if dropped.is_none() {
        return Ok(());
    }
    let message = "what answers a future cannot be recorded, as it would answer at each replay: use a task that writes \
                   its result into an array";
    Err(ArrayError::Capture(message.to_owned()))
}

struct Calling(Callable);

impl Opaque for Calling {
    fn is_hosted(&self) -> bool {
        true
    }

    fn run(&self, _: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        self.0.clone_ref(py).run(context)
    }

    fn place(&self) -> u64 {
        self.0.location.bits()
    }
}

/// A callable as a step.
pub(crate) fn calling(callable: Callable) -> Result<Arc<dyn Opaque>, ArrayError> {
    refuse_answering(callable.dropped.as_ref())?;
    Ok(Arc::new(Calling(callable)))
}

struct Starting(Callable);

impl Opaque for Starting {
    fn is_hosted(&self) -> bool {
        true
    }

    fn run(&self, _: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: as above.
        let py = unsafe { Python::assume_attached() };
        AsyncCallable(self.0.clone_ref(py)).run(context)
    }

    fn completes_later(&self) -> bool {
        true
    }

    fn place(&self) -> u64 {
        self.0.location.bits()
    }
}

/// A callable that starts what completes later, as a step: each replay has a completion of its own.
pub(crate) fn starting(callable: AsyncCallable) -> Result<Arc<dyn Opaque>, ArrayError> {
    refuse_answering(callable.0.dropped.as_ref())?;
    Ok(Arc::new(Starting(callable.0)))
}

struct CallingNative {
    native: Native,
    _object: Option<Py<PyAny>>,
}

// SAFETY: who pushed the function vouches for calls from any thread, whenever the accesses allow it.
unsafe impl Sync for CallingNative {}

impl Opaque for CallingNative {
    fn is_hosted(&self) -> bool {
        false
    }

    fn run(&self, _: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.native.call(context)
    }

    fn place(&self) -> u64 {
        self.native.location.bits()
    }
}

/// A native function as a step, and what it keeps alive.
pub(crate) fn native(native: Native, object: Option<Py<PyAny>>) -> Arc<dyn Opaque> {
    Arc::new(CallingNative { native, _object: object })
}

/// Names the op that this payload is about to become in the recording of this thread.
pub(crate) fn announce<P: Traced>(py: Python<'_>, payload: &P, name: Option<&str>) {
    let location: Location = payload.location();
    let called = || {
        let callable = payload.callable()?.bind(py);
        callable.getattr("__name__").ok()?.extract::<String>().ok()
    };
    let name = name.map(ToOwned::to_owned).or_else(called);
    recording::announce(name.as_deref().unwrap_or("native function"), location.bits());
}
