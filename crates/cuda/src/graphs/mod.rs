//! CUDA graphs: device ops recorded once, replayed as one op.
//!
//! What is recorded is not run, and touches no fences. Its ops depend on each other as their accesses ask for, so those
//! that have nothing to do with each other run side by side in a replay. The graph holds the buffers it uses, whose
//! addresses are baked into it; its accesses are the union of its ops', and a replay is ordered by them like any op.
//! Buffers that nobody else knows any more are left out of them.

mod dependencies;
mod recorder;

use crate::buffers::{Access, DeviceBuffer};
use crate::devices::Device;
use crate::driver::{ExecutableHandle, GraphHandle};
use crate::error::CudaError;
use crate::issue::Request;
use crate::label::Label;
use crate::launches::Kernel;
use crate::streams::Fence;
pub use recorder::Recorder;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::{Cause, InOrder, OpContext, Payload};

/// What must live until the last replay has ended.
struct Held {
    graph: GraphHandle,
    executable: ExecutableHandle,
    /// Buffers that are not among the accesses.
    kept: Vec<Arc<DeviceBuffer>>,
    _kernels: Vec<Kernel>,
    _keeper: Box<dyn Any + Send + Sync>,
}

struct Inner {
    device: Device,
    label: Label,
    accesses: Vec<Access>,
    ops: usize,
    /// Taken when this is dropped.
    held: Option<Held>,
    /// Behind the last replay. Held over a launch: the driver wants those of one graph one after the other.
    replayed: Mutex<Option<Fence>>,
}

/// A recorded graph; clones share it. As a payload it replays itself.
#[derive(Clone)]
pub struct Graph(Arc<Inner>);

impl Graph {
    fn new(device: Device, label: Label, accesses: Vec<Access>, ops: usize, held: Held) -> Self {
        Self(Arc::new(Inner { device, label, accesses, ops, held: Some(held), replayed: Mutex::new(None) }))
    }

    /// What a replay does with which buffers. One of them, without bytes, is the graph's own.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.0.accesses
    }

    /// Ops recorded through the recorder.
    #[must_use]
    pub fn ops(&self) -> usize {
        self.0.ops
    }

    /// Bytes of buffers that it alone knows.
    #[must_use]
    pub fn hidden_bytes(&self) -> usize {
        self.0.held.iter().flat_map(|held| &held.kept).map(|buffer| buffer.bytes()).sum()
    }

    /// Issues a replay, inside of an op that was granted its accesses.
    pub fn replay(&self) -> Result<Fence, CudaError> {
        self.replay_at(0)
    }

    /// The same, pushed at the place that goes by this key (see [`Label::at`]).
    pub fn replay_at(&self, place: u64) -> Result<Fence, CudaError> {
        let inner = &*self.0;
        let Some(held) = &inner.held else { unreachable!("taken by drop alone") };
        let mut replayed = inner.replayed.lock().unwrap_or_else(PoisonError::into_inner);
        let request = Request { place, ..Request::new(&inner.label, &inner.accesses) };
        let fence = inner.device.issue(&request, |issuing| {
            // SAFETY: the graph lives until its last replay has ended; the stream is behind all that its accesses ask
            // for, and so behind the replay before this one.
            unsafe { issuing.driver.launch_graph(held.executable, issuing.stream.handle()) }
                .map_err(|error| issuing.refused(error))
        })?;
        *replayed = Some(fence.clone());
        Ok(fence)
    }
}

impl Payload for Graph {
    fn queue(&self) -> Option<InOrder> {
        Some(self.0.device.queue())
    }

    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.replay().map(drop).map_err(Cause::from)
    }
}

impl Drop for Inner {
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
                // SAFETY: the last handle is gone, and the last replay has ended.
                unsafe {
                    let _ = device.context().driver().destroy_executable(held.executable);
                    let _ = device.context().driver().destroy_graph(held.graph);
                }
            }
            drop(held);
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
