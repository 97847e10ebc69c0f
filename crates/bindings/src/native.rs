//! Native functions as payloads: they never touch the GIL.

use pyo3::prelude::*;
use weft_engine::{Cause, NativeFunction, OpContext, Payload};

/// A native function, and an object that lives until it has run.
pub(crate) struct Native {
    function: NativeFunction,
    /// Dropped without the GIL, its decref waits in a queue until a thread is attached.
    keep_alive: Option<Py<PyAny>>,
}

impl Native {
    pub(crate) fn new(function: NativeFunction, keep_alive: Option<Py<PyAny>>) -> Self {
        Self { function, keep_alive }
    }
}

impl Payload for Native {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        let result = self.function.call();
        drop(self.keep_alive);
        result
    }
}
