//! Modules, kernels and graphs of the real driver.

use super::{RealDriver, pointer};
use crate::driver::{
    Answer, Dimensions, ExecutableHandle, FunctionHandle, GraphHandle, Launches, ModuleHandle, NodeHandle, StreamHandle,
};
use cudarc::driver::sys;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

const ACTIVE: u32 = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE as u32;
/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`.
const INVALIDATED: u32 = 901;
const SET: u32 = sys::CUstreamUpdateCaptureDependencies_flags_enum::CU_STREAM_SET_CAPTURE_DEPENDENCIES as u32;

impl Launches for RealDriver {
    unsafe fn load_module(&self, image: &[u8]) -> Answer<ModuleHandle> {
        let mut module = ptr::null_mut();
        // SAFETY: the caller's promise; the module has a place.
        let code = unsafe { (self.symbols.load_module)(&raw mut module, image.as_ptr().cast()) };
        self.check("cuModuleLoadData", code)?;
        Ok(ModuleHandle(module.expose_provenance()))
    }

    unsafe fn unload_module(&self, module: ModuleHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuModuleUnload", unsafe { (self.symbols.unload_module)(pointer(module.0)) })
    }

    unsafe fn function(&self, module: ModuleHandle, name: &CStr) -> Answer<FunctionHandle> {
        let mut function = ptr::null_mut();
        // SAFETY: the caller's promise; the function has a place.
        let code = unsafe { (self.symbols.function)(&raw mut function, pointer(module.0), name.as_ptr()) };
        self.check("cuModuleGetFunction", code)?;
        Ok(FunctionHandle(function.expose_provenance()))
    }

    unsafe fn load_function(&self, function: FunctionHandle) -> Answer {
        // A question about the code alone loads it.
        let (mut registers, attribute) = (0, sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS);
        // SAFETY: the caller's promise; the value has a place.
        let code = unsafe { (self.symbols.function_attribute)(&raw mut registers, attribute, pointer(function.0)) };
        self.check("cuFuncGetAttribute", code)
    }

    unsafe fn dynamic_shared_memory(&self, function: FunctionHandle) -> Answer<u32> {
        let (mut bytes, attribute) = (0, sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        // SAFETY: the caller's promise; the value has a place.
        let code = unsafe { (self.symbols.function_attribute)(&raw mut bytes, attribute, pointer(function.0)) };
        self.check("cuFuncGetAttribute", code)?;
        Ok(u32::try_from(bytes).unwrap_or(0))
    }

    unsafe fn allow_shared_memory(&self, function: FunctionHandle, bytes: u32) -> Answer {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the caller's promise.
        let code = unsafe { (self.symbols.set_function)(pointer(function.0), attribute, bytes) };
        self.check("cuFuncSetAttribute", code)
    }

    #[inline]
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        cooperative: bool,
        dimensions: &Dimensions,
        stream: StreamHandle,
        parameters: *mut *mut c_void,
    ) -> Answer {
        let Dimensions { grid: [across, down, deep], block: [wide, high, thick], shared_memory } = *dimensions;
        let (function, stream) = (pointer(function.0), pointer(stream.0));
        if cooperative {
            // SAFETY: the caller's promise.
            let code = unsafe {
                (self.symbols.launch_cooperative)(
                    function,
                    across,
                    down,
                    deep,
                    wide,
                    high,
                    thick,
                    shared_memory,
                    stream,
                    parameters,
                )
            };
            return self.check("cuLaunchCooperativeKernel", code);
        }
        // SAFETY: the caller's promise.
        let code = unsafe {
            (self.symbols.launch)(
                function,
                across,
                down,
                deep,
                wide,
                high,
                thick,
                shared_memory,
                stream,
                parameters,
                ptr::null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }

    unsafe fn begin_capture(&self, stream: StreamHandle) -> Answer {
        // Other threads, and this one on other streams, go on meanwhile.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the caller's promise.
        self.check("cuStreamBeginCapture", unsafe { (self.symbols.begin_capture)(pointer(stream.0), mode) })
    }

    fn chooses_dependencies(&self) -> bool {
        self.symbols.capture_info.is_some() && self.symbols.set_dependencies.is_some()
    }

    unsafe fn dependencies(&self, stream: StreamHandle) -> Answer<Vec<NodeHandle>> {
        let Some(capture_info) = self.symbols.capture_info else { return Ok(Vec::new()) };
        // A number: the driver may know states that the binding does not.
        let mut status: u32 = 0;
        let (mut nodes, mut count) = (ptr::null::<sys::CUgraphNode>(), 0);
        // SAFETY: the caller's promise; state, nodes and count have places, the rest is not asked for.
        let code = unsafe {
            let (id, graph) = (ptr::null_mut(), ptr::null_mut());
            capture_info(pointer(stream.0), (&raw mut status).cast(), id, graph, &raw mut nodes, &raw mut count)
        };
        self.check("cuStreamGetCaptureInfo", code)?;
        if status != ACTIVE {
            return Err(self.error("cuStreamGetCaptureInfo", INVALIDATED));
        }
        if nodes.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: so many nodes lie there, until the next call on the stream.
        let nodes = unsafe { std::slice::from_raw_parts(nodes, count) };
        Ok(nodes.iter().map(|node| NodeHandle(node.expose_provenance())).collect())
    }

    unsafe fn set_dependencies(&self, stream: StreamHandle, nodes: &[NodeHandle]) -> Answer {
        let Some(set_dependencies) = self.symbols.set_dependencies else { return Ok(()) };
        let mut nodes: Vec<sys::CUgraphNode> = nodes.iter().map(|node| pointer(node.0)).collect();
        let first = if nodes.is_empty() { ptr::null_mut() } else { nodes.as_mut_ptr() };
        // SAFETY: the caller's promise; the driver reads so many nodes.
        let code = unsafe { set_dependencies(pointer(stream.0), first, nodes.len(), SET) };
        self.check("cuStreamUpdateCaptureDependencies", code)
    }

    unsafe fn end_capture(&self, stream: StreamHandle) -> Answer<Option<GraphHandle>> {
        let mut graph = ptr::null_mut();
        // SAFETY: the caller's promise; the graph has a place.
        let code = unsafe { (self.symbols.end_capture)(pointer(stream.0), &raw mut graph) };
        if code == INVALIDATED {
            return Ok(None);
        }
        self.check("cuStreamEndCapture", code)?;
        Ok(Some(graph.expose_provenance()).filter(|handle| *handle != 0).map(GraphHandle))
    }

    unsafe fn instantiate(&self, graph: GraphHandle) -> Answer<ExecutableHandle> {
        let mut executable = ptr::null_mut();
        // SAFETY: the caller's promise; the executable graph has a place.
        let code = unsafe { (self.symbols.instantiate)(&raw mut executable, pointer(graph.0), 0) };
        self.check("cuGraphInstantiate", code)?;
        Ok(ExecutableHandle(executable.expose_provenance()))
    }

    unsafe fn launch_graph(&self, graph: ExecutableHandle, stream: StreamHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuGraphLaunch", unsafe { (self.symbols.launch_graph)(pointer(graph.0), pointer(stream.0)) })
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuGraphDestroy", unsafe { (self.symbols.destroy_graph)(pointer(graph.0)) })
    }

    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Answer {
        // SAFETY: the caller's promise.
        self.check("cuGraphExecDestroy", unsafe { (self.symbols.destroy_executable)(pointer(graph.0)) })
    }
}
