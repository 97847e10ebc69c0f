//! Device memory in stream order: allocated for the op that fills it, freed behind the ops that used it.
//!
//! A free is issued, not waited for: on the stream of one of the last ops, behind the fences of the others. So nothing polls
//! and nothing synchronises; the device's pool hands the memory on to the next request. Some blocks do not even go back
//! there: their stream keeps them (`kept`).

use crate::devices::Device;
use crate::driver::DEFAULT_STREAM;
use crate::error::{CudaError, DriverError};
use crate::label::Label;
use crate::memory::Block;
use crate::streams::{Fence, Stream, Turn};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// How long a free waits before it looks again whether another library's capture is over.
const CAPTURED: Duration = Duration::from_millis(1);

/// Allocates for what comes next on the stream. Inside of the context.
pub(crate) fn allocate(device: &Device, bytes: usize, stream: &Stream, label: &Label) -> Result<Block, CudaError> {
    let context = device.context();
    if let Some(block) = stream.take_kept(bytes) {
        context.memory.allocated(bytes);
        return Ok(block);
    }
    // SAFETY: the context is current, and the stream is one of its own.
    let attempt = || unsafe { context.driver().allocate(bytes, context.pool, stream.handle()) };
    let mut answer = attempt();
    if matches!(answer, Err(error) if error.code == DriverError::OUT_OF_MEMORY) {
        device.make_room()?;
        answer = attempt();
    }
    match answer {
        Ok(address) => {
            context.memory.allocated(bytes);
            Ok(Block { address, bytes })
        }
        Err(error) if error.code == DriverError::OUT_OF_MEMORY => {
            // SAFETY: the context is current.
            let usage = unsafe { context.driver().usage(context.pool) }.unwrap_or_default();
            Err(CudaError::OutOfMemory {
                device: context.label(),
                op: label.clone().into(),
                requested: bytes,
                free: usage.free,
                total: usage.total,
                in_use: context.memory.stats().in_use,
                held: usage.held,
            })
        }
        Err(error) => Err(context.refused(label, error)),
    }
}

/// The same for a caller that can do without: none if the device has none left.
pub(crate) fn allocate_at_once(device: &Device, bytes: usize, stream: &Stream) -> Result<Option<Block>, CudaError> {
    let context = device.context();
    if let Some(block) = stream.take_kept(bytes) {
        context.memory.allocated(bytes);
        return Ok(Some(block));
    }
    // SAFETY: as above.
    match unsafe { context.driver().allocate(bytes, context.pool, stream.handle()) } {
        Ok(address) => {
            context.memory.allocated(bytes);
            Ok(Some(Block { address, bytes }))
        }
        Err(error) if error.code == DriverError::OUT_OF_MEMORY => Ok(None),
        Err(error) => Err(context.refused("renaming", error)),
    }
}

/// A block that nobody will use any more, and the fences of those who did.
pub(crate) struct Freed {
    pub(crate) block: Block,
    pub(crate) stream: Stream,
    pub(crate) fences: SmallVec<[Fence; 4]>,
    /// Whether other libraries were shown it.
    pub(crate) lent: bool,
}

impl Freed {
    /// Issues the free, now if nobody is just issuing on its stream, soon otherwise. Cheap on any thread.
    pub(crate) fn issue(self) {
        let context = Arc::clone(self.stream.context());
        if context.runtime.is_abandoned() {
            return;
        }
        let stream = self.stream.clone();
        let turn = if self.are_recorded() { stream.try_turn() } else { None };
        match turn {
            Some(turn) => {
                if let Some(left) = self.issue_on(turn) {
                    left.issue_in_a(CAPTURED);
                }
            }
            None => self.issue_in_a(Duration::ZERO),
        }
    }

    /// Issues it when the stream's turn is to be had.
    fn issue_in_turn(self) {
        let stream = self.stream.clone();
        for fence in self.others() {
            // A device that has failed is found to have failed in the turn, too.
            let _ = fence.recorded();
        }
        if let Some(left) = self.issue_on(stream.turn()) {
            left.issue_in_a(CAPTURED);
        }
    }

    /// The fences that the stream may have to wait for.
    fn others(&self) -> impl Iterator<Item = &Fence> {
        self.fences.iter().filter(|fence| !fence.stream().is(&self.stream) && fence.known().is_none())
    }

    /// Sees to it that their events are recorded, as far as that needs no wait. Answers whether all are.
    fn are_recorded(&self) -> bool {
        self.others().all(|fence| matches!(fence.try_recorded(), Ok(Some(_))))
    }

    fn issue_in_a(self, while_: Duration) {
        let context = Arc::clone(self.stream.context());
        context.defer(while_, move || self.issue_in_turn());
    }

    /// Issues it, or answers it, if it has to come behind what another library captures.
    fn issue_on(self, mut turn: Turn<'_>) -> Option<Self> {
        let context = Arc::clone(self.stream.context());
        // A device that has failed takes its memory with it.
        let Ok(_entered) = context.enter() else {
            context.memory.freed(self.block.bytes);
            return None;
        };
        // To put something on the default stream would spoil the capture; a free on a stream that is captured would be a part
        // of it.
        // SAFETY: that stream is in every context.
        let is_open = || !matches!(unsafe { context.driver().is_open(DEFAULT_STREAM) }, Ok(false));
        if (self.lent && !is_open()) || !self.stream.is_open() {
            return Some(self);
        }
        context.memory.freed(self.block.bytes);
        if self.follow_users(&mut turn).is_err() {
            context.memory.lost(self.block.bytes);
            return None;
        }
        // What others were shown they may still hold on to, by mistake: it does not become one of ours at once.
        if self.lent || !self.stream.keep(self.block) {
            context.free(self.block, self.stream.handle());
        }
        None
    }

    fn follow_users(&self, turn: &mut Turn<'_>) -> Result<(), CudaError> {
        self.fences.iter().try_for_each(|fence| turn.wait_for(fence))?;
        if self.lent {
            // SAFETY: that stream is in every context.
            unsafe { turn.follow_foreign(DEFAULT_STREAM, &Label::from("free")) }?;
        }
        Ok(())
    }
}
