//! CUDA in this process: opened when it is first asked for, never by `import weft`.

use super::errors;
use super::fences;
use crate::interpreter::arguments;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use weft_cuda::{CompileError, Compiler, Cuda, CudaError, Device};

/// How long the end of the process waits for the poller.
const PATIENCE: Duration = Duration::from_secs(2);

static CUDA: OnceLock<Cuda> = OnceLock::new();
static COMPILER: Mutex<Option<Compiler>> = Mutex::new(None);

/// CUDA, if this process has opened it.
pub(crate) fn known() -> Option<&'static Cuda> {
    CUDA.get()
}

/// CUDA. `WEFT_CUDA_LIBRARY` names the driver's library where it is not in its usual place.
fn open() -> Result<&'static Cuda, CudaError> {
    if let Some(cuda) = CUDA.get() {
        return Ok(cuda);
    }
    let path = std::env::var("WEFT_CUDA_LIBRARY").ok().filter(|path| !path.is_empty());
    let cuda = Cuda::open_library(path.as_deref())?;
    Ok(CUDA.get_or_init(|| cuda))
}

/// The device of this number.
pub(crate) fn device(py: Python<'_>, index: usize) -> PyResult<Device> {
    py.detach(|| open()?.device(index)).map_err(|error| errors::broken(py, error))
}

/// Lets the poller end, before the driver is taken down with the process.
pub(crate) fn shut_down(py: Python<'_>) {
    if let Some(cuda) = known() {
        // A poller that does not end in time is left to end with the process.
        let _ = py.detach(|| cuda.shut_down(PATIENCE));
    }
}

/// The number of devices. Raises the reason if there is no CUDA.
#[pyfunction]
pub(crate) fn cuda_device_count(py: Python<'_>) -> PyResult<usize> {
    py.detach(open).map(Cuda::device_count).map_err(|error| errors::broken(py, error))
}

/// The properties of a device: name, capability, multiprocessors, memory.
#[pyfunction]
pub(crate) fn cuda_properties(py: Python<'_>, index: usize) -> PyResult<Bound<'_, PyDict>> {
    let device = device(py, index)?;
    let properties = device.properties();
    let found = PyDict::new(py);
    found.set_item("name", &properties.name)?;
    found.set_item("capability", properties.capability)?;
    found.set_item("multiprocessors", properties.multiprocessors)?;
    found.set_item("memory", properties.memory)?;
    Ok(found)
}

/// Waits until all that was issued on a device so far has ended.
#[pyfunction]
#[pyo3(signature = (index, timeout=None))]
pub(crate) fn cuda_synchronize(py: Python<'_>, index: usize, timeout: Option<arguments::Timeout>) -> PyResult<()> {
    let timeout = arguments::timeout(py, timeout)?;
    let device = device(py, index)?;
    fences::for_device(py, timeout, |wait| device.synchronize(wait))
}

/// Bytes of a device's memory: in_use, peak, blocks, held, free, total, pinned, lost.
#[pyfunction]
pub(crate) fn cuda_memory_stats(py: Python<'_>, index: usize) -> PyResult<Bound<'_, PyDict>> {
    let device = device(py, index)?;
    let stats = py.detach(|| device.memory_stats()).map_err(|error| errors::broken(py, error))?;
    let figures = PyDict::new(py);
    figures.set_item("in_use", stats.in_use)?;
    figures.set_item("peak", stats.peak)?;
    figures.set_item("blocks", stats.blocks)?;
    figures.set_item("held", stats.held)?;
    figures.set_item("free", stats.free)?;
    figures.set_item("total", stats.total)?;
    figures.set_item("pinned", stats.pinned)?;
    figures.set_item("lost", stats.lost)?;
    Ok(figures)
}

/// Gives memory that devices keep for reuse back.
#[pyfunction]
pub(crate) fn cuda_trim(py: Python<'_>) -> PyResult<()> {
    known().map_or(Ok(()), |cuda| py.detach(|| cuda.trim()).map_err(|error| errors::broken(py, error)))
}

/// Asks the compiler, which is the first of the libraries in `paths` that is there.
fn with_compiler<T>(
    paths: &[String],
    ask: impl FnOnce(&Compiler) -> Result<T, CompileError>,
) -> Result<T, CompileError> {
    // The lock is held while it compiles: NVRTC uses all it needs of the machine, and images are made once.
    let mut compiler = COMPILER.lock().unwrap_or_else(PoisonError::into_inner);
    if compiler.is_none() {
        *compiler = Some(Compiler::open(paths)?);
    }
    match &*compiler {
        Some(compiler) => ask(compiler),
        None => unreachable!("opened above"),
    }
}

/// The version of CUDA that the compiler belongs to: major, minor.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from sequences
pub(crate) fn cuda_compiler_version(py: Python<'_>, paths: Vec<String>) -> PyResult<(u32, u32)> {
    let version = py.detach(|| with_compiler(&paths, |compiler| Ok(compiler.version())));
    version.map_err(|error| errors::compiler(py, error))
}

/// Compiles CUDA C++ by the first of the libraries in `paths` that is there.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from sequences
pub(crate) fn cuda_compile<'py>(
    py: Python<'py>,
    paths: Vec<String>,
    name: &str,
    source: &str,
    capability: (u32, u32),
    options: Vec<String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let image = py.detach(|| with_compiler(&paths, |compiler| compiler.compile(name, source, capability, &options)));
    image.map(|image| PyBytes::new(py, &image)).map_err(|error| errors::compiler(py, error))
}
