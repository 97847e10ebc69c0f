//! The shared state of a device's streams, buffers and kernels: its primary context, its fault, its
//! figures.

use super::ahead::Ahead;
use super::retired::{Retired, bury, reap};
use super::runtime::Runtime;
use super::spans::Timings;
use super::stream::{Stream, WeakStream};
use crate::driver::{CaptureMode, ContextHandle, Driver, ModuleHandle, PoolHandle, Properties, StreamHandle, relax};
use crate::error::{CudaError, DriverError};
use crate::label::{Label, Subject};
use crate::memory::{Accounts, Block, PinnedPool};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The part of a device's memory that its pool keeps free for reuse: other libraries have pools of their own.
const KEPT: u64 = 8;
/// Ops of a stream that a fault names.
const SUSPECTS: usize = 4;

pub(crate) struct Context {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) index: usize,
    pub(crate) handle: ContextHandle,
    pub(crate) properties: Properties,
    /// Where its buffers' memory comes from.
    pub(crate) pool: PoolHandle,
    /// The fault that made the device unusable.
    fault: OnceLock<CudaError>,
    pub(crate) memory: Accounts,
    pub(crate) pinned: PinnedPool,
    pub(crate) ahead: Ahead,
    pub(crate) timings: Timings,
    modules: Mutex<Vec<ModuleHandle>>,
    streams: Mutex<Vec<WeakStream>>,
    retired: Mutex<Vec<Retired>>,
    /// Devices that were let reach this one's memory, if they can.
    peers: Mutex<Vec<usize>>,
    /// Frees that could not be issued on the spot.
    deferred: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

/// The calling thread, with this context as its current one; goes back to the one before.
pub(crate) struct Entered<'c> {
    driver: &'c dyn Driver,
    handle: ContextHandle,
    before: Option<ContextHandle>,
    mode: Option<CaptureMode>,
    /// A context is current on one thread.
    _thread: PhantomData<*const ()>,
}

impl Context {
    pub(crate) fn new(runtime: &Arc<Runtime>, index: usize) -> Result<Self, CudaError> {
        let driver = &runtime.driver;
        let refused = |error| CudaError::Refused { op: Label::bare(&format!("setting up cuda:{index}")).into(), error };
        let properties = driver.properties(index).map_err(refused)?;
        if !properties.has_pools {
            let reason = format!("cuda:{index} ({}) does not allocate in stream order", properties.name);
            return Err(CudaError::Unavailable { reason });
        }
        let handle = driver.retain_context(index).map_err(refused)?;
        // SAFETY: the context was retained above; inside of it the device is there.
        let pool = unsafe { Entered::new(&**driver, handle) }
            .and_then(|_entered| unsafe { driver.create_pool(index, properties.memory / KEPT) })
            .map_err(|error| {
                // SAFETY: retained above, and nothing came of it.
                let _ = unsafe { driver.release_context(index) };
                refused(error)
            })?;
        let (runtime, fault) = (Arc::clone(runtime), OnceLock::new());
        let (memory, pinned, ahead, modules) = Default::default();
        let (timings, streams, retired, peers, deferred) = Default::default();
        Ok(Self {
            runtime,
            index,
            handle,
            properties,
            pool,
            fault,
            memory,
            pinned,
            ahead,
            timings,
            modules,
            streams,
            retired,
            peers,
            deferred,
        })
    }

    #[inline]
    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.runtime.driver
    }

    pub(crate) fn label(&self) -> String {
        format!("cuda:{}", self.index)
    }

    /// Makes this the calling thread's context. Every call of the driver that is not for the host alone comes through
    /// here, so a forked child never gets to the driver.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_>, CudaError> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        self.enter_to_leave()
    }

    /// The same on a device that may have failed: to let go of objects that were made there.
    pub(crate) fn enter_to_leave(&self) -> Result<Entered<'_>, CudaError> {
        if self.runtime.is_abandoned() {
            return Err(CudaError::Forked);
        }
        // SAFETY: it is retained as long as `self` lives.
        unsafe { Entered::new(self.driver(), self.handle) }.map_err(|error| self.refused("entering the context", error))
    }

    /// The answer to a refused call.
    pub(crate) fn refused(&self, op: &(impl Subject + ?Sized), error: DriverError) -> CudaError {
        if error.is_fault() {
            return self.note_fault(None, error).clone();
        }
        self.fault.get().cloned().unwrap_or_else(|| CudaError::Refused { op: op.label().into(), error })
    }

    /// Frees a block; the stream is behind all its users. Inside of the context.
    pub(crate) fn free(&self, block: Block, stream: StreamHandle) {
        // SAFETY: the block's owner owes its free; the stream is behind all its users.
        if unsafe { self.driver().free(block.address, stream) }.is_err() {
            self.memory.lost(block.bytes);
        }
    }

    /// Does work that could not be done on the spot in a while, on the poller's thread; before, if memory is wanted.
    pub(crate) fn defer(self: &Arc<Self>, while_: Duration, work: impl FnOnce() + Send + 'static) {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
        let context = Arc::clone(self);
        self.runtime.poller.in_a(while_, move || context.run_deferred());
    }

    /// Does it now.
    pub(crate) fn run_deferred(&self) {
        let deferred = std::mem::take(&mut *self.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        deferred.into_iter().for_each(|work| work());
    }

    /// Gives the unused pinned blocks back.
    pub(crate) fn free_pinned(&self) {
        self.ahead.reset();
        for start in self.pinned.take_kept() {
            // SAFETY: it was kept for reuse, so it is unused.
            let _ = unsafe { self.driver().free_pinned(start) };
        }
    }

    /// Makes a stream known.
    pub(crate) fn register(&self, stream: &Stream) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(WeakStream::is_alive);
        streams.push(WeakStream::new(stream));
    }

    /// The streams that there are.
    pub(crate) fn streams(&self) -> Vec<Stream> {
        // Not under the lock are they let go of: one of them may be the last handle by then.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(WeakStream::upgrade).collect()
    }

    /// Takes the remains of a stream.
    pub(crate) fn retire(&self, retired: Retired) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(retired);
    }

    /// Destroys the remains of ended streams.
    pub(crate) fn reap(&self) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        *retired = reap(self, std::mem::take(&mut *retired));
    }

    /// Unloads a module when the context goes.
    pub(crate) fn keep_module(&self, module: ModuleHandle) {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).push(module);
    }

    /// Lets another device reach this one's memory, so that copies between them need not go through the host.
    pub(crate) fn share_with(&self, peer: &Self) -> Result<(), CudaError> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if !peers.contains(&peer.index) {
            let _entered = self.enter()?;
            // SAFETY: the context is current.
            unsafe { self.driver().share_with_peer(self.pool, self.index, peer.index) }
                .map_err(|error| self.refused(format!("sharing memory with {}", peer.label()).as_str(), error))?;
            peers.push(peer.index);
        }
        Ok(())
    }

    pub(crate) fn fault(&self) -> Option<&CudaError> {
        self.fault.get()
    }

    /// Notes the fault that made the device unusable, if none is noted yet, and that a fence of this stream found it.
    /// Answers the noted fault. The caller does not hold a stream's books.
    pub(crate) fn note_fault(&self, found_on: Option<&Stream>, error: DriverError) -> &CudaError {
        self.fault.get_or_init(|| {
            let found = |stream: &Stream| found_on.is_some_and(|found_on| found_on.is(stream));
            let mut streams = self.streams();
            streams.sort_by_key(|stream| !found(stream));
            let mut suspects =
                streams.iter().map(|stream| stream.first_unfinished(SUSPECTS)).filter(|(ops, _)| !ops.is_empty());
            let (mut behind, more) = suspects.next().unwrap_or_else(|| (vec![Label::bare("an op")], 0));
            let beside = suspects.map(|(mut ops, _)| ops.swap_remove(0)).collect();
            let op = behind.remove(0);
            CudaError::Fault { op: op.into(), behind: behind.into(), more, beside, device: self.label(), error }
        })
    }
}

impl<'c> Entered<'c> {
    /// # Safety
    ///
    /// The context is retained as long as this lives.
    #[inline]
    unsafe fn new(driver: &'c dyn Driver, handle: ContextHandle) -> Result<Self, DriverError> {
        let before = driver.current_context()?;
        if before != Some(handle) {
            // SAFETY: the caller's promise.
            unsafe { driver.set_current_context(handle) }?;
        }
        let mode = relax(driver);
        Ok(Self { driver, handle, before, mode, _thread: PhantomData })
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(mode) = self.mode {
            // The setting from before cannot be wrong.
            let _ = self.driver.exchange_capture_mode(mode);
        }
        // A thread that had none keeps this one, as it would with CUDA's runtime.
        if let Some(before) = self.before.filter(|before| *before != self.handle) {
            // SAFETY: it was current when this one was entered. Should it be gone, it was not ours to keep.
            let _ = unsafe { self.driver.set_current_context(before) };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let retired = std::mem::take(self.retired.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut timings = std::mem::take(&mut self.timings);
        let modules = std::mem::take(self.modules.get_mut().unwrap_or_else(PoisonError::into_inner));
        let Ok(entered) = self.enter_to_leave() else { return };
        bury(self, retired);
        timings.bury(self.driver());
        self.free_pinned();
        for module in modules {
            // SAFETY: all streams have ended, so none of its kernels runs.
            let _ = unsafe { self.driver().unload_module(module) };
        }
        // SAFETY: the frees of its blocks are issued: the owner of one has the context.
        let _ = unsafe { self.driver().destroy_pool(self.pool) };
        drop(entered);
        // SAFETY: retained in new(); its users are gone, or they would hold `self`.
        let _ = unsafe { self.driver().release_context(self.index) };
    }
}
