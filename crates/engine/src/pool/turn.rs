//! The registrar's role, for threads that have something else to do than to run ops: waits, figures, close, fork.

use super::state::Pool;
use crate::quiet::{is_quiet, later};
use crate::sched::{PullNothing, Turn};
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The role, held. Dropping it gives it back, settles ops that finished meanwhile, and has those run that became ready.
pub(crate) struct PoolTurn<'a> {
    turn: ManuallyDrop<Turn<'a>>,
    pool: &'a Arc<Pool>,
}

impl<'a> PoolTurn<'a> {
    fn new(pool: &'a Arc<Pool>, turn: Turn<'a>) -> Self {
        Self { turn: ManuallyDrop::new(turn), pool }
    }

    /// Keeps the role until it is [resumed](Pool::resume_turn).
    pub(crate) fn keep(self) {
        mem::forget(self);
    }
}

impl<'a> Deref for PoolTurn<'a> {
    type Target = Turn<'a>;

    fn deref(&self) -> &Turn<'a> {
        &self.turn
    }
}

impl<'a> DerefMut for PoolTurn<'a> {
    fn deref_mut(&mut self) -> &mut Turn<'a> {
        &mut self.turn
    }
}

impl Drop for PoolTurn<'_> {
    fn drop(&mut self) {
        // SAFETY: it is not used after.
        unsafe { ManuallyDrop::drop(&mut self.turn) };
        self.pool.turned();
    }
}

impl Pool {
    /// Takes the role, waiting for it.
    pub(crate) fn turn(self: &Arc<Self>) -> PoolTurn<'_> {
        PoolTurn::new(self, self.registrar.turn())
    }

    /// Takes the role if it is free.
    pub(crate) fn try_turn(self: &Arc<Self>) -> Option<PoolTurn<'_>> {
        Some(PoolTurn::new(self, self.registrar.try_turn()?))
    }

    /// Takes up a turn that was [kept](PoolTurn::keep).
    ///
    /// # Safety
    ///
    /// The caller's thread had a turn, kept it, and takes it up once.
    pub(crate) unsafe fn resume_turn(self: &Arc<Self>) -> PoolTurn<'_> {
        // SAFETY: the caller's promise.
        PoolTurn::new(self, unsafe { self.registrar.resume_turn() })
    }

    /// A turn of a thread that is no worker is over: has the ops run that it made ready. While that thread is
    /// [quiet](crate::Quiet), users' code on it waits.
    pub(super) fn turned(self: &Arc<Self>) {
        if self.is_dead() {
            return;
        }
        if is_quiet() {
            self.wake_workers();
            return self.catch_up_later();
        }
        self.wake_for_all();
    }

    /// Looks after the remains of this thread's quiet turns, when it is quiet no more; now if it is not.
    pub(crate) fn catch_up_later(self: &Arc<Self>) {
        let pool = Arc::clone(self);
        later(move || {
            if !pool.is_dead() {
                pool.registrar.drive(None, &mut PullNothing { register: false });
                pool.wake_for_all();
            }
        });
    }
}
