//! Streams: what comes first on one runs first; between two, only a wait for a fence makes an order.

use crate::context::Context;
use crate::driver::StreamHandle;
use crate::error::{CudaError, DriverError};
use crate::fence::{Fence, FenceCell};
use crate::label::Label;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Spare events of a stream before one is looked at instead of making another.
const SPARE: usize = 64;
/// Labels of ops that may be unfinished, for messages.
const LABELS: usize = 1024;
/// How long the end of a stream waits for what is on it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who may issue: the holder of its lock.
#[derive(Default)]
struct Order {
    /// Fences recorded.
    recorded: u64,
    /// For each stream, by number, the newest of its fences that this one is behind.
    behind: Vec<u64>,
}

/// What is known of the fences recorded. Its lock is held for a few moves of memory, and for the query of an event.
#[derive(Default)]
struct Ledger {
    /// The newest fence known to be done, and so all before it.
    done: u64,
    /// Labels of the last fences; the last one is that of fence `recorded`.
    labels: VecDeque<Label>,
    recorded: u64,
    /// Cells that nobody holds, in the order in which they were given back.
    spare: VecDeque<Arc<FenceCell>>,
}

struct Inner {
    context: Arc<Context>,
    handle: StreamHandle,
    number: usize,
    /// Keeps a stream that somebody else made.
    keeper: Option<Box<dyn Any + Send + Sync>>,
    order: Mutex<Order>,
    ledger: Mutex<Ledger>,
}

/// A handle on a stream; clones share it.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

/// The right to issue on a stream: between two turns nobody gets in.
pub(crate) struct Turn<'s> {
    stream: &'s Stream,
    order: MutexGuard<'s, Order>,
}

impl Stream {
    /// Makes a stream.
    pub(crate) fn new(context: &Arc<Context>, priority: i32) -> Result<Self, CudaError> {
        let _entered = context.enter()?;
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
        let (order, ledger) = Default::default();
        Self(Arc::new(Inner { context: Arc::clone(context), handle, number, keeper, order, ledger }))
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
        Turn { stream: self, order: self.0.order.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// The right to issue, if nobody has it.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        let order = match self.0.order.try_lock() {
            Ok(order) => order,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn { stream: self, order })
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a cell that nobody holds any more.
    pub(crate) fn recycle(&self, cell: Arc<FenceCell>) {
        if !self.0.context.runtime.is_abandoned() {
            self.ledger().spare.push_back(cell);
        }
    }

    /// Whether a fence of this stream has happened.
    pub(crate) fn query(&self, cell: &FenceCell) -> Result<bool, CudaError> {
        let context = &self.0.context;
        if context.runtime.is_abandoned() {
            return Err(CudaError::Forked);
        }
        if let Some(fault) = context.fault() {
            let done = self.ledger().done;
            return if cell.number <= done { Ok(true) } else { Err(fault.clone()) };
        }
        // SAFETY: the event lives as long as its cell.
        match unsafe { context.driver().query_event(cell.event) } {
            Ok(happened) => {
                if happened {
                    let mut ledger = self.ledger();
                    ledger.done = ledger.done.max(cell.number);
                }
                Ok(happened)
            }
            Err(error) => Err(context.note_fault(|| self.fault(error)).clone()),
        }
    }

    /// The fault that a query has brought to light, put down to the first op that is not known to have ended.
    fn fault(&self, error: DriverError) -> CudaError {
        let ledger = self.ledger();
        let unfinished = usize::try_from(ledger.recorded - ledger.done).unwrap_or(usize::MAX).min(ledger.labels.len());
        let first = ledger.labels.iter().rev().take(unfinished).next_back();
        let op = first.map_or_else(|| "an op".to_owned(), ToString::to_string);
        CudaError::Fault { op, behind: unfinished > 1, device: self.0.context.label(), error }
    }

    /// An event that nothing waits for: a spare one that has happened, or a new one.
    fn take_cell(&self, label: &Label) -> Result<Arc<FenceCell>, DriverError> {
        let driver = self.0.context.driver();
        let mut ledger = self.ledger();
        if ledger.spare.len() >= SPARE && ledger.spare[0].number > ledger.done {
            // One look in the middle tells for those before it, so that most fences cost none.
            let middle = &ledger.spare[SPARE / 2];
            let number = middle.number;
            // SAFETY: the cell has its event.
            if unsafe { driver.query_event(middle.event) }? {
                ledger.done = ledger.done.max(number);
            }
        }
        if ledger.spare.front().is_some_and(|cell| cell.number <= ledger.done)
            && let Some(mut cell) = ledger.spare.pop_front()
        {
            drop(ledger);
            if let Some(spare) = Arc::get_mut(&mut cell) {
                spare.label = label.clone();
                spare.outcome = OnceLock::new();
                return Ok(cell);
            }
        } else {
            drop(ledger);
        }
        // SAFETY: the context is current: cells are reserved inside of it.
        let event = unsafe { driver.create_event(false) }?;
        Ok(Arc::new(FenceCell { event, number: 0, label: label.clone(), outcome: OnceLock::new() }))
    }

    /// A cell for the fence of what is about to be issued. Inside of the context.
    #[inline]
    pub(crate) fn reserve(&self, label: &Label) -> Result<Arc<FenceCell>, CudaError> {
        self.take_cell(label).map_err(|error| self.0.context.refused(label, error))
    }

    /// A fence behind all that is on the stream now.
    pub fn fence(&self, label: &Label) -> Result<Fence, CudaError> {
        let _entered = self.0.context.enter()?;
        self.turn().record(label)
    }
}

impl Turn<'_> {
    /// Puts what comes next behind a fence, unless it is there already.
    #[inline]
    pub(crate) fn wait_for(&mut self, fence: &Fence) -> Result<(), CudaError> {
        let (own, other, cell) = (self.stream, fence.stream(), fence.cell());
        let at = other.number();
        if own.is(other) || self.order.behind.get(at).is_some_and(|behind| *behind >= cell.number) {
            return Ok(());
        }
        match fence.known() {
            None => {}
            Some(Ok(())) => return Ok(()),
            Some(Err(fault)) => return Err(fault.clone()),
        }
        let context = own.context();
        // SAFETY: both live; the turn is used inside of the context.
        unsafe { context.driver().wait_event(own.handle(), cell.event) }
            .map_err(|error| context.refused(&cell.label, error))?;
        if self.order.behind.len() <= at {
            self.order.behind.resize(at + 1, 0);
        }
        self.order.behind[at] = cell.number;
        Ok(())
    }

    /// Makes a fence behind all that is on the stream now.
    pub(crate) fn record(&mut self, label: &Label) -> Result<Fence, CudaError> {
        let reserved = self.stream.reserve(label)?;
        self.record_reserved(reserved)
    }

    /// The same with a cell that was reserved before: what was issued meanwhile must not end up without a fence.
    #[inline]
    pub(crate) fn record_reserved(&mut self, mut cell: Arc<FenceCell>) -> Result<Fence, CudaError> {
        let stream = self.stream;
        let context = stream.context();
        // SAFETY: both live, nobody else has the event; the turn is used inside of the context.
        if let Err(error) = unsafe { context.driver().record_event(cell.event, stream.handle()) } {
            let refused = context.refused(&cell.label, error);
            stream.recycle(cell);
            return Err(refused);
        }
        self.order.recorded += 1;
        if let Some(cell) = Arc::get_mut(&mut cell) {
            cell.number = self.order.recorded;
        }
        let mut ledger = stream.ledger();
        ledger.recorded = self.order.recorded;
        if ledger.labels.len() == LABELS {
            ledger.labels.pop_front();
        }
        ledger.labels.push_back(cell.label.clone());
        drop(ledger);
        Ok(Fence::new(stream.clone(), cell))
    }
}

impl Inner {
    /// Waits a while until nothing is on the stream.
    fn drain(&mut self) {
        let driver = self.context.driver();
        let Ok(_entered) = self.context.enter() else { return };
        // SAFETY: the context is current, the stream lives.
        let Ok(event) = (unsafe { driver.create_event(false) }) else { return };
        // SAFETY: as above.
        if unsafe { driver.record_event(event, self.handle) }.is_ok() {
            let deadline = Instant::now() + PATIENCE;
            // SAFETY: the event lives.
            while matches!(unsafe { driver.query_event(event) }, Ok(false)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        // SAFETY: nobody else knows it.
        let _ = unsafe { driver.destroy_event(event) };
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.context.runtime.is_abandoned() {
            return;
        }
        self.drain();
        let driver = self.context.driver();
        let spare = std::mem::take(&mut self.ledger.get_mut().unwrap_or_else(PoisonError::into_inner).spare);
        for cell in spare {
            // SAFETY: cells come back when nobody holds them, and each has its event.
            let _ = unsafe { driver.destroy_event(cell.event) };
        }
        if self.keeper.is_none() {
            // SAFETY: made in Stream::new(); the last handle is gone.
            let _ = unsafe { driver.destroy_stream(self.handle) };
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.device_index()).field("number", &self.number()).finish()
    }
}
