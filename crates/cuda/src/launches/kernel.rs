//! Modules and kernels, and the known facts about a kernel's parameters before a launch.

use crate::devices::Device;
use crate::driver::{FunctionHandle, ModuleHandle};
use crate::error::CudaError;
use crate::streams::Context;
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::CString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of parameters that every device takes.
const PARAMETER_BYTES: usize = 4096;

/// The kind of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// An address in device memory.
    Pointer,
    /// A value of so many bytes.
    Scalar(usize),
}

impl Parameter {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Pointer => 8,
            Self::Scalar(bytes) => bytes,
        }
    }

    /// Words that it takes in the packed parameters; each starts with a word of its own.
    pub(crate) const fn words(self) -> usize {
        self.bytes().div_ceil(8)
    }
}

/// A loaded module. It stays loaded as long as its device: kernels of it may be on any stream.
#[derive(Clone)]
pub struct Module {
    device: Device,
    handle: ModuleHandle,
}

struct Inner {
    device: Device,
    function: FunctionHandle,
    name: Arc<str>,
    /// Plans made so far, one for each signature.
    plans: Mutex<Vec<Arc<LaunchPlan>>>,
    /// The most dynamic shared memory that blocks may have so far; nothing until a launch asks for any.
    shared_memory: Mutex<Option<u32>>,
    /// Whether its blocks wait for each other, all of the grid.
    cooperative: bool,
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

/// A handle on a kernel; clones share it and its plans.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

/// The parameters of a kernel, checked: the common part of all launches with one signature.
#[derive(Debug)]
pub struct LaunchPlan {
    pub(crate) function: FunctionHandle,
    pub(crate) cooperative: bool,
    pub(crate) parameters: SmallVec<[Parameter; 16]>,
    /// Of the packed parameters.
    pub(crate) words: usize,
    /// The words at which pointers lie.
    pub(crate) pointers: SmallVec<[usize; 8]>,
}

impl Device {
    /// Loads a cubin, a fatbin, or PTX.
    ///
    /// # Safety
    ///
    /// The image is valid: the driver trusts it.
    pub unsafe fn load_module(&self, image: &[u8]) -> Result<Module, CudaError> {
        let context = self.context();
        let _entered = context.enter()?;
        // PTX is text, which ends with a zero byte.
        let mut terminated = image.to_vec();
        terminated.push(0);
        // SAFETY: the context is current; the rest is the caller's promise.
        let handle = unsafe { context.driver().load_module(&terminated) };
        let handle = handle.map_err(|error| context.refused("loading a module", error))?;
        context.keep_module(handle);
        Ok(Module { device: self.clone(), handle })
    }

    /// Takes a kernel that another library has loaded, such as `RawKernel.kernel.ptr` of `CuPy`.
    ///
    /// # Safety
    ///
    /// It is a kernel of this device's primary context, and lives as long as the keeper, which may be dropped on any
    /// thread.
    #[must_use]
    pub unsafe fn adopt_kernel(
        &self,
        function: FunctionHandle,
        name: &str,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Kernel {
        Kernel::new(self, function, name, Some(keeper))
    }
}

impl Module {
    /// A kernel of this module, by its (mangled) name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, CudaError> {
        let context = self.device.context();
        let wanted = CString::new(name).map_err(|_| {
            let shown = name.replace('\0', "\\x00");
            CudaError::InvalidArgument(format!("'{shown}' is no name of a kernel: it has a zero byte"))
        })?;
        let _entered = context.enter()?;
        // SAFETY: the context is current, the module loaded.
        let function = unsafe { context.driver().function(self.handle, &wanted) };
        let function = function.map_err(|error| context.refused(&format!("looking for kernel '{name}'"), error))?;
        // Where modules are loaded lazily the kernel would be when it is first launched, and that may wait for the device.
        // SAFETY: the context is current.
        unsafe { context.driver().load_function(function) }
            .map_err(|error| context.refused(&format!("loading kernel '{name}'"), error))?;
        Ok(Kernel::new(&self.device, function, name, None))
    }
}

impl Kernel {
    fn new(device: &Device, function: FunctionHandle, name: &str, keeper: Option<Box<dyn Any + Send + Sync>>) -> Self {
        let (device, name) = (device.clone(), name.into());
        let (plans, shared_memory) = Default::default();
        Self(Arc::new(Inner { device, function, name, plans, shared_memory, cooperative: false, _keeper: keeper }))
    }

    /// The same kernel, for cooperative launches: all blocks of a grid run side by side, and may wait for each other.
    /// To be asked for before its plans are made.
    #[must_use]
    pub fn cooperative(self, cooperative: bool) -> Self {
        if cooperative == self.0.cooperative {
            return self;
        }
        let (plans, shared_memory) = Default::default();
        let Inner { device, function, name, .. } = &*self.0;
        let (device, function, name) = (device.clone(), *function, Arc::clone(name));
        let keeper: Option<Box<dyn Any + Send + Sync>> = Some(Box::new(self.clone()));
        Self(Arc::new(Inner { device, function, name, plans, shared_memory, cooperative, _keeper: keeper }))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The device that it was loaded for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    #[inline]
    pub(crate) fn function(&self) -> FunctionHandle {
        self.0.function
    }

    /// The plan for launches with these parameters; made once for each signature.
    pub fn plan(&self, parameters: &[Parameter]) -> Result<Arc<LaunchPlan>, CudaError> {
        let mut plans = self.0.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.iter().find(|plan| *plan.parameters == *parameters) {
            return Ok(Arc::clone(plan));
        }
        let bytes: usize = parameters.iter().map(|parameter| parameter.bytes()).sum();
        if bytes > PARAMETER_BYTES {
            return Err(CudaError::InvalidArgument(format!(
                "kernel '{}' was given {bytes} bytes of parameters, and can be given {PARAMETER_BYTES}",
                self.name()
            )));
        }
        let (mut words, mut pointers) = (0, SmallVec::new());
        for parameter in parameters {
            if *parameter == Parameter::Pointer {
                pointers.push(words);
            }
            words += parameter.words();
        }
        let plan = Arc::new(LaunchPlan {
            function: self.0.function,
            cooperative: self.0.cooperative,
            parameters: parameters.into(),
            words,
            pointers,
        });
        plans.push(Arc::clone(&plan));
        Ok(plan)
    }

    /// Sees to it that a block may have so much dynamic shared memory.
    #[inline]
    pub(crate) fn allow_shared_memory(&self, bytes: u32) -> Result<(), CudaError> {
        if bytes == 0 { Ok(()) } else { self.allow_some_shared_memory(bytes) }
    }

    fn allow_some_shared_memory(&self, bytes: u32) -> Result<(), CudaError> {
        let mut allowed = self.0.shared_memory.lock().unwrap_or_else(PoisonError::into_inner);
        if (*allowed).is_some_and(|allowed| bytes <= allowed) {
            return Ok(());
        }
        let context: &Context = self.0.device.context();
        let _entered = context.enter()?;
        let refused = |error| {
            let wish = format!("{bytes} bytes of dynamic shared memory for kernel '{}'", self.name());
            context.refused(&wish, error)
        };
        // Its share without asking depends on its static memory.
        let has = match *allowed {
            Some(allowed) => allowed,
            // SAFETY: the context is current, the kernel one of its own.
            None => unsafe { context.driver().dynamic_shared_memory(self.0.function) }.map_err(refused)?,
        };
        if bytes > has {
            // SAFETY: as above.
            unsafe { context.driver().allow_shared_memory(self.0.function, bytes) }.map_err(refused)?;
        }
        *allowed = Some(has.max(bytes));
        Ok(())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", self.name()).field("device", &self.device().index()).finish()
    }
}
