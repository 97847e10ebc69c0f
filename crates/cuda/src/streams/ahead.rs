//! Pinned blocks for staged copies, made before they are wanted: to pin a chunk takes longer than to copy it.
//!
//! | who | when | does |
//! |---|---|---|
//! | whoever makes the device | at once | asks for some |
//! | whoever stages a chunk | finds none kept | pins one itself, waiting for nobody, and asks for more |
//! | a thread of its own | somebody has asked | pins, until as many are kept as there are to be ahead; ends |
//!
//! The thread keeps the device no longer than one block takes. A refusal of the driver fails nothing: the next user of a
//! block pins it, and is told.

use super::context::Context;
use crate::driver::own_thread;
use crate::memory::{class_of, size_of_class};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Rounds of pinning ahead between two trims: memory that is not asked for stays the system's.
const ROUNDS: u32 = 2;

#[derive(Default)]
struct State {
    running: bool,
    /// Whether it was asked since the thread began.
    again: bool,
    rounds: u32,
}

/// Whether a thread pins for a context, and how often one has.
#[derive(Default)]
pub(crate) struct Ahead(Mutex<State>);

impl Ahead {
    /// Begins anew, when the kept events have been given back.
    pub(crate) fn reset(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rounds = 0;
    }
}

impl Context {
    /// The class of the blocks that chunks go through.
    pub(crate) fn chunk_class(&self) -> usize {
        class_of(self.runtime.settings.chunk.max(1))
    }

    /// Has blocks pinned by another thread, unless that was done often enough.
    pub(crate) fn pin_ahead(self: &Arc<Self>) {
        if self.runtime.settings.ahead == 0 {
            return;
        }
        let mut state = self.ahead.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.rounds >= ROUNDS {
            return;
        }
        state.rounds += 1;
        if state.running {
            state.again = true;
            return;
        }
        let context = Arc::downgrade(self);
        // Where no thread can be had, nothing is ahead.
        let spawned = std::thread::Builder::new().name("weft-cuda-pin".to_owned()).spawn(move || pin(&context));
        state.running = spawned.is_ok();
    }

    /// Pins one more block, if there are to be more. Answers whether it did.
    fn pin_one_more(&self) -> bool {
        let class = self.chunk_class();
        if self.pinned.kept(class) >= self.runtime.settings.ahead {
            return false;
        }
        let Ok(_entered) = self.enter() else { return false };
        // SAFETY: the context is current.
        let Ok(start) = (unsafe { self.driver().allocate_pinned(size_of_class(class)) }) else { return false };
        if !self.pinned.add(class, start) {
            // SAFETY: it was not given out.
            let _ = unsafe { self.driver().free_pinned(start) };
            return false;
        }
        true
    }
}

fn pin(context: &Weak<Context>) {
    own_thread();
    while let Some(context) = context.upgrade() {
        if context.pin_one_more() {
            continue;
        }
        let mut state = context.ahead.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut state.again) {
            state.running = false;
            return;
        }
    }
}
