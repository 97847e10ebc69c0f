//! Modules, kernels and graphs of the simulated machine.

use super::SimulatedDriver;
use super::faults::FaultKind;
use super::state::Work;
use super::streams::refuse;
use crate::driver::{
    Answer, Dimensions, Driver, ExecutableHandle, FunctionHandle, GraphHandle, Launches, ModuleHandle, StreamHandle,
};
use std::ffi::{CStr, c_void};
use std::sync::Arc;

const INVALID_VALUE: u32 = 1;
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

    unsafe fn allow_shared_memory(&self, _: FunctionHandle, bytes: u32) -> Answer {
        let (call, most) = ("cuFuncSetAttribute", 227 << 10);
        if bytes > most { refuse(call, INVALID_VALUE) } else { Ok(()) }
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
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
        let mut state = self.on_stream("cuStreamBeginCapture", stream)?;
        state.streams[stream.0 - 1].capture = Some(Vec::new());
        Ok(())
    }

    unsafe fn end_capture(&self, stream: StreamHandle) -> Answer<Option<GraphHandle>> {
        let call = "cuStreamEndCapture";
        let mut state = self.on_stream(call, stream)?;
        let Some(nodes) = state.streams[stream.0 - 1].capture.take() else { return refuse(call, INVALID_VALUE) };
        let handle = state.new_handle();
        state.graphs.insert(handle, Arc::new(nodes));
        Ok(Some(GraphHandle(handle)))
    }

    unsafe fn instantiate(&self, graph: GraphHandle) -> Answer<ExecutableHandle> {
        let (mut state, _) = self.on("cuGraphInstantiate")?;
        let nodes = Arc::clone(&state.graphs[&graph.0]);
        let handle = state.new_handle();
        state.graphs.insert(handle, nodes);
        Ok(ExecutableHandle(handle))
    }

    unsafe fn launch_graph(&self, graph: ExecutableHandle, stream: StreamHandle) -> Answer {
        let call = "cuGraphLaunch";
        let mut state = self.on_stream(call, stream)?;
        if let Some(code) = state.faults.strike(FaultKind::Launch) {
            return refuse(call, code);
        }
        let nodes = Arc::clone(&state.graphs[&graph.0]);
        state.issue(stream.0 - 1, "graph", None, Work::Graph(nodes));
        Ok(())
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Answer {
        self.inside("cuGraphDestroy")?.graphs.remove(&graph.0);
        Ok(())
    }

    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Answer {
        self.inside("cuGraphExecDestroy")?.graphs.remove(&graph.0);
        Ok(())
    }
}

impl Driver for SimulatedDriver {}
