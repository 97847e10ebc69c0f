//! Device memory in stream order: allocated for the op that fills it, freed behind the ops that used it.
//!
//! A free is issued, not waited for: on the stream of one of the last ops, behind the fences of the others. So nothing
//! polls and nothing synchronises; the device's pool hands the memory on to what comes next. Some blocks do not even go back
//! there: their stream keeps them (`kept`).

use crate::context::Context;
use crate::device::Device;
use crate::driver::{DeviceAddress, StreamHandle};
use crate::error::{CudaError, DriverError};
use crate::fence::Fence;
use crate::foreign::DEFAULT_STREAM;
use crate::label::Label;
use crate::stream::{Stream, Turn};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a free waits before it looks again whether another library's capture is over.
const CAPTURED: Duration = Duration::from_millis(1);

/// Bytes of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// In use by buffers of this crate.
    pub in_use: u64,
    /// The most that was in use at once.
    pub peak: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Held by this crate's pool, in use or kept for reuse.
    pub held: u64,
    /// Free, any process counted.
    pub free: u64,
    /// All there is.
    pub total: u64,
    /// Pinned host memory, lent out and kept for reuse.
    pub pinned: u64,
    /// Bytes that the driver would not take back: they are gone until the process ends.
    pub lost: u64,
}

#[derive(Default)]
struct Balance {
    in_use: u64,
    peak: u64,
    blocks: u64,
    lost: u64,
    /// Frees that could not be issued on the spot.
    waiting: Vec<Freed>,
}

/// A context's figures.
#[derive(Default)]
pub(crate) struct Accounts(Mutex<Balance>);

impl Accounts {
    fn lock(&self) -> MutexGuard<'_, Balance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        let balance = self.lock();
        let Balance { in_use, peak, blocks, lost, .. } = *balance;
        MemoryStats { in_use, peak, blocks, lost, ..MemoryStats::default() }
    }

    fn allocated(&self, bytes: usize) {
        let mut balance = self.lock();
        balance.in_use += bytes as u64;
        balance.blocks += 1;
        balance.peak = balance.peak.max(balance.in_use);
    }

    fn freed(&self, bytes: usize) {
        let mut balance = self.lock();
        balance.in_use -= bytes as u64;
        balance.blocks -= 1;
    }

    fn lost(&self, bytes: usize) {
        self.lock().lost += bytes as u64;
    }
}

/// A block of device memory. Whoever owns it owes a [free](Freed).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) address: DeviceAddress,
    pub(crate) bytes: usize,
}

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
        match stream.try_turn() {
            Some(turn) => {
                if let Some(left) = self.issue_on(turn) {
                    left.issue_in_a(CAPTURED);
                }
            }
            None => self.issue_in_a(Duration::ZERO),
        }
    }

    fn issue_in_a(self, while_: Duration) {
        let context = Arc::clone(self.stream.context());
        context.memory.lock().waiting.push(self);
        let poller = &Arc::clone(&context.runtime).poller;
        poller.in_a(while_, move || issue_waiting(&context));
    }

    /// Issues it, or answers it, if it has to come behind what another library captures.
    fn issue_on(self, mut turn: Turn<'_>) -> Option<Self> {
        let context = Arc::clone(self.stream.context());
        // A device that has failed takes its memory with it.
        let Ok(_entered) = context.enter() else {
            context.memory.freed(self.block.bytes);
            return None;
        };
        // To put something on the default stream would spoil the capture.
        if self.lent && matches!(context.driver().is_default_stream_open(), Ok(false)) {
            return Some(self);
        }
        context.memory.freed(self.block.bytes);
        if self.follow_users(&mut turn).is_err() {
            context.memory.lost(self.block.bytes);
            return None;
        }
        // What others were shown they may still hold on to, by mistake: it does not become one of ours at once.
        if self.lent || !self.stream.keep(self.block) {
            free(&context, self.block, self.stream.handle());
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

/// Frees a block of which the stream is behind all users. Inside of the context.
pub(crate) fn free(context: &Context, block: Block, stream: StreamHandle) {
    // SAFETY: whoever has the block owes its free; the stream is behind all who used it.
    if unsafe { context.driver().free(block.address, stream) }.is_err() {
        context.memory.lost(block.bytes);
    }
}

/// Issues the frees that had to wait for their streams.
pub(crate) fn issue_waiting(context: &Context) {
    let waiting = std::mem::take(&mut context.memory.lock().waiting);
    for freed in waiting {
        let stream = freed.stream.clone();
        if let Some(left) = freed.issue_on(stream.turn()) {
            left.issue_in_a(CAPTURED);
        }
    }
}
