//! Pushes that wait for room, and let others in.

use super::{Engine, wait};
use crate::interpreter::errors;
use crate::payloads::trace::Traced;
use pyo3::prelude::*;
use std::time::Duration;
use weft_array::recording;
use weft_engine::{Accesses, OnLimit, PushOptions};

/// How long ready callables may wait for the GIL before a push lets them have it.
const HAND_OVER: Duration = Duration::from_millis(1);

impl Engine {
    /// Waits, without the GIL, until there is room for an op that holds so many bytes; raises where asked to.
    #[inline]
    pub(crate) fn wait_for_room(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        let engine = &self.inner;
        while !engine.has_room(bytes) {
            if engine.on_limit() == OnLimit::Raise {
                return engine.wait_for_room(bytes, None).map_err(|error| errors::raised(py, error));
            }
            wait::detached(py, engine, None, |wait| engine.wait_for_room(bytes, wait.tick.take()))?;
        }
        Ok(())
    }

    /// Before an op: waits for room; or, where this thread records, lets the op that comes be announced.
    #[inline]
    pub(crate) fn make_way(&self, py: Python<'_>, bytes: u64, announce: impl FnOnce()) -> PyResult<()> {
        if recording::is_open() {
            announce();
            return Ok(());
        }
        self.wait_for_room(py, bytes)
    }

    /// Pushes, waiting without the GIL if there is no room. An op that answers a wait takes no room, as the wait of a thread takes
    /// none: an event loop that stood still here could be whom the pending ops wait for.
    #[inline]
    pub(crate) fn push_payload<P: Traced>(
        &self,
        py: Python<'_>,
        mut payload: P,
        accesses: &mut Accesses<'_>,
        options: &PushOptions<'_>,
    ) -> PyResult<()> {
        if !(options.always_run && payload.answers()) {
            self.wait_for_room(py, options.bytes)?;
        }
        let noted;
        let mut options = options;
        if self.inner.is_observed() {
            let note;
            (payload, note) = self.traced(py, payload, options.name)?;
            noted = PushOptions { note, ..*options };
            options = &noted;
        }
        self.inner.push_unlimited(payload, accesses, options).map_err(|error| errors::raised(py, error))?;
        self.hand_over(py);
        Ok(())
    }

    /// Lets ready callables have the GIL, if they have waited for long.
    #[inline]
    pub(crate) fn hand_over(&self, py: Python<'_>) {
        if self.inner.is_host_overdue(HAND_OVER) {
            py.detach(|| self.inner.let_hosted_in(HAND_OVER));
        }
    }
}
