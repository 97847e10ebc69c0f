//! Errors of CUDA and of its compiler as exceptions.

use crate::interpreter::errors::of_class;
use crate::interpreter::location::Location;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use weft_cuda::{CompileError, CudaError};
use weft_engine::Failure;

/// The failure of a device. Its error names an op; the failed one is named beside it if that is another one.
pub(super) fn of_failure(py: Python<'_>, failure: &Failure, error: &CudaError) -> PyErr {
    let own = error.op().is_some_and(|label| {
        label.to_string().starts_with(failure.op()) || failure.op() == format!("op #{}", label.number())
    });
    let told = located(py, error.clone()).to_string();
    let message = if own { told } else { format!("{}: {told}", failure.op()) };
    of_class(py, class_of(error), (message,))
}

/// The error with the places of pushes in words.
fn located(py: Python<'_>, error: CudaError) -> CudaError {
    error.located(&|place| Location::of_bits(place).describe(py))
}

fn class_of(error: &CudaError) -> &'static str {
    match error {
        CudaError::Unavailable { .. } | CudaError::NoDevice { .. } => "CudaUnavailableError",
        CudaError::OutOfMemory { .. } => "CudaOutOfMemoryError",
        CudaError::Capture(_) | CudaError::Captured { .. } => "CaptureError",
        CudaError::InvalidArgument(_) => "ArgumentValueError",
        CudaError::Forked => "ForkedError",
        CudaError::Timeout { .. } => "WaitTimeoutError",
        _ => "CudaError",
    }
}

/// An error of a device as the exception to raise.
#[allow(clippy::needless_pass_by_value)] // map_err() hands it over
pub(super) fn broken(py: Python<'_>, error: CudaError) -> PyErr {
    match error {
        CudaError::Interrupted => PyKeyboardInterrupt::new_err(()),
        error => of_class(py, class_of(&error), (located(py, error).to_string(),)),
    }
}

/// A refusal of the compiler as the exception to raise.
#[allow(clippy::needless_pass_by_value)] // as above
pub(super) fn compiler(py: Python<'_>, error: CompileError) -> PyErr {
    let class = match &error {
        CompileError::Unavailable { .. } => "CudaUnavailableError",
        CompileError::Failed { .. } => "KernelCompileError",
    };
    of_class(py, class, (error.to_string(),))
}

pub(super) fn kernel_argument(py: Python<'_>, message: &str) -> PyErr {
    of_class(py, "KernelArgumentError", (message,))
}
