//! `weft.cuda.RawKernel`: launches of kernels that users wrote.

use super::errors;
use super::memory::{buffer_of, expect, not_there};
use super::parameters::{self, Given, Known, Parameters};
use super::runtime;
use crate::array::raised;
use crate::engine::Engine;
use crate::interpreter::location::Location;
use crate::payloads::trace;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weft_array::{Access, Array, Call};
use weft_cuda::driver::{Dimensions, FunctionHandle, StreamHandle};
use weft_cuda::{BufferAccess, CudaError, Device, Kernel, Label, Launch, Launcher, Parameter, Stream};
use weft_engine::trace::Kind;
use weft_engine::{AccessKind, PushOptions};

/// A kernel in CUDA C++, launched by native workers in the order that its accesses ask for.
///
/// ``kernel(grid, block, args, *, reads=None, mutates=None, shared_mem=0, stream=None)`` pushes a launch and returns at
/// once. `args` are arrays of one device and numbers. What the kernel does with each array is said by
/// ``weft.Read(x)``, ``weft.Mutate(x)`` or ``weft.Overwrite(x)`` around it, or by the lists `reads` and `mutates`, which
/// may name further arrays. Numbers are passed as the parameters' types; where the source does not tell these, as
/// NumPy's scalars are, and Python's as int64 and float64. `shared_mem` is dynamic shared memory in bytes; `stream` is a
/// stream of CuPy's or PyTorch's, or a ``cudaStream_t`` as an integer, on which the launch goes in place of one of weft's.
///
/// Parameters
/// ----------
/// code : str, cupy.RawKernel or weft.cuda.RawModule
///     The source; or a kernel of CuPy's, whose handle is used; or a module.
/// name : str, optional
///     The kernel's name, of an ``extern "C"`` function. CuPy's kernels have one.
/// options : sequence of str, optional
///     Options of NVRTC.
/// enable_cooperative_groups : bool, optional
///     Whether it is launched so that all blocks of a grid run side by side and may wait for each other, which limits how
///     many there are. By default as the module or CuPy's kernel says.
///
/// Raises
/// ------
/// KernelArgumentError
///     At a call, before anything is pushed: for a wrong number of arguments, a dtype or a number that is not the
///     parameter's, an array without a declared access, or one that is not contiguous.
/// KernelCompileError
///     At the first call on a device, if the compiler refuses the source.
#[pyclass(module = "weft.cuda", frozen, name = "RawKernel")]
pub(crate) struct RawKernel {
    name: Arc<str>,
    /// Its parameters in the source; nothing if the source does not tell.
    parameters: Option<Parameters>,
    /// ``build(device, capability)`` answers an image, or the handle of a kernel that is loaded.
    build: Py<PyAny>,
    /// Whether all blocks of a grid run side by side.
    cooperative: bool,
    /// By the index of their device.
    kernels: Mutex<Vec<(usize, Kernel)>>,
    /// By their device and the signatures with which they were called.
    launchers: Launchers,
}

/// Launchers, found without a lock: a list that only grows, at its end.
#[derive(Default)]
struct Launchers(OnceLock<Box<(Launcher, Launchers)>>);

impl Launchers {
    #[inline]
    fn find(&self, suits: impl Fn(&Launcher) -> bool) -> Option<&Launcher> {
        let mut known = self.0.get();
        while let Some((launcher, rest)) = known.map(|known| &**known) {
            if suits(launcher) {
                return Some(launcher);
            }
            known = rest.0.get();
        }
        None
    }

    /// Of two that are added at the same time for one signature the first is found from then on.
    fn add(&self, launcher: Launcher) -> &Launcher {
        let mut end = self;
        let mut link = Box::new((launcher, Self::default()));
        while let Err(refused) = end.0.set(link) {
            link = refused;
            if let Some(known) = end.0.get() {
                end = &known.1;
            }
        }
        match end.0.get() {
            Some(known) => &known.0,
            None => unreachable!("it was set"),
        }
    }
}

#[pymethods]
impl RawKernel {
    #[new]
    #[pyo3(signature = (code, name=None, options=None, *, enable_cooperative_groups=None))]
    fn new(
        code: &Bound<'_, PyAny>,
        name: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
        enable_cooperative_groups: Option<bool>,
    ) -> PyResult<Self> {
        let prepare = code.py().import("weft._cuda.kernels")?.getattr("prepare")?;
        let prepared = prepare.call1((code, name, options, enable_cooperative_groups))?;
        let (name, known, build, cooperative) = prepared.extract::<(String, Option<Vec<Known>>, Py<PyAny>, bool)>()?;
        let parameters = known.map(|known| parameters::read(&known));
        let (kernels, launchers) = Default::default();
        Ok(Self { name: name.into(), parameters, build, cooperative, kernels, launchers })
    }

    /// The kernel's name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[pyo3(signature = (grid, block, args, *, reads=None, mutates=None, shared_mem=0, stream=None))]
    #[allow(clippy::too_many_arguments)] // Python's signature
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        grid: &Bound<'py, PyAny>,
        block: &Bound<'py, PyAny>,
        args: &Bound<'py, PyAny>,
        reads: Option<&Bound<'py, PyAny>>,
        mutates: Option<&Bound<'py, PyAny>>,
        shared_mem: u32,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (reads, mutates) = (parameters::named(reads)?, parameters::named(mutates)?);
        let args = args.cast::<PyTuple>().map_err(|_| {
            let kind = args.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            let message = format!("kernel '{}': args is a tuple, not {kind}; one argument is written (x,)", self.name);
            errors::kernel_argument(py, &message)
        })?;
        let given = parameters::given(&self.name, self.parameters.as_ref(), args, &reads, &mutates)?;
        let mut owner = None;
        let mut arrays: SmallVec<[(&Array, Access); 4]> = SmallVec::new();
        for argument in &given {
            if let Given::Array(array, access) = argument {
                owner = owner.or_else(|| Some(array.get().owner()));
                arrays.push((&array.get().inner, *access));
            }
        }
        let passed = arrays.len();
        for (list, access) in [(&reads, Access::Read), (&mutates, Access::Mutate)] {
            for array in list {
                owner = owner.or_else(|| Some(array.get().owner()));
                if !arrays.iter().any(|(known, _)| std::ptr::eq(*known, &raw const array.get().inner)) {
                    arrays.push((&array.get().inner, access));
                }
            }
        }
        let home;
        let (engine, device) = if let Some(owner) = owner {
            (owner.get(), self.device_of(py, &arrays)?)
        } else {
            home = (
                py.import("weft._engine.default")?.getattr("get_engine")?.call0()?.cast_into::<Engine>()?,
                runtime::device(py, 0)?,
            );
            (home.0.get(), &home.1)
        };
        let dimensions = Dimensions { grid: lengths(grid)?, block: lengths(block)?, shared_memory: shared_mem };
        let launcher = self.launcher(py, device, &given)?;
        let stream = stream.map(|stream| foreign(device, stream)).transpose()?;
        let launch = Self::launch(launcher, dimensions, &given, &arrays[passed..], stream);
        let launch = launch.map_err(|error| refused(py, error))?.at(Location::here(py).bits());
        engine.wait_for_room(py, 0)?;
        let note = trace::of_arrays(py, &engine.inner, Kind::Launch, &self.name);
        let options = PushOptions { note, ..PushOptions::default() };
        // SAFETY: it was made for these arrays.
        unsafe { weft_device::launch(launch, &Call::anywhere(&engine.inner, &arrays, options), false) }
            .map_err(|error| raised(py, error))
    }

    fn __repr__(&self) -> String {
        format!("<weft.cuda.RawKernel {}>", self.name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.build)
    }
}

impl RawKernel {
    /// The device of the arrays, of which there is one.
    fn device_of<'a>(&self, py: Python<'_>, arrays: &[(&'a Array, Access)]) -> PyResult<&'a Device> {
        let device = expect(py, arrays[0].0)?.device();
        for (array, _) in &arrays[1..] {
            let other = expect(py, array)?.device();
            if other != device {
                let (one, two) = (device.index(), other.index());
                let message = format!(
                    "kernel '{}': the arrays are on cuda:{one} and on cuda:{two}: bring them together by to_device()",
                    self.name
                );
                return Err(errors::kernel_argument(py, &message));
            }
        }
        Ok(device)
    }

    /// The kernel with the plan for these arguments, made once for each signature.
    #[inline]
    fn launcher(&self, py: Python<'_>, device: &Device, given: &[Given<'_>]) -> PyResult<&Launcher> {
        let suits = |known: &Launcher| {
            let parameters = known.parameters();
            let alike = || parameters.iter().zip(given).all(|(parameter, given)| *parameter == given.parameter());
            known.device() == device && parameters.len() == given.len() && alike()
        };
        match self.launchers.find(suits) {
            Some(known) => Ok(known),
            None => self.new_launcher(py, device, given),
        }
    }

    #[cold]
    fn new_launcher(&self, py: Python<'_>, device: &Device, given: &[Given<'_>]) -> PyResult<&Launcher> {
        let signature: SmallVec<[Parameter; 16]> = given.iter().map(Given::parameter).collect();
        let kernel = self.kernel(py, device)?;
        let plan = kernel.plan(&signature);
        let made = plan.and_then(|plan| Launcher::new(&kernel, &plan, Label::new(Arc::clone(&self.name), 0)));
        Ok(self.launchers.add(made.map_err(|error| refused(py, error))?))
    }

    fn kernel(&self, py: Python<'_>, device: &Device) -> PyResult<Kernel> {
        let index = device.index();
        let kernels = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kernels().iter().find(|(known, _)| *known == index).map(|(_, kernel)| kernel.clone());
        if let Some(kernel) = known {
            return Ok(kernel);
        }
        let built = self.build.call1(py, (index, device.properties().capability))?.into_bound(py);
        let kernel = if let Ok(image) = built.cast::<PyBytes>() {
            let image = image.as_bytes();
            // To load it may take the driver long, and make it wait for the device.
            py.detach(|| {
                // SAFETY: the compiler has just made it.
                unsafe { device.load_module(image) }?.kernel(&self.name)
            })
            .map_err(|error| errors::broken(py, error))?
        } else {
            let handle = FunctionHandle(built.extract()?);
            // SAFETY: CuPy has loaded it on this device, and the object that has it is held.
            unsafe { device.adopt_kernel(handle, &self.name, Box::new(self.build.clone_ref(py))) }
        };
        let kernel = kernel.cooperative(self.cooperative);
        kernels().push((index, kernel.clone()));
        Ok(kernel)
    }

    /// The launch. Of the arrays it is told those that no argument names.
    #[inline]
    fn launch(
        launcher: &Launcher,
        dimensions: Dimensions,
        given: &[Given<'_>],
        unnamed: &[(&Array, Access)],
        stream: Option<Stream>,
    ) -> Result<Launch, CudaError> {
        // Of an array that no argument names the kernel knows the address.
        let access = |array: &Array, access: Access, named: bool| -> Result<BufferAccess, CudaError> {
            let kind = match access {
                Access::Read => AccessKind::Read,
                Access::Overwrite if named && array.is_flat() => AccessKind::Overwrite,
                Access::Mutate | Access::Overwrite => AccessKind::Mutate,
            };
            Ok(BufferAccess { buffer: buffer_of(array).ok_or_else(not_there)?, range: array.range(), kind })
        };
        // SAFETY: the author of a kernel vouches for it by the declared accesses.
        let mut launch = unsafe { launcher.launch(dimensions) }?.stream(stream);
        for argument in given {
            match argument {
                Given::Scalar(bytes) => launch.give_scalar(bytes)?,
                Given::Array(array, kind) => {
                    let array = &array.get().inner;
                    launch.give_pointer(array.layout().offset, access(array, *kind, true)?)?;
                }
            }
        }
        for (array, kind) in unnamed {
            launch = launch.access(access(array, *kind, false)?);
        }
        Ok(launch)
    }
}

fn refused(py: Python<'_>, error: CudaError) -> PyErr {
    match error {
        CudaError::InvalidArgument(message) => errors::kernel_argument(py, &message),
        error => errors::broken(py, error),
    }
}

/// Blocks or threads along the three axes: a number, or up to three of them.
fn lengths(given: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let mut lengths = [1; 3];
    // For a refused value an exception would be made, and dropped.
    if let Ok(given) = given.cast_exact::<PyTuple>()
        && (1..=3).contains(&given.len())
    {
        for (length, item) in lengths.iter_mut().zip(given.iter_borrowed()) {
            let refuse = || {
                errors::kernel_argument(
                    given.py(),
                    &format!("grid and block are one to three positive integers each, not {given}"),
                )
            };
            *length = item.extract().map_err(|_| refuse())?;
        }
        return Ok(lengths);
    }
    if let Ok(one) = given.extract::<u32>() {
        lengths[0] = one;
        return Ok(lengths);
    }
    let listed = given.extract::<Vec<u32>>().ok().filter(|listed| (1..=3).contains(&listed.len()));
    let Some(listed) = listed else {
        let message = format!("grid and block are one to three positive integers each, not {given}");
        return Err(errors::kernel_argument(given.py(), &message));
    };
    lengths[..listed.len()].copy_from_slice(&listed);
    Ok(lengths)
}

/// CUDA's default stream of each thread.
const OF_EACH_THREAD: usize = 2;
/// Numbers that stand for no default stream of CUDA's, and are no addresses.
const NO_STREAM: std::ops::Range<usize> = 3..4096;

/// A stream of another library: an address, or an object with ``ptr`` or ``cuda_stream``.
fn foreign(device: &Device, stream: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let address = stream.getattr("ptr").or_else(|_| stream.getattr("cuda_stream")).unwrap_or_else(|_| stream.clone());
    let Ok(address) = address.extract::<usize>() else {
        let message = "stream is a cudaStream_t as an integer, or a stream of CuPy or torch";
        return Err(errors::kernel_argument(stream.py(), message));
    };
    if address == OF_EACH_THREAD {
        let message = "stream=2 is the default stream of whichever thread launches, and which of its workers weft launches \
                       on may change: leave stream= out, or name a stream of your own";
        return Err(errors::kernel_argument(stream.py(), message));
    }
    // The driver takes any number for an address.
    if NO_STREAM.contains(&address) {
        let message =
            format!("stream={address} is no stream: a cudaStream_t is an address, or 0 or 1 for CUDA's default stream");
        return Err(errors::kernel_argument(stream.py(), &message));
    }
    // SAFETY: the caller says that it is a stream of the device; the object that has it is held.
    Ok(unsafe { device.adopt_stream(StreamHandle(address), Box::new(stream.clone().unbind())) })
}
