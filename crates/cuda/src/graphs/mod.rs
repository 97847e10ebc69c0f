//! CUDA graphs: device ops recorded once, replayed as one op.
//!
//! What is recorded is not run, and touches no fences. Its ops depend on each other as their accesses ask for, so those
//! that have nothing to do with each other run side by side in a replay. The graph holds the buffers it uses, whose
//! addresses are baked into it; its accesses are the union of its ops', and a replay is ordered by them like any op.
//! Buffers that nobody else knows any more are left out of them.
//!
//! | module | home of |
//! |---|---|
//! | `dependencies` | which nodes an op comes after |
//! | `recorder` | a capture under way |
//! | `ready` | a graph that can be launched, and when it may go |
//! | `bundle` | ops that are issued together again and again, on memory that changes: as one graph where it does not |

mod bundle;
mod dependencies;
mod ready;
mod recorder;

use crate::buffers::{Access, DeviceBuffer};
use crate::devices::Device;
use crate::error::CudaError;
use crate::issue::Request;
use crate::label::Label;
use crate::streams::Fence;
pub use bundle::{Bundle, CopyWithin, Member};
use ready::Ready;
pub use recorder::Recorder;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use weft_engine::{Cause, InOrder, OpContext, Payload};

struct Inner {
    device: Device,
    label: Label,
    accesses: Vec<Access>,
    ops: usize,
    /// Buffers that are not among the accesses.
    hidden: Vec<Arc<DeviceBuffer>>,
    /// Held over a launch: the driver wants those of one graph one after the other.
    ready: Mutex<Ready>,
}

/// A recorded graph; clones share it. As a payload it replays itself.
#[derive(Clone)]
pub struct Graph(Arc<Inner>);

impl Graph {
    fn new(
        device: Device,
        label: Label,
        accesses: Vec<Access>,
        ops: usize,
        hidden: Vec<Arc<DeviceBuffer>>,
        ready: Ready,
    ) -> Self {
        Self(Arc::new(Inner { device, label, accesses, ops, hidden, ready: Mutex::new(ready) }))
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
        self.0.hidden.iter().map(|buffer| buffer.bytes()).sum()
    }

    /// Issues a replay, inside of an op that was granted its accesses.
    pub fn replay(&self) -> Result<Fence, CudaError> {
        self.replay_at(0)
    }

    /// The same, pushed at the place that goes by this key (see [`Label::at`]).
    pub fn replay_at(&self, place: u64) -> Result<Fence, CudaError> {
        let inner = &*self.0;
        let mut ready = inner.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let request = Request { place, ..Request::new(&inner.label, &inner.accesses) };
        // The stream is behind all that the accesses ask for, and so behind the replay before this one.
        let fence = inner.device.issue(&request, |issuing| ready.launch(issuing))?;
        ready.launched(&fence);
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

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("op", &self.0.label).field("ops", &self.0.ops).finish()
    }
}
