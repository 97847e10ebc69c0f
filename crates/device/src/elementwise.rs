//! Element-wise kernels over arrays: the kernel of a launch, its walk over the operands, and the copies that must come before.
//!
//! | operands | kernel |
//! |---|---|
//! | all in rows and of the result's shape | walks along one index |
//! | anything else | walks by strides, over axes that were merged where that can be |
//! | numbers | each takes its place as a parameter, so each choice of operands has a kernel of its own |
//!
//! An operand that shows elements of a result at other places is copied first: threads that are faster would change it.
//!
//! The source of a kernel is the caller's: it hears which one is [wanted](Wanted), and loads it.

use crate::memory::{buffer_of, expect, memory_of, not_there};
use crate::walk::KernelWalk;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use weft_array::{Access, Array, ArrayError, DType, Operand};
use weft_cuda::driver::Dimensions;
use weft_cuda::{BRIEF, CudaError, Device, DeviceBuffer, Label, Launch, Launcher, Parameter};
use weft_engine::AccessKind;

/// Threads of a block.
const THREADS: u32 = 256;
/// Elements that a thread computes where there are many.
const EACH: usize = 4;
/// Blocks for each multiprocessor, at most: threads then go on to further elements.
const BLOCKS: usize = 32;
/// Operands at most.
const INPUTS: usize = 4;
/// Kernels of a loop on each device.
const VARIANTS: usize = 2 << INPUTS;
/// Results below this size are not counted as bytes held by pending ops.
const COUNTED: usize = 4096;

/// Why operands were refused.
pub enum ElementwiseError {
    /// There are too many or too few, or they do not lie as they must.
    Value(String),
    /// One is of another type.
    Type(String),
    /// They do not broadcast.
    Array(ArrayError),
    /// A kernel or a launch was refused.
    Cuda(CudaError),
}

impl From<ArrayError> for ElementwiseError {
    fn from(error: ArrayError) -> Self {
        Self::Array(error)
    }
}

impl From<CudaError> for ElementwiseError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error)
    }
}

/// Whether the elements of an array that is to be copied to the host are brought together on the device first: most bytes
/// between the first one and the last are others'.
#[must_use]
pub fn is_gathered_first(array: &Array) -> bool {
    array.bytes() > 0 && array.bytes() < array.range().len() / 4 * 3 && array.layout().shape.len() <= KernelWalk::AXES
}

/// Threads for so many elements.
#[must_use]
pub fn dimensions(device: &Device, size: usize) -> Dimensions {
    let most = device.properties().multiprocessors as usize * BLOCKS;
    let blocks = size.div_ceil(THREADS as usize * EACH).clamp(1, most.max(1));
    let grid = [u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1];
    Dimensions { grid, block: [THREADS, 1, 1], shared_memory: 0 }
}

/// Which of a loop's kernels: by how it walks, and by which operands are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant(usize);

impl Variant {
    const STRIDED: usize = 1 << INPUTS;

    fn of(inputs: &[Operand<'_>]) -> Self {
        let scalars =
            inputs.iter().enumerate().map(|(at, input)| usize::from(matches!(input, Operand::Scalar(..))) << at);
        Self(scalars.sum())
    }

    /// Whether it walks by strides.
    #[must_use]
    pub fn is_strided(self) -> bool {
        self.0 & Self::STRIDED != 0
    }

    /// The operands that are numbers, a bit for each.
    #[must_use]
    pub fn scalars(self) -> usize {
        self.0 & !Self::STRIDED
    }
}

/// The kernels of an element-wise op for exact dtypes, each loaded when it is first launched.
pub struct Loop {
    name: Arc<str>,
    /// Of the operands in memory; a number is passed as this type.
    inputs: SmallVec<[DType; 3]>,
    outputs: SmallVec<[DType; 1]>,
    /// Of each device one for each variant.
    kernels: OnceLock<Box<[OnceLock<Launcher>]>>,
}

/// What a push of a loop needs next.
pub enum Next<'a> {
    /// Nothing: there are no elements.
    Nothing,
    /// A copy of the operand of this number, which takes its place.
    Copy(usize),
    /// A kernel that was not loaded yet.
    Load(Wanted<'a>),
    /// A launch.
    Launch(Ready<'a>),
}

/// Operands that suit a loop.
#[derive(Clone, Copy)]
struct Suited<'a> {
    of: &'a Loop,
    outputs: &'a [&'a Array],
    inputs: &'a [Operand<'a>],
}

/// A kernel that a loop has to have for its operands.
pub struct Wanted<'a> {
    operands: Suited<'a>,
    device: &'a Device,
    variant: Variant,
    walk: Option<KernelWalk>,
}

/// Operands that suit a loop, with the kernel for them.
pub struct Ready<'a> {
    operands: Suited<'a>,
    launcher: &'a Launcher,
    walk: Option<KernelWalk>,
}

/// Whether all are in rows, and none is broadcast.
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

impl Loop {
    /// A loop without kernels yet.
    pub fn new(name: &str, inputs: &[DType], outputs: &[DType]) -> Result<Self, ElementwiseError> {
        if inputs.len() > INPUTS || outputs.is_empty() {
            let message = format!("{name}: a kernel has up to {INPUTS} operands, and at least one result");
            return Err(ElementwiseError::Value(message));
        }
        Ok(Self { name: name.into(), inputs: inputs.into(), outputs: outputs.into(), kernels: OnceLock::new() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The types of its operands.
    #[must_use]
    pub fn inputs(&self) -> &[DType] {
        &self.inputs
    }

    /// The types of its results, at least one.
    #[must_use]
    pub fn outputs(&self) -> &[DType] {
        &self.outputs
    }

    /// The launch for operands that are in rows, of one shape and on one device, as most are, if its kernel was loaded before
    /// and all is as it must be; otherwise [`prepare`](Self::prepare) looks closer.
    #[inline]
    #[must_use]
    pub fn known<'a>(&'a self, outputs: &'a [&'a Array], inputs: &'a [Operand<'a>]) -> Option<Ready<'a>> {
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
        let launcher = self.kernel(device, Variant(variant))?;
        Some(Ready { operands: Suited { of: self, outputs, inputs }, launcher, walk: None })
    }

    /// What a push on these operands needs next. Refuses those that do not suit the loop.
    pub fn prepare<'a>(
        &'a self,
        outputs: &'a [&'a Array],
        inputs: &'a [Operand<'a>],
    ) -> Result<Next<'a>, ElementwiseError> {
        let device = self.check(outputs, inputs)?;
        if outputs[0].layout().size() == 0 {
            return Ok(Next::Nothing);
        }
        let crossing = inputs.iter().position(|input| match input {
            Operand::Array(array) => outputs.iter().any(|output| crosses(output, array)),
            Operand::Scalar(..) => false,
        });
        if let Some(at) = crossing {
            return Ok(Next::Copy(at));
        }
        let mut variant = Variant::of(inputs);
        let walk = if in_rows(outputs, inputs) {
            None
        } else {
            variant.0 |= Variant::STRIDED;
            Some(self.walk(outputs, inputs)?)
        };
        let operands = Suited { of: self, outputs, inputs };
        Ok(match self.kernel(device, variant) {
            Some(launcher) => Next::Launch(Ready { operands, launcher, walk }),
            None => Next::Load(Wanted { operands, device, variant, walk }),
        })
    }

    #[inline]
    fn kernel(&self, device: &Device, variant: Variant) -> Option<&Launcher> {
        self.kernels.get()?.get(device.index() * VARIANTS + variant.0)?.get()
    }

    /// Refuses operands that do not suit the kernels. Answers their device.
    fn check<'a>(&self, outputs: &[&'a Array], inputs: &[Operand<'_>]) -> Result<&'a Device, ElementwiseError> {
        if outputs.len() != self.outputs.len() || inputs.len() != self.inputs.len() {
            let message =
                format!("{} has {} operands and {} results", self.name, self.inputs.len(), self.outputs.len());
            return Err(ElementwiseError::Value(message));
        }
        let shape = &outputs[0].layout().shape;
        let device = expect(outputs[0])?.device();
        let check = |array: &Array, dtype: DType| -> Result<(), ElementwiseError> {
            if *expect(array)?.device() != *device || array.dtype() != dtype {
                return Err(self.unsuited(device, array, dtype));
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
                return Err(ElementwiseError::Value(message));
            }
        }
        Ok(device)
    }

    /// Why an array does not suit the kernels.
    #[cold]
    fn unsuited(&self, device: &Device, array: &Array, wanted: DType) -> ElementwiseError {
        let other = memory_of(array).map_or(device, DeviceBuffer::device);
        if other != device {
            let (one, two) = (device.index(), other.index());
            let message = format!(
                "{}: the operands are on cuda:{one} and on cuda:{two}: bring them together by to_device()",
                self.name
            );
            return ElementwiseError::Value(message);
        }
        let (found, wanted) = (array.dtype().name(), wanted.name());
        ElementwiseError::Type(format!("{}: an operand is {found}, not {wanted}", self.name))
    }

    fn walk(&self, outputs: &[&Array], inputs: &[Operand<'_>]) -> Result<KernelWalk, ElementwiseError> {
        let shape = &outputs[0].layout().shape;
        let mut strides = SmallVec::new();
        for output in outputs {
            strides.push(output.layout().strides.iter().copied().collect());
        }
        for input in inputs {
            if let Operand::Array(array) = input {
                strides.push(array.layout().broadcast(shape)?.iter().copied().collect());
            }
        }
        KernelWalk::new(shape, strides).map_err(|axes| {
            ElementwiseError::Value(format!(
                "{}: arrays of {axes} axes that do not merge are too many for a kernel, which takes {}: make the \
                 operands contiguous by copy()",
                self.name,
                KernelWalk::AXES
            ))
        })
    }
}

impl<'a> Wanted<'a> {
    /// Where it is to run.
    #[must_use]
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Which of the loop's kernels.
    #[must_use]
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Loads it, of so many devices in this process. It may take the driver long, and make it wait for the device.
    ///
    /// # Safety
    ///
    /// The function of this name in the image computes the loop's results for this variant: it touches the elements of its
    /// operands, as its parameters say where they are, and nothing else.
    pub unsafe fn load(self, devices: usize, name: &str, image: &[u8]) -> Result<Ready<'a>, CudaError> {
        let Self { operands, device, variant, walk } = self;
        let of = operands.of;
        let mut parameters: SmallVec<[Parameter; 8]> = SmallVec::new();
        parameters.push(Parameter::Scalar(walk.as_ref().map_or(size_of::<u64>(), |walk| walk.bytes().len())));
        parameters.extend(of.outputs.iter().map(|_| Parameter::Pointer));
        parameters.extend(of.inputs.iter().enumerate().map(|(at, dtype)| match variant.scalars() >> at & 1 {
            0 => Parameter::Pointer,
            _ => Parameter::Scalar(dtype.size()),
        }));
        // SAFETY: the caller's promise.
        let kernel = unsafe { device.load_module(image) }?.kernel(name)?;
        let plan = kernel.plan(&parameters)?;
        let loaded = Launcher::new(&kernel, &plan, Label::new(Arc::clone(&of.name), 0))?;
        let kernels = of.kernels.get_or_init(|| (0..devices * VARIANTS).map(|_| OnceLock::new()).collect());
        let place = kernels.get(device.index() * VARIANTS + variant.0);
        let place = place.ok_or(CudaError::NoDevice { index: device.index(), count: devices })?;
        // Of two threads that come here at the same time, the first one's stays; both are the same.
        Ok(Ready { operands, launcher: place.get_or_init(|| loaded), walk })
    }
}

impl<'a> Ready<'a> {
    /// Where it runs.
    #[must_use]
    pub fn device(&self) -> &'a Device {
        self.launcher.device()
    }

    /// Whether it walks along one index: what a recording may join with its neighbours.
    #[must_use]
    pub fn is_in_rows(&self) -> bool {
        self.walk.is_none()
    }

    /// Where it writes, at least one array.
    #[must_use]
    pub fn outputs(&self) -> &'a [&'a Array] {
        self.operands.outputs
    }

    /// What it reads.
    #[must_use]
    pub fn inputs(&self) -> &'a [Operand<'a>] {
        self.operands.inputs
    }

    /// The array of each access of the launch, in their order.
    #[must_use]
    pub fn arrays(&self) -> SmallVec<[(&'a Array, Access); INPUTS]> {
        let mut arrays = SmallVec::new();
        for output in self.operands.outputs {
            arrays.push((*output, Access::Overwrite));
        }
        for input in self.operands.inputs {
            if let Operand::Array(array) = input {
                arrays.push((*array, Access::Read));
            }
        }
        arrays
    }

    /// Bytes that the op holds while it is pending.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let held = self.operands.outputs.iter().map(|output| output.bytes()).filter(|bytes| *bytes >= COUNTED);
        held.map(|bytes| bytes as u64).sum()
    }

    /// The launch.
    #[inline]
    pub fn launch(&self) -> Result<Launch, CudaError> {
        let Suited { of, outputs, inputs } = self.operands;
        let size = outputs[0].layout().size();
        // SAFETY: the kernel touches the elements of its operands, which were found to be what it is for.
        let mut launch = unsafe { self.launcher.launch(dimensions(self.launcher.device(), size)) }?;
        match &self.walk {
            Some(walk) => launch.give_scalar(&walk.bytes())?,
            None => launch.give_scalar(&(size as u64).to_ne_bytes())?,
        }
        let access = |array: &Array, kind: AccessKind| {
            let buffer = buffer_of(array).ok_or_else(not_there)?;
            Ok::<_, CudaError>(weft_cuda::BufferAccess { buffer, range: array.range(), kind })
        };
        for output in outputs {
            // What lies between the elements stays, and other ranges of the buffer may be in use: so not "overwrite".
            let kind = if output.is_flat() { AccessKind::Overwrite } else { AccessKind::Mutate };
            launch.give_pointer(output.layout().offset, access(output, kind)?)?;
        }
        for (input, dtype) in inputs.iter().zip(&of.inputs) {
            match input {
                Operand::Array(array) => {
                    launch.give_pointer(array.layout().offset, access(array, AccessKind::Read)?)?;
                }
                Operand::Scalar(scalar, _) => {
                    let bytes = scalar.bytes(*dtype);
                    let refuse = || CudaError::InvalidArgument(format!("{scalar} is no {}", dtype.name()));
                    launch.give_scalar(&bytes.ok_or_else(refuse)?[..dtype.size()])?;
                }
            }
        }
        let bytes = launch.accesses().iter().fold(0_usize, |sum, access| sum.saturating_add(access.range.len()));
        Ok(launch.brief(bytes <= BRIEF))
    }
}
