//! A capture under way.
//!
//! Ops are recorded by the driver on a stream of the recorder's own. Before each it is told which nodes the op comes
//! after; a driver that cannot be told leaves each behind the one before. The mode is *relaxed*: other threads, and this
//! one on other streams, call freely.

use super::bundle::Member;
use super::dependencies::Dependencies;
use super::ready::Ready;
use crate::devices::Device;
use crate::driver::{DeviceAddress, GraphHandle, NodeHandle};
use crate::error::CudaError;
use crate::issue::Issuing;
use crate::label::Label;
use crate::launches::Kernel;
use crate::streams::Stream;
use std::collections::HashMap;

/// A capture under way. Dropped unfinished it leaves nothing behind.
pub(super) struct Recorder {
    device: Device,
    label: Label,
    stream: Stream,
    dependencies: Dependencies,
    /// What the graph calls, which must stay loaded.
    kernels: HashMap<usize, Kernel>,
    open: bool,
}

/// What to answer when the driver does not record.
fn uncaptured(label: &Label, error: CudaError) -> CudaError {
    match error {
        CudaError::Refused { error, .. } => CudaError::Capture(format!("{label} cannot be captured: {error}")),
        error => error,
    }
}

impl Recorder {
    /// Begins to record ops of a device.
    pub(super) fn new(device: &Device, label: &Label) -> Result<Self, CudaError> {
        let stream = device.capture_stream()?;
        let context = device.context();
        let _entered = context.enter()?;
        // SAFETY: the context is current, and nobody else has the stream.
        unsafe { context.driver().begin_capture(stream.handle()) }.map_err(|error| context.refused(label, error))?;
        let (device, label) = (device.clone(), label.clone());
        let (dependencies, kernels) = Default::default();
        Ok(Self { device, label, stream, dependencies, kernels, open: true })
    }

    /// Records an op whose buffers lie at these addresses. After an error there is no graph.
    pub(super) fn add(&mut self, member: &Member, addresses: &[DeviceAddress]) -> Result<(), CudaError> {
        let device = self.device.clone();
        let context = device.context();
        let _entered = context.enter()?;
        let (driver, label) = (context.driver(), member.label());
        let after = self.dependencies.of(member.accesses());
        let refused = |error| uncaptured(label, context.refused(label, error));
        if driver.chooses_dependencies() {
            let nodes = self.dependencies.leaves(&after);
            // SAFETY: the context is current, the stream in capture, and these are nodes of it. What nothing depends on in
            // the end is no error: the driver forgives nodes that were left by this call.
            unsafe { driver.set_dependencies(self.stream.handle(), &nodes) }.map_err(refused)?;
        }
        member
            .put(&Issuing { driver, stream: &self.stream, addresses, label })
            .map_err(|error| uncaptured(label, error))?;
        let mut leaves: Vec<NodeHandle> = Vec::new();
        if driver.chooses_dependencies() {
            // SAFETY: the context is current, and the stream in capture.
            leaves = unsafe { driver.dependencies(self.stream.handle()) }.map_err(refused)?;
        }
        self.dependencies.add(member.accesses(), &after, &leaves);
        if let Member::Launch(launch) = member {
            let kernel = launch.kernel();
            self.kernels.entry(kernel.function().0).or_insert_with(|| kernel.clone());
        }
        Ok(())
    }

    /// Ends the capture and makes the graph ready.
    pub(super) fn finish(mut self) -> Result<Ready, CudaError> {
        let ended = self.end().map_err(|error| uncaptured(&self.label, error))?;
        let graph = ended.ok_or_else(|| {
            let message = "was spoiled by a call that cannot be captured, such as one that waits";
            CudaError::Capture(format!("the capture of {} {message}", self.label))
        })?;
        let kernels = std::mem::take(&mut self.kernels).into_values().collect();
        Ready::new(&self.device, &self.label, graph, kernels)
    }

    fn end(&mut self) -> Result<Option<GraphHandle>, CudaError> {
        self.open = false;
        let context = self.device.context();
        let _entered = context.enter()?;
        // SAFETY: the context is current, and the stream in capture.
        let graph = unsafe { context.driver().end_capture(self.stream.handle()) }
            .map_err(|error| context.refused(&self.label, error))?;
        if graph.is_some() {
            self.device.captured_on(self.stream.clone());
        }
        Ok(graph)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.open
            && let Ok(Some(graph)) = self.end()
            && let Ok(_entered) = self.device.context().enter()
        {
            // SAFETY: nobody else knows it.
            let _ = unsafe { self.device.context().driver().destroy_graph(graph) };
        }
    }
}
