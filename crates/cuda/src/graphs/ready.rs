//! A graph that can be launched, and when it may go.

use crate::devices::Device;
use crate::driver::{ExecutableHandle, GraphHandle};
use crate::error::CudaError;
use crate::issue::Issuing;
use crate::label::Label;
use crate::launches::Kernel;
use crate::streams::Fence;

/// What must live until the last launch has ended.
struct Held {
    graph: GraphHandle,
    executable: ExecutableHandle,
    _kernels: Vec<Kernel>,
}

/// A graph made ready. Dropped, it goes when its last launch has ended.
pub(super) struct Ready {
    device: Device,
    /// Taken when this is dropped.
    held: Option<Held>,
    /// Behind the last launch.
    fence: Option<Fence>,
}

impl Ready {
    /// Makes a graph ready, which is this one's from now on, and keeps the kernels that it calls.
    pub(super) fn new(
        device: &Device,
        label: &Label,
        graph: GraphHandle,
        kernels: Vec<Kernel>,
    ) -> Result<Self, CudaError> {
        let context = device.context();
        let _entered = context.enter()?;
        // SAFETY: the context is current, the graph ours.
        let executable = unsafe { context.driver().instantiate(graph) }.map_err(|error| {
            // SAFETY: nobody else knows it.
            let _ = unsafe { context.driver().destroy_graph(graph) };
            context.refused(label, error)
        })?;
        let held = Held { graph, executable, _kernels: kernels };
        Ok(Self { device: device.clone(), held: Some(held), fence: None })
    }

    /// Puts a launch on a stream that is behind all that its nodes have to be behind, and behind the launch before this one.
    pub(super) fn launch(&self, issuing: &Issuing<'_>) -> Result<(), CudaError> {
        let Some(held) = &self.held else { unreachable!("taken by drop alone") };
        // SAFETY: the graph lives until its last launch has ended; the stream is as the caller says.
        unsafe { issuing.driver.launch_graph(held.executable, issuing.stream.handle()) }
            .map_err(|error| issuing.refused(error))
    }

    /// Notes the fence behind a launch.
    pub(super) fn launched(&mut self, fence: &Fence) {
        self.fence = Some(fence.clone());
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if self.device.context().runtime.is_abandoned() {
            // What the driver has of it stayed in the parent.
            std::mem::forget(held);
            return;
        }
        let device = self.device.clone();
        let destroy = move || {
            if let Ok(_entered) = device.context().enter_to_leave() {
                // SAFETY: the last handle is gone, and the last launch has ended.
                unsafe {
                    let _ = device.context().driver().destroy_executable(held.executable);
                    let _ = device.context().driver().destroy_graph(held.graph);
                }
            }
            drop(held);
        };
        match self.fence.take() {
            Some(fence) => fence.when_done(move |_| destroy()),
            None => destroy(),
        }
    }
}
