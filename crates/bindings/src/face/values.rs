//! Waits for arrays, and their values.

use crate::array::{NDArray, check_look};
use crate::cuda::fences::{self, Until};
use crate::cuda::{hosted, transfers};
use crate::pushes::{Lasting, memory};
use crate::wait;
use pyo3::prelude::*;
use std::time::{Duration, Instant};
use weft_array::granted;

impl NDArray {
    /// Waits until what was pushed so far to change the array has finished. An op that was granted it need not.
    pub(super) fn wait_for_changes(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        if granted(&self.actual()).is_some() { Ok(()) } else { self.wait_until(py, timeout, Until::Read) }
    }

    /// The same, of all that was pushed so far on it, reads included.
    pub(super) fn wait_for_all_on_it(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        if granted(&self.actual()) == Some(true) { Ok(()) } else { self.wait_until(py, timeout, Until::Written) }
    }

    /// Waits for the engine, and then for the device.
    fn wait_until(&self, py: Python<'_>, timeout: Option<Duration>, until: Until) -> PyResult<()> {
        let start = Instant::now();
        let array = &self.inner;
        check_look(py, array)?;
        match until {
            Until::Read if array.is_done() => {}
            Until::Read => wait::detached(py, array.engine(), timeout, |wait| array.wait_to_read(wait))?,
            Until::Written => wait::detached(py, array.engine(), timeout, |wait| array.wait_to_write(wait))?,
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        fences::wait_for(py, array, until, left)
    }

    /// Waits, and answers the values: read-only, unless the running op changes them. In an op that was granted the array,
    /// and if that is on a device, a CuPy array.
    pub(super) fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.inner.buffer().is_elsewhere() {
            let actual = self.actual();
            if granted(&actual).is_some() {
                return hosted::view(py, &actual);
            }
            check_look(py, &self.inner)?;
            return memory::view(py, &transfers::to_host(py, &self.inner)?, true, Lasting::Always);
        }
        self.wait_for_changes(py, None)?;
        let actual = self.actual();
        let readonly = granted(&actual) != Some(true);
        memory::view(py, &actual, readonly, Lasting::Always)
    }
}
