//! The baseline of weft's benchmarks: the driver's own launches; and the moment at which ops are issued.

use super::errors;
use super::fences;
use super::memory::{buffer_of, expect, not_there};
use crate::array::NDArray;
use crate::array::moves::now;
use crate::engine::wait;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use weft_cuda::driver::Dimensions;
use weft_cuda::{CallTimes, Kernel, Label, Launch, Parameter};
use weft_engine::AccessKind;

/// A kernel of one parameter, an array, to be launched by the driver alone.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct BareLaunch {
    kernel: Kernel,
    dimensions: Dimensions,
    array: Py<NDArray>,
}

#[pymethods]
impl BareLaunch {
    /// Loads the kernel of an image for the array's device.
    #[new]
    fn new(array: &Bound<'_, NDArray>, image: &[u8], name: &str, grid: u32, block: u32) -> PyResult<Self> {
        let (py, array) = (array.py(), now(array));
        let device = expect(py, &array.get().inner)?.device().clone();
        // SAFETY: the compiler has made it.
        let module = unsafe { device.load_module(image) };
        let kernel = module.and_then(|module| module.kernel(name)).map_err(|error| errors::broken(py, error))?;
        let dimensions = Dimensions { grid: [grid, 1, 1], block: [block, 1, 1], shared_memory: 0 };
        Ok(Self { kernel, dimensions, array: array.unbind() })
    }

    /// Launches it so many times back to back, with nothing but the driver's calls between, and returns the seconds
    /// until the last call returned, and until the device had done them all. The engine does not know of it: nothing is
    /// to be pushed on the array meanwhile.
    fn time(&self, py: Python<'_>, count: usize) -> PyResult<(f64, f64)> {
        let launch = self.launch(py, "launches back to back")?;
        let mut found = None;
        fences::for_device(py, None, |wait| {
            found = Some(launch.back_to_back(count, wait)?);
            Ok(())
        })?;
        let Some(found) = found else { unreachable!("an error was raised") };
        Ok((found.issued.as_secs_f64(), found.completed.as_secs_f64()))
    }

    /// Times the driver's own calls, each so many times in a row, and returns the mean seconds of each by name.
    fn calls(&self, py: Python<'_>, count: u32) -> PyResult<Vec<(&'static str, f64)>> {
        let launch = self.launch(py, "the driver's calls")?;
        let mut times = CallTimes::default();
        fences::for_device(py, None, |wait| {
            times = launch.time_calls(count, wait)?;
            Ok(())
        })?;
        let CallTimes { launch, launch_and_event, allocate, free, query, wait } = times;
        let named = [
            ("launch", launch),
            ("launch + event", launch_and_event),
            ("allocation", allocate),
            ("free", free),
            ("query", query),
            ("cross-stream wait", wait),
        ];
        Ok(named.into_iter().map(|(name, time)| (name, time.as_secs_f64())).collect())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.array)
    }
}

impl BareLaunch {
    /// Waits until the array is there, and makes the launch.
    fn launch(&self, py: Python<'_>, label: &str) -> PyResult<Launch> {
        let array = &self.array.get().inner;
        wait::detached(py, array.engine(), None, |wait| array.wait_to_write(wait))?;
        let launch = self.kernel.plan(&[Parameter::Pointer]).and_then(|plan| {
            // SAFETY: the benchmark vouches that its kernel has this one parameter, and keeps to the array.
            let launch = unsafe { Launch::new(&self.kernel, &plan, self.dimensions, Label::from(label)) }?;
            launch.buffer(&buffer_of(array).ok_or_else(not_there)?, array.layout().offset, AccessKind::Mutate)
        });
        launch.map_err(|error| errors::broken(py, error))
    }
}

/// Waits until all ops on an array of a device are issued; the device may still run them.
#[pyfunction]
pub(crate) fn cuda_wait_issued(x: &Bound<'_, NDArray>) -> PyResult<()> {
    let x = now(x);
    let (py, array) = (x.py(), &x.get().inner);
    expect(py, array)?;
    wait::detached(py, array.engine(), None, |wait| array.wait_to_read(wait))
}
