//! CUDA graphs: device ops recorded once, replayed as one op.
//!
//! What is recorded is not run: the recorder has a stream of its own, in capture, on which ops come one behind the
//! other. They touch no fences. The graph holds the buffers it uses, whose addresses are baked into it; its accesses
//! are the union of its ops', and a replay is ordered by them like any op.

use crate::copy::{Region, check_sizes, put_copy, put_fill};
use crate::device::Device;
use crate::driver::{ExecutableHandle, GraphHandle, Pattern};
use crate::error::CudaError;
use crate::fence::Fence;
use crate::issue::{Access, Addresses, Issuing, Request};
use crate::label::Label;
use crate::launch::Launch;
use crate::stream::Stream;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::{AccessKind, Cause, OpContext, Payload};

/// A capture under way. Dropped unfinished it leaves nothing behind.
pub struct Recorder {
    device: Device,
    label: Label,
    stream: Stream,
    accesses: Vec<Access>,
    ops: usize,
    open: bool,
}

struct Inner {
    device: Device,
    label: Label,
    graph: GraphHandle,
    executable: ExecutableHandle,
    accesses: Vec<Access>,
    ops: usize,
    /// Behind the last replay.
    replayed: Mutex<Option<Fence>>,
}

/// A recorded graph; clones share it. As a payload it replays itself.
#[derive(Clone)]
pub struct Graph(Arc<Inner>);

impl Device {
    /// Begins to record ops.
    pub fn record(&self, label: &Label) -> Result<Recorder, CudaError> {
        let stream = self.capture_stream()?;
        let context = self.context();
        let _entered = context.enter()?;
        // SAFETY: the context is current, and nobody else has the stream.
        unsafe { context.driver().begin_capture(stream.handle()) }.map_err(|error| context.refused(label, error))?;
        let (device, label) = (self.clone(), label.clone());
        Ok(Recorder { device, label, stream, accesses: Vec::new(), ops: 0, open: true })
    }
}

impl Recorder {
    /// The stream in capture, for foreign code that issues on it.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Notes what foreign code is about to do with buffers, and answers where they lie.
    pub fn prepare(&mut self, accesses: &[Access]) -> Result<Vec<u64>, CudaError> {
        self.place(accesses).map(|addresses| addresses.to_vec())
    }

    /// Where the buffers lie. What lies nowhere is allocated outside of the capture.
    fn place(&mut self, accesses: &[Access]) -> Result<Addresses, CudaError> {
        let home = self.device.home_stream().clone();
        let mut addresses = Addresses::new();
        for access in accesses {
            addresses.push(access.buffer.prepare(access, &home, &self.label, &mut super::buffer::Fences::new())?);
            let is_same = |known: &Access| Arc::ptr_eq(&known.buffer, &access.buffer) && known.range == access.range;
            let known = self.accesses.iter_mut().find(|known| is_same(known));
            match known {
                // What is overwritten first is overwritten, whatever comes after.
                Some(known) if known.kind == AccessKind::Overwrite => {}
                Some(known) => known.kind = known.kind.merged(access.kind),
                None => self.accesses.push(access.clone()),
            }
        }
        Ok(addresses)
    }

    fn add(
        &mut self,
        accesses: &[Access],
        work: impl FnOnce(&Issuing<'_>) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let addresses = self.place(accesses)?;
        let context = self.device.context();
        let _entered = context.enter()?;
        let (driver, stream, label) = (context.driver(), &self.stream, &self.label);
        work(&Issuing { driver, stream, addresses: &addresses, label })?;
        self.ops += 1;
        Ok(())
    }

    /// Records a launch.
    pub fn launch(&mut self, launch: &Launch) -> Result<(), CudaError> {
        launch.check()?;
        self.add(launch.accesses(), |issuing| launch.put(issuing))
    }

    /// Records a fill.
    pub fn fill(&mut self, to: &Region, pattern: Pattern) -> Result<(), CudaError> {
        to.check_pattern(pattern)?;
        self.add(&[to.access(AccessKind::Mutate)], |issuing| put_fill(issuing, to, 0, pattern))
    }

    /// Records a copy within the device.
    pub fn copy(&mut self, to: &Region, from: &Region) -> Result<(), CudaError> {
        check_sizes(to.bytes, from.bytes)?;
        let accesses = [from.access(AccessKind::Read), to.access(AccessKind::Mutate)];
        self.add(&accesses, |issuing| put_copy(issuing, to, from))
    }

    /// Ends the capture and makes the graph ready.
    pub fn finish(mut self) -> Result<Graph, CudaError> {
        let graph = self.end()?.ok_or_else(|| {
            CudaError::InvalidArgument(format!(
                "the capture of {} was spoiled by a call that cannot be captured, such as one that waits",
                self.label
            ))
        })?;
        let context = self.device.context();
        let _entered = context.enter()?;
        // SAFETY: the context is current, the graph ours.
        let executable = unsafe { context.driver().instantiate(graph) };
        let executable = executable.map_err(|error| {
            // SAFETY: nobody else knows it.
            let _ = unsafe { context.driver().destroy_graph(graph) };
            context.refused(&self.label, error)
        })?;
        let (device, label, ops) = (self.device.clone(), self.label.clone(), self.ops);
        let (accesses, replayed) = (std::mem::take(&mut self.accesses), Mutex::new(None));
        Ok(Graph(Arc::new(Inner { device, label, graph, executable, accesses, ops, replayed })))
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
        {
            // SAFETY: nobody else knows it.
            let _ = unsafe { self.device.context().driver().destroy_graph(graph) };
        }
    }
}

impl Graph {
    /// What a replay does with which buffers.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.0.accesses
    }

    /// Ops recorded through the recorder.
    #[must_use]
    pub fn ops(&self) -> usize {
        self.0.ops
    }

    /// Issues a replay, inside of an op that was granted its accesses.
    pub fn replay(&self) -> Result<Fence, CudaError> {
        let inner = &*self.0;
        let fence = inner.device.issue(&Request::new(&inner.label, &inner.accesses), |issuing| {
            // SAFETY: the graph lives until its last replay has ended; the stream is behind all that its accesses ask
            // for, and so behind the replay before this one, if it writes to anything.
            unsafe { issuing.driver.launch_graph(inner.executable, issuing.stream.handle()) }
                .map_err(|error| issuing.refused(error))
        })?;
        *inner.replayed.lock().unwrap_or_else(PoisonError::into_inner) = Some(fence.clone());
        Ok(fence)
    }
}

impl Payload for Graph {
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.replay().map(drop).map_err(Cause::from)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.context().runtime.is_abandoned() {
            return;
        }
        let (graph, executable, device) = (self.graph, self.executable, self.device.clone());
        let destroy = move || {
            let Ok(_entered) = device.context().enter_to_leave() else { return };
            // SAFETY: the last handle is gone, and the last replay has ended.
            unsafe {
                let _ = device.context().driver().destroy_executable(executable);
                let _ = device.context().driver().destroy_graph(graph);
            }
        };
        match self.replayed.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Some(fence) => fence.when_done(move |_| destroy()),
            None => destroy(),
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("op", &self.0.label).field("ops", &self.0.ops).finish()
    }
}
