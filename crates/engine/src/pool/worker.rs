//! What a worker thread does from its start to its end.
#![doc = include_str!("sleep.md")]

use super::delivery::Delivery;
use super::lane::Lane;
use super::pace::Pace;
use super::seat::WorkerSeat;
use super::state::Pool;
use crate::op::{Deliver, OpPtr};
use crate::sched::Pull;
use crate::sync::{Parker, spin_hint};
use crossbeam_deque::{Steal, Stealer, Worker as Deque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Ops pulled at a time.
const PULL: usize = 16;
/// Ops in a row of which each one goes next because the one before made it ready. After so many the
/// chain queues up once, so that an endless one starves nobody.
const CHAIN: u32 = 64;
/// Looks for work before a worker sleeps, and pauses between two looks, fewer at first: 30 us together, and 200 us of
/// a worker that was woken soon after it had lain down, the last few times.
const LOOKS: u32 = 72;
const LOOKS_OF_WOKEN: u32 = 8 * LOOKS;
const PAUSES: u32 = 48;
/// A sleep that was not worth its system calls.
const NAP: Duration = Duration::from_micros(200);
/// Ops that others settle between two looks when theirs are so short that taking some over would cost
/// more than it gains, and how long a worker dozes then.
const SHORT_OPS: u64 = 4;
const DOZE: Duration = Duration::from_micros(50);
/// How long a batch of hosted ops may keep native ones waiting, and how often it asks.
const HOSTED_PATIENCE: Duration = Duration::from_micros(200);
/// How long a batch may keep the host from threads outside the engine, unless the host itself takes it away. Longer
/// than the 5 ms after which a thread that waits for Python's GIL asks for it: who leaves the GIL just before takes it
/// again before that thread has woken up, and so for ever.
const HOSTED_BATCH: Duration = Duration::from_millis(25);
/// How long a worker stays outside after it has been inside for so long altogether, for the same reason: batches may be
/// short, because native ops wait.
const HOSTED_PAUSE: Duration = Duration::from_micros(200);
const HOSTED_ASKS: u32 = 16;

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
    /// Tickets settled at its last look.
    settled: u64,
    /// Looks for work before it sleeps.
    patience: u32,
}

/// Runs what the lane is given until the pool stops.
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
    let settled = pool.registrar.settled();
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
        settled,
        patience: LOOKS,
    };
    let mut looks = 0;
    loop {
        if worker.searching && worker.others_are_quick() {
            // It still counts as searching, so nobody wastes a system call on waking it.
            parker.park(Some(Instant::now() + DOZE));
        } else if (worker.owes_hosted() && worker.run_hosted()) || worker.run_native() || worker.run_hosted() {
            looks = 0;
            continue;
        }
        worker.search();
        if !pool.is_over() && lane.take_excess() {
            worker.retire(parker);
        } else if looks < worker.patience && !pool.is_stopping() {
            looks += 1;
            for _ in 0..PAUSES.min(4 * looks) {
                spin_hint();
            }
        } else if !worker.sleep(parker) {
            break;
        } else {
            looks = 0;
            worker.settled = pool.registrar.settled();
        }
    }
}

/// Pulls into a worker's hands. Where ops go in the order of their pushes, one at a time: the next one is chosen when
/// all that the last one has made ready is known, and none of these goes first.
struct IntoWorker<'a> {
    queue: usize,
    next: &'a mut Option<OpPtr>,
    chained: &'a mut u32,
    deque: &'a Deque<OpPtr>,
    wanted: usize,
    has_other: bool,
    /// Ops in a row that may be taken over.
    chain: u32,
    pace: &'a Pace,
}

impl Pull for IntoWorker<'_> {
    #[inline]
    fn queues(&self) -> Range<usize> {
        self.queue..self.queue + 1
    }

    #[inline]
    fn wanted(&self) -> usize {
        self.wanted
    }

    #[inline]
    fn has_other(&self) -> bool {
        self.has_other
    }

    #[inline]
    fn reach(&self) -> u64 {
        if self.next.is_none() { u64::MAX } else { self.pace.reach(self.wanted) }
    }

    #[inline]
    fn take(&mut self, op: OpPtr) {
        self.wanted = self.wanted.saturating_sub(1);
        if self.next.is_none() {
            *self.next = Some(op);
        } else {
            self.deque.push(op);
        }
    }

    #[inline]
    fn take_over(&mut self, queue: usize, op: OpPtr) -> bool {
        let taken = self.next.is_none() && queue == self.queue && *self.chained < self.chain;
        if taken {
            *self.chained += 1;
            self.take(op);
        }
        taken
    }
}

impl Worker<'_> {
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
        let finished = self.run(op);
        self.pace.count();
        self.follow_up(finished, false);
        true
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

    /// Settles what has just run, takes the next ops, wakes who else is needed.
    #[inline]
    fn follow_up(&mut self, finished: Option<OpPtr>, hosted: bool) {
        let (queue, deque) =
            if hosted { (self.lane.hosted_queue(), &self.hosted) } else { (self.lane.native_queue(), &self.native) };
        let has_other = !deque.is_empty();
        let (pull, chain) = if self.lane.in_order {
            (usize::from(!self.lane.has_excess()), 0) // who is to retire takes nothing more
        } else {
            (PULL, CHAIN)
        };
        let wanted = if has_other { 0 } else { pull };
        let chained = self.chained;
        let (next, pace) = (&mut self.next, &self.pace);
        let mut pull = IntoWorker { queue, next, chained: &mut self.chained, deque, wanted, has_other, chain, pace };
        self.pool.registrar.drive(finished, &mut pull);
        if self.chained == chained {
            self.chained = 0;
        }
        self.share();
        self.pool.wake_others(self.lane);
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

    /// Enters the host and runs hosted ops there, if there are any and nobody else waits to enter.
    /// Answers whether it did.
    fn run_hosted(&mut self) -> bool {
        if !self.has_hosted() {
            return false;
        }
        if !self.pool.shut_gate() {
            return false;
        }
        self.found();
        if let Some(op) = self.next.take() {
            self.native.push(op); // it is not to be run inside
        }
        let host = Arc::clone(&self.pool.host);
        let mut inside = Duration::ZERO;
        host.enter(&mut || {
            self.pool.open_gate();
            inside = self.hosted_batch();
        });
        self.inside += inside;
        if self.inside > HOSTED_BATCH {
            self.inside = Duration::ZERO;
            std::thread::sleep(HOSTED_PAUSE);
        }
        true
    }

    /// Runs hosted ops for a while. Answers for how long.
    fn hosted_batch(&mut self) -> Duration {
        let start = Instant::now();
        let mut ran = 0_u32;
        loop {
            let op = self.next.take().or_else(|| self.hosted.pop()).or_else(|| {
                self.follow_up(None, true);
                self.next.take().or_else(|| self.steal(&self.hosted, |seat| &seat.hosted)).inspect(|_| self.pass_on())
            });
            let Some(op) = op else { return start.elapsed() };
            if ran == 0 {
                // Who found the gate shut meanwhile has left the rest to us.
                if self.lane.wants_waking() && self.has_work() {
                    self.pool.wake_one(self.lane, false);
                }
                self.pool.wake_others(self.lane);
            }
            let finished = self.run(op);
            self.pace.count();
            self.follow_up(finished, true);
            ran += 1;
            if ran.is_multiple_of(HOSTED_ASKS) {
                let native = self.pool.registrar.ready(self.lane.native_queue()) > 0 || !self.native.is_empty();
                if start.elapsed() > if native { HOSTED_PATIENCE } else { HOSTED_BATCH } {
                    break;
                }
            }
        }
        // What goes next is hosted, and must not be taken for a native op.
        if let Some(op) = self.next.take() {
            self.hosted.push(op);
        }
        start.elapsed()
    }

    fn has_hosted(&self) -> bool {
        self.pool.registrar.ready(self.lane.hosted_queue()) > 0 || self.lane.seats().any(WorkerSeat::has_hosted)
    }

    /// Whether the lane's other workers get through their ops so fast that help would hold them up:
    /// cache lines would travel for nothing.
    fn others_are_quick(&mut self) -> bool {
        let before = std::mem::replace(&mut self.settled, self.pool.registrar.settled());
        self.settled - before >= SHORT_OPS
    }

    /// It has something to do now.
    #[inline]
    fn found(&mut self) {
        if self.searching {
            self.searching = false;
            self.pace.resume();
            // The last searcher passes the search on if there is more than it takes itself.
            // A push that came meanwhile has seen a searcher and woken nobody.
            if self.lane.end_search() && self.lane.wants_waking() && self.has_work() {
                self.pool.wake_one(self.lane, false);
            }
        }
    }

    fn search(&mut self) {
        if !self.searching {
            self.searching = true;
            self.settled = self.pool.registrar.settled();
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

    /// Sleeps until woken. Answers whether to go on; see `sleep.md`.
    fn sleep(&mut self, parker: &Parker) -> bool {
        self.seat.fall_asleep();
        self.lane.drowse();
        if self.leaves() {
            return false; // whatever the counts say: nobody needs them any more
        }
        if self.has_work() && self.lane.try_rouse() {
            if self.seat.claim() {
                return true;
            }
            // Somebody has just claimed this sleeper and counts it as searching: its token comes.
            self.lane.drowse();
        }
        let asleep = Instant::now();
        self.rest(parker);
        // Waking it takes its publisher a system call, and everybody 50 us.
        self.patience = if asleep.elapsed() < NAP { LOOKS_OF_WOKEN.min(2 * self.patience) } else { LOOKS };
        if self.pool.is_stopping() {
            // A stop wakes without claiming. Its unit may be gone, if somebody took it for a worker that
            // had retired.
            if self.seat.claim() && !self.lane.try_rouse() {
                self.lane.begin_search();
            }
            return !self.leaves();
        }
        true
    }

    /// Sleeps until it has a token. The host hears of it if that takes long, as often as it wants to.
    fn rest(&self, parker: &Parker) {
        let host = &self.pool.host;
        while let Some(patience) = host.rests_after() {
            if parker.park(Some(Instant::now() + patience)) {
                return;
            }
            host.worker_rests();
        }
        parker.park(None);
    }

    /// Whether everything is done and the thread is to end. The others are told.
    fn leaves(&self) -> bool {
        let over = self.pool.is_over();
        if over {
            self.pool.stop();
        }
        over
    }

    /// Sleeps as a spare one: it counts neither as searching nor as sleeping.
    fn retire(&mut self, parker: &Parker) {
        self.seat.fall_asleep();
        self.searching = false;
        if self.lane.end_search() && self.has_work() {
            self.pool.wake_one(self.lane, false);
        }
        self.rest(parker);
        // Who woke it counts it as searching; a pool that stops wakes it without.
        self.searching = !self.seat.claim();
        self.search();
    }
}

#[cfg(all(test, loom))]
#[path = "../loom_tests/sleep.rs"]
mod loom_tests;
