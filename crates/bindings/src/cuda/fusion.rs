//! Element-wise launches of a recording, whose neighbours become one kernel.
//!
//! `weft._cuda.fused` writes the kernel: the functions of the steps one after the other, each with the casts and the
//! rounding that it has alone.

use crate::interpreter::dtypes;
use crate::interpreter::loose::Loose;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use weft_array::{DType, Neighbour, Opaque, Operands, Part, Together};
use weft_cuda::{BufferAccess, CudaError, Device, DeviceBuffer, Label, Launch, Launcher, Parameter};
use weft_device::dimensions;
use weft_engine::{AccessKind, Cause, InOrder, OpContext};

/// The operands of a step.
pub(super) enum Given {
    /// An array of this type.
    Array(DType),
    /// The bytes of a number.
    Scalar(SmallVec<[u8; 16]>),
}

/// An element-wise launch over arrays in rows: its outputs, then the arrays among its inputs.
pub(super) struct ElementwiseStep {
    pub(super) name: Arc<str>,
    /// The object that compiles and describes its kernels.
    pub(super) build: Loose<PyAny>,
    pub(super) device: Device,
    /// Elements.
    pub(super) size: usize,
    pub(super) outputs: SmallVec<[DType; 1]>,
    pub(super) inputs: SmallVec<[Given; 3]>,
    pub(super) place: u64,
    /// Its own launch, for a step that stays alone.
    pub(super) alone: Arc<dyn Opaque>,
}

impl Opaque for ElementwiseStep {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        self.alone.queue()
    }

    fn is_private(&self) -> bool {
        true
    }

    fn elements(&self) -> Option<usize> {
        (self.outputs.len() == 1).then_some(self.size)
    }

    fn fused(&self, steps: &[Neighbour]) -> Option<Arc<dyn Opaque>> {
        // Without a compiler, or where it does not take them, they stay apart.
        Python::attach(|py| Fusion::of(self, steps)?.launch(py).ok().flatten())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn issues_on(&self) -> Option<u16> {
        self.alone.issues_on()
    }

    fn together(&self, name: &str, place: u64) -> Option<Arc<dyn Together>> {
        self.alone.together(name, place)
    }

    fn issued(&self) -> Option<&dyn Any> {
        self.alone.issued()
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: the caller's promise: it was recorded with the same arrays.
        unsafe { self.alone.run(arrays, context) }
    }

    fn place(&self) -> u64 {
        self.place
    }
}

/// Steps that are to become one.
struct Fusion<'a> {
    first: &'a ElementwiseStep,
    steps: Vec<(&'a ElementwiseStep, &'a [Part])>,
    /// The types of the arrays.
    arrays: Vec<DType>,
}

impl<'a> Fusion<'a> {
    /// Nothing if an array is of two types.
    fn of(first: &'a ElementwiseStep, steps: &'a [Neighbour]) -> Option<Self> {
        let mut known = Vec::with_capacity(steps.len());
        let mut arrays: Vec<Option<DType>> = Vec::new();
        for (step, operands) in steps {
            let step: &ElementwiseStep = step.as_any()?.downcast_ref()?;
            if step.device != first.device || step.size != first.size {
                return None;
            }
            let inputs = step.inputs.iter().filter_map(|input| match input {
                Given::Array(dtype) => Some(*dtype),
                Given::Scalar(_) => None,
            });
            let dtypes: SmallVec<[DType; 4]> = step.outputs.iter().copied().chain(inputs).collect();
            if dtypes.len() != operands.len() {
                return None;
            }
            for (part, dtype) in operands.iter().zip(dtypes) {
                if let Part::Array(at) = part {
                    arrays.resize(arrays.len().max(at + 1), None);
                    if *arrays[*at].get_or_insert(dtype) != dtype {
                        return None;
                    }
                }
            }
            known.push((step, &operands[..]));
        }
        Some(Self { first, steps: known, arrays: arrays.into_iter().collect::<Option<_>>()? })
    }

    /// A step for `weft._cuda.fused`: its kernel, the place of its output, and those of its inputs.
    fn told<'py>(
        py: Python<'py>,
        step: &ElementwiseStep,
        operands: &[Part],
        scalars: &mut usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let place = |part: &Part| match part {
            Part::Array(at) => ("array", *at),
            Part::Slot(at) => ("slot", *at),
        };
        let mut arrays = operands[1..].iter();
        let mut inputs = Vec::with_capacity(step.inputs.len());
        for input in &step.inputs {
            let array = if matches!(input, Given::Array(_)) { arrays.next() } else { None };
            inputs.push(array.map_or_else(
                || {
                    *scalars += 1;
                    ("scalar", *scalars - 1)
                },
                place,
            ));
        }
        let kernel = step.build.bind(py).getattr("kernel")?;
        (kernel, place(&operands[0]), PyTuple::new(py, inputs)?).into_pyobject(py)
    }

    /// The launch of one kernel for all. Nothing if there is none.
    fn launch(&self, py: Python<'_>) -> PyResult<Option<Arc<dyn Opaque>>> {
        let mut scalars = 0;
        let told = self.steps.iter().map(|(step, operands)| Self::told(py, step, operands, &mut scalars));
        let told = PyTuple::new(py, told.collect::<PyResult<Vec<_>>>()?)?;
        let arrays = self.arrays.iter().map(|dtype| dtypes::to_python(py, *dtype)).collect::<PyResult<Vec<_>>>()?;
        let (arrays, capability) = (PyTuple::new(py, arrays)?, self.first.device.properties().capability);
        let built = py.import("weft._cuda.fused")?.getattr("build")?.call1((told, arrays, capability))?;
        let Some((name, image)) = built.extract::<Option<(String, Bound<'_, PyBytes>)>>()? else { return Ok(None) };
        let image = image.as_bytes();
        // To load it may take the driver long, and make it wait for the device.
        Ok(py.detach(|| self.loaded(&name, image)).ok())
    }

    fn loaded(&self, name: &str, image: &[u8]) -> Result<Arc<dyn Opaque>, CudaError> {
        let (device, size) = (&self.first.device, self.first.size);
        let scalars = || {
            self.steps.iter().flat_map(|(step, _)| &step.inputs).filter_map(|input| match input {
                Given::Scalar(bytes) => Some(bytes),
                Given::Array(_) => None,
            })
        };
        let mut parameters: Vec<Parameter> = vec![Parameter::Scalar(8)];
        parameters.extend(self.arrays.iter().map(|_| Parameter::Pointer));
        parameters.extend(scalars().map(|bytes| Parameter::Scalar(bytes.len())));
        // SAFETY: the compiler has just made it.
        let kernel = unsafe { device.load_module(image) }?.kernel(name)?;
        let plan = kernel.plan(&parameters)?;
        let names: Vec<&str> = self.steps.iter().map(|(step, _)| &*step.name).collect();
        let label = Label::new(names.join("+").into(), 0);
        // SAFETY: the kernel touches the elements of its arrays, each of which the replay gives as it was recorded.
        let mut launch: Launch = unsafe { Launcher::new(&kernel, &plan, label)?.launch(dimensions(device, size)) }?;
        launch.give_scalar(&(size as u64).to_ne_bytes())?;
        // In the place of each replay's own.
        let nothing = DeviceBuffer::new(device, 0);
        for _ in &self.arrays {
            launch.give_pointer(0, BufferAccess::whole(&nothing, AccessKind::Mutate))?;
        }
        for bytes in scalars() {
            launch.give_scalar(bytes)?;
        }
        Ok(weft_device::launch_step(launch.at(self.first.place), true))
    }
}
