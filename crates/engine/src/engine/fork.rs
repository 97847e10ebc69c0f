//! The fate of engines when the process forks.
//!
//! The forking thread takes every engine's role before, so that the child gets consistent
//! variables, and gives it back in the parent. In the child every engine starts over: without
//! threads, without pending ops. Variables are taken over when they are next used: finished
//! values are as they were, unfinished ones have failed with [`Cause::Forked`](crate::Cause).

use super::{Core, Engine};
use crate::op::queue_names;
use crate::pool::Pool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

static CORES: Mutex<Vec<Weak<Core>>> = Mutex::new(Vec::new());

fn cores() -> MutexGuard<'static, Vec<Weak<Core>>> {
    CORES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn register(core: &Arc<Core>) {
    let mut cores = cores();
    cores.retain(|core| core.strong_count() > 0);
    cores.push(Arc::downgrade(core));
}

/// Engines without handles, but with pending ops.
static ORPHANS: Mutex<Vec<Arc<Core>>> = Mutex::new(Vec::new());

fn orphans() -> MutexGuard<'static, Vec<Arc<Core>>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks after an engine without handles until its ops are over; forgets those without ops.
pub(super) fn adopt_orphan(core: &Arc<Core>) {
    let over: Vec<_> = orphans().extract_if(.., |orphan| orphan.pool().is_over()).collect();
    drop(over); // not under the lock: this may be the last of an engine
    if !core.pool().is_over() {
        orphans().push(Arc::clone(core));
    }
}

/// Handles on the engines that lost their own handles while ops were pending: an exiting process waits for them too.
#[must_use]
pub fn take_orphans() -> Vec<Engine> {
    let orphans = std::mem::take(&mut *orphans());
    orphans.into_iter().map(Core::reclaim).collect()
}

/// The locks held from before a fork to after it.
pub struct Fork {
    cores: Vec<Arc<Core>>,
    registry: MutexGuard<'static, Vec<Weak<Core>>>,
    orphans: MutexGuard<'static, Vec<Arc<Core>>>,
    queues: MutexGuard<'static, Vec<&'static str>>,
}

/// Call before forking; the answer goes to one of the two functions for afterwards.
#[must_use]
pub fn before() -> Fork {
    let (registry, orphans, queues) = (cores(), orphans(), queue_names());
    let cores: Vec<_> = registry.iter().filter_map(Weak::upgrade).collect();
    for core in &cores {
        let mut turn = core.pool().turn();
        turn.catch_up();
        // The role stays taken until after the fork.
        turn.keep();
    }
    Fork { cores, registry, orphans, queues }
}

/// Call in the parent after forking.
pub fn after_in_parent(fork: Fork) {
    let Fork { cores, registry, orphans, queues } = fork;
    drop((registry, orphans, queues)); // what runs at the end of a turn, or dies with an engine, may want them
    for core in cores {
        // SAFETY: before() has taken this role and kept its turn.
        drop(unsafe { core.pool().resume_turn() });
    }
}

/// Call in the child after forking.
///
/// # Safety
///
/// The process was forked after [`before`], and has no other thread yet.
pub unsafe fn after_in_child(fork: Fork) {
    Pool::forget_worker();
    let Fork { cores, registry, orphans, queues } = fork;
    for core in &cores {
        // SAFETY: the caller's promise.
        unsafe { core.start_over() };
    }
    drop((registry, orphans, queues));
    drop(cores);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::TryLockError;

    /// A thread that held one of them would not exist in the child, to let it go.
    #[test]
    fn no_lock_is_anybody_elses_over_a_fork() {
        let fork = before();
        assert!(matches!(CORES.try_lock(), Err(TryLockError::WouldBlock)));
        assert!(matches!(ORPHANS.try_lock(), Err(TryLockError::WouldBlock)));
        after_in_parent(fork);
        assert!(take_orphans().is_empty());
    }
}
