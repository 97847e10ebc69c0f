//! Putting a thread to sleep until another one wakes it, with a token that is never lost.

use super::{Arc, Condvar, Mutex};
#[cfg(loom)]
use loom::sync::MutexGuard;
#[cfg(not(loom))]
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Instant;

#[derive(Debug)]
struct Shared {
    token: Mutex<bool>,
    changed: Condvar,
}

/// The sleeping side. One thread parks on it.
#[derive(Debug)]
pub(crate) struct Parker(Arc<Shared>);

/// The waking side; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Unparker(Arc<Shared>);

impl Parker {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared { token: Mutex::new(false), changed: Condvar::new() }))
    }

    pub(crate) fn unparker(&self) -> Unparker {
        Unparker(Arc::clone(&self.0))
    }

    /// Sleeps until the token is there or `deadline` has passed, and takes the token.
    /// Answers whether there was one.
    pub(crate) fn park(&self, deadline: Option<Instant>) -> bool {
        let mut token = lock(&self.0.token);
        while !*token {
            let Some(deadline) = deadline else {
                token = self.0.changed.wait(token).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return false;
            };
            let result = self.0.changed.wait_timeout(token, left);
            token = result.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::replace(&mut *token, false)
    }
}

impl Unparker {
    /// Leaves the token and wakes the thread if it sleeps.
    pub(crate) fn unpark(&self) {
        *lock(&self.0.token) = true;
        self.0.changed.notify_one();
    }
}

/// No user code runs under this lock, so a poisoned one is as good as any.
fn lock(mutex: &Mutex<bool>) -> MutexGuard<'_, bool> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
