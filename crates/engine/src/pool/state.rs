//! The pool: lanes, the registrar they serve, and the threads; from its beginning to its end.

use super::host::Host;
use super::lane::Lane;
use super::policy::{Placement, Policy};
use super::vigil::Vigil;
use crate::op::{Deferred, InOrder};
use crate::sched::{LANES, Registrar};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, thread_cell};
use crate::trace::Recorder;
use std::cell::Cell;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

pub(crate) struct Pool {
    pub(crate) registrar: Registrar,
    pub(crate) host: Arc<dyn Host>,
    pub(super) placement: Box<dyn Placement>,
    pub(super) lanes: Box<[OnceLock<Lane>]>,
    /// Lanes in use are those below this number.
    pub(super) lanes_end: CachePadded<AtomicUsize>,
    pub(super) workers: usize,
    pub(super) name: String,
    /// A thread waits to enter the host: no other should.
    pub(super) gate: CachePadded<AtomicBool>,
    /// When it was shut, in microseconds after `start`.
    pub(super) gate_shut_at: AtomicU64,
    pub(super) start: Instant,
    stopping: AtomicBool,
    /// The process was forked and this pool is its parent's.
    dead: AtomicBool,
    /// Ops that did not start are to fail instead.
    pub(super) cancelling: AtomicBool,
    /// How many of these there are: a trace, a cancellation. With any, runs are looked at.
    pub(super) watched: AtomicU32,
    /// The trace; 0 is none.
    pub(super) trace: AtomicU32,
    pub(super) recorder: Mutex<Option<Arc<Recorder>>>,
    /// Ops with their completion tokens out.
    pub(super) deferred: Deferred,
    /// Waits that sleep, and whether anything moves meanwhile.
    pub(crate) vigil: Mutex<Vigil>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

thread_cell! {
    /// Pool (by address) and lane of this thread, a worker.
    static WORKER: (*const Pool, u16) = (ptr::null(), 0);
}

impl Pool {
    pub(crate) fn new(policy: Policy, workers: usize, name: String, host: Arc<dyn Host>) -> Self {
        let placement = policy.placement();
        Self {
            registrar: Registrar::new(|lane| placement.order(lane), placement.workers(0, workers)),
            host,
            placement,
            lanes: (0..LANES).map(|_| OnceLock::new()).collect(),
            lanes_end: CachePadded(AtomicUsize::new(0)),
            workers,
            name,
            gate: CachePadded(AtomicBool::new(false)),
            gate_shut_at: AtomicU64::new(0),
            start: Instant::now(),
            stopping: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            cancelling: AtomicBool::new(false),
            watched: AtomicU32::new(0),
            trace: AtomicU32::new(0),
            recorder: Mutex::new(None),
            deferred: Deferred::new(),
            vigil: Mutex::new(Vigil::new()),
            threads: Mutex::new(Vec::new()),
        }
    }

    #[inline]
    pub(crate) fn placement(&self) -> &dyn Placement {
        &*self.placement
    }

    #[inline]
    pub(super) fn lane(&self, number: u16) -> &Lane {
        self.lanes[usize::from(number)].get_or_init(|| {
            let order = self.placement.order(number);
            let lane = Lane::new(number, order, self.placement.workers(number, self.workers));
            let end = usize::from(number) + 1;
            // ORDERING: pairs with lanes(); lanes are made by pushes, before their ops are seen. SeqCst: with has_other_lanes().
            while self.lanes_end.load(Ordering::Acquire) < end {
                let now = self.lanes_end.load(Ordering::Acquire);
                // ORDERING: as above.
                let _ = self.lanes_end.compare_exchange(now, now.max(end), Ordering::SeqCst, Ordering::Acquire);
            }
            lane
        })
    }

    /// The lane of a queue in the order of the pushes.
    pub(crate) fn lane_of_queue(&self, queue: InOrder) -> u16 {
        let number = self.placement.lane_in_order(queue);
        self.lane(number).serve(queue.is_lent());
        number
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        // ORDERING: pairs with lane().
        let end = self.lanes_end.load(Ordering::Acquire);
        self.lanes[..end].iter().filter_map(OnceLock::get)
    }

    /// Whether there are other lanes than the first one.
    #[inline]
    pub(super) fn has_other_lanes(&self) -> bool {
        // ORDERING: SeqCst: the look of a worker that keeps an op; pairs with lane(): the worker of a new lane looks at what is
        // kept before it sleeps.
        self.lanes_end.load(Ordering::SeqCst) > 1
    }

    /// The number of this engine for `op::current`.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    pub(super) fn is_stopping(&self) -> bool {
        // ORDERING: SeqCst: a worker asks before it sleeps; pairs with stop().
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether the pool is stopping and nothing is left to be done.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopping() && self.registrar.pending() == 0
    }

    /// Tells the workers to end when they have nothing to do.
    pub(crate) fn stop(&self) {
        // ORDERING: SeqCst: pairs with is_stopping(), asked after a sleep was announced.
        self.stopping.store(true, Ordering::SeqCst);
        for seat in self.lanes().flat_map(Lane::seats) {
            seat.wake();
        }
    }

    /// Waits for the worker threads to end. Not from one of them.
    pub(crate) fn join(&self) {
        loop {
            let threads = std::mem::take(&mut *self.threads());
            if threads.is_empty() {
                return;
            }
            for thread in threads {
                // A worker's panic was a payload's and is its op's failure.
                let _ = thread.join();
            }
        }
    }

    pub(super) fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves this pool to the parent process: its threads, and its role, are not here.
    pub(crate) fn bury(&self) {
        // ORDERING: set while there is one thread.
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_dead(&self) -> bool {
        // ORDERING: as in bury().
        self.dead.load(Ordering::Relaxed)
    }
}

impl Pool {
    /// Makes the calling thread a worker of this lane, while `work` lasts.
    pub(super) fn as_worker(self: &Arc<Self>, lane: u16, work: impl FnOnce()) {
        WORKER.with(|worker| worker.set((Arc::as_ptr(self), lane)));
        work();
        Self::forget_worker();
    }

    /// The pool and the lane of the calling thread, if it is a worker.
    pub(super) fn of_worker() -> Option<(Arc<Self>, u16)> {
        let (pool, lane) = WORKER.with(Cell::get);
        if pool.is_null() {
            return None;
        }
        // SAFETY: the pointer is that of an Arc which the worker thread holds until it ends.
        let pool = unsafe {
            Arc::increment_strong_count(pool);
            Arc::from_raw(pool)
        };
        Some((pool, lane))
    }

    /// The lane of the calling thread, if it is a worker.
    pub(crate) fn lane_of_worker(&self) -> Option<u16> {
        let (pool, lane) = WORKER.with(Cell::get);
        (pool == ptr::from_ref(self)).then_some(lane)
    }

    /// Whether the calling thread is one of this pool's workers.
    pub(crate) fn is_worker(&self) -> bool {
        WORKER.with(Cell::get).0 == ptr::from_ref(self)
    }

    /// Makes the calling thread, the only one of a forked child, a worker no more.
    pub(crate) fn forget_worker() {
        WORKER.with(|worker| worker.set((ptr::null(), 0)));
    }
}
