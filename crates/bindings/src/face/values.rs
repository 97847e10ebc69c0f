//! Waits for arrays, and their values.

use super::recover;
use crate::array::{NDArray, check_look, raised};
use crate::engine::wait;
use crate::interpreter::devices::{self, Until};
use crate::pushes::{Lasting, kinds, memory};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::time::{Duration, Instant};
use weft_array::{DType, granted};

impl NDArray {
    /// Waits until all ops pushed so far that change the array have finished. An op that was granted the array need not wait.
    pub(super) fn wait_for_changes(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        if let Some(now) = self.stand_in(py) {
            return now.get().wait_for_changes(py, timeout);
        }
        if granted(&self.actual()).is_some() { Ok(()) } else { self.wait_until(py, timeout, Until::Read) }
    }

    /// The same, of all that was pushed so far on it, reads included.
    pub(super) fn wait_for_all_on_it(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        if let Some(now) = self.stand_in(py) {
            return now.get().wait_for_all_on_it(py, timeout);
        }
        if granted(&self.actual()) == Some(true) { Ok(()) } else { self.wait_until(py, timeout, Until::Written) }
    }

    /// Waits for the engine, and then for the device.
    fn wait_until(&self, py: Python<'_>, timeout: Option<Duration>, until: Until) -> PyResult<()> {
        let start = Instant::now();
        let array = &self.inner;
        check_look(py, array)?;
        match until {
            Until::Read if array.is_done() => {}
            Until::Read => wait::detached(py, array.engine(), timeout, |wait| array.wait_to_read(wait))
                .map_err(|error| recover::hint(py, error, array))?,
            Until::Written => wait::detached(py, array.engine(), timeout, |wait| array.wait_to_write(wait))
                .map_err(|error| recover::hint(py, error, array))?,
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        devices::wait_for(py, array, until, left)
    }

    /// Waits, and answers the one element of an array of the host; None for others.
    pub(super) fn element(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if let Some(now) = self.stand_in(py) {
            return now.get().element(py);
        }
        if self.inner.layout().size() != 1 || self.inner.buffer().is_elsewhere() {
            return Ok(None);
        }
        self.wait_for_changes(py, None)?;
        let actual = self.actual();
        if actual.buffer().is_elsewhere() {
            return Ok(None);
        }
        let pinned = actual.buffer().storage().map_err(|error| raised(py, error))?.pin();
        let Ok(start) = pinned.storage().start() else { return Ok(None) }; // no memory is left: a look at the values tells so
        let at = start.wrapping_add(actual.layout().offset).cast_const();
        macro_rules! read {
            ($type:ty) => {
                // SAFETY: the ops that change the element have finished, and it lies in the array's memory.
                unsafe { at.cast::<$type>().read_unaligned() }
            };
        }
        let found = match actual.dtype() {
            DType::Bool => PyBool::new(py, read!(u8) != 0).to_owned().into_any(),
            DType::Int8 => read!(i8).into_pyobject(py)?.into_any(),
            DType::UInt8 => read!(u8).into_pyobject(py)?.into_any(),
            DType::Int16 => read!(i16).into_pyobject(py)?.into_any(),
            DType::UInt16 => read!(u16).into_pyobject(py)?.into_any(),
            DType::Int32 => read!(i32).into_pyobject(py)?.into_any(),
            DType::UInt32 => read!(u32).into_pyobject(py)?.into_any(),
            DType::Int64 => read!(i64).into_pyobject(py)?.into_any(),
            DType::UInt64 => read!(u64).into_pyobject(py)?.into_any(),
            DType::Float32 => f64::from(read!(f32)).into_pyobject(py)?.into_any(),
            DType::Float64 => read!(f64).into_pyobject(py)?.into_any(),
            DType::Float16 | DType::Complex64 | DType::Complex128 => return Ok(None),
        };
        Ok(Some(found.unbind()))
    }

    /// Waits, and answers the values: read-only, unless the running op changes them. In an op that was granted the array,
    /// and if that is on a device, a CuPy array.
    pub(super) fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(now) = self.stand_in(py) {
            return now.get().values(py);
        }
        if self.inner.buffer().is_elsewhere() {
            let actual = self.actual();
            if granted(&actual).is_some() {
                return kinds::granted_view(py, &actual, granted(&actual) == Some(true));
            }
            check_look(py, &self.inner)?;
            return memory::view(py, &kinds::to_host(py, self.owner(), &self.inner)?, true, Lasting::Always);
        }
        self.wait_for_changes(py, None)?;
        let actual = self.actual();
        let readonly = granted(&actual) != Some(true);
        memory::view(py, &actual, readonly, Lasting::Always)
    }
}
