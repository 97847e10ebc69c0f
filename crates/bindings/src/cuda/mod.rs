//! CUDA devices, a [`Kind`]: joins weft-array's arrays and weft-cuda's devices.
//!
//! | module | home of |
//! |---|---|
//! | `runtime` | the process's one handle on CUDA; devices, by number |
//! | `errors` | errors of CUDA and of its compiler as exceptions |
//! | `memory` | arrays in the memory of a device |
//! | `fences` | waits for what has been issued and may still run |
//! | `transfers` | copies between the host and devices, and between devices |
//! | `elementwise`, `fusion` | native launches of element-wise kernels; those of a recording, of which several become one |
//! | `kernel`, `parameters` | launches of kernels that users wrote; their arguments |
//! | `floors` | what benchmarks measure launches against |
//! | `interop` | device memory in other libraries' hands, and theirs in ours |
//! | `times` | when ops ran on devices, for traces |
//! | `hosted` | Python callables on the stream of their op |

pub(crate) mod elementwise;
mod errors;
mod fences;
pub(crate) mod floors;
pub(crate) mod fusion;
pub(crate) mod hosted;
pub(crate) mod interop;
pub(crate) mod kernel;
pub(crate) mod memory;
pub(crate) mod parameters;
pub(crate) mod runtime;
mod times;
pub(crate) mod transfers;

use crate::interpreter::devices::{Kernels, Kind, Labelled, Locked, Until};
use pyo3::prelude::*;
use std::error::Error;
use std::time::Duration;
use weft_array::{Access, Array, DType};
use weft_cuda::{CudaError, Label, fork};
use weft_engine::trace::Recording;
use weft_engine::{Engine, Failure};

/// CUDA as a kind of device. Until this process has opened CUDA, there is nothing to do.
pub(crate) struct Cuda;

impl Kind for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn owns(&self, array: &Array) -> bool {
        memory::memory_of(array).is_some()
    }

    fn view<'py>(&self, py: Python<'py>, array: &Array, _: bool) -> PyResult<Bound<'py, PyAny>> {
        hosted::view(py, array)
    }

    fn to_host(&self, engine: &Bound<'_, PyAny>, array: &Array) -> PyResult<Array> {
        transfers::to_host(engine.py(), array)
    }

    fn kernels(&self, stated: Bound<'_, PyAny>, _: DType) -> PyResult<Box<dyn Kernels>> {
        Ok(Box::new(stated.cast_into::<elementwise::CudaLoop>()?.unbind()))
    }

    fn mixed(&self, operator: usize, left: DType, right: DType) -> Option<&'static dyn Kernels> {
        elementwise::mixed(operator, left, right)
    }

    fn run(
        &self,
        py: Python<'_>,
        arrays: &[(Array, Access)],
        (name, place): Labelled<'_>,
        body: &mut dyn FnMut() -> PyResult<()>,
    ) -> PyResult<()> {
        hosted::on_stream(py, arrays, &Label::bare(name).at(place), body)
    }

    fn wait_for(&self, py: Python<'_>, array: &Array, until: Until, timeout: Option<Duration>) -> PyResult<()> {
        fences::wait_for(py, array, until, timeout)
    }

    fn is_done(&self, array: &Array) -> bool {
        fences::is_done(array)
    }

    fn wait_for_all(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        fences::wait_for_devices(py, timeout)
    }

    fn begin_times(&self, engine: &Engine) {
        times::begin(engine);
    }

    fn wait_for_times(&self, py: Python<'_>, engine: &Engine, timeout: Option<Duration>) -> PyResult<()> {
        times::wait_for(py, engine, timeout)
    }

    fn join_times(&self, recording: &mut Recording) {
        times::join(recording);
    }

    fn end_times(&self, recording: &Recording) {
        times::end(recording);
    }

    fn exception(&self, py: Python<'_>, failure: &Failure, cause: &(dyn Error + 'static)) -> Option<PyErr> {
        cause.downcast_ref::<CudaError>().map(|error| errors::of_failure(py, failure, error))
    }

    fn shut_down(&self, py: Python<'_>) {
        runtime::shut_down(py);
    }

    fn before_fork(&self) -> Box<dyn Locked> {
        Box::new(fork::before())
    }
}

impl Locked for fork::Fork {
    fn after_in_child(self: Box<Self>) {
        fork::after_in_child(*self);
    }
}
