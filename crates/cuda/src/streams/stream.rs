//! Streams: work on one runs in order; between two, only a wait for a fence makes an order.

use super::context::Context;
use super::fence::{Fence, Mark};
use super::ledger::Ledger;
use super::order::{Marking, Order, Ties};
use super::retired::Retired;
use crate::driver::StreamHandle;
use crate::error::{CudaError, DriverError};
use crate::label::Label;
use crate::memory::{Block, KeptBlocks};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

struct Inner {
    context: Arc<Context>,
    handle: StreamHandle,
    number: usize,
    /// Keeps a foreign stream.
    keeper: Option<Box<dyn Any + Send + Sync>>,
    /// The holder of its lock may issue.
    order: Mutex<Order>,
    ledger: Mutex<Ledger>,
    /// Nothing for those without allocations, and those of other libraries, which go when they go.
    kept: Option<KeptBlocks>,
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

/// The right to issue on a stream: no other thread gets in between two of its commands.
pub(crate) struct Turn<'s> {
    stream: &'s Stream,
    order: MutexGuard<'s, Order>,
}

impl Stream {
    /// Makes a stream.
    pub(crate) fn new(context: &Arc<Context>, priority: i32) -> Result<Self, CudaError> {
        Self::made(context, priority, Some(KeptBlocks::default()))
    }

    /// Makes a stream for work that only reads memory of the device.
    pub(crate) fn for_readers(context: &Arc<Context>, priority: i32) -> Result<Self, CudaError> {
        Self::made(context, priority, None)
    }

    fn made(context: &Arc<Context>, priority: i32, kept: Option<KeptBlocks>) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
        context.reap();
        // SAFETY: the context is current.
        let handle = unsafe { context.driver().create_stream(priority) };
        let handle = handle.map_err(|error| context.refused("making a stream", error))?;
        Ok(Self::with(context, handle, None, kept))
    }

    /// Takes part in a foreign stream.
    ///
    /// # Safety
    ///
    /// The stream is of this context and lives as long as the keeper.
    pub(crate) unsafe fn adopt(
        context: &Arc<Context>,
        handle: StreamHandle,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self::with(context, handle, Some(keeper), None)
    }

    fn with(
        context: &Arc<Context>,
        handle: StreamHandle,
        keeper: Option<Box<dyn Any + Send + Sync>>,
        kept: Option<KeptBlocks>,
    ) -> Self {
        let number = context.runtime.number_stream();
        let (order, ledger) = Default::default();
        let context_of = Arc::clone(context);
        let stream = Self(Arc::new(Inner { context: context_of, handle, number, keeper, order, ledger, kept }));
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

    /// Whether it is foreign: its owner may capture on it, or let it go, at any time.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.0.keeper.is_some()
    }

    /// Waits for the right to issue.
    #[inline]
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn { stream: self, order: self.0.order.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// The right to issue, if it is free.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        let order = match self.0.order.try_lock() {
            Ok(order) => order,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn { stream: self, order })
    }

    /// A block for the next work on the stream, if it has kept one of this size.
    #[inline]
    pub(crate) fn take_kept(&self, bytes: usize) -> Option<Block> {
        self.0.kept.as_ref()?.take(bytes).map(|address| Block { address, bytes })
    }

    /// Keeps a block that this stream is behind all users of. Answers whether it does.
    #[inline]
    pub(crate) fn keep(&self, block: Block) -> bool {
        self.0.kept.as_ref().is_some_and(|kept| kept.keep(block, self.0.context.properties.memory))
    }

    /// Whether it keeps blocks for later work.
    pub(crate) fn keeps_blocks(&self) -> bool {
        self.0.kept.is_some()
    }

    /// Frees the blocks that it keeps. Inside of the context.
    pub(crate) fn free_kept(&self) {
        let turn = self.turn();
        for block in self.0.kept.iter().flat_map(KeptBlocks::drain) {
            self.0.context.free(block, self.handle());
        }
        drop(turn);
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event without a holder.
    #[inline]
    pub(crate) fn recycle(&self, mark: Arc<Mark>) {
        if !self.0.context.runtime.is_abandoned() {
            self.ledger().give_back(mark);
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

    /// Whether a fence of this stream has happened. No wait: while another thread issues here, an event that is not
    /// recorded yet stays so, and has not happened.
    pub(crate) fn query(&self, fence: &Fence) -> Result<bool, CudaError> {
        let context = &self.0.context;
        if context.runtime.is_abandoned() {
            return Err(CudaError::Forked);
        }
        if let Some(fault) = context.fault() {
            return if self.ledger().is_done(fence.number()) { Ok(true) } else { Err(fault.clone()) };
        }
        let _entered = context.enter_to_leave()?;
        let Some((event, behind)) = fence.try_recorded()? else { return Ok(false) };
        // SAFETY: the event lives as long as its mark.
        match unsafe { context.driver().has_happened(event) } {
            Ok(happened) => {
                if happened {
                    self.ledger().note_done(behind);
                }
                Ok(happened)
            }
            Err(error) => Err(self.refused(fence, error)),
        }
    }

    /// The answer when the driver refuses to look at a fence, or to record its event.
    #[cold]
    fn refused(&self, fence: &Fence, error: DriverError) -> CudaError {
        if error.is_fault() {
            return self.0.context.note_fault(Some(self), error).clone();
        }
        CudaError::Refused { op: fence.label().into(), error }
    }

    /// The first ops that are not known to have ended, so many at most, and how many more there are.
    pub(crate) fn first_unfinished(&self, most: usize) -> (Vec<Label>, u64) {
        let ledger = self.ledger();
        let first: Vec<_> = ledger.first_unfinished().take(most).cloned().collect();
        let more = ledger.unfinished().saturating_sub(first.len() as u64);
        (first, more)
    }

    /// An event for a fence to come. Inside of the context.
    pub(crate) fn take_mark(&self, label: &Label) -> Result<Arc<Mark>, CudaError> {
        let context = &self.0.context;
        let taken = self.ledger().take(context.driver());
        taken.map_err(|error| context.refused(label, error))
    }

    /// A fence behind all that is on the stream now.
    pub fn fence(&self, label: &Label) -> Result<Fence, CudaError> {
        let _entered = self.0.context.enter()?;
        self.check_open(label)?;
        self.turn().record(label)
    }
}

impl<'s> Turn<'s> {
    #[inline]
    pub(crate) fn stream(&self) -> &'s Stream {
        self.stream
    }

    /// Puts later work behind a fence, unless it is there already. The fence's event is recorded.
    #[inline]
    pub(crate) fn wait_for(&mut self, fence: &Fence) -> Result<(), CudaError> {
        let (own, other) = (self.stream, fence.stream());
        let at = other.number();
        if own.is(other) || self.order.behind.get(at).is_some_and(|behind| *behind >= fence.number()) {
            return Ok(());
        }
        match fence.known() {
            None => {}
            Some(Ok(())) => return Ok(()),
            Some(Err(fault)) => return Err(CudaError::clone(fault)),
        }
        let Some((event, behind)) = fence.event() else {
            // It could not be recorded before the turn was taken.
            let (call, code, name) = ("cuEventRecord", DriverError::NOT_READY, "CUDA_ERROR_NOT_READY");
            return Err(own.context().refused(&fence.label(), DriverError { call, code, name }));
        };
        self.close()?;
        let context = own.context();
        // SAFETY: both live; the turn is used inside of the context.
        unsafe { context.driver().wait_event(own.handle(), event) }
            .map_err(|error| context.refused(&fence.label(), error))?;
        let known = &mut self.order.behind;
        if known.len() <= at {
            known.resize(at + 1, 0);
        }
        known[at] = behind;
        Ok(())
    }

    /// Makes a fence behind all that is on the stream now.
    pub(crate) fn record(&mut self, label: &Label) -> Result<Fence, CudaError> {
        let announced = self.announce(label)?;
        self.leave(announced, label, Marking::Now)
    }

    /// The fence of an op that is about to be issued, which cannot end up without an event from here on.
    #[inline]
    pub(crate) fn announce(&mut self, label: &Label) -> Result<Fence, CudaError> {
        let (stream, open) = (self.stream, self.order.open());
        let mut ledger = stream.ledger();
        let mark = open.map_or_else(|| ledger.take(stream.context().driver()), Ok);
        let number = if mark.is_ok() { ledger.announce(label) } else { 0 };
        drop(ledger);
        Ok(self.begun(mark.map_err(|error| stream.context().refused(label, error))?, number))
    }

    /// The same with an event that was taken before.
    pub(crate) fn announce_taken(&mut self, taken: Arc<Mark>, label: &Label) -> Fence {
        let open = self.order.open();
        let number = self.stream.ledger().announce(label);
        let mark = match open {
            Some(mark) => {
                self.stream.recycle(taken);
                mark
            }
            None => taken,
        };
        self.begun(mark, number)
    }

    #[inline]
    fn begun(&self, mut mark: Arc<Mark>, number: u64) -> Fence {
        // A spare one is not shared; an open one has begun.
        if let Some(spare) = Arc::get_mut(&mut mark) {
            spare.begin(self.stream);
        }
        Fence::new(mark, number)
    }

    /// Leaves the fence of the last announced op, in the same turn. Its event is recorded now, when it is asked for, or
    /// when there are as many ops as have one in common.
    #[inline]
    pub(crate) fn leave(&mut self, fence: Fence, label: &Label, marking: Marking) -> Result<Fence, CudaError> {
        let marking = if self.stream.is_foreign() { Marking::Now } else { marking };
        if self.order.stays_open(&fence, marking) {
            return Ok(fence);
        }
        match self.record_mark(fence.mark()) {
            Ok(_) => Ok(fence),
            Err(error) => {
                // Before the number is taken back: this op may be to blame for a fault, and is named by its number.
                let error = self.stream.context().refused(label, error);
                self.order.retract();
                self.stream.ledger().retract();
                Err(error)
            }
        }
    }

    /// Records the event of the ops that have none yet, if it may be asked for: before a wait, so that a wait for them
    /// is for nothing else, and before foreign code has the stream.
    pub(crate) fn close(&mut self) -> Result<(), CudaError> {
        let Some(mark) = self.order.open() else { return Ok(()) };
        let open = Fence::new(mark, self.stream.ledger().announced());
        self.record_behind(&open)
    }

    /// Spares a wait for the work on the stream the lasting op that comes next.
    pub(crate) fn part(&mut self, ties: &Ties) -> Result<(), CudaError> {
        if self.order.may_join(ties) { Ok(()) } else { self.close() }
    }

    /// Records the event of a fence, if that is not done.
    pub(crate) fn record_behind(&mut self, fence: &Fence) -> Result<(), CudaError> {
        if fence.mark().behind().is_some() {
            return Ok(());
        }
        self.order.asked_for(fence);
        self.record_mark(fence.mark()).map(drop).map_err(|error| self.stream.refused(fence, error))
    }

    /// Records the open mark's event: behind all that was announced.
    fn record_mark(&mut self, mark: &Mark) -> Result<u64, DriverError> {
        let (stream, event) = (self.stream, mark.event);
        // SAFETY: both live, and the event of a mark is recorded once; the turn is used inside of the context.
        unsafe { stream.context().driver().record_event(event, stream.handle()) }?;
        let number = stream.ledger().note_recorded(event);
        mark.is_behind(number);
        self.order.marked();
        Ok(number)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.context.runtime.is_abandoned() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            for block in self.kept.iter().flat_map(KeptBlocks::drain) {
                self.context.free(block, self.handle);
            }
        }
        let spare = self.ledger.get_mut().unwrap_or_else(PoisonError::into_inner).take_spare();
        let events = spare.iter().map(|mark| mark.event).collect();
        // SAFETY: the last handle is gone; events come back when no fence of theirs is held.
        let retired = unsafe { Retired::new(&self.context, self.handle, self.keeper.is_none(), events) };
        self.context.retire(retired);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.device_index()).field("number", &self.number()).finish()
    }
}
