//! The way of completion tokens into the pool.

use super::state::Pool;
use crate::failure::{Cause, Failure};
use crate::op::{Deferred, Deliver, OpKind, OpPtr};
use crate::sched::PullNothing;
use std::any::Any;
use std::sync::Arc;

/// Takes finished ops back: the way of completion tokens into the pool.
pub(super) struct Delivery(pub(super) Arc<Pool>);

impl Deliver for Delivery {
    fn deliver(&self, op: OpPtr, result: Result<(), Cause>) {
        if self.0.is_dead() {
            return;
        }
        // SAFETY: the op is its deliverer's.
        if unsafe { (*op.as_ptr()).kind } == OpKind::Part {
            return self.0.complete_part(op, result);
        }
        self.0.complete_in_trace(op);
        if let Err(cause) = result {
            self.0.fail(op, cause);
        }
        self.0.registrar.drive(Some(op), &mut PullNothing { register: false });
        self.0.turned();
    }

    fn deferred(&self) -> Option<&Deferred> {
        // In a forked child a thread that is gone may hold the lock.
        (!self.0.is_dead()).then_some(&self.0.deferred)
    }

    fn stray(&self, op: &str, cause: Cause) {
        if self.0.is_dead() {
            return;
        }
        let failure = Arc::new(Failure::new(op.to_owned(), cause));
        self.0.turn().parts().0.note_failure(failure);
    }

    fn host(&self) -> &dyn Any {
        &*self.0.host
    }
}
