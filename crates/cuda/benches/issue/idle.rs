//! A driver whose verbs do nothing, at once.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use weft_cuda::driver::{
    Answer, CaptureMode, ContextHandle, DeviceAddress, Devices, Dimensions, Driver, EventHandle, ExecutableHandle,
    FunctionHandle, GraphHandle, Launches, Memory, ModuleHandle, NodeHandle, Pattern, PoolHandle, Properties,
    StreamHandle, Streams, Usage,
};

#[derive(Debug)]
pub(crate) struct IdleDriver;

impl Devices for IdleDriver {
    fn device_count(&self) -> usize {
        1
    }

    fn properties(&self, _: usize) -> Answer<Properties> {
        Ok(Properties {
            name: "idle".to_owned(),
            capability: (9, 0),
            multiprocessors: 1,
            memory: 0,
            has_pools: true,
            shared_memory: 0,
        })
    }

    fn retain_context(&self, _: usize) -> Answer<ContextHandle> {
        Ok(ContextHandle(1))
    }

    unsafe fn release_context(&self, _: usize) -> Answer {
        Ok(())
    }

    fn current_context(&self) -> Answer<Option<ContextHandle>> {
        Ok(Some(ContextHandle(1)))
    }

    unsafe fn set_current_context(&self, _: ContextHandle) -> Answer {
        Ok(())
    }

    fn exchange_capture_mode(&self, mode: CaptureMode) -> Answer<CaptureMode> {
        Ok(mode)
    }

    fn priorities(&self) -> Answer<(i32, i32)> {
        Ok((0, 0))
    }
}

impl Streams for IdleDriver {
    unsafe fn create_stream(&self, _: i32) -> Answer<StreamHandle> {
        Ok(StreamHandle(1))
    }

    unsafe fn destroy_stream(&self, _: StreamHandle) -> Answer {
        Ok(())
    }

    unsafe fn create_event(&self, _: bool) -> Answer<EventHandle> {
        Ok(EventHandle(1))
    }

    unsafe fn destroy_event(&self, _: EventHandle) -> Answer {
        Ok(())
    }

    unsafe fn record_event(&self, _: EventHandle, _: StreamHandle) -> Answer {
        Ok(())
    }

    unsafe fn wait_event(&self, _: StreamHandle, _: EventHandle) -> Answer {
        Ok(())
    }

    unsafe fn query_event(&self, _: EventHandle) -> Answer<bool> {
        Ok(true)
    }

    unsafe fn is_open(&self, _: StreamHandle) -> Answer<bool> {
        Ok(true)
    }

    unsafe fn elapsed(&self, _: EventHandle, _: EventHandle) -> Answer<f32> {
        Ok(0.0)
    }
}

impl Memory for IdleDriver {
    unsafe fn create_pool(&self, _: usize, _: u64) -> Answer<PoolHandle> {
        Ok(PoolHandle(1))
    }

    unsafe fn destroy_pool(&self, _: PoolHandle) -> Answer {
        Ok(())
    }

    unsafe fn allocate(&self, _: usize, _: PoolHandle, _: StreamHandle) -> Answer<DeviceAddress> {
        Ok(512)
    }

    unsafe fn free(&self, _: DeviceAddress, _: StreamHandle) -> Answer {
        Ok(())
    }

    unsafe fn trim(&self, _: PoolHandle) -> Answer {
        Ok(())
    }

    unsafe fn usage(&self, _: PoolHandle) -> Answer<Usage> {
        Ok(Usage::default())
    }

    unsafe fn share_with_peer(&self, _: PoolHandle, _: usize, _: usize) -> Answer<bool> {
        Ok(false)
    }

    unsafe fn allocate_pinned(&self, _: usize) -> Answer<NonNull<u8>> {
        Ok(NonNull::dangling())
    }

    unsafe fn free_pinned(&self, _: NonNull<u8>) -> Answer {
        Ok(())
    }

    unsafe fn is_pinned(&self, _: *const u8) -> bool {
        true
    }

    unsafe fn copy_in(&self, _: DeviceAddress, _: *const u8, _: usize, _: StreamHandle) -> Answer {
        Ok(())
    }

    unsafe fn copy_out(&self, _: *mut u8, _: DeviceAddress, _: usize, _: StreamHandle) -> Answer {
        Ok(())
    }

    unsafe fn copy_within(&self, _: DeviceAddress, _: DeviceAddress, _: usize, _: StreamHandle) -> Answer {
        Ok(())
    }

    unsafe fn copy_across(
        &self,
        _: (DeviceAddress, ContextHandle),
        _: (DeviceAddress, ContextHandle),
        _: usize,
        _: StreamHandle,
    ) -> Answer {
        Ok(())
    }

    unsafe fn fill(&self, _: DeviceAddress, _: Pattern, _: usize, _: StreamHandle) -> Answer {
        Ok(())
    }
}

impl Launches for IdleDriver {
    unsafe fn load_module(&self, _: &[u8]) -> Answer<ModuleHandle> {
        Ok(ModuleHandle(1))
    }

    unsafe fn unload_module(&self, _: ModuleHandle) -> Answer {
        Ok(())
    }

    unsafe fn function(&self, _: ModuleHandle, _: &CStr) -> Answer<FunctionHandle> {
        Ok(FunctionHandle(1))
    }

    unsafe fn load_function(&self, _: FunctionHandle) -> Answer {
        Ok(())
    }

    unsafe fn dynamic_shared_memory(&self, _: FunctionHandle) -> Answer<u32> {
        Ok(0)
    }

    unsafe fn allow_shared_memory(&self, _: FunctionHandle, _: u32) -> Answer {
        Ok(())
    }

    unsafe fn launch(
        &self,
        _: FunctionHandle,
        _: bool,
        _: &Dimensions,
        _: StreamHandle,
        _: *mut *mut c_void,
    ) -> Answer {
        Ok(())
    }

    unsafe fn begin_capture(&self, _: StreamHandle) -> Answer {
        Ok(())
    }

    fn chooses_dependencies(&self) -> bool {
        false
    }

    unsafe fn dependencies(&self, _: StreamHandle) -> Answer<Vec<NodeHandle>> {
        Ok(Vec::new())
    }

    unsafe fn set_dependencies(&self, _: StreamHandle, _: &[NodeHandle]) -> Answer {
        Ok(())
    }

    unsafe fn end_capture(&self, _: StreamHandle) -> Answer<Option<GraphHandle>> {
        Ok(Some(GraphHandle(1)))
    }

    unsafe fn instantiate(&self, _: GraphHandle) -> Answer<ExecutableHandle> {
        Ok(ExecutableHandle(1))
    }

    unsafe fn launch_graph(&self, _: ExecutableHandle, _: StreamHandle) -> Answer {
        Ok(())
    }

    unsafe fn destroy_graph(&self, _: GraphHandle) -> Answer {
        Ok(())
    }

    unsafe fn destroy_executable(&self, _: ExecutableHandle) -> Answer {
        Ok(())
    }
}

impl Driver for IdleDriver {}
