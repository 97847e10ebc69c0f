//! Callables and native functions as steps, which run at each replay.

use super::callable::{AsyncCallable, Callable};
use super::kept::Kept;
use super::native::Native;
use super::trace::Traced;
use crate::interpreter::location::Location;
use crate::interpreter::loose::Loose;
use pyo3::prelude::*;
use std::any::Any;
use std::sync::Arc;
use weft_array::{ArrayError, Opaque, Operands, recording};
use weft_engine::{Cause, OpContext, Payload};

/// Refuses a callable that answers a waiter: it runs once.
pub(crate) fn refuse_answering(dropped: Option<&Loose<PyAny>>) -> Result<(), ArrayError> {
    if dropped.is_none() {
        return Ok(());
    }
    let message = "what answers a future cannot be recorded, as it would answer at each replay: use a task that writes \
                   its result into an array";
    Err(ArrayError::Capture(message.to_owned()))
}

/// A callable as its steps keep it.
struct Again {
    function: Kept,
    location: Location,
}

impl Again {
    fn new(callable: Callable) -> Self {
        Self { function: Kept::new(callable.function), location: callable.location }
    }

    fn callable(&self, py: Python<'_>) -> Callable {
        Callable { function: self.function.object().clone_ref(py).into(), location: self.location, dropped: None }
    }
}

struct Calling(Again);

impl Opaque for Calling {
    fn is_hosted(&self) -> bool {
        true
    }

    unsafe fn run(&self, _: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: hosted payloads run inside `Gil::enter`.
        let py = unsafe { Python::assume_attached() };
        self.0.callable(py).run(context)
    }

    fn place(&self) -> u64 {
        self.0.location.bits()
    }

    fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        is_pure(&self.0.function)
    }

    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        each(&self.0.function);
    }
}

/// A callable as a step.
pub(crate) fn calling(callable: Callable) -> Result<Arc<dyn Opaque>, ArrayError> {
    refuse_answering(callable.dropped.as_ref())?;
    Ok(Arc::new(Calling(Again::new(callable))))
}

struct Starting(Again);

impl Opaque for Starting {
    fn is_hosted(&self) -> bool {
        true
    }

    unsafe fn run(&self, _: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: as above.
        let py = unsafe { Python::assume_attached() };
        AsyncCallable(self.0.callable(py)).run(context)
    }

    fn completes_later(&self) -> bool {
        true
    }

    fn place(&self) -> u64 {
        self.0.location.bits()
    }

    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        each(&self.0.function);
    }
}

/// A callable that starts work which completes later, as a step: each replay has a completion of its own.
pub(crate) fn starting(callable: AsyncCallable) -> Result<Arc<dyn Opaque>, ArrayError> {
    refuse_answering(callable.0.dropped.as_ref())?;
    Ok(Arc::new(Starting(Again::new(callable.0))))
}

struct CallingNative {
    native: Native,
    object: Option<Kept>,
}

// SAFETY: the author of the push vouches for calls from any thread, whenever the accesses allow it.
unsafe impl Sync for CallingNative {}

impl Opaque for CallingNative {
    fn is_hosted(&self) -> bool {
        false
    }

    unsafe fn run(&self, _: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.native.call(context)
    }

    fn place(&self) -> u64 {
        self.native.location.bits()
    }

    fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        self.object.as_ref().is_some_and(|object| is_pure(object))
    }

    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        if let Some(object) = &self.object {
            each(object);
        }
    }
}

/// A native function as a step, and the objects that it keeps alive.
pub(crate) fn native(native: Native, object: Option<Loose<PyAny>>) -> Arc<dyn Opaque> {
    Arc::new(CallingNative { native, object: object.map(Kept::new) })
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
