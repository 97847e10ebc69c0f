//! Element-wise ops on devices: launches of kernels that Python writes and NVRTC compiles, one for each op, dtypes and
//! class of layout.

use super::fusion::{ElementwiseStep, Given};
use super::memory::{buffer_of, expect, fresh, memory_of};
use super::runtime;
use crate::array::operator::scalar;
use crate::array::{NDArray, dtypes, raised};
use crate::errors;
use crate::location::Location;
use crate::trace;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use weft_array::{Access as ArrayAccess, Array, Call, DType, Scalar, Step, record, recording};
use weft_cuda::driver::Dimensions;
use weft_cuda::{Access, Cuda, CudaError, Device, DeviceBuffer, Label, Launch, Launcher, Parameter};
use weft_engine::trace::Kind;
use weft_engine::{AccessKind, PushOptions};

/// Axes of a walk at most, once those that can be are merged.
pub(super) const AXES: usize = 8;
/// Threads of a block.
const THREADS: u32 = 256;
/// Elements that a thread computes where there are many.
const EACH: usize = 4;
/// Blocks for each multiprocessor, at most: threads then go on to further elements.
const BLOCKS: usize = 32;
/// Operands at most.
const INPUTS: usize = 4;
/// Bit of a variant for arrays that are not in rows; those below tell which operands are scalars.
const STRIDED: usize = 1 << INPUTS;
/// Kernels of a loop on each device.
const VARIANTS: usize = 2 * STRIDED;
/// Results below this size are not counted as bytes held by pending ops.
const COUNTED: usize = 4096;

/// An operand of a push.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a> {
    /// An array on the device, broadcast to the shape of the result.
    Array(&'a Array),
    /// The same number for every element.
    Scalar(Scalar),
}

/// The kernels of an element-wise op for exact dtypes, compiled when they are first launched.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct CudaLoop {
    name: Arc<str>,
    /// Of the operands in memory; a scalar is passed as this type.
    inputs: SmallVec<[DType; 3]>,
    outputs: SmallVec<[DType; 1]>,
    /// ``build(capability, strided, scalars)`` answers the name of the kernel and its image.
    build: Py<PyAny>,
    /// Of each device one for each variant.
    kernels: OnceLock<Box<[OnceLock<Launcher>]>>,
}

/// How a kernel walks over operands that are not in rows: as the struct in its source.
struct Walk {
    size: usize,
    shape: SmallVec<[usize; AXES]>,
    /// For each operand, outputs first, the bytes from one element to the next along each axis.
    strides: SmallVec<[SmallVec<[isize; AXES]>; 4]>,
}

impl Walk {
    fn new(outputs: &[&Array], inputs: &[Operand<'_>]) -> Result<Self, weft_array::ArrayError> {
        let shape = &outputs[0].layout().shape;
        let mut strides: SmallVec<[SmallVec<[isize; AXES]>; 4]> = SmallVec::new();
        for output in outputs {
            strides.push(output.layout().strides.iter().copied().collect());
        }
        for input in inputs {
            if let Operand::Array(array) = input {
                strides.push(array.layout().broadcast(shape)?.iter().copied().collect());
            }
        }
        let mut walk = Self { size: shape.iter().product(), shape: shape.iter().copied().collect(), strides };
        walk.merge();
        Ok(walk)
    }

    /// Drops axes of length 1, and merges two where every operand steps over them as over one.
    fn merge(&mut self) {
        let mut axis = self.shape.len();
        while axis > 0 {
            axis -= 1;
            let inner = axis + 1;
            if self.shape[axis] == 1 {
                self.remove(axis);
            } else if inner < self.shape.len() {
                let length = isize::try_from(self.shape[inner]).unwrap_or(isize::MAX);
                if self.strides.iter().all(|strides| strides[axis] == strides[inner].wrapping_mul(length)) {
                    self.shape[inner] *= self.shape[axis];
                    self.remove(axis);
                }
            }
        }
    }

    fn remove(&mut self, axis: usize) {
        self.shape.remove(axis);
        for strides in &mut self.strides {
            strides.remove(axis);
        }
    }

    /// As the kernel's parameter: size, number of axes, lengths, then the strides of each operand.
    fn bytes(&self) -> SmallVec<[u8; 512]> {
        let mut bytes = SmallVec::new();
        let mut put = |word: u64| bytes.extend_from_slice(&word.to_ne_bytes());
        put(self.size as u64);
        put(self.shape.len() as u64);
        (0..AXES).for_each(|axis| put(self.shape.get(axis).map_or(1, |length| *length as u64)));
        for strides in &self.strides {
            (0..AXES).for_each(|axis| put(strides.get(axis).map_or(0, |stride| stride.cast_unsigned() as u64)));
        }
        bytes
    }
}

fn in_rows(outputs: &[&Array], inputs: &[Operand<'_>]) -> bool {
    let shape = &outputs[0].layout().shape;
    let arrays = inputs.iter().filter_map(|input| if let Operand::Array(array) = input { Some(*array) } else { None });
    outputs.iter().copied().chain(arrays).all(|array| array.is_contiguous() && array.layout().shape == *shape)
}

/// Whether an element of one may be an element of the other at another place.
fn crosses(one: &Array, other: &Array) -> bool {
    let (near, far) = (one.range(), other.range());
    Arc::ptr_eq(one.buffer(), other.buffer())
        && (one.layout() != other.layout() || one.dtype() != other.dtype())
        && near.start < far.end
        && far.start < near.end
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
        let py = build.py();
        let (inputs, outputs) = (read(inputs)?.into(), read(outputs)?.into());
        let made = Self { name: name.into(), inputs, outputs, build: build.unbind(), kernels: OnceLock::new() };
        if made.inputs.len() > INPUTS || made.outputs.is_empty() {
            let message = format!("{name}: a kernel has up to {INPUTS} operands, and at least one result");
            return Err(errors::argument_value(py, &message));
        }
        Ok(made)
    }

    /// Pushes a launch over `inputs`, arrays of one device or numbers, broadcast to the shape of `outputs`.
    #[pyo3(name = "push")]
    pub(crate) fn push_python(&self, outputs: &Bound<'_, PyTuple>, inputs: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = outputs.py();
        let outputs: SmallVec<[Bound<'_, NDArray>; 1]> =
            outputs.iter().map(|item| Ok(item.cast_into::<NDArray>()?)).collect::<PyResult<_>>()?;
        let mut held: SmallVec<[Result<Bound<'_, NDArray>, Scalar>; 3]> = SmallVec::new();
        for (input, dtype) in inputs.iter().zip(&self.inputs) {
            held.push(match input.cast_into::<NDArray>() {
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
            .map(|input| match input {
                Ok(array) => Operand::Array(&array.get().inner),
                Err(scalar) => Operand::Scalar(*scalar),
            })
            .collect();
        let targets: SmallVec<[&Array; 1]> = outputs.iter().map(|output| &output.get().inner).collect();
        let Some(first) = outputs.first() else { return Err(errors::argument_value(py, "there is no output")) };
        let bytes: usize = targets.iter().map(|target| target.bytes()).sum();
        first.get().owner().get().wait_for_room(py, bytes as u64)?;
        self.push(py, &targets, &operands)
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.inputs.iter().chain(&self.outputs).map(|dtype| dtype.name()).collect();
        format!("<weft._core.CudaLoop {} {}>", self.name, names.join(", "))
    }
}

impl CudaLoop {
    /// What is computed for operands of these dtypes.
    pub(crate) fn result(&self) -> DType {
        self.outputs[0]
    }

    /// Pushes a launch. The caller has waited for room.
    #[inline]
    pub(crate) fn push(&self, py: Python<'_>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<()> {
        match self.of_rows(outputs, inputs) {
            Some(launcher) => self.push_launch(py, launcher, None, outputs, inputs),
            None => self.push_any(py, outputs, inputs),
        }
    }

    /// The kernel for operands that are in rows, one shape and one device, as most are, if it was compiled before and
    /// all is as it must be; otherwise `push_any` looks closer.
    #[inline]
    fn of_rows(&self, outputs: &[&Array], inputs: &[Operand<'_>]) -> Option<&Launcher> {
        let ([output], [result]) = (outputs, &*self.outputs) else { return None };
        let (device, shape) = (memory_of(output)?.device(), &*output.layout().shape);
        if !output.is_flat() || output.bytes() == 0 || output.dtype() != *result || inputs.len() != self.inputs.len() {
            return None;
        }
        let mut variant = 0;
        for (at, (input, dtype)) in inputs.iter().zip(&self.inputs).enumerate() {
            let Operand::Array(array) = input else {
                variant |= 1 << at;
                continue;
            };
            let suits = array.dtype() == *dtype && array.is_contiguous() && *array.layout().shape == *shape;
            // In place each element is read where it is written; elsewhere in the same buffer not.
            let apart = !Arc::ptr_eq(array.buffer(), output.buffer()) || (array.is_flat() && dtype == result);
            if !suits || !apart || memory_of(array)?.device() != device {
                return None;
            }
        }
        self.kernels.get()?.get(device.index() * VARIANTS + variant)?.get()
    }

    /// Checks the operands, and copies what must not be read where it lies.
    fn push_any(&self, py: Python<'_>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<()> {
        let device = self.check(py, outputs, inputs)?;
        if outputs[0].layout().size() == 0 {
            return Ok(());
        }
        for (at, input) in inputs.iter().enumerate() {
            if let Operand::Array(array) = input
                && outputs.iter().any(|output| crosses(output, array))
            {
                // What is read must not be changed by threads that were faster.
                let copy = compact(py, array)?;
                let mut inputs: SmallVec<[Operand<'_>; INPUTS]> = inputs.into();
                inputs[at] = Operand::Array(&copy);
                return self.push(py, outputs, &inputs);
            }
        }
        let mut variant = 0;
        for (at, input) in inputs.iter().enumerate() {
            variant |= usize::from(matches!(input, Operand::Scalar(_))) << at;
        }
        let walk = if in_rows(outputs, inputs) {
            None
        } else {
            variant |= STRIDED;
            Some(self.walk(py, outputs, inputs)?)
        };
        let launcher = self.launcher(py, device, variant, walk.as_ref(), inputs)?;
        self.push_launch(py, launcher, walk.as_ref(), outputs, inputs)
    }

    /// Pushes a launch whose operands have been checked.
    #[inline]
    fn push_launch(
        &self,
        py: Python<'_>,
        launcher: &Launcher,
        walk: Option<&Walk>,
        outputs: &[&Array],
        inputs: &[Operand<'_>],
    ) -> PyResult<()> {
        let launch = self.launch(launcher, walk, outputs, inputs).map_err(|error| errors::cuda(py, error))?;
        let launch = launch.at(Location::here(py).bits());
        let engine = outputs[0].engine();
        // One for each access of the launch, in their order.
        let mut arrays: SmallVec<[(&Array, ArrayAccess); INPUTS]> = SmallVec::new();
        let mut bytes = 0;
        for output in outputs {
            arrays.push((output, ArrayAccess::Overwrite));
            bytes += if output.bytes() < COUNTED { 0 } else { output.bytes() as u64 };
        }
        for input in inputs {
            if let Operand::Array(array) = input {
                arrays.push((array, ArrayAccess::Read));
            }
        }
        if recording::is_open() && walk.is_none() {
            return self.record_launch(
                py,
                launcher,
                launch,
                (outputs, inputs),
                &Call::anywhere(engine, &arrays, PushOptions::default()),
            );
        }
        let note = trace::of_arrays(py, engine, Kind::Launch, &self.name);
        let options = PushOptions { bytes, note, ..PushOptions::default() };
        weft_device::launch(launch, &Call::anywhere(engine, &arrays, options), true).map_err(|error| raised(py, error))
    }

    /// Records a launch over arrays in rows, so that neighbours may become one kernel.
    #[cold]
    fn record_launch(
        &self,
        py: Python<'_>,
        launcher: &Launcher,
        launch: Launch,
        (outputs, inputs): (&[&Array], &[Operand<'_>]),
        call: &Call<'_>,
    ) -> PyResult<()> {
        recording::announce(&self.name, launch.place());
        let given = |(input, dtype): (&Operand<'_>, &DType)| match input {
            Operand::Array(_) => Ok(Given::Array(*dtype)),
            Operand::Scalar(scalar) => match scalar.bytes(*dtype) {
                Some(bytes) => Ok(Given::Scalar(bytes[..dtype.size()].into())),
                None => Err(errors::argument_value(py, &format!("{scalar:?} is no {}", dtype.name()))),
            },
        };
        let step = ElementwiseStep {
            name: Arc::clone(&self.name),
            build: self.build.clone_ref(py),
            device: launcher.device().clone(),
            size: outputs[0].layout().size(),
            outputs: self.outputs.iter().copied().collect(),
            inputs: inputs.iter().zip(&self.inputs).map(given).collect::<PyResult<_>>()?,
            place: launch.place(),
            alone: weft_device::launch_step(launch, true),
        };
        record(Step::Opaque(Arc::new(step)), call).map_err(|error| raised(py, error))
    }

    /// Refuses operands that do not suit the kernels. Answers their device.
    #[inline]
    fn check<'a>(&self, py: Python<'_>, outputs: &[&'a Array], inputs: &[Operand<'_>]) -> PyResult<&'a Device> {
        if outputs.len() != self.outputs.len() || inputs.len() != self.inputs.len() {
            let message =
                format!("{} has {} operands and {} results", self.name, self.inputs.len(), self.outputs.len());
            return Err(errors::argument_value(py, &message));
        }
        let shape = &outputs[0].layout().shape;
        let device = expect(py, outputs[0])?.device();
        let check = |array: &Array, dtype: DType| -> PyResult<()> {
            if *expect(py, array)?.device() != *device || array.dtype() != dtype {
                return Err(self.unsuited(py, device, array, dtype));
            }
            Ok(())
        };
        for (input, dtype) in inputs.iter().zip(&self.inputs) {
            if let Operand::Array(array) = input {
                check(array, *dtype)?;
            }
        }
        for (output, dtype) in outputs.iter().zip(&self.outputs) {
            check(output, *dtype)?;
            let layout = output.layout();
            let repeats = || layout.shape.iter().zip(&layout.strides).any(|(n, step)| *n > 1 && *step == 0);
            if layout.shape != *shape || (!output.is_contiguous() && layout.size() > 0 && repeats()) {
                let message = format!("{}: the outputs must be of one shape, and no broadcast views", self.name);
                return Err(errors::argument_value(py, &message));
            }
        }
        Ok(device)
    }

    /// Why an array does not suit the kernels.
    #[cold]
    fn unsuited(&self, py: Python<'_>, device: &Device, array: &Array, wanted: DType) -> PyErr {
        let other = memory_of(array).map_or(device, DeviceBuffer::device);
        if other != device {
            let (one, two) = (device.index(), other.index());
            let message = format!(
                "{}: the operands are on cuda:{one} and on cuda:{two}: bring them together by to_device()",
                self.name
            );
            return errors::argument_value(py, &message);
        }
        let (found, wanted) = (array.dtype().name(), wanted.name());
        errors::argument_type(py, &format!("{}: an operand is {found}, not {wanted}", self.name))
    }

    fn walk(&self, py: Python<'_>, outputs: &[&Array], inputs: &[Operand<'_>]) -> PyResult<Walk> {
        let walk = Walk::new(outputs, inputs).map_err(|error| raised(py, error))?;
        if walk.shape.len() > AXES {
            let message = format!(
                "{}: arrays of {} axes that do not merge are too many for a kernel, which takes {AXES}: make the \
                 operands contiguous by copy()",
                self.name,
                walk.shape.len()
            );
            return Err(errors::argument_value(py, &message));
        }
        Ok(walk)
    }

    /// The kernel of a variant, compiled when it is first asked for.
    #[inline]
    fn launcher(
        &self,
        py: Python<'_>,
        device: &Device,
        variant: usize,
        walk: Option<&Walk>,
        inputs: &[Operand<'_>],
    ) -> PyResult<&Launcher> {
        let count = || runtime::known().map_or(0, Cuda::device_count);
        let kernels = self.kernels.get_or_init(|| (0..count() * VARIANTS).map(|_| OnceLock::new()).collect());
        let place = &kernels[device.index() * VARIANTS + variant];
        if let Some(launcher) = place.get() {
            return Ok(launcher);
        }
        let compiled = self.compile(py, device, variant, walk, inputs)?;
        // Of two threads that come here at the same time, the first one's stays; both are the same.
        Ok(place.get_or_init(|| compiled))
    }

    #[cold]
    fn compile(
        &self,
        py: Python<'_>,
        device: &Device,
        variant: usize,
        walk: Option<&Walk>,
        inputs: &[Operand<'_>],
    ) -> PyResult<Launcher> {
        let capability = device.properties().capability;
        let answer = self.build.call1(py, (capability, variant & STRIDED != 0, variant & !STRIDED))?;
        let (name, image): (String, Bound<'_, PyBytes>) = answer.extract(py)?;
        let image = image.as_bytes();
        let mut parameters: SmallVec<[Parameter; 8]> = SmallVec::new();
        parameters.push(Parameter::Scalar(walk.map_or(8, |walk| walk.bytes().len())));
        parameters.extend(self.outputs.iter().map(|_| Parameter::Pointer));
        parameters.extend(inputs.iter().zip(&self.inputs).map(|(input, dtype)| match input {
            Operand::Array(_) => Parameter::Pointer,
            Operand::Scalar(_) => Parameter::Scalar(dtype.size()),
        }));
        let load = || {
            // SAFETY: the compiler has just made it.
            let kernel = unsafe { device.load_module(image) }?.kernel(&name)?;
            let plan = kernel.plan(&parameters)?;
            Launcher::new(&kernel, &plan, Label::new(Arc::clone(&self.name), 0))
        };
        // To load it may take the driver long, and make it wait for the device.
        py.detach(load).map_err(|error| errors::cuda(py, error))
    }

    #[inline]
    fn launch(
        &self,
        launcher: &Launcher,
        walk: Option<&Walk>,
        outputs: &[&Array],
        inputs: &[Operand<'_>],
    ) -> Result<Launch, CudaError> {
        let size = outputs[0].layout().size();
        let dimensions = dimensions(launcher.device(), size);
        // SAFETY: the kernel touches the elements of its operands, which check() has found to be what it is for.
        let mut launch = unsafe { launcher.launch(dimensions) }?;
        match walk {
            Some(walk) => launch.give_scalar(&walk.bytes())?,
            None => launch.give_scalar(&(size as u64).to_ne_bytes())?,
        }
        let memory = |array: &Array| buffer_of(array).ok_or_else(super::memory::not_there);
        for output in outputs {
            // What lies between the elements stays, and other ranges of the buffer may be in use: so not "overwrite".
            let kind = if output.is_flat() { AccessKind::Overwrite } else { AccessKind::Mutate };
            launch.give_pointer(
                output.layout().offset,
                Access { buffer: memory(output)?, range: output.range(), kind },
            )?;
        }
        for (input, dtype) in inputs.iter().zip(&self.inputs) {
            match input {
                Operand::Array(array) => {
                    let access = Access { buffer: memory(array)?, range: array.range(), kind: AccessKind::Read };
                    launch.give_pointer(array.layout().offset, access)?;
                }
                Operand::Scalar(scalar) => {
                    let bytes = scalar.bytes(*dtype);
                    let refuse = || CudaError::InvalidArgument(format!("{scalar} is no {}", dtype.name()));
                    launch.give_scalar(&bytes.ok_or_else(refuse)?[..dtype.size()])?;
                }
            }
        }
        Ok(launch)
    }
}

/// Threads for so many elements.
pub(super) fn dimensions(device: &Device, size: usize) -> Dimensions {
    let most = device.properties().multiprocessors as usize * BLOCKS;
    let blocks = size.div_ceil(THREADS as usize * EACH).clamp(1, most.max(1));
    let grid = [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1];
    Dimensions { grid, block: [THREADS, 1, 1], shared_memory: 0 }
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
