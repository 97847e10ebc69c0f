//! Streams: what comes first on one runs first; between two, only a wait for a fence makes an order.

use super::context::Context;
use super::fence::{Fence, FenceCell};
use super::ledger::Ledger;
use super::retired::Retired;
use crate::driver::StreamHandle;
use crate::error::CudaError;
use crate::label::Label;
use crate::memory::{Block, KeptBlocks};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

/// For each stream, by number, the newest of its fences that this one is behind.
type Behind = Vec<u64>;

struct Inner {
    context: Arc<Context>,
    handle: StreamHandle,
    number: usize,
    /// Keeps a stream that somebody else made.
    keeper: Option<Box<dyn Any + Send + Sync>>,
    /// Whoever holds its lock may issue.
    behind: Mutex<Behind>,
    ledger: Mutex<Ledger>,
    kept: KeptBlocks,
}

/// A handle on a stream; clones share it.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

/// A handle on a stream that does not keep it.
pub(crate) struct WeakStream(Weak<Inner>);

impl WeakStream {
    pub(crate) fn new(stream: &Stream) -> Self {
        Self(Arc::downgrade(&stream.0))
    }

    pub(crate) fn upgrade(&self) -> Option<Stream> {
        self.0.upgrade().map(Stream)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// The right to issue on a stream: between two turns nobody gets in.
pub(crate) struct Turn<'s> {
    stream: &'s Stream,
    behind: MutexGuard<'s, Behind>,
}

impl Stream {
    /// Makes a stream.
    pub(crate) fn new(context: &Arc<Context>, priority: i32) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        context.reap();
        // SAFETY: the context is current.
        let handle = unsafe { context.driver().create_stream(priority) };
        let handle = handle.map_err(|error| context.refused("making a stream", error))?;
        Ok(Self::with(context, handle, None))
    }

    /// Takes part in a stream that somebody else made.
    ///
    /// # Safety
    ///
    /// The stream is of this context and lives as long as the keeper.
    pub(crate) unsafe fn adopt(
        context: &Arc<Context>,
        handle: StreamHandle,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self::with(context, handle, Some(keeper))
    }

    fn with(context: &Arc<Context>, handle: StreamHandle, keeper: Option<Box<dyn Any + Send + Sync>>) -> Self {
        let number = context.runtime.number_stream();
        let (behind, ledger, kept) = Default::default();
        let context_of = Arc::clone(context);
        let stream = Self(Arc::new(Inner { context: context_of, handle, number, keeper, behind, ledger, kept }));
        context.register(&stream);
        stream
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.0.context
    }

    /// The driver's handle, for foreign code that issues on it. It is valid while this lives.
    #[must_use]
    #[inline]
    pub fn handle(&self) -> StreamHandle {
        self.0.handle
    }

    /// Its number, its own among all streams of this process.
    #[must_use]
    #[inline]
    pub fn number(&self) -> usize {
        self.0.number
    }

    /// The index of its device.
    #[must_use]
    pub fn device_index(&self) -> usize {
        self.0.context.index
    }

    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits for the right to issue.
    #[inline]
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn { stream: self, behind: self.0.behind.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// The right to issue, if nobody has it.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        let behind = match self.0.behind.try_lock() {
            Ok(behind) => behind,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn { stream: self, behind })
    }

    /// A block for what comes next on the stream, if it has kept one of this size.
    #[inline]
    pub(crate) fn take_kept(&self, bytes: usize) -> Option<Block> {
        self.0.kept.take(bytes).map(|address| Block { address, bytes })
    }

    /// Keeps a block that this stream is behind all users of. Answers whether it does: streams of other libraries go when
    /// they go.
    #[inline]
    pub(crate) fn keep(&self, block: Block) -> bool {
        self.0.keeper.is_none() && self.0.kept.keep(block, self.0.context.properties.memory)
    }

    /// Frees the blocks that it keeps. Inside of the context.
    pub(crate) fn free_kept(&self) {
        let turn = self.turn();
        for block in self.0.kept.drain() {
            self.0.context.free(block, self.handle());
        }
        drop(turn);
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a cell that nobody holds any more.
    #[inline]
    pub(crate) fn recycle(&self, cell: Arc<FenceCell>) {
        if !self.0.context.runtime.is_abandoned() {
            self.ledger().give_back(cell);
        }
    }

    /// Fences not known to be done, after a look at the device. Inside of the context.
    pub(crate) fn look(&self) -> u64 {
        let mut ledger = self.ledger();
        ledger.look(self.0.context.driver());
        ledger.unfinished()
    }

    /// The op of a fence.
    pub(crate) fn label(&self, number: u64) -> Option<Label> {
        self.ledger().label(number).cloned()
    }

    /// Whether a fence of this stream has happened.
    pub(crate) fn query(&self, cell: &FenceCell) -> Result<bool, CudaError> {
        let context = &self.0.context;
        if context.runtime.is_abandoned() {
            return Err(CudaError::Forked);
        }
        if let Some(fault) = context.fault() {
            return if self.ledger().is_done(cell.number) { Ok(true) } else { Err(fault.clone()) };
        }
        let _entered = context.enter_to_leave()?;
        // SAFETY: the event lives as long as its cell.
        match unsafe { context.driver().has_happened(cell.event) } {
            Ok(happened) => {
                if happened {
                    self.ledger().note_done(cell.number);
                }
                Ok(happened)
            }
            Err(error) if error.is_fault() => Err(context.note_fault(Some(self), error).clone()),
            Err(error) => Err(CudaError::Refused {
                op: self.label(cell.number).unwrap_or_else(|| Label::from("?")).into(),
                error,
            }),
        }
    }

    /// The first ops that are not known to have ended, so many at most, and how many more there are.
    pub(crate) fn first_unfinished(&self, most: usize) -> (Vec<Label>, u64) {
        let ledger = self.ledger();
        let first: Vec<_> = ledger.first_unfinished().take(most).cloned().collect();
        let more = ledger.unfinished().saturating_sub(first.len() as u64);
        (first, more)
    }

    /// An event for a fence to come. Inside of the context.
    pub(crate) fn take_cell(&self, label: &Label) -> Result<Arc<FenceCell>, CudaError> {
        let context = &self.0.context;
        let taken = self.ledger().take(context.driver());
        taken.map_err(|error| context.refused(label, error))
    }

    /// A fence behind all that is on the stream now.
    pub fn fence(&self, label: &Label) -> Result<Fence, CudaError> {
        let _entered = self.0.context.enter()?;
        self.turn().record(label)
    }
}

impl<'s> Turn<'s> {
    #[inline]
    pub(crate) fn stream(&self) -> &'s Stream {
        self.stream
    }

    /// Puts what comes next behind a fence, unless it is there already.
    #[inline]
    pub(crate) fn wait_for(&mut self, fence: &Fence) -> Result<(), CudaError> {
        let (own, other, cell) = (self.stream, fence.stream(), fence.cell());
        let at = other.number();
        if own.is(other) || self.behind.get(at).is_some_and(|behind| *behind >= cell.number) {
            return Ok(());
        }
        match fence.known() {
            None => {}
            Some(Ok(())) => return Ok(()),
            Some(Err(fault)) => return Err(CudaError::clone(fault)),
        }
        let context = own.context();
        // SAFETY: both live; the turn is used inside of the context.
        unsafe { context.driver().wait_event(own.handle(), cell.event) }
            .map_err(|error| context.refused(&fence.label(), error))?;
        if self.behind.len() <= at {
            self.behind.resize(at + 1, 0);
        }
        self.behind[at] = cell.number;
        Ok(())
    }

    /// Makes a fence behind all that is on the stream now.
    pub(crate) fn record(&mut self, label: &Label) -> Result<Fence, CudaError> {
        let announced = self.announce(label)?;
        self.record_announced(announced, label)
    }

    /// An event for the op that is about to be issued, numbered: what is issued must not end up without a fence.
    #[inline]
    pub(crate) fn announce(&mut self, label: &Label) -> Result<Arc<FenceCell>, CudaError> {
        let context = self.stream.context();
        let mut ledger = self.stream.ledger();
        let taken = ledger.take(context.driver());
        let number = if taken.is_ok() { ledger.announce(label) } else { 0 };
        drop(ledger);
        let mut cell = taken.map_err(|error| context.refused(label, error))?;
        self.number(&mut cell, number);
        Ok(cell)
    }

    /// The same with an event that was taken before.
    pub(crate) fn announce_taken(&mut self, mut cell: Arc<FenceCell>, label: &Label) -> Arc<FenceCell> {
        let number = self.stream.ledger().announce(label);
        self.number(&mut cell, number);
        cell
    }

    #[inline]
    fn number(&self, cell: &mut Arc<FenceCell>, number: u64) {
        // Nobody else has it, or it would not have been taken.
        if let Some(cell) = Arc::get_mut(cell) {
            *cell = FenceCell { number, stream: Some(self.stream.clone()), ..FenceCell::new(cell.event) };
        }
    }

    /// Records the event of what was announced: of the last one, in the same turn.
    #[inline]
    pub(crate) fn record_announced(&mut self, cell: Arc<FenceCell>, label: &Label) -> Result<Fence, CudaError> {
        let (stream, fence) = (self.stream, Fence::new(cell));
        let context = stream.context();
        // SAFETY: both live, nobody else has the event; the turn is used inside of the context.
        match unsafe { context.driver().record_event(fence.event(), stream.handle()) } {
            Ok(()) => Ok(fence),
            Err(error) => {
                // Before the number is taken back: this op may be to blame for a fault, and is named by its number.
                let error = context.refused(label, error);
                stream.ledger().retract();
                Err(error)
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.context.runtime.is_abandoned() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            for block in self.kept.drain() {
                self.context.free(block, self.handle);
            }
        }
        let spare = self.ledger.get_mut().unwrap_or_else(PoisonError::into_inner).take_spare();
        let events = spare.iter().map(|cell| cell.event).collect();
        // SAFETY: the last handle is gone; cells come back when nobody holds them, and each has its event.
        let retired = unsafe { Retired::new(&self.context, self.handle, self.keeper.is_none(), events) };
        self.context.retire(retired);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.device_index()).field("number", &self.number()).finish()
    }
}
