//! Engines that stand still: noticed by their waiters, and reported to them.

use super::{Core, Engine};
use crate::failure::Place;
use crate::op::{Op, OpPtr};
use crate::pool::{Pool, Sleeping, Vigil};
use crate::replay;
use crate::sched::{Blocked, Tracker};
use std::panic::Location;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// Entries of a report's chain at most.
const CHAIN: usize = 10;

/// The running ops, and the waits for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StallReport {
    /// Ops that have begun and not ended: workers run them, or their completion tokens are out.
    pub running: Vec<RunningOp>,
    /// Waits, each followed by the ops in its way that wait themselves.
    pub waiting: Vec<Waiting>,
    /// Ops that have not ended.
    pub pending: u64,
}

/// An op that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningOp {
    /// Its label.
    pub label: String,
    /// Its payload's word for the place of its push (see [`Payload::PLACE`](crate::Payload::PLACE)); 0 if nothing.
    pub place: u64,
    /// The line that pushed it, if [`Engine::op`] or [`Engine::task`] did.
    pub line: Option<&'static Location<'static>>,
    /// The number that the engine's [`Host`](crate::Host) has for its thread; `None` if its completion token is out and
    /// its payload over.
    pub thread: Option<u64>,
    /// How long it has been seen to run.
    pub seen: Duration,
}

/// An op, or a wait, that waits for a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Its label.
    pub label: String,
    /// Where it was pushed, or waits; 0 if that is not known.
    pub place: u64,
    /// The line that pushed it, as of a [`RunningOp`].
    pub line: Option<&'static Location<'static>>,
    /// The label of the op that it waits for.
    pub variable: String,
    /// Labels of the ops that have it, as far as they are known: ops that read and have not started are not.
    pub blocked_by: Vec<String>,
}

/// A wait that is listed as sleeping for as long as this lives.
pub(super) struct Listed {
    pool: Arc<Pool>,
    number: u64,
}

impl Listed {
    pub(super) fn new(core: &Core, sleeping: Sleeping) -> Self {
        let pool = Arc::clone(core.pool());
        let number = vigil(&pool).enter(sleeping);
        Self { pool, number }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // In the child of a fork inside the wait, a thread that is gone may hold the lock.
        if !self.pool.is_dead() {
            vigil(&self.pool).leave(self.number);
        }
    }
}

fn vigil(pool: &Pool) -> MutexGuard<'_, Vigil> {
    pool.vigil.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// The time without progress after which it is told.
    #[must_use]
    pub fn stall_after(&self) -> Option<Duration> {
        self.core.settings.stall_after
    }

    /// For how long no op has ended, once in each time that this is longer than
    /// [`Settings::stall_after`](crate::Settings::stall_after) while ops are pending. To be asked by waiting threads,
    /// now and then: the answer rests on their looks alone.
    #[must_use]
    pub fn look_for_stall(&self) -> Option<Duration> {
        let patience = self.core.settings.stall_after?;
        let pool = self.core.pool();
        let mut vigil = vigil(pool);
        if !vigil.is_due(patience) {
            return None;
        }
        let mut turn = pool.turn();
        turn.catch_up();
        let (tracker, _) = turn.parts();
        let (completed, pending) = (tracker.counts.completed, tracker.pending());
        // SAFETY: running ops are pending while we have the role.
        let running = pool.begun_ops().into_iter().map(|op| unsafe { (*op.as_ptr()).number });
        let stalled = vigil.look((completed, pending), running, patience);
        drop(vigil); // before the turn, whose end runs what is a user's
        drop(turn);
        stalled
    }

    /// The ops that run now, and the waits for each other.
    #[must_use]
    pub fn stall_report(&self) -> StallReport {
        let pool = self.core.pool();
        let vigil = vigil(pool); // waits stay, and what they wait for
        let mut turn = pool.turn();
        turn.catch_up();
        let (tracker, seat) = turn.parts();
        let ops = pool.begun_ops();
        let running = ops.iter().map(|&op| {
            // SAFETY: running ops are pending while we have the role.
            let (label, place, number) = unsafe { (replay::label(op), Op::place(op), (*op.as_ptr()).number) };
            RunningOp {
                label,
                place: place.said,
                line: place.line,
                thread: pool.host_thread_of(op),
                seen: vigil.ran_for(number),
            }
        });
        let running: Vec<_> = running.collect();
        let mut waiting: Vec<Waiting> = Vec::new();
        for sleeping in vigil.sleeping() {
            let left = CHAIN.saturating_sub(waiting.len());
            let show = |op: Option<OpPtr>| match op {
                None => (sleeping.what.to_owned(), Place::said(sleeping.place)),
                // SAFETY: an op in a chain is pending, and was not run.
                Some(op) => unsafe { (replay::label(op), Op::place(op)) },
            };
            let chain = if let Some(subject) = sleeping.subject {
                Tracker::chain(seat, subject.cast(), &ops, left)
            } else {
                let by = running.iter().take(left).map(|running| running.label.clone()).collect();
                vec![Blocked { op: None, variable: "all ops".to_owned(), by }]
            };
            waiting.extend(chain.into_iter().take(left).map(|Blocked { op, variable, by }| {
                let (label, place) = show(op);
                Waiting { label, place: place.said, line: place.line, variable, blocked_by: by }
            }));
        }
        let pending = tracker.pending();
        drop(vigil); // as above
        drop(turn);
        StallReport { running, waiting, pending }
    }
}
