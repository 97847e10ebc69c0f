//! Runs on the threads that push: where a policy has no workers.

use super::delivery::Delivery;
use super::state::Pool;
use crate::op::{Deliver, OpPtr};
use crate::quiet::is_quiet;
use crate::sched::Pull;
use crate::sync::{thread_cell, yield_now};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// Runs nested inside inline runs before the next one is left to the outermost.
const NESTING: u32 = 64;

thread_cell! {
    /// Pool (by address) of the innermost inline run on this thread's stack, and how many of it are nested.
    static NESTED: (usize, u32) = (0, 0);
}

impl Pool {
    /// Runs ready ops on this thread, until there are none. Deep inside other inline runs that is left to the
    /// outermost, unless the caller is about to wait for it.
    pub(crate) fn run_inline(self: &Arc<Self>, about_to_wait: bool) {
        let outer = NESTED.with(Cell::get);
        let depth = if outer.0 == self.address() { outer.1 } else { 0 };
        if depth >= NESTING && !about_to_wait {
            return;
        }
        if is_quiet() {
            return self.catch_up_later();
        }
        NESTED.with(|nested| nested.set((self.address(), depth + 1)));
        let deliver: Arc<dyn Deliver> = Arc::new(Delivery(Arc::clone(self)));
        let mut finished = None;
        loop {
            let mut pull = PullOne(None);
            self.registrar.drive(finished.take(), &mut pull);
            let Some(op) = pull.0 else {
                // Another thread had the role. It may have registered an op of this one's and gone, or this one an op
                // of its: a thread that finds nothing looks again.
                if self.has_inline_work() {
                    yield_now();
                    continue;
                }
                break;
            };
            // SAFETY: a pulled op is this thread's, and was not run.
            let hosted = unsafe { (*op.as_ptr()).payload.assume_init_ref().is_hosted() };
            let mut run = || finished = self.run(op, &deliver, None);
            if hosted { self.host.enter(&mut run) } else { run() }
        }
        NESTED.with(|nested| nested.set(outer));
    }

    fn has_inline_work(&self) -> bool {
        self.registrar.has_news() || self.registrar.ready(0) > 0 || self.registrar.ready(1) > 0
    }
}

/// Pulls one op of lane 0, native ones first, for inline runs.
struct PullOne(Option<OpPtr>);

impl Pull for PullOne {
    fn queues(&self) -> Range<usize> {
        0..2
    }

    fn wanted(&self) -> usize {
        usize::from(self.0.is_none())
    }

    fn has_other(&self) -> bool {
        false
    }

    fn reach(&self) -> u64 {
        if self.0.is_none() { u64::MAX } else { 0 }
    }

    fn take(&mut self, op: OpPtr) {
        self.0 = Some(op);
    }
}
