//! Ends the process when a test hangs: a deadlock is what these tests look for, and it must not
//! look like a slow machine.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Aborts the process with a message unless it is dropped, or fed, within the limit.
pub(crate) struct Watchdog(Arc<Shared>);

struct Shared {
    /// When it barks and what it says; nothing when the test is over.
    deadline: Mutex<Option<(Instant, String)>>,
    over: Condvar,
}

pub(crate) const LIMIT: Duration = Duration::from_secs(240);

impl Watchdog {
    /// Watches the test of this name.
    pub(crate) fn new(test: &str) -> Self {
        let deadline = Mutex::new(Some((Instant::now() + LIMIT, test.to_owned())));
        let shared = Arc::new(Shared { deadline, over: Condvar::new() });
        let watched = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watched.watch())
            .expect("a thread for the watchdog");
        Self(shared)
    }

    /// Starts the time anew; `doing` says what is done from now on.
    #[allow(dead_code)] // not every test has steps
    pub(crate) fn feed(&self, doing: String) {
        *self.0.lock() = Some((Instant::now() + LIMIT, doing));
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, String)>> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut deadline = self.lock();
        while let Some((at, doing)) = &*deadline {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Past the test runner's capture, which the abort would throw away.
                let _ = writeln!(std::io::stderr(), "\n{doing}: no end after {LIMIT:?}");
                std::process::abort();
            }
            deadline = self.over.wait_timeout(deadline, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.over.notify_one();
    }
}
