//! Launches: a kernel with arguments, ready to be issued. Issuing one allocates nothing.

mod bare;
mod calls;
mod issue;

pub use bare::BackToBack;
pub use calls::CallTimes;

use super::kernel::{Kernel, LaunchPlan, Parameter};
use crate::buffers::{BufferAccess, DeviceBuffer};
use crate::devices::Device;
use crate::driver::Dimensions;
use crate::error::CudaError;
use crate::label::Label;
use crate::streams::Stream;
use smallvec::SmallVec;
use std::sync::Arc;
use weft_engine::AccessKind;

/// Threads of a block at most, on every device.
const THREADS: u64 = 1024;

#[derive(Debug)]
struct Common {
    kernel: Kernel,
    plan: Arc<LaunchPlan>,
    label: Label,
}

/// A kernel with a plan, and the name of the ops that launch it: the common part of launches, for a maker of many to
/// keep. Clones share it.
#[derive(Debug, Clone)]
pub struct Launcher(Arc<Common>);

impl Launcher {
    /// Launches of a kernel by one of its plans.
    pub fn new(kernel: &Kernel, plan: &Arc<LaunchPlan>, label: Label) -> Result<Self, CudaError> {
        if plan.function != kernel.function() {
            let message = format!("the plan was made for another kernel than '{}'", kernel.name());
            return Err(CudaError::InvalidArgument(message));
        }
        Ok(Self(Arc::new(Common { kernel: kernel.clone(), plan: Arc::clone(plan), label })))
    }

    /// The parameters of each launch.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.0.plan.parameters
    }

    /// The device of each launch.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.0.kernel.device()
    }

    /// A launch without arguments yet.
    ///
    /// # Safety
    ///
    /// That of [`Launch::new`].
    #[inline]
    pub unsafe fn launch(&self, dimensions: Dimensions) -> Result<Launch, CudaError> {
        let kernel = &self.0.kernel;
        let threads: u64 = dimensions.block.iter().map(|count| u64::from(*count)).product();
        if dimensions.grid.contains(&0) || threads == 0 || threads > THREADS {
            return Err(CudaError::InvalidArgument(format!(
                "kernel '{}' cannot be launched with grid ({}) and block ({}): all counts are at least 1, and a block \
                 has {THREADS} threads at most",
                kernel.name(),
                dimensions.grid.map(|count| count.to_string()).join(", "),
                dimensions.block.map(|count| count.to_string()).join(", ")
            )));
        }
        kernel.allow_shared_memory(dimensions.shared_memory)?;
        let mut inner = Box::new_uninit();
        let at: *mut Inner = inner.as_mut_ptr();
        // SAFETY: these are all fields, written where they stay: most of their room is for arguments to come, and would
        // be copied with them.
        let inner = unsafe {
            (&raw mut (*at).launcher).write(self.clone());
            (&raw mut (*at).dimensions).write(dimensions);
            (&raw mut (*at).priority).write(0);
            (&raw mut (*at).given).write(0);
            (&raw mut (*at).pointers).write(0);
            (&raw mut (*at).stream).write(None);
            (&raw mut (*at).brief).write(false);
            (&raw mut (*at).words).write(SmallVec::with_capacity(self.0.plan.words));
            (&raw mut (*at).accesses).write(SmallVec::new());
            inner.assume_init()
        };
        Ok(Launch { inner, place: 0 })
    }
}

/// A kernel with its arguments: give them in order, then push it as an op, or [issue](Self::issue) it inside of one.
///
/// The launcher vouches that the kernel touches the memory that the arguments say, and nothing else: the same promise
/// that any call of native code needs. It is made where it stays: it goes into the op as two words.
#[derive(Debug, Clone)]
pub struct Launch {
    inner: Box<Inner>,
    /// A key of the caller's; 0 is none. Here, where the engine looks for it.
    place: u64,
}

#[derive(Debug, Clone)]
struct Inner {
    launcher: Launcher,
    dimensions: Dimensions,
    priority: i32,
    /// Arguments so far, and how many of them are pointers.
    given: u32,
    pointers: u32,
    stream: Option<Stream>,
    brief: bool,
    /// The parameters, packed; each starts with a word of its own. That of a pointer has its offset; the address is
    /// added when the op is issued.
    words: SmallVec<[u64; 8]>,
    /// Those of the pointers, in order, and behind them further ones.
    accesses: SmallVec<[BufferAccess; 4]>,
}

impl Inner {
    /// Puts the access that was named last, a pointer's, before those that are none's.
    #[cold]
    fn put_last_in_place(&mut self) {
        let from = self.pointers as usize - 1;
        self.accesses[from..].rotate_right(1);
    }
}

impl Launch {
    /// A launch without arguments yet.
    ///
    /// # Safety
    ///
    /// The plan's parameters are those of the kernel. With the arguments to come, the kernel reads only device memory
    /// that the accesses to buffers name, and writes only where those mutate or overwrite.
    pub unsafe fn new(
        kernel: &Kernel,
        plan: &Arc<LaunchPlan>,
        dimensions: Dimensions,
        label: Label,
    ) -> Result<Self, CudaError> {
        // SAFETY: the caller's promise.
        unsafe { Launcher::new(kernel, plan, label)?.launch(dimensions) }
    }

    fn plan(&self) -> &LaunchPlan {
        &self.inner.launcher.0.plan
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.inner.launcher.0.kernel
    }

    /// The parameter that is given next.
    #[inline]
    fn wanted(&self) -> Option<&Parameter> {
        self.plan().parameters.get(self.inner.given as usize)
    }

    #[cold]
    fn mismatched(&self, bytes: &[u8]) -> CudaError {
        self.mismatch(&format!("a value of {} bytes", bytes.len()))
    }

    #[cold]
    fn mismatch(&self, given: &str) -> CudaError {
        let wanted = match self.wanted() {
            None => "none".to_owned(),
            Some(Parameter::Pointer) => "a buffer".to_owned(),
            Some(Parameter::Scalar(bytes)) => format!("a value of {bytes} bytes"),
        };
        let (at, name) = (self.inner.given, self.kernel().name());
        CudaError::InvalidArgument(format!("argument {at} of kernel '{name}' is {given}, and {wanted} is expected"))
    }

    /// Gives a buffer, from this byte on. The kernel may touch all of it.
    pub fn buffer(self, buffer: &Arc<DeviceBuffer>, offset: usize, kind: AccessKind) -> Result<Self, CudaError> {
        self.pointer(offset, BufferAccess::whole(buffer, kind))
    }

    /// Gives a buffer, from this byte on. The kernel touches nothing of it beyond the access.
    pub fn pointer(mut self, offset: usize, access: BufferAccess) -> Result<Self, CudaError> {
        self.give_pointer(offset, access)?;
        Ok(self)
    }

    /// Gives a value.
    pub fn scalar(mut self, bytes: &[u8]) -> Result<Self, CudaError> {
        self.give_scalar(bytes)?;
        Ok(self)
    }

    /// [`pointer`](Self::pointer), in place.
    #[inline]
    pub fn give_pointer(&mut self, offset: usize, access: BufferAccess) -> Result<(), CudaError> {
        let fits = offset <= access.buffer.bytes() && access.buffer.device() == self.device();
        if !fits || self.wanted() != Some(&Parameter::Pointer) {
            return Err(self.misplaced(offset, &access));
        }
        let inner = &mut *self.inner;
        inner.words.push(offset as u64);
        inner.accesses.push(access);
        inner.pointers += 1;
        inner.given += 1;
        if inner.accesses.len() > inner.pointers as usize {
            inner.put_last_in_place();
        }
        Ok(())
    }

    #[cold]
    fn misplaced(&self, offset: usize, access: &BufferAccess) -> CudaError {
        let buffer = &access.buffer;
        if self.wanted() != Some(&Parameter::Pointer) {
            return self.mismatch("a buffer");
        }
        let (at, name) = (self.inner.given, self.kernel().name());
        if offset > buffer.bytes() {
            let bytes = buffer.bytes();
            return CudaError::InvalidArgument(format!(
                "argument {at} of kernel '{name}' begins at byte {offset} of a buffer of {bytes} bytes"
            ));
        }
        CudaError::InvalidArgument(format!(
            "argument {at} of kernel '{name}' lies on cuda:{}, and the kernel is loaded for cuda:{}; copy it there first",
            buffer.device().index(),
            self.device().index()
        ))
    }

    /// [`scalar`](Self::scalar), in place.
    #[inline]
    pub fn give_scalar(&mut self, bytes: &[u8]) -> Result<(), CudaError> {
        if self.wanted() != Some(&Parameter::Scalar(bytes.len())) {
            return Err(self.mismatched(bytes));
        }
        let inner = &mut *self.inner;
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            inner.words.push(u64::from_ne_bytes(word));
        }
        inner.given += 1;
        Ok(())
    }

    /// States the kernel's accesses to memory that no argument names: pointers within buffers, for example.
    #[must_use]
    pub fn access(mut self, access: BufferAccess) -> Self {
        self.inner.accesses.push(access);
        self
    }

    /// The same launch on other memory: for each access, in their order, its first byte, and its kind.
    pub fn on(
        &self,
        accesses: impl Iterator<Item = Result<(usize, BufferAccess), CudaError>>,
    ) -> Result<Self, CudaError> {
        let mut words = self.inner.words.clone();
        let mut given: SmallVec<[BufferAccess; 4]> = SmallVec::new();
        for found in accesses {
            let (offset, access) = found?;
            if offset > access.buffer.bytes() || access.buffer.device() != self.device() {
                return Err(self.misplaced(offset, &access));
            }
            if let Some(word) = self.plan().pointers.get(given.len()) {
                words[*word] = offset as u64;
            }
            given.push(access);
        }
        if given.len() != self.inner.accesses.len() {
            let (wanted, found) = (self.inner.accesses.len(), given.len());
            let message = format!("{} accesses memory {wanted} times, and {found} were given", self.label());
            return Err(CudaError::InvalidArgument(message));
        }
        let Inner { launcher, dimensions, priority, given: arguments, pointers, stream, brief, .. } = &*self.inner;
        let inner = Inner {
            launcher: launcher.clone(),
            dimensions: *dimensions,
            priority: *priority,
            given: *arguments,
            pointers: *pointers,
            stream: stream.clone(),
            brief: *brief,
            words,
            accesses: given,
        };
        Ok(Self { inner: Box::new(inner), place: self.place })
    }

    /// The key of the place where it was pushed.
    #[must_use]
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Ahead of others, if above 0.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.inner.priority = priority;
        self
    }

    /// Pushed at the place that goes by this key (see [`Label::at`]).
    #[must_use]
    pub fn at(mut self, place: u64) -> Self {
        self.place = place;
        self
    }

    /// It takes the device some microseconds at most, so that several may have one event: a wait for one of them may as
    /// well be for a few more. A longer op is not to be waited for in vain.
    #[must_use]
    pub fn brief(mut self, brief: bool) -> Self {
        self.inner.brief = brief;
        self
    }

    /// On this stream.
    #[must_use]
    pub fn stream(mut self, stream: Option<Stream>) -> Self {
        self.inner.stream = stream;
        self
    }

    /// Its accesses to buffers.
    #[must_use]
    pub fn accesses(&self) -> &[BufferAccess] {
        &self.inner.accesses
    }

    pub(crate) fn names_stream(&self) -> bool {
        self.inner.stream.is_some()
    }

    /// Whether it may be issued on any stream, at any priority, and be a node of a graph.
    #[must_use]
    pub fn may_be_bundled(&self) -> bool {
        !self.names_stream() && self.inner.priority == 0 && !self.plan().cooperative
    }

    /// The op, for messages.
    #[must_use]
    pub fn label(&self) -> &Label {
        &self.inner.launcher.0.label
    }

    /// Refuses a launch with too few arguments. A push should, so that the mistake is told where it was made.
    pub fn check(&self) -> Result<(), CudaError> {
        let (given, wanted) = (self.inner.given as usize, self.plan().parameters.len());
        if given == wanted {
            return Ok(());
        }
        let name = self.kernel().name();
        Err(CudaError::InvalidArgument(format!("kernel '{name}' was given {given} arguments, and takes {wanted}")))
    }

    fn device(&self) -> &Device {
        self.inner.launcher.device()
    }
}
