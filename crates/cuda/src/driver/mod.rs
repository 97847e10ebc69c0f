//! The verbs of a CUDA driver, raw: handles in, handles out, nothing kept.
//!
//! | trait | verbs |
//! |---|---|
//! | [`Devices`] | devices, their properties, their primary contexts |
//! | [`Streams`] | streams and events |
//! | [`Memory`] | stream-ordered device memory, pinned host memory, copies, fills |
//! | [`Launches`] | modules, kernels, graphs |
//!
//! All verbs but those of [`Devices`] act in the calling thread's current context. They return as soon as the work
//! is on its stream. The conditions of a sound call are CUDA's, and the same for all: handles are this driver's and
//! not destroyed; memory is valid, and untouched by others, until the stream has come past the work. `SAFETY.md`
//! lists the keeper of each.

mod handle;
mod real;
mod relaxed;
#[cfg(feature = "simulated")]
pub mod simulated;

use crate::error::DriverError;
pub use handle::{
    ContextHandle, DEFAULT_STREAM, DeviceAddress, EventHandle, ExecutableHandle, FunctionHandle, GraphHandle,
    ModuleHandle, NodeHandle, PoolHandle, StreamHandle,
};
pub(crate) use real::RealDriver;
pub(crate) use relaxed::{own_thread, relax};
use std::ffi::{CStr, c_void};
use std::fmt::Debug;
use std::ptr::NonNull;

/// The answer of a verb.
pub type Answer<T = ()> = Result<T, DriverError>;

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Its name, as the driver tells it.
    pub name: String,
    /// Compute capability: major, minor.
    pub capability: (u32, u32),
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Whether it allocates in stream order.
    pub has_pools: bool,
    /// Shared memory that a block may ask for, in bytes.
    pub shared_memory: u32,
}

/// Bytes of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Not in anybody's use, any process counted.
    pub free: u64,
    /// All there is.
    pub total: u64,
    /// Held by the pool, in use or kept for reuse.
    pub held: u64,
}

/// The pattern of a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// One byte.
    Byte(u8),
    /// Two bytes.
    Half(u16),
    /// Four bytes.
    Word(u32),
}

impl Pattern {
    /// Bytes of it.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Half(_) => 2,
            Self::Word(_) => 4,
        }
    }
}

/// Blocks, and threads in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_memory: u32,
}

/// Which calls of a thread a capture forbids that is under way somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct CaptureMode(pub u32);

impl CaptureMode {
    /// Calls that might change a capture, of any thread. Every thread begins so.
    pub const GLOBAL: Self = Self(0);
    /// None.
    pub const RELAXED: Self = Self(2);
}

/// Devices and contexts.
#[allow(clippy::missing_safety_doc)] // the module says it for all
pub trait Devices {
    /// How many devices there are.
    fn device_count(&self) -> usize;

    /// What a device is.
    fn properties(&self, device: usize) -> Answer<Properties>;

    /// Retains a device's primary context.
    fn retain_context(&self, device: usize) -> Answer<ContextHandle>;

    /// Releases it, once for each time it was retained.
    unsafe fn release_context(&self, device: usize) -> Answer;

    /// The calling thread's context.
    fn current_context(&self) -> Answer<Option<ContextHandle>>;

    /// Makes a context the calling thread's.
    unsafe fn set_current_context(&self, context: ContextHandle) -> Answer;

    /// Sets which calls of this thread a capture forbids. Answers which it has forbidden until now.
    fn exchange_capture_mode(&self, mode: CaptureMode) -> Answer<CaptureMode>;

    /// The least and the greatest priority of streams; greater ones are smaller numbers.
    fn priorities(&self) -> Answer<(i32, i32)>;
}

/// Streams and events.
#[allow(clippy::missing_safety_doc)] // the module says it for all
pub trait Streams {
    /// Makes a stream that does not wait for the default stream.
    unsafe fn create_stream(&self, priority: i32) -> Answer<StreamHandle>;

    /// Destroys a stream; the work on it still runs.
    unsafe fn destroy_stream(&self, stream: StreamHandle) -> Answer;

    /// Makes an event; only a timed one knows when it happened.
    unsafe fn create_event(&self, timed: bool) -> Answer<EventHandle>;

    /// Destroys an event.
    unsafe fn destroy_event(&self, event: EventHandle) -> Answer;

    /// The event happens when all that is on the stream now has ended.
    unsafe fn record_event(&self, event: EventHandle, stream: StreamHandle) -> Answer;

    /// Work that comes on the stream from now on waits for the event.
    unsafe fn wait_event(&self, stream: StreamHandle, event: EventHandle) -> Answer;

    /// Whether the event has happened. Never waits.
    unsafe fn query_event(&self, event: EventHandle) -> Answer<bool>;

    /// Whether work may be put on a foreign stream: not while it is captured, and on the default stream of the current
    /// context not while a stream that waits for it is. To ask spoils no capture.
    unsafe fn is_open(&self, stream: StreamHandle) -> Answer<bool>;

    /// Milliseconds between two timed events that have happened.
    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Answer<f32>;
}

/// Memory and copies.
#[allow(clippy::missing_safety_doc)] // the module says it for all
pub trait Memory {
    /// Makes a pool of a device's memory, which keeps up to so many freed bytes for reuse.
    unsafe fn create_pool(&self, device: usize, keeps: u64) -> Answer<PoolHandle>;

    /// Destroys a pool; memory of it that is in use still may be used and freed.
    unsafe fn destroy_pool(&self, pool: PoolHandle) -> Answer;

    /// Memory of a pool for work that comes on the stream, or behind it, from now on.
    unsafe fn allocate(&self, bytes: usize, pool: PoolHandle, stream: StreamHandle) -> Answer<DeviceAddress>;

    /// Gives memory back when all that is on the stream now has ended.
    unsafe fn free(&self, address: DeviceAddress, stream: StreamHandle) -> Answer;

    /// Gives back the unused memory that a pool keeps.
    unsafe fn trim(&self, pool: PoolHandle) -> Answer;

    /// Bytes of the memory of the current context's device, and of a pool of it.
    unsafe fn usage(&self, pool: PoolHandle) -> Answer<Usage>;

    /// Lets a peer reach the memory of a pool of a device, if the machine can do that. Answers whether it can.
    unsafe fn share_with_peer(&self, pool: PoolHandle, device: usize, peer: usize) -> Answer<bool>;

    /// Host memory that devices reach by themselves.
    unsafe fn allocate_pinned(&self, bytes: usize) -> Answer<NonNull<u8>>;

    /// Gives pinned memory back; nothing on any stream uses it.
    unsafe fn free_pinned(&self, start: NonNull<u8>) -> Answer;

    /// Whether host memory at this address is pinned.
    unsafe fn is_pinned(&self, start: *const u8) -> bool;

    /// Copies from pinned host memory.
    unsafe fn copy_in(&self, to: DeviceAddress, from: *const u8, bytes: usize, stream: StreamHandle) -> Answer;

    /// Copies to pinned host memory.
    unsafe fn copy_out(&self, to: *mut u8, from: DeviceAddress, bytes: usize, stream: StreamHandle) -> Answer;

    /// Copies within a device.
    unsafe fn copy_within(&self, to: DeviceAddress, from: DeviceAddress, bytes: usize, stream: StreamHandle) -> Answer;

    /// Copies between devices, each address with its context.
    unsafe fn copy_across(
        &self,
        to: (DeviceAddress, ContextHandle),
        from: (DeviceAddress, ContextHandle),
        bytes: usize,
        stream: StreamHandle,
    ) -> Answer;

    /// Repeats a pattern so many times.
    unsafe fn fill(&self, to: DeviceAddress, pattern: Pattern, count: usize, stream: StreamHandle) -> Answer;
}

/// Modules, kernels and graphs.
#[allow(clippy::missing_safety_doc)] // the module says it for all
pub trait Launches {
    /// Loads a cubin, a fatbin, or PTX that ends with a zero byte.
    unsafe fn load_module(&self, image: &[u8]) -> Answer<ModuleHandle>;

    /// Unloads a module without a running kernel.
    unsafe fn unload_module(&self, module: ModuleHandle) -> Answer;

    /// A kernel of a module.
    unsafe fn function(&self, module: ModuleHandle, name: &CStr) -> Answer<FunctionHandle>;

    /// Sees to it that a kernel's code is on the device.
    unsafe fn load_function(&self, function: FunctionHandle) -> Answer;

    /// How much dynamic shared memory the blocks of a kernel may have now.
    unsafe fn dynamic_shared_memory(&self, function: FunctionHandle) -> Answer<u32>;

    /// Lets the blocks of a kernel have so much dynamic shared memory.
    unsafe fn allow_shared_memory(&self, function: FunctionHandle, bytes: u32) -> Answer;

    /// Launches a kernel; its blocks may wait for each other if it is `cooperative`; each parameter is read through its
    /// pointer before the call returns.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        cooperative: bool,
        dimensions: &Dimensions,
        stream: StreamHandle,
        parameters: *mut *mut c_void,
    ) -> Answer;

    /// Work that comes on the stream from now on is recorded and not run.
    unsafe fn begin_capture(&self, stream: StreamHandle) -> Answer;

    /// Whether the dependencies of a recorded node can be stated; otherwise each depends on the one before.
    fn chooses_dependencies(&self) -> bool;

    /// The nodes that the next one on a stream in capture will depend on: at first those that came last.
    unsafe fn dependencies(&self, stream: StreamHandle) -> Answer<Vec<NodeHandle>>;

    /// Says which nodes the next one on a stream in capture will depend on.
    unsafe fn set_dependencies(&self, stream: StreamHandle, nodes: &[NodeHandle]) -> Answer;

    /// Ends the capture. Answers nothing if it was spoiled meanwhile.
    unsafe fn end_capture(&self, stream: StreamHandle) -> Answer<Option<GraphHandle>>;

    /// Makes a graph ready to be launched.
    unsafe fn instantiate(&self, graph: GraphHandle) -> Answer<ExecutableHandle>;

    /// Launches it.
    unsafe fn launch_graph(&self, graph: ExecutableHandle, stream: StreamHandle) -> Answer;

    /// Destroys a graph.
    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Answer;

    /// Destroys a graph that was made ready; it does not run.
    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Answer;
}

/// A CUDA driver: the real one, or the simulated one.
pub trait Driver: Devices + Streams + Memory + Launches + Debug + Send + Sync + 'static {}

impl dyn Driver {
    /// Whether an event has happened, as far as can be told: while a capture forbids the question, it has not.
    ///
    /// # Safety
    ///
    /// As for [`Streams::query_event`].
    pub(crate) unsafe fn has_happened(&self, event: EventHandle) -> Answer<bool> {
        // SAFETY: the caller's promise.
        match unsafe { self.query_event(event) } {
            Err(error) if error.is_of_capture() => Ok(false),
            answer => answer,
        }
    }
}
