//! Native functions as payloads: they never touch the GIL.

use crate::interpreter::exceptions::Exceptions;
use crate::interpreter::failures::NativeFailure;
use crate::interpreter::location::Location;
use crate::interpreter::loose::Loose;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::mem::offset_of;
use std::sync::Arc;
use weft_engine::{Cause, NativeFunction, OpContext, Payload, PlaceOffset};

/// A native function and where it was pushed.
#[derive(Clone, Copy)]
pub(crate) struct Native {
    function: NativeFunction,
    pub(crate) location: Location,
}

impl Native {
    #[inline]
    pub(crate) fn new(py: Python<'_>, function: NativeFunction) -> Self {
        Self { function, location: Location::here(py) }
    }

    /// Calls it.
    #[inline]
    pub(crate) fn call(&self, context: &OpContext<'_>) -> Result<(), Cause> {
        self.function.call().map_err(|cause| self.failure(cause, context))
    }

    #[cold]
    fn failure(&self, cause: Cause, context: &OpContext<'_>) -> Cause {
        let Cause::Native(code) = cause else { return cause };
        Cause::Error(Box::new(NativeFailure {
            code,
            op: context.label(),
            location: self.location,
            exceptions: Arc::clone(Exceptions::of(context)),
            place: PyOnceLock::new(),
        }))
    }
}

impl Payload for Native {
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Native, location)) });

    #[inline]
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.call(context)
    }
}

/// A native function, and an object that lives until it has run.
pub(crate) struct KeepingAlive {
    pub(crate) native: Native,
    pub(crate) object: Loose<PyAny>,
}

impl Payload for KeepingAlive {
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> =
        Some(unsafe { PlaceOffset::new(offset_of!(KeepingAlive, native.location)) });

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let result = self.native.run(context);
        drop(self.object);
        result
    }
}
