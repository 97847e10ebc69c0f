//! Element-wise ops on devices: launches of kernels that Python writes and NVRTC compiles, one for each op, dtypes and
//! class of layout. Which of them, and how it walks, is `weft_device`'s to say.

use super::errors::broken;
use super::fusion::{ElementwiseStep, Given};
use super::memory::{expect, fresh};
use super::runtime;
use crate::array::moves::taken;
use crate::array::operator::{OPERATORS, number_of, scalar};
use crate::array::{NDArray, raised};
use crate::interpreter::devices::Kernels;
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::payloads::trace;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use weft_array::{Array, Call, DType, Operand, Scalar, Step, record, recording};
use weft_cuda::{Cuda, Launch};
use weft_device::{ElementwiseError, Loop, Next, Ready, Wanted};
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// The kernels of an element-wise op for exact dtypes, compiled when they are first launched.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct CudaLoop {
    kernels: Loop,
    /// ``build(capability, strided, scalars)`` answers the name of the kernel and its image.
    build: Py<PyAny>,
}

type Row = [OnceLock<Py<CudaLoop>>; DType::COUNT];

/// Kernels of operators for operands of two dtypes. Those for one dtype belong to the host's loops.
static MIXED: [[Row; DType::COUNT]; OPERATORS] =
    [const { [const { [const { OnceLock::new() }; DType::COUNT] }; DType::COUNT] }; OPERATORS];

/// Lets operator `name` on arrays of these two dtypes on a device use the kernels of `loop`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a tuple
pub(crate) fn cache_cuda_loop(
    name: &str,
    dtypes: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    r#loop: Py<CudaLoop>,
) -> PyResult<()> {
    let (left, right) = (dtypes::from_python(&dtypes.0)?, dtypes::from_python(&dtypes.1)?);
    // A second caller has named the same kernels.
    let _ = MIXED[number_of(name)?][left as usize][right as usize].set(r#loop);
    Ok(())
}

/// The kernels that were so named for an operator.
#[inline]
pub(super) fn mixed(operator: usize, left: DType, right: DType) -> Option<&'static dyn Kernels> {
    MIXED[operator][left as usize][right as usize].get().map(|kernels| kernels as &dyn Kernels)
}

/// Why operands were refused, as the exception to raise.
#[cold]
fn refused(py: Python<'_>, error: ElementwiseError) -> PyErr {
    match error {
        ElementwiseError::Value(message) => errors::argument_value(py, &message),
        ElementwiseError::Type(message) => errors::argument_type(py, &message),
        ElementwiseError::Array(error) => raised(py, error),
        ElementwiseError::Cuda(error) => broken(py, error),
    }
}

#[pymethods]
impl CudaLoop {
    #[new]
    fn new(
        name: &str,
        inputs: &Bound<'_, PyTuple>,
        outputs: &Bound<'_, PyTuple>,
        build: Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let read = |list: &Bound<'_, PyTuple>| -> PyResult<Vec<DType>> {
            list.iter().map(|dtype| dtypes::from_python(&dtype)).collect()
        };
        let kernels = Loop::new(name, &read(inputs)?, &read(outputs)?).map_err(|error| refused(build.py(), error))?;
        Ok(Self { kernels, build: build.unbind() })
    }

    /// Pushes a launch over `inputs`, arrays of one device or numbers, broadcast to the shape of `outputs`.
    #[pyo3(name = "push")]
    fn push_python(&self, outputs: &Bound<'_, PyTuple>, inputs: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = outputs.py();
        let outputs: SmallVec<[Bound<'_, NDArray>; 1]> =
            outputs.iter().map(|item| Ok(taken(item)?)).collect::<PyResult<_>>()?;
        let mut held: SmallVec<[Result<Bound<'_, NDArray>, Scalar>; 3]> = SmallVec::new();
        for (input, dtype) in inputs.iter().zip(self.kernels.inputs()) {
            held.push(match taken(input) {
                Ok(array) => Ok(array),
                Err(error) => {
                    let input = error.into_inner();
                    Err(scalar(&input, *dtype).ok_or_else(|| {
                        let message = format!("{input:?} cannot be an operand of dtype {}", dtype.name());
                        errors::argument_type(py, &message)
                    })?)
                }
            });
        }
        let operands: SmallVec<[Operand<'_>; 3]> = held
            .iter()
            .zip(self.kernels.inputs())
            .map(|(input, dtype)| match input {
                Ok(array) => Operand::Array(&array.get().inner),
                Err(scalar) => Operand::Scalar(*scalar, *dtype),
            })
            .collect();
        let targets: SmallVec<[&Array; 1]> = outputs.iter().map(|output| &output.get().inner).collect();
        let Some(first) = outputs.first() else { return Err(errors::argument_value(py, "there is no output")) };
        let bytes: usize = targets.iter().map(|target| target.bytes()).sum();
        first.get().owner().get().wait_for_room(py, bytes as u64)?;
        self.push(py, &targets, &operands)
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.kernels.inputs().iter().chain(self.kernels.outputs()).map(|it| it.name()).collect();
        format!("<weft._core.CudaLoop {} {}>", self.kernels.name(), names.join(", "))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.build)
    }
}

impl Kernels for Py<CudaLoop> {
    #[inline]
    fn result(&self) -> DType {
        self.get().kernels.outputs()[0]
    }

    #[inline]
    fn push(&self, engine: &Bound<'_, PyAny>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<()> {
        self.get().push(engine.py(), outputs, inputs)
    }
}

impl CudaLoop {
    /// Pushes a launch. The caller has waited for room.
    #[inline]
    fn push(&self, py: Python<'_>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<()> {
        match self.kernels.known(outputs, inputs) {
            Some(ready) => self.push_launch(py, &ready),
            None => self.push_any(py, outputs, inputs),
        }
    }

    /// Copies operands that overlap the result, and compiles kernels on first use.
    fn push_any(&self, py: Python<'_>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<()> {
        match self.kernels.prepare(outputs, inputs).map_err(|error| refused(py, error))? {
            Next::Nothing => Ok(()),
            Next::Copy(at) => {
                let Operand::Array(array) = inputs[at] else { unreachable!("numbers lie nowhere") };
                let copy = compact(py, array)?;
                let mut inputs: SmallVec<[Operand<'_>; 4]> = inputs.into();
                inputs[at] = Operand::Array(&copy);
                self.push(py, outputs, &inputs)
            }
            Next::Load(wanted) => self.push_launch(py, &self.compiled(py, wanted)?),
            Next::Launch(ready) => self.push_launch(py, &ready),
        }
    }

    #[cold]
    fn compiled<'a>(&self, py: Python<'_>, wanted: Wanted<'a>) -> PyResult<Ready<'a>> {
        let (capability, variant) = (wanted.device().properties().capability, wanted.variant());
        let answer = self.build.call1(py, (capability, variant.is_strided(), variant.scalars()))?;
        let (name, image): (String, Bound<'_, PyBytes>) = answer.extract(py)?;
        let (image, devices) = (image.as_bytes(), runtime::known().map_or(0, Cuda::device_count));
        // SAFETY: the compiler has just made it, for this variant.
        let load = || unsafe { wanted.load(devices, &name, image) };
        // To load it may take the driver long, and make it wait for the device.
        py.detach(load).map_err(|error| broken(py, error))
    }

    #[inline]
    fn push_launch(&self, py: Python<'_>, ready: &Ready<'_>) -> PyResult<()> {
        let launch = ready.launch().map_err(|error| broken(py, error))?.at(Location::here(py).bits());
        let (engine, arrays) = (ready.outputs()[0].engine(), ready.arrays());
        if recording::is_open() && ready.is_in_rows() {
            return self.record_launch(py, ready, launch, &Call::anywhere(engine, &arrays, PushOptions::default()));
        }
        let note = trace::of_arrays(py, engine, Kind::Launch, self.kernels.name());
        let options = PushOptions { bytes: ready.bytes(), note, ..PushOptions::default() };
        // SAFETY: as above: it was made for these arrays.
        unsafe { weft_device::launch(launch, &Call::anywhere(engine, &arrays, options), true) }
            .map_err(|error| raised(py, error))
    }

    /// Records a launch over arrays in rows, so that neighbours may become one kernel.
    #[cold]
    fn record_launch(&self, py: Python<'_>, ready: &Ready<'_>, launch: Launch, call: &Call<'_>) -> PyResult<()> {
        let kernels = &self.kernels;
        recording::announce(kernels.name(), launch.place());
        let given = |(input, dtype): (&Operand<'_>, &DType)| match input {
            Operand::Array(_) => Ok(Given::Array(*dtype)),
            Operand::Scalar(scalar, _) => match scalar.bytes(*dtype) {
                Some(bytes) => Ok(Given::Scalar(bytes[..dtype.size()].into())),
                None => Err(errors::argument_value(py, &format!("{scalar:?} is no {}", dtype.name()))),
            },
        };
        let step = ElementwiseStep {
            name: Arc::clone(kernels.name()),
            build: self.build.clone_ref(py).into(),
            device: ready.device().clone(),
            size: ready.outputs()[0].layout().size(),
            outputs: kernels.outputs().into(),
            inputs: ready.inputs().iter().zip(kernels.inputs()).map(given).collect::<PyResult<_>>()?,
            place: launch.place(),
            alone: weft_device::launch_step(launch, true),
        };
        // SAFETY: the arrays are those that the launch was made for.
        unsafe { record(Step::Opaque(Arc::new(step)), call) }.map_err(|error| raised(py, error))
    }
}

/// Pushes a copy of an array that is on a device, contiguous.
pub(crate) fn compact(py: Python<'_>, array: &Array) -> PyResult<Array> {
    let device = expect(py, array)?.device();
    let copy =
        fresh(array.engine(), device, &array.layout().shape, array.dtype()).map_err(|error| raised(py, error))?;
    let copying = py.import("weft._cuda.elementwise")?.getattr("copying")?;
    let copying = copying.call1((dtypes::to_python(py, array.dtype())?,))?.cast_into::<CudaLoop>()?;
    copying.get().push(py, &[&copy], &[Operand::Array(array)])?;
    Ok(copy)
}
