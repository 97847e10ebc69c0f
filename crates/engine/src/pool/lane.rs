//! A lane: its workers' seats, and how many of them search or sleep.

use super::seat::WorkerSeat;
use crate::sched::{Order, queue_of};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, full_fence_after_rmw};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Workers beyond the configured ones that may stand in for workers blocked in a wait.
const SPARES: usize = if cfg!(loom) { 0 } else { 256 };

const SEARCHING: u64 = 1;
const DORMANT: u64 = 1 << 32;

pub(crate) struct Lane {
    pub(crate) number: u16,
    /// The order of its ready ops.
    pub(crate) order: Order,
    /// Low half: workers awake without work. High half: workers asleep or not started yet.
    idle: CachePadded<AtomicU64>,
    seats: Box<[OnceLock<WorkerSeat>]>,
    taken: AtomicUsize,
    /// Numbers of workers without a thread: it could not be started.
    returned: Mutex<Vec<usize>>,
    /// Stand-ins that are no longer needed: so many workers are to retire.
    excess: AtomicUsize,
    /// Workers that are blocked in waits.
    blocked: AtomicUsize,
    /// Workers that have stepped aside.
    aside: AtomicUsize,
    /// Which queues go here: [`LENT`] ones, [`KEPT`] ones, or none yet.
    queues: AtomicU32,
    /// Whether its worker sleeps for a moment only, and will look by itself.
    napping: AtomicBool,
}

/// Bits of [`Lane::queues`].
const LENT: u32 = 1;
const KEPT: u32 = 2;

impl Lane {
    pub(crate) fn new(number: u16, order: Order, workers: usize) -> Self {
        Self {
            number,
            order,
            idle: CachePadded(AtomicU64::new(workers as u64 * DORMANT)),
            seats: (0..workers + SPARES).map(|_| OnceLock::new()).collect(),
            taken: AtomicUsize::new(0),
            returned: Mutex::new(Vec::new()),
            excess: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            aside: AtomicUsize::new(0),
            queues: AtomicU32::new(0),
            napping: AtomicBool::new(false),
        }
    }

    /// Notes that a queue goes here, which lends its worker's place or does not.
    pub(crate) fn serve(&self, lent: bool) {
        let bit = if lent { LENT } else { KEPT };
        // ORDERING: a flag of its own; a lane that does not see it yet lends nothing.
        if self.queues.load(Ordering::Relaxed) & bit == 0 {
            // ORDERING: as above.
            self.queues.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether a waiting thread may take the place of its worker: all its queues allow it, and it has had one worker
    /// alone.
    #[inline]
    pub(crate) fn lends(&self) -> bool {
        // ORDERING: as in serve(); pairs with take_seat() for the rest.
        self.queues.load(Ordering::Relaxed) == LENT && self.taken.load(Ordering::Acquire) == 1
    }

    /// Says whether the worker naps. It looks for work once more after it has said that it does not.
    pub(crate) fn set_napping(&self, napping: bool) {
        // ORDERING: SeqCst: pairs with naps().
        self.napping.swap(napping, Ordering::SeqCst);
        full_fence_after_rmw();
    }

    /// Whether the worker will look by itself for ops that were published before this call.
    #[inline]
    pub(crate) fn naps(&self) -> bool {
        // ORDERING: SeqCst: the publisher's look after it has published; pairs with set_napping().
        self.napping.load(Ordering::SeqCst)
    }

    pub(crate) fn native_queue(&self) -> usize {
        queue_of(self.number, false)
    }

    pub(crate) fn hosted_queue(&self) -> usize {
        queue_of(self.number, true)
    }

    /// The seat of this number, once a worker sits there.
    pub(crate) fn seat(&self, number: usize) -> Option<&WorkerSeat> {
        self.seats[number].get()
    }

    /// Seats of the workers started so far.
    pub(crate) fn seats(&self) -> impl Iterator<Item = &WorkerSeat> {
        self.numbered_seats().map(|(_, seat)| seat)
    }

    /// Seats of the workers started so far, with their numbers.
    pub(crate) fn numbered_seats(&self) -> impl Iterator<Item = (usize, &WorkerSeat)> {
        // ORDERING: pairs with take_seat(); a seat that is not there yet has nothing to steal.
        let taken = self.taken.load(Ordering::Acquire).min(self.seats.len());
        self.seats[..taken].iter().enumerate().filter_map(|(number, seat)| Some((number, seat.get()?)))
    }

    /// A number for a new worker, if there is one left.
    pub(crate) fn take_seat(&self) -> Option<usize> {
        if let Some(number) = self.returned().pop() {
            return Some(number);
        }
        // ORDERING: a number of its own for each caller.
        let number = self.taken.fetch_add(1, Ordering::AcqRel);
        if number < self.seats.len() {
            return Some(number);
        }
        // ORDERING: as above.
        self.taken.fetch_sub(1, Ordering::AcqRel);
        None
    }

    /// Gives an unused number back: the thread could not be started.
    pub(crate) fn return_seat(&self, number: usize) {
        self.returned().push(number);
    }

    fn returned(&self) -> MutexGuard<'_, Vec<usize>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a worker could not be started.
    pub(crate) fn lacks_worker(&self) -> bool {
        !self.returned().is_empty()
    }

    pub(crate) fn sit(&self, number: usize, seat: WorkerSeat) -> &WorkerSeat {
        self.seats[number].get_or_init(|| seat)
    }

    pub(crate) fn is_full(&self) -> bool {
        // ORDERING: a guess.
        self.taken.load(Ordering::Relaxed) >= self.seats.len() && !self.lacks_worker()
    }

    /// Whether a worker should be woken for new work: none searches and one sleeps.
    #[inline]
    pub(crate) fn wants_waking(&self) -> bool {
        // ORDERING: SeqCst: the waker's look after it has published work; pairs with drowse().
        let idle = self.idle.load(Ordering::SeqCst);
        idle & (DORMANT - 1) == 0 && idle >= DORMANT
    }

    /// Whether a worker searches: it looks at everything once more before that is over.
    #[inline]
    pub(crate) fn has_searcher(&self) -> bool {
        // ORDERING: SeqCst: the look of a thread that has left an op in the inbox; pairs with end_search() and
        // drowse(): the inbox is looked at behind these.
        self.idle.load(Ordering::SeqCst) & (DORMANT - 1) != 0
    }

    /// Workers that search or sleep, or were not started yet.
    #[allow(clippy::cast_possible_truncation)] // two halves of a word
    pub(crate) fn idle(&self) -> usize {
        // ORDERING: an estimate.
        let idle = self.idle.load(Ordering::Relaxed);
        ((idle & (DORMANT - 1)) + idle / DORMANT) as usize
    }

    /// Takes the right to wake one worker, which then counts as searching.
    pub(crate) fn claim_waking(&self, even_if_one_searches: bool) -> bool {
        // ORDERING: a guess to start from.
        let mut idle = self.idle.load(Ordering::Relaxed);
        loop {
            if idle < DORMANT || (!even_if_one_searches && idle & (DORMANT - 1) != 0) {
                return false;
            }
            // ORDERING: SeqCst, with all changes of this word.
            match self.idle.compare_exchange(idle, idle - DORMANT + SEARCHING, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => idle = now,
            }
        }
    }

    /// A worker that ran something searches now.
    pub(crate) fn begin_search(&self) {
        // ORDERING: SeqCst, with all changes of this word.
        self.idle.fetch_add(SEARCHING, Ordering::SeqCst);
    }

    /// A searching worker has found something, or retires. Answers whether it was the last one.
    pub(crate) fn end_search(&self) -> bool {
        // ORDERING: SeqCst, with all changes of this word: a publisher that saw a searcher and woke none is seen by
        // this worker's next look.
        let before = self.idle.fetch_sub(SEARCHING, Ordering::SeqCst);
        full_fence_after_rmw();
        before & (DORMANT - 1) == 1
    }

    /// A searching worker is about to sleep. It must look for work once more after this.
    pub(crate) fn drowse(&self) {
        // ORDERING: SeqCst: the sleeper's announcement; pairs with wants_waking().
        self.idle.fetch_add(DORMANT - SEARCHING, Ordering::SeqCst);
        full_fence_after_rmw();
    }

    /// It found some after all, unless all that sleep are being woken already.
    pub(crate) fn try_rouse(&self) -> bool {
        self.claim_waking(true)
    }

    /// A worker is blocked in a wait: one more may be awake.
    pub(crate) fn block_worker(&self) {
        // ORDERING: a count, of use once it has not changed for long.
        self.blocked.fetch_add(1, Ordering::Relaxed);
        self.add_spare();
    }

    /// The blocked worker is back.
    pub(crate) fn unblock_worker(&self) {
        // ORDERING: as in block_worker().
        self.blocked.fetch_sub(1, Ordering::Relaxed);
        self.remove_spare();
    }

    /// Whether all workers that have a thread are blocked in waits, and another one could not be started.
    pub(crate) fn is_stuck(&self) -> bool {
        // ORDERING: as in block_worker().
        self.lacks_worker() && self.blocked.load(Ordering::Relaxed) >= self.seats().count()
    }

    /// One more worker may be awake.
    pub(crate) fn add_spare(&self) {
        // ORDERING: SeqCst, with all changes of this word.
        self.idle.fetch_add(DORMANT, Ordering::SeqCst);
    }

    /// One worker is to retire.
    pub(crate) fn remove_spare(&self) {
        // ORDERING: a count; a worker reads it when it has nothing else to do.
        self.excess.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a worker is to retire.
    #[inline]
    pub(crate) fn has_excess(&self) -> bool {
        // ORDERING: as in remove_spare().
        self.excess.load(Ordering::Relaxed) > 0
    }

    /// Counts a worker that steps aside, unless so many have already.
    pub(crate) fn try_step_aside(&self, most: usize) -> bool {
        // ORDERING: a count.
        let few = self.aside.fetch_add(1, Ordering::Relaxed) < most;
        if !few {
            self.step_back();
        }
        few
    }

    /// It is back.
    pub(crate) fn step_back(&self) {
        // ORDERING: a count.
        self.aside.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the asking worker is the one to retire.
    pub(crate) fn take_excess(&self) -> bool {
        // ORDERING: as in remove_spare().
        let mut excess = self.excess.load(Ordering::Relaxed);
        while excess > 0 {
            // ORDERING: as in remove_spare().
            match self.excess.compare_exchange(excess, excess - 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => excess = now,
            }
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// However often the system gives no thread, each seat stays to be had.
    #[test]
    fn seats_of_threads_that_failed_to_start_are_taken_again() {
        let lane = Lane::new(0, Order::Ready, 2);
        for _ in 0..10 * (2 + SPARES) {
            let number = lane.take_seat().expect("a seat");
            lane.return_seat(number);
        }
        let mut numbers: Vec<usize> = std::iter::from_fn(|| lane.take_seat()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..2 + SPARES).collect::<Vec<_>>());
        assert!(lane.is_full());
        lane.return_seat(1);
        assert!(lane.lacks_worker() && !lane.is_full());
        assert_eq!(lane.take_seat(), Some(1));
        assert!(!lane.lacks_worker());
    }
}
