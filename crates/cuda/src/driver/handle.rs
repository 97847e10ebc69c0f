//! The driver's names for things.

macro_rules! handles {
    ($($(#[$attribute:meta])* $name:ident;)+) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub usize);
    )+};
}

handles! {
    /// A `CUcontext`.
    ContextHandle;
    /// A `CUstream`.
    StreamHandle;
    /// A `CUevent`.
    EventHandle;
    /// A `CUmodule`.
    ModuleHandle;
    /// A `CUfunction`. `CuPy` keeps one as `RawKernel.kernel.ptr`.
    FunctionHandle;
    /// A `CUgraph`.
    GraphHandle;
    /// A `CUgraphNode`.
    NodeHandle;
    /// A `CUmemoryPool`.
    PoolHandle;
    /// A `CUgraphExec`.
    ExecutableHandle;
}

/// An address in a device's memory: a `CUdeviceptr`.
pub type DeviceAddress = u64;

/// The default stream of the device of the current context: other libraries' too, unless they chose another, and behind
/// all work on streams which wait for it, as most do.
pub const DEFAULT_STREAM: StreamHandle = StreamHandle(1);
