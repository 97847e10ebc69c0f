//! What becomes of engines when the process forks.
//!
//! The forking thread takes every engine's role before, so that the child gets consistent
//! variables, and gives it back in the parent. In the child every engine starts over: without
//! threads, without pending ops. Variables are taken over when they are next used: finished
//! values are as they were, unfinished ones have failed with [`Cause::Forked`](crate::Cause).

use super::Core;
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

/// What is held from before a fork to after it.
pub struct Fork {
    cores: Vec<Arc<Core>>,
    registry: MutexGuard<'static, Vec<Weak<Core>>>,
}

/// Call before forking; the answer goes to one of the two functions for afterwards.
#[must_use]
pub fn before() -> Fork {
    let registry = cores();
    let cores: Vec<_> = registry.iter().filter_map(Weak::upgrade).collect();
    for core in &cores {
        let mut turn = core.pool().registrar.turn();
        turn.catch_up();
        // The role stays taken until after the fork.
        std::mem::forget(turn);
    }
    Fork { cores, registry }
}

/// Call in the parent after forking.
pub fn after_in_parent(fork: Fork) {
    let Fork { cores, registry } = fork;
    drop(registry);
    for core in cores {
        // SAFETY: before() has taken this role and forgotten its turn.
        drop(unsafe { core.pool().registrar.resume_turn() });
        core.pool().turned();
    }
}

/// Call in the child after forking.
///
/// # Safety
///
/// The process was forked after [`before`], and has no other thread yet.
pub unsafe fn after_in_child(fork: Fork) {
    Pool::forget_worker();
    for core in &fork.cores {
        // SAFETY: the caller's promise.
        unsafe { core.start_over() };
    }
    drop(fork);
}
