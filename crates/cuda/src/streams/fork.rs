//! Forks. CUDA does not live on in the child: the objects of this crate are left alone there, and say so when used.

use super::runtime::Runtime;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

static RUNTIMES: Mutex<Vec<Weak<Runtime>>> = Mutex::new(Vec::new());
static INHERITED: OnceLock<()> = OnceLock::new();

fn runtimes() -> MutexGuard<'static, Vec<Weak<Runtime>>> {
    RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn register(runtime: &Arc<Runtime>) {
    let mut runtimes = runtimes();
    runtimes.retain(|runtime| runtime.strong_count() > 0);
    runtimes.push(Arc::downgrade(runtime));
}

/// Whether this process is the child of one that had opened CUDA.
pub(crate) fn is_inherited() -> bool {
    INHERITED.get().is_some()
}

/// The locks held from before a fork to after it. Dropping it, in the parent, ends that.
pub struct Fork {
    runtimes: MutexGuard<'static, Vec<Weak<Runtime>>>,
}

/// Call before forking.
#[must_use]
pub fn before() -> Fork {
    Fork { runtimes: runtimes() }
}

/// Call in the child after forking.
pub fn after_in_child(fork: Fork) {
    let Fork { runtimes } = fork;
    for runtime in runtimes.iter().filter_map(Weak::upgrade) {
        runtime.abandon();
        let _ = INHERITED.set(());
        // Its destructor would wait for a thread that stayed in the parent.
        std::mem::forget(runtime);
    }
}
