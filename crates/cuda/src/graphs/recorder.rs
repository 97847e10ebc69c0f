//! A capture under way.
//!
//! Ops are recorded by the driver on a stream of the recorder's own. Before each it is told which nodes the op comes
//! after; a driver that cannot be told leaves each behind the one before. The mode is *relaxed*: other threads, and this
//! one on other streams, go on calling what they like.

use super::Graph;
use super::bundle::Member;
use super::dependencies::Dependencies;
use super::ready::Ready;
use crate::buffers::{Access, DeviceBuffer, Fences};
use crate::copies::{Region, check_sizes, put_copy, put_fill};
use crate::devices::Device;
use crate::driver::{DeviceAddress, GraphHandle, NodeHandle, Pattern};
use crate::error::CudaError;
use crate::issue::{Addresses, Issuing};
use crate::label::Label;
use crate::launches::{Kernel, Launch};
use crate::streams::Stream;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use weft_engine::AccessKind;

/// A capture under way. Dropped unfinished it leaves nothing behind.
pub struct Recorder {
    device: Device,
    label: Label,
    stream: Stream,
    dependencies: Dependencies,
    accesses: Vec<Access>,
    /// Where among the accesses those to some bytes of a buffer are.
    known: HashMap<(usize, usize, usize), usize>,
    /// What the graph calls, which must stay loaded.
    kernels: HashMap<usize, Kernel>,
    ops: usize,
    /// What foreign code that is recorded right now comes after, and its accesses.
    begun: Option<(SmallVec<[usize; 4]>, Vec<Access>)>,
    /// Why there will be no graph.
    spoiled: Option<CudaError>,
    open: bool,
}

/// What to answer when the driver does not record.
fn uncaptured(label: &Label, error: CudaError) -> CudaError {
    match error {
        CudaError::Refused { error, .. } => CudaError::Capture(format!("{label} cannot be captured: {error}")),
        error => error,
    }
}

impl Device {
    /// Begins to record ops.
    pub fn record(&self, label: &Label) -> Result<Recorder, CudaError> {
        let stream = self.capture_stream()?;
        let context = self.context();
        let _entered = context.enter()?;
        // SAFETY: the context is current, and nobody else has the stream.
        unsafe { context.driver().begin_capture(stream.handle()) }.map_err(|error| context.refused(label, error))?;
        let (device, label) = (self.clone(), label.clone());
        let (dependencies, accesses, known, kernels) = Default::default();
        let (ops, begun, spoiled, open) = (0, None, None, true);
        Ok(Recorder { device, label, stream, dependencies, accesses, known, kernels, ops, begun, spoiled, open })
    }
}

impl Device {
    /// Runs foreign code, with this device's context as the calling thread's.
    pub fn inside<T>(&self, body: impl FnOnce() -> T) -> Result<T, CudaError> {
        let _entered = self.context().enter()?;
        Ok(body())
    }
}

impl Recorder {
    /// The device whose ops are recorded.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The stream in capture, for foreign code that issues on it.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What the ops so far do with which buffers.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Where the buffers lie. What lies nowhere is allocated outside of the capture.
    fn place(&self, label: &Label, accesses: &[Access]) -> Result<Addresses, CudaError> {
        let home = self.device.home_stream();
        let place = |access: &Access| {
            if access.buffer.device() != &self.device {
                let (one, other) = (self.device.index(), access.buffer.device().index());
                let message = format!("{label} uses memory of cuda:{other}, and what is recorded runs on cuda:{one}");
                return Err(CudaError::Capture(message));
            }
            // Fences order what runs; nothing runs here. An op that was pushed before and fills the buffer finds it in its
            // place, and leaves its fence, behind which replays come.
            access.buffer.prepare(access, home, label, &mut Fences::new())
        };
        accesses.iter().map(place).collect()
    }

    fn note(&mut self, accesses: &[Access]) {
        for access in accesses {
            let key = (Arc::as_ptr(&access.buffer).addr(), access.range.start, access.range.end);
            let place = *self.known.entry(key).or_insert(self.accesses.len());
            match self.accesses.get_mut(place) {
                // What is overwritten first is overwritten, whatever comes after.
                Some(known) if known.kind == AccessKind::Overwrite => {}
                Some(known) => known.kind = known.kind.merged(access.kind),
                None => self.accesses.push(access.clone()),
            }
        }
    }

    /// Answers what the driver refuses, and notes that the graph would be incomplete.
    fn spoil(&mut self, label: &Label, outcome: Result<(), CudaError>) -> Result<(), CudaError> {
        outcome.map_err(|error| {
            let error = uncaptured(label, error);
            self.spoiled.get_or_insert_with(|| error.clone());
            error
        })
    }

    /// Lets what comes next come after these ops.
    fn come_after(&self, ops: &[usize]) -> Result<(), CudaError> {
        let context = self.device.context();
        if !context.driver().chooses_dependencies() {
            return Ok(());
        }
        let nodes = self.dependencies.leaves(ops);
        // SAFETY: the context is current, the stream in capture, and these are nodes of it. What nothing depends on in the
        // end is no error: the driver forgives nodes that were left by this call.
        unsafe { context.driver().set_dependencies(self.stream.handle(), &nodes) }
            .map_err(|error| context.refused(&self.label, error))
    }

    /// Notes the op that has just been recorded.
    fn came_after(&mut self, ops: &[usize], accesses: &[Access]) -> Result<(), CudaError> {
        let context = self.device.context();
        let mut leaves: Vec<NodeHandle> = Vec::new();
        if context.driver().chooses_dependencies() {
            // SAFETY: the context is current, and the stream in capture.
            leaves = unsafe { context.driver().dependencies(self.stream.handle()) }
                .map_err(|error| context.refused(&self.label, error))?;
        }
        self.dependencies.add(accesses, ops, &leaves);
        self.ops += 1;
        Ok(())
    }

    fn check(&self, label: &Label) -> Result<(), CudaError> {
        if let Some(error) = &self.spoiled {
            return Err(error.clone());
        }
        if self.begun.is_some() {
            let message = format!("{label} is pushed by an op that is being recorded: push it after that op");
            return Err(CudaError::Capture(message));
        }
        Ok(())
    }

    fn add(
        &mut self,
        label: &Label,
        accesses: &[Access],
        work: impl FnOnce(&Issuing<'_>) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        self.check(label)?;
        let addresses = self.place(label, accesses)?;
        self.put(label, accesses, &addresses, work)?;
        self.note(accesses);
        Ok(())
    }

    /// Records work on buffers that lie at these addresses.
    fn put(
        &mut self,
        label: &Label,
        accesses: &[Access],
        addresses: &[DeviceAddress],
        work: impl FnOnce(&Issuing<'_>) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let device = self.device.clone();
        let _entered = device.context().enter()?;
        let driver = device.context().driver();
        let after = self.dependencies.of(accesses);
        let recorded = self.come_after(&after).and_then(|()| {
            work(&Issuing { driver, stream: &self.stream, addresses, label })?;
            self.came_after(&after, accesses)
        });
        self.spoil(label, recorded)
    }

    /// Records a member of a bundle, whose buffers lie at these addresses. The graph keeps none of them.
    pub(super) fn member(&mut self, member: &Member, addresses: &[DeviceAddress]) -> Result<(), CudaError> {
        self.put(member.label(), member.accesses(), addresses, |issuing| member.put(issuing))?;
        if let Member::Launch(launch) = member {
            self.keep(launch.kernel());
        }
        Ok(())
    }

    /// Ends the capture of a bundle, and makes its graph ready.
    pub(super) fn ready(mut self) -> Result<Ready, CudaError> {
        let graph = self.captured()?;
        let kernels = std::mem::take(&mut self.kernels).into_values().collect();
        Ready::new(&self.device, &self.label, graph, kernels, Box::new(()))
    }

    fn keep(&mut self, kernel: &Kernel) {
        self.kernels.entry(kernel.function().0).or_insert_with(|| kernel.clone());
    }

    /// Records a launch.
    pub fn launch(&mut self, launch: &Launch) -> Result<(), CudaError> {
        launch.check()?;
        if launch.names_stream() {
            let message =
                format!("{} names a stream, and a graph runs on what it is replayed on: leave it out", launch.label());
            return Err(CudaError::Capture(message));
        }
        self.add(launch.label(), launch.accesses(), |issuing| launch.put(issuing))?;
        self.keep(launch.kernel());
        Ok(())
    }

    /// Records a fill.
    pub fn fill(&mut self, label: &Label, to: &Region, pattern: Pattern) -> Result<(), CudaError> {
        to.check_pattern(pattern)?;
        self.add(label, &[to.access(AccessKind::Mutate)], |issuing| put_fill(issuing, to, 0, pattern))
    }

    /// Records a copy within the device.
    pub fn copy(&mut self, label: &Label, to: &Region, from: &Region) -> Result<(), CudaError> {
        check_sizes(to.bytes, from.bytes)?;
        let accesses = [from.access(AccessKind::Read), to.access(AccessKind::Mutate)];
        self.add(label, &accesses, |issuing| put_copy(issuing, to, from))
    }

    /// Begins an op that foreign code issues on [the stream](Self::stream), and answers where its buffers lie. Nothing
    /// else is recorded before [`end`](Self::end).
    pub fn begin(&mut self, label: &Label, accesses: &[Access]) -> Result<Vec<u64>, CudaError> {
        self.check(label)?;
        let addresses = self.place(label, accesses)?;
        let device = self.device.clone();
        let _entered = device.context().enter()?;
        let after = self.dependencies.of(accesses);
        let ready = self.come_after(&after);
        self.spoil(label, ready)?;
        self.begun = Some((after, accesses.to_vec()));
        Ok(addresses.to_vec())
    }

    /// Whether the op that has begun comes after an earlier one: then it may have what that one has left.
    #[must_use]
    pub fn is_behind(&self, op: usize) -> bool {
        let chosen = self.device.context().driver().chooses_dependencies();
        self.begun.as_ref().is_some_and(|(after, _)| !chosen || self.dependencies.are_behind(after, op))
    }

    /// Ends that op. Answers its number.
    pub fn end(&mut self, label: &Label) -> Result<usize, CudaError> {
        let Some((after, accesses)) = self.begun.take() else {
            return Err(CudaError::InvalidArgument(format!("{label} ends and has not begun")));
        };
        let device = self.device.clone();
        let _entered = device.context().enter()?;
        let recorded = self.came_after(&after, &accesses);
        self.spoil(label, recorded)?;
        self.note(&accesses);
        Ok(self.ops - 1)
    }

    /// Says that there will be no graph: an op was recorded in part.
    pub fn fail(&mut self, reason: String) {
        self.begun = None;
        self.spoiled.get_or_insert(CudaError::Capture(reason));
    }

    /// Ends the capture and makes the graph ready.
    ///
    /// `hidden` says of which buffers nobody knows but this graph: replays are ordered by the others. `keeper` lives as
    /// long as a replay may run; it is dropped on any thread.
    pub fn finish(
        mut self,
        hidden: impl Fn(&Arc<DeviceBuffer>) -> bool,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Result<Graph, CudaError> {
        let graph = self.captured()?;
        let context = self.device.context();
        let _entered = context.enter()?;
        // Orders replays among themselves, and behind the allocations of what is hidden, which is theirs by turns.
        let own = DeviceBuffer::new(&self.device, 0);
        let allocated = self.device.home_stream().fence(&self.label).inspect_err(|_| self.destroy(graph))?;
        own.issued(&Access::mutate(&own), &allocated);
        let (kept, mut accesses): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.accesses).into_iter().partition(|access| hidden(&access.buffer));
        let kept: Vec<_> = kept.into_iter().map(|access| access.buffer).collect();
        accesses.push(Access::mutate(&own));
        let kernels = std::mem::take(&mut self.kernels).into_values().collect();
        let ready = Ready::new(&self.device, &self.label, graph, kernels, Box::new((kept.clone(), keeper)))?;
        Ok(Graph::new(self.device.clone(), self.label.clone(), accesses, self.ops, kept, ready))
    }

    /// Ends the capture. Answers the graph, which is the caller's.
    fn captured(&mut self) -> Result<GraphHandle, CudaError> {
        let ended = self.end_capture();
        if let Some(error) = self.spoiled.take() {
            if let Ok(Some(graph)) = ended {
                self.destroy(graph);
            }
            return Err(error);
        }
        let spoiled = || {
            let message = "was spoiled by a call that cannot be captured, such as one that waits";
            CudaError::Capture(format!("the capture of {} {message}", self.label))
        };
        ended.map_err(|error| uncaptured(&self.label, error))?.ok_or_else(spoiled)
    }

    fn end_capture(&mut self) -> Result<Option<GraphHandle>, CudaError> {
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

    fn destroy(&self, graph: GraphHandle) {
        // SAFETY: nobody else knows it.
        let _ = unsafe { self.device.context().driver().destroy_graph(graph) };
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.open
            && let Ok(Some(graph)) = self.end_capture()
        {
            self.destroy(graph);
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("op", &self.label).field("ops", &self.ops).finish_non_exhaustive()
    }
}
