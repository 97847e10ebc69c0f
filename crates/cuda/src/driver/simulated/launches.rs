//! Modules, kernels and graphs of the simulated machine.

use super::SimulatedDriver;
use super::faults::FaultKind;
use super::graphs::Capture;
use super::state::Work;
use super::streams::refuse;
use crate::driver::{
    Answer, Dimensions, Driver, ExecutableHandle, FunctionHandle, GraphHandle, Launches, ModuleHandle, NodeHandle,
    StreamHandle,
};
use std::ffi::{CStr, c_void};
use std::sync::Arc;

const INVALID_VALUE: u32 = 1;
const ILLEGAL_STATE: u32 = 401;
const NOT_FOUND: u32 = 500;

impl Launches for SimulatedDriver {
    unsafe fn load_module(&self, image: &[u8]) -> Answer<ModuleHandle> {
        let call = "cuModuleLoadData";
        let (mut state, _) = self.on(call)?;
        if image.is_empty() {
            return refuse(call, INVALID_VALUE);
        }
        let handle = state.new_handle();
        state.modules.insert(handle);
        Ok(ModuleHandle(handle))
    }

    unsafe fn unload_module(&self, module: ModuleHandle) -> Answer {
        self.inside("cuModuleUnload")?.modules.remove(&module.0);
        Ok(())
    }

    unsafe fn function(&self, _: ModuleHandle, name: &CStr) -> Answer<FunctionHandle> {
        let call = "cuModuleGetFunction";
        let (state, _) = self.on(call)?;
        let wanted = name.to_string_lossy();
        match state.kernels.iter().position(|kernel| *kernel.name == *wanted) {
            Some(at) => Ok(FunctionHandle(at + 1)),
            None => refuse(call, NOT_FOUND),
        }
    }

    unsafe fn load_function(&self, _: FunctionHandle) -> Answer {
        self.on("cuFuncGetAttribute").map(drop)
    }

    unsafe fn dynamic_shared_memory(&self, _: FunctionHandle) -> Answer<u32> {
        self.on("cuFuncGetAttribute").map(|_| 48 << 10)
    }

    unsafe fn allow_shared_memory(&self, _: FunctionHandle, bytes: u32) -> Answer {
        let (call, most) = ("cuFuncSetAttribute", 227 << 10);
        if bytes > most { refuse(call, INVALID_VALUE) } else { Ok(()) }
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        _: bool,
        dimensions: &Dimensions,
        stream: StreamHandle,
        parameters: *mut *mut c_void,
    ) -> Answer {
        let call = "cuLaunchKernel";
        let mut state = self.on_stream(call, stream)?;
        if let Some(code) = state.faults.strike(FaultKind::Launch) {
            return refuse(call, code);
        }
        let Dimensions { grid, block, .. } = *dimensions;
        let threads: u64 = block.iter().map(|count| u64::from(*count)).product();
        if grid.contains(&0) || block.contains(&0) || threads > 1024 {
            return refuse(call, INVALID_VALUE);
        }
        let kernel = Arc::clone(&state.kernels[function.0 - 1]);
        let copy = |(at, size): (usize, &usize)| -> Box<[u8]> {
            // SAFETY: the caller gives a pointer to each of the kernel's parameters.
            unsafe { std::slice::from_raw_parts((*parameters.add(at)).cast::<u8>(), *size) }.into()
        };
        let parameters = kernel.parameters.iter().enumerate().map(copy).collect();
        let name = Some(Arc::clone(&kernel.name));
        state.issue(stream.0 - 1, "launch of", name, Work::Launch { kernel, parameters, grid, block });
        Ok(())
    }

    unsafe fn begin_capture(&self, stream: StreamHandle) -> Answer {
        let call = "cuStreamBeginCapture";
        let mut state = self.on_stream(call, stream)?;
        if state.streams[stream.0 - 1].capture.is_some() {
            return refuse(call, ILLEGAL_STATE);
        }
        let capture = Capture::new(state.new_handle());
        state.streams[stream.0 - 1].capture = Some(capture);
        Ok(())
    }

    fn chooses_dependencies(&self) -> bool {
        self.state().settings.dependencies
    }

    unsafe fn dependencies(&self, stream: StreamHandle) -> Answer<Vec<NodeHandle>> {
        let call = "cuStreamGetCaptureInfo";
        let state = self.on_stream(call, stream)?;
        let capture = state.streams[stream.0 - 1].capture.as_ref();
        capture.map_or_else(|| refuse(call, ILLEGAL_STATE), |capture| Ok(capture.dependencies()))
    }

    unsafe fn set_dependencies(&self, stream: StreamHandle, nodes: &[NodeHandle]) -> Answer {
        let call = "cuStreamUpdateCaptureDependencies";
        let mut state = self.on_stream(call, stream)?;
        let mut kept = Vec::new();
        for node in nodes {
            state.edges += 1;
            if state.skipped_edge != Some(state.edges) {
                kept.push(*node);
            }
        }
        let capture = state.streams[stream.0 - 1].capture.as_mut();
        match capture.map(|capture| capture.depend_on(&kept)) {
            None => refuse(call, ILLEGAL_STATE),
            Some(false) => refuse(call, INVALID_VALUE),
            Some(true) => Ok(()),
        }
    }

    unsafe fn end_capture(&self, stream: StreamHandle) -> Answer<Option<GraphHandle>> {
        let call = "cuStreamEndCapture";
        let mut state = self.on_stream(call, stream)?;
        let Some(capture) = state.streams[stream.0 - 1].capture.take() else { return refuse(call, ILLEGAL_STATE) };
        let handle = state.new_handle();
        state.graphs.insert(handle, Arc::new(capture.into_nodes()));
        Ok(Some(GraphHandle(handle)))
    }

    unsafe fn instantiate(&self, graph: GraphHandle) -> Answer<ExecutableHandle> {
        let (mut state, device) = self.on("cuGraphInstantiate")?;
        let nodes = Arc::clone(&state.graphs[&graph.0]);
        let executable = Arc::new(state.make_ready(device, nodes));
        let handle = state.new_handle();
        state.executables.insert(handle, (executable, 0));
        Ok(ExecutableHandle(handle))
    }

    unsafe fn launch_graph(&self, graph: ExecutableHandle, stream: StreamHandle) -> Answer {
        let call = "cuGraphLaunch";
        let mut state = self.on_stream(call, stream)?;
        if let Some(code) = state.faults.strike(FaultKind::Launch) {
            return refuse(call, code);
        }
        let Some((executable, launches)) = state.executables.get_mut(&graph.0) else {
            return refuse(call, INVALID_VALUE);
        };
        *launches += 1;
        let (executable, launch) = (Arc::clone(executable), *launches);
        let work = Work::Graph { executable: Arc::clone(&executable), launch };
        state.issue(stream.0 - 1, "graph", None, work);
        state.behind_nodes(stream.0 - 1, &executable, launch);
        Ok(())
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Answer {
        self.inside("cuGraphDestroy")?.graphs.remove(&graph.0);
        Ok(())
    }

    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Answer {
        self.inside("cuGraphExecDestroy")?.executables.remove(&graph.0);
        Ok(())
    }
}

impl Driver for SimulatedDriver {}
