//! The shared state of an engine's handles, variables and threads.

use super::{Settings, Variable, fork};
use crate::EngineError;
use crate::pool::{Policy, Pool};
use crate::sync::{AtomicU32, AtomicU64, CachePadded, Ordering};
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bits of `Core::state`.
const CLOSED: u32 = 1;
const WATCHED: u32 = 2;

/// The trace in a state; 0 is none.
#[inline]
pub(super) const fn trace_in(state: u32) -> u32 {
    state >> 2
}

/// Numbers engines, so that messages can tell them apart.
static ENGINES: std::sync::OnceLock<AtomicU64> = std::sync::OnceLock::new();

pub(crate) struct Core {
    pub(super) settings: Settings,
    pub(super) workers: usize,
    pub(super) label: String,
    /// Replaced only in a forked child, while it has one thread.
    pool: UnsafeCell<Arc<Pool>>,
    /// How often the process was forked since.
    generation: AtomicU32,
    /// Whether it is closed ([`CLOSED`]) or watched ([`WATCHED`]), and above these bits the number of the trace, if there is one.
    state: AtomicU32,
    /// Variables made.
    pub(super) variables: AtomicU64,
    /// Settled tickets as a pusher last saw them; spares pushers the registrar's cache line.
    pub(super) settled_seen: CachePadded<AtomicU64>,
    /// Tickets at which a pusher looks next whether it is too far ahead.
    pub(super) give_way_at: AtomicU64,
}

// SAFETY: `pool` is replaced only by fork::after_in_child(): its caller vouches that no other thread exists; everything
// else is Sync.
unsafe impl Sync for Core {}
// SAFETY: as above.
unsafe impl Send for Core {}

impl Core {
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        // SAFETY: see `pool`.
        unsafe { &*self.pool.get() }
    }

    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        // ORDERING: changed only while there is one thread.
        self.generation.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.state() & CLOSED != 0
    }

    /// 0 for an open engine without a trace: a push asks both in one.
    #[inline]
    pub(super) fn state(&self) -> u32 {
        // ORDERING: SeqCst: a pusher asks after it has taken its ticket; pairs with set_closed() and trace().
        self.state.load(Ordering::SeqCst)
    }

    /// Says that ops are traced from now on; with 0, that they are not. A push that saw it otherwise has its ticket.
    pub(super) fn set_trace(&self, trace: u32) {
        // ORDERING: SeqCst: the end of a trace looks at the tickets next; pairs with state().
        self.state.fetch_and(CLOSED | WATCHED, Ordering::SeqCst);
        // ORDERING: as above.
        self.state.fetch_or(trace << 2, Ordering::SeqCst);
        crate::sync::full_fence_after_rmw();
    }

    /// Says that ops are not traced any more, unless another trace is told by now.
    #[cold]
    pub(super) fn leave_trace(&self, trace: u32) {
        let mut state = self.state();
        while trace_in(state) == trace {
            let without = state & (CLOSED | WATCHED);
            // ORDERING: SeqCst, as in set_trace().
            match self.state.compare_exchange(state, without, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
    }

    /// Whether pushes are observed now: by a trace, or by checks.
    #[inline]
    pub(super) fn is_observed(&self) -> bool {
        self.state() & !CLOSED != 0
    }

    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.state() & WATCHED != 0
    }

    pub(super) fn set_watched(&self, watched: bool) {
        if watched {
            // ORDERING: SeqCst: a push meanwhile is checked or not; pairs with state().
            self.state.fetch_or(WATCHED, Ordering::SeqCst);
        } else {
            // ORDERING: as above.
            self.state.fetch_and(!WATCHED, Ordering::SeqCst);
        }
    }

    /// Refuses pushes from now on. A push that was not refused has its ticket by now.
    pub(super) fn set_closed(&self) {
        // ORDERING: SeqCst: the closer looks at the tickets next; pairs with is_closed().
        self.state.fetch_or(CLOSED, Ordering::SeqCst);
        crate::sync::full_fence_after_rmw();
    }

    /// Has settled what workers keep, for a thread that asks what has ended. It may ask again and again, so the role need not be had
    /// at once.
    pub(super) fn settle_kept(&self) {
        let pool = self.pool();
        if pool.registrar.has_kept()
            && let Some(mut turn) = pool.try_turn()
        {
            turn.settle_kept();
        }
    }

    fn new_pool(&self) -> Arc<Pool> {
        make_pool(&self.settings, self.workers, &self.label)
    }

    /// Starts over with a fresh pool.
    ///
    /// # Safety
    ///
    /// The process was just forked and has no other thread.
    pub(super) unsafe fn start_over(&self) {
        let fresh = self.new_pool();
        // SAFETY: the caller's promise. The old pool is leaked: its threads stayed in the parent,
        // and so its queues must not be walked by anybody.
        let old = unsafe { std::mem::replace(&mut *self.pool.get(), fresh) };
        old.bury();
        std::mem::forget(old);
        self.set_trace(0); // that one stays in the parent
        self.set_watched(false);
        // ORDERING: there is one thread.
        self.generation.fetch_add(1, Ordering::Relaxed);
        // ORDERING: as above.
        self.settled_seen.store(0, Ordering::Relaxed);
        // ORDERING: as above.
        self.give_way_at.store(0, Ordering::Relaxed);
    }

    pub(super) fn closed_error(&self) -> EngineError {
        EngineError::Closed { engine: self.label.clone() }
    }
}

fn make_pool(settings: &Settings, workers: usize, label: &str) -> Arc<Pool> {
    Arc::new(Pool::new(settings.policy, workers, label.to_owned(), Arc::clone(&settings.host)))
}

/// Stops the workers when the last handle goes; pushed ops are still run.
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.set_closed();
        let pool = self.0.pool();
        pool.stop();
        // Without workers, the remains of dropped variables are settled here. Over a fork this thread has the role
        // already.
        if !pool.is_over()
            && let Some(mut turn) = pool.try_turn()
        {
            turn.catch_up();
        }
        fork::adopt_orphan(&self.0);
    }
}

impl Core {
    /// A new handle on an engine without handles.
    pub(super) fn reclaim(self: Arc<Self>) -> Engine {
        Engine { owner: Arc::new(Owner(Arc::clone(&self))), core: self }
    }
}

/// A dependency engine: a handle; clones share the engine.
///
/// When the last handle is dropped, pushed ops are still run and then the workers end. [`close`](Self::close) waits for
/// that, and tells of failures.
#[derive(Clone)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
    owner: Arc<Owner>,
}

/// A handle that does not keep the engine's workers alive.
#[derive(Clone)]
pub struct WeakEngine(Weak<Owner>);

impl WeakEngine {
    /// A full handle, if there still is one elsewhere.
    #[must_use]
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(|owner| Engine { core: Arc::clone(&owner.0), owner })
    }
}

impl Engine {
    /// Makes an engine. No thread is started before the first push.
    pub fn new(settings: Settings) -> Result<Self, EngineError> {
        settings.check()?;
        let workers = settings.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
        // ORDERING: a number of its own for each engine.
        let number = ENGINES.get_or_init(|| AtomicU64::new(0)).fetch_add(1, Ordering::Relaxed);
        let label = settings.name.clone().unwrap_or_else(|| format!("weft-{number}"));
        let core = Arc::new(Core {
            pool: UnsafeCell::new(make_pool(&settings, workers, &label)),
            settings,
            workers,
            label,
            generation: AtomicU32::new(0),
            state: AtomicU32::new(0),
            variables: AtomicU64::new(0),
            settled_seen: CachePadded(AtomicU64::new(0)),
            give_way_at: AtomicU64::new(0),
        });
        fork::register(&core);
        Ok(Self { owner: Arc::new(Owner(Arc::clone(&core))), core })
    }

    /// A handle that does not keep the workers alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.owner))
    }

    /// Makes a variable, at version 0.
    #[must_use]
    pub fn new_variable(&self, name: Option<&str>) -> Variable {
        Variable::new(&self.core, name, 0)
    }

    /// Makes a variable that stands for so many bytes, which traces show.
    #[must_use]
    pub fn new_variable_of(&self, bytes: u64) -> Variable {
        Variable::new(&self.core, None, bytes)
    }

    /// The name it was given.
    #[must_use]
    pub fn given_name(&self) -> Option<&str> {
        self.core.settings.name.as_deref()
    }

    /// The engine's name, as in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.label
    }

    /// The policy it was made with.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.core.settings.policy
    }

    /// Workers it was made with, or of each compute lane; as many as its policy has of them, which may be none.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.policy().workers(self.core.workers)
    }

    /// How many ops may be pending.
    #[must_use]
    pub fn max_pending_ops(&self) -> u64 {
        self.core.settings.max_pending_ops
    }

    /// How many bytes pending ops may hold; `u64::MAX` where there is no limit.
    #[must_use]
    pub fn max_pending_bytes(&self) -> u64 {
        self.core.settings.max_pending_bytes
    }

    /// The effect of a push over a limit.
    #[must_use]
    pub fn on_limit(&self) -> super::OnLimit {
        self.core.settings.on_limit
    }

    /// Whether ops are kept back until a thread waits, so that the order of ready ones can be drawn.
    #[must_use]
    #[inline]
    pub fn keeps_ops_back(&self) -> bool {
        self.core.pool().registrar.draws
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Whether the variable was made by this engine.
    #[must_use]
    #[inline]
    pub fn owns(&self, variable: &Variable) -> bool {
        Arc::ptr_eq(&self.core, variable.core())
    }

    /// Whether both are handles on one engine.
    #[must_use]
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// Labels of the ops that run now.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        self.core.pool().running()
    }

    /// Whether a worker has waited to enter the host for longer than `patience`.
    #[must_use]
    #[inline]
    pub fn is_host_overdue(&self, patience: Duration) -> bool {
        self.core.pool().is_gate_overdue(patience)
    }

    /// Gives such a worker time to enter. The caller has left the host.
    pub fn let_hosted_in(&self, patience: Duration) {
        self.core.pool().let_hosted_in(patience);
    }

    /// Whether the calling thread runs an op of this engine.
    #[must_use]
    pub fn is_inside_op(&self) -> bool {
        crate::op::current(self.core.pool().address()).is_some()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("name", &self.core.label)
            .field("policy", &self.policy())
            .field("workers", &self.workers())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
