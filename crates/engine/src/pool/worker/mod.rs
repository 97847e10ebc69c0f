//! The life of a worker thread.
#![doc = include_str!("../sleep.md")]

mod doze;
mod hold;
mod hosted;
mod pull;
mod sleep;

use super::crowd::Crowd;
use super::delivery::Delivery;
use super::lane::Lane;
use super::pace::Pace;
use super::seat::WorkerSeat;
use super::state::Pool;
use crate::op::{Deliver, OpKind, OpPtr};
use crate::sched::PullNothing;
use crate::sync::{Parker, spin_hint};
use crossbeam_deque::{Steal, Stealer, Worker as Deque};
use doze::Doze;
use hold::Hold;
use pull::IntoWorker;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Ops pulled at a time.
const PULL: usize = 16;
/// Ops in a row, each of them next because the one before made it ready. After so many the chain queues up once, so
/// that an endless one starves nobody.
const CHAIN: u32 = 64;
/// Looks for work before a worker sleeps, and pauses between two looks, fewer at first: 30 us together.
const LOOKS: u32 = 72;
const PAUSES: u32 = 48;
/// Looks where ops go one by one: whom the last one has answered may have to wake up on this processor. 10 us.
const LOOKS_IN_ORDER: u32 = 24;
/// The same where a waiting thread may take its place: it soon naps, and looks again.
const LOOKS_LENT: u32 = 4;
/// Looks after which it lets others run: one may have work for this one, and no processor.
const SPINS: u32 = 16;

/// A worker's own view of its lane.
struct Worker<'a> {
    pool: &'a Arc<Pool>,
    lane: &'a Lane,
    seat: &'a WorkerSeat,
    seat_number: usize,
    deliver: Arc<dyn Deliver>,
    native: Deque<OpPtr>,
    hosted: Deque<OpPtr>,
    /// The op that goes next: the one that the last one made ready.
    next: Option<OpPtr>,
    /// Ops in a row that were taken over.
    chained: u32,
    pace: Pace,
    /// Native ops since hosted ones had their last chance.
    natives: u32,
    /// Whether it counts as searching.
    searching: bool,
    /// How long it has been inside the host since it last stayed outside on purpose.
    inside: Duration,
    doze: Doze,
    hold: Hold,
    crowd: Crowd,
    /// Looks for work before it sleeps.
    patience: u32,
}

/// Runs the lane's ops until the pool stops.
pub(super) fn work(
    pool: &Arc<Pool>,
    lane: u16,
    seat_number: usize,
    native: Deque<OpPtr>,
    hosted: Deque<OpPtr>,
    parker: &Parker,
) {
    let lane = pool.lane(lane);
    let Some(seat) = lane.seat(seat_number) else { return };
    seat.set_host_thread(pool.host.thread());
    let deliver = Arc::new(Delivery(Arc::clone(pool)));
    let doze = Doze::new(pool.registrar.settled());
    let (next, chained, pace, searching, inside) = (None, 0, Pace::new(), true, Duration::ZERO);
    let mut worker = Worker {
        pool,
        lane,
        seat,
        seat_number,
        deliver,
        native,
        hosted,
        next,
        chained,
        pace,
        natives: 0,
        searching,
        inside,
        doze,
        hold: Hold::default(),
        crowd: Crowd::new(),
        patience: LOOKS,
    };
    let mut looks = 0;
    loop {
        if let Some(length) = worker.holds().or_else(|| worker.dozes()) {
            // It still counts as searching, so no system call is wasted on waking it.
            parker.park(Some(Instant::now() + length));
        } else if (worker.owes_hosted() && worker.run_hosted()) || worker.run_native() || worker.run_hosted() {
            looks = 0;
            continue;
        }
        worker.search();
        if !pool.is_over() && lane.take_excess() {
            worker.retire(parker);
        } else if looks < worker.looks() && !pool.is_stopping() {
            looks += 1;
            for _ in 0..PAUSES.min(4 * looks) {
                spin_hint();
            }
            if looks > SPINS || worker.crowd.is_suspected() {
                worker.crowd = worker.crowd.after_yield();
            }
        } else if !worker.sleep(parker) {
            break;
        } else {
            looks = 0;
            worker.doze.begin(pool.registrar.settled());
        }
    }
}

impl Worker<'_> {
    /// Looks for work before it sleeps.
    fn looks(&self) -> u32 {
        match (self.lane.order.is_one_by_one(), self.lane.lends()) {
            (true, true) => LOOKS_LENT,
            (true, false) => LOOKS_IN_ORDER,
            (false, _) => self.patience,
        }
    }

    /// Whether hosted ops are due: so many native ones have run since the last chance they had.
    #[inline]
    fn owes_hosted(&mut self) -> bool {
        let due = self.natives >= self.pace.turn();
        if due {
            self.natives = 0;
        }
        due
    }

    /// Runs one native op if there is one. Answers whether there was.
    #[inline]
    fn run_native(&mut self) -> bool {
        let Some(op) = self.find_native() else { return false };
        self.natives += 1;
        self.found();
        let finished = if self.lane.order.draws() { self.run_drawn(op) } else { self.run(op) };
        self.pace.count();
        if !self.keep(finished) {
            self.follow_up(finished, false);
        }
        true
    }

    /// Keeps an op that has run, to be settled with others, if another op is at hand and ops are short; see `sleep.md`. Answers
    /// whether it did.
    #[inline]
    fn keep(&mut self, finished: Option<OpPtr>) -> bool {
        let (Some(op), Some(hand)) = (finished, self.hand()) else { return false };
        // SAFETY: it has run on this thread, and is not settled.
        let (epoch, has_failed) = unsafe { ((*op.as_ptr()).epoch, (*op.as_ptr()).failure.is_some()) };
        if has_failed || !self.has_reason_to_keep() {
            return false;
        }
        self.next = self.native.pop();
        // A part of a replay has no epoch.
        // SAFETY: it is in this worker's hands.
        let is_covered =
            |next: OpPtr| unsafe { (*next.as_ptr()).kind == OpKind::Run && (*next.as_ptr()).epoch == epoch };
        if !self.next.is_some_and(is_covered) {
            return false;
        }
        self.chained = 0;
        self.pool.registrar.keep(hand, op);
        if !self.may_keep() {
            self.follow_up(None, false);
        }
        true
    }

    /// Whether a turn costs more than it is worth: to a worker that has nothing to do, if there is one.
    #[inline]
    fn has_reason_to_keep(&self) -> bool {
        (self.pace.is_brief() || !(self.pace.is_long() || self.lane.has_searcher()))
            && !self.lane.order.is_one_by_one()
            && !self.pool.registrar.chooses_each()
            && self.may_keep() // a guess that spares the trouble
    }

    /// Whether nobody counts on the end of an op: no thread waits for one, no other lane may be given what it makes ready, and no worker
    /// sleeps unless another one searches.
    #[inline]
    fn may_keep(&self) -> bool {
        !self.pool.registrar.is_awaited() && !self.lane.wants_waking() && !self.pool.has_other_lanes()
    }

    /// Has settled what it keeps, by another thread if that one has the role.
    fn settle_kept(&self) {
        if self.hand().is_some_and(|hand| self.pool.registrar.leave_kept(hand)) {
            self.pool.take_turn(self.lane, None, &mut PullNothing { register: false });
        }
    }

    /// Its number among the workers that may keep finished ops.
    #[inline]
    fn hand(&self) -> Option<usize> {
        (self.lane.number == 0 && self.pool.registrar.has_hand(self.seat_number)).then_some(self.seat_number)
    }

    #[inline]
    fn find_native(&mut self) -> Option<OpPtr> {
        if let Some(op) = self.next.take().or_else(|| self.native.pop()) {
            return Some(op);
        }
        let registrar = &self.pool.registrar;
        if registrar.has_news() || registrar.ready(self.lane.native_queue()) > 0 {
            self.follow_up(None, false);
            if let Some(op) = self.next.take() {
                return Some(op);
            }
        }
        self.steal(&self.native, |seat| &seat.native).inspect(|_| self.pass_on())
    }

    fn steal<'s>(
        &'s self,
        mine: &Deque<OpPtr>,
        theirs: impl Fn(&'s WorkerSeat) -> &'s Stealer<OpPtr>,
    ) -> Option<OpPtr> {
        // Starting behind one's own seat spreads thieves without a random number.
        let after = self.lane.numbered_seats().filter(|(number, _)| *number > self.seat_number);
        let before = self.lane.numbered_seats().filter(|(number, _)| *number < self.seat_number);
        after.chain(before).filter(|(_, seat)| !theirs(seat).is_empty()).find_map(|(_, seat)| {
            loop {
                match theirs(seat).steal_batch_and_pop(mine) {
                    Steal::Success(op) => return Some(op),
                    Steal::Empty => return None,
                    Steal::Retry => spin_hint(),
                }
            }
        })
    }

    #[inline]
    fn run(&self, op: OpPtr) -> Option<OpPtr> {
        self.pool.run(op, &self.deliver, Some(self.seat))
    }

    /// Settles the op that has just run, takes the next ones, wakes further workers.
    #[inline]
    fn follow_up(&mut self, finished: Option<OpPtr>, hosted: bool) {
        let (queue, deque) =
            if hosted { (self.lane.hosted_queue(), &self.hosted) } else { (self.lane.native_queue(), &self.native) };
        let has_other = !deque.is_empty();
        let (pull, chain) = if self.lane.order.is_one_by_one() {
            (usize::from(!self.lane.has_excess()), 0) // who is to retire takes nothing more
        } else {
            (PULL, CHAIN)
        };
        let wanted = if has_other { 0 } else { pull };
        let (chained, hand) = (self.chained, self.hand());
        let (next, pace, insists) = (&mut self.next, &self.pace, self.hold.insists() || self.pool.is_stopping());
        let chained_now = &mut self.chained;
        let mut pull =
            IntoWorker { queue, next, chained: chained_now, deque, wanted, has_other, hand, chain, pace, insists };
        self.pool.take_turn(self.lane, finished, &mut pull);
        if self.chained == chained {
            self.chained = 0;
        }
        self.share();
    }

    /// Wakes another worker of the lane if there is more than this one can do by itself.
    #[inline]
    fn share(&self) {
        let surplus = !self.native.is_empty() || (!self.hosted.is_empty() && !self.pool.is_gate_shut());
        if surplus && self.lane.wants_waking() {
            self.pool.wake_one(self.lane, false);
        } else {
            self.pool.wake_for_ready(self.lane);
        }
    }

    /// Wakes another worker of the lane if anything is left, in whosever hands.
    fn pass_on(&self) {
        if self.lane.wants_waking() && self.has_work_for_others() {
            self.pool.wake_one(self.lane, false);
        }
    }

    /// How long to leave ready ops where they are, in a lane that draws, as no thread waits.
    fn holds(&mut self) -> Option<Duration> {
        if !self.lane.order.draws() {
            return None;
        }
        let registrar = &self.pool.registrar;
        let is_empty = registrar.ready(self.lane.native_queue()) == 0;
        if is_empty || self.next.is_some() || self.pool.is_stopping() {
            self.hold.end(is_empty);
            return None;
        }
        self.hold.next(registrar.ring.claimed())
    }

    /// How long to keep away while the others get through their ops so fast that help would hold them up: cache lines
    /// would travel for nothing.
    #[inline]
    fn dozes(&mut self) -> Option<Duration> {
        if self.searching { self.doze.next(|| self.pool.registrar.settled()) } else { None }
    }

    /// It has something to do now.
    #[inline]
    fn found(&mut self) {
        if self.searching {
            self.searching = false;
            self.pace.resume();
            // The last searcher passes the search on if there is more than it takes itself. A push that came meanwhile
            // has seen a searcher and woken none.
            if self.end_search() && self.lane.wants_waking() && self.has_work() {
                self.pool.wake_one(self.lane, false);
            }
        }
    }

    /// Counts no more as searching. Answers whether it was the last one; then the ops that others have kept as it searched are settled.
    fn end_search(&self) -> bool {
        let last = self.lane.end_search();
        if last && self.pool.registrar.has_left() {
            self.pool.take_turn(self.lane, None, &mut PullNothing { register: false });
        }
        last
    }

    fn search(&mut self) {
        if !self.searching {
            self.searching = true;
            self.doze.begin(self.pool.registrar.settled());
            self.lane.begin_search();
        }
    }

    fn has_work_for_others(&self) -> bool {
        let registrar = &self.pool.registrar;
        registrar.ready(self.lane.native_queue()) > 0
            || self.lane.seats().any(WorkerSeat::has_native)
            || (!self.pool.is_gate_shut() && self.has_hosted())
    }

    /// Whether there is anything that a worker of this lane could do.
    fn has_work(&self) -> bool {
        self.pool.registrar.has_news() || self.has_work_for_others()
    }
}

#[cfg(all(test, loom))]
#[path = "../../loom_tests/sleep.rs"]
mod loom_tests;
