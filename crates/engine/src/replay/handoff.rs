//! Steps from hand to hand: from the holder of an instance's role to workers that look for some, and back when they have run.
//!
//! A token passes the engine's inbox and a queue on its way to another worker, and who counts steps itself takes the counts into its
//! cache. Here a worker has a *place*, one cache line: it travels there with steps, and back with those that were run.
//!
//! | state | the worker | the role's holder | what is held |
//! |---|---|---|---|
//! | empty | any worker without steps may take the place: waiting | | |
//! | waiting | looks for a while, then leaves: empty | writes steps: given | the holder's |
//! | given | runs them, writes what was run: done; or leaves with them: empty | | the worker's |
//! | done | looks for a while, then takes them back and leaves: empty | reads them: waiting, and counts them | both may read it |
//!
//! All ways out of `waiting` and `done` are compare-exchanges, so of two who leave a state one fails. What the holder has read of a
//! `done` that it then fails to leave is not counted: the worker has taken it back. No other worker writes there meanwhile, as steps
//! are given by the holder alone.

use super::Call;
use super::batch::{Batch, Manner};
use crate::sync::{AtomicU32, CachePadded, Ordering, UnsafeCell, spin_hint};

/// Workers that may have a place, and steps that are handed over at a time.
const PLACES: usize = if cfg!(loom) { 1 } else { 7 };
pub(super) const HELD: usize = 10;
/// Looks of the role's holder for workers that were given as much as it has just run itself.
const LATE: u32 = if cfg!(loom) { 1 } else { 32 };

const EMPTY: u32 = 0;
const WAITING: u32 = 1;
const GIVEN: u32 = 2;
const DONE: u32 = 3;

/// What a place holds: steps, and how to run them, or how they were run.
struct Held {
    call: *const Call,
    behind: u32,
    count: u8,
    manner: Manner,
    steps: [u32; HELD],
}

impl Held {
    const fn nothing() -> Self {
        let manner = Manner { timed: false, sequential: false, goes_on: false };
        Self { call: std::ptr::null(), behind: 0, count: 0, manner, steps: [0; HELD] }
    }

    #[allow(clippy::cast_possible_truncation)] // few
    fn write(&mut self, batch: &Batch) {
        let steps = batch.steps();
        self.steps[..steps.len()].copy_from_slice(steps);
        (self.count, self.behind, self.call, self.manner) = (steps.len() as u8, batch.behind, batch.call, batch.manner);
    }

    fn read(&self, done: bool) -> Batch {
        Batch::of(&self.steps[..self.count.into()], self.behind, self.call, self.manner, done)
    }
}

/// A worker's place.
#[repr(C)]
struct Place {
    state: AtomicU32,
    held: UnsafeCell<Held>,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Place>() <= 64);

impl Place {
    /// Goes from a state that another thread may end, too. Answers whether it was still there.
    fn go(&self, from: u32, to: u32) -> bool {
        // ORDERING: Release publishes what is held, and that it was read; Acquire pairs with that of the other side.
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// See the module.
pub(super) struct Handoff {
    /// Workers that have a place, or are about to: if there are none, none is looked at.
    taken: AtomicU32,
    places: [CachePadded<Place>; PLACES],
}

impl Handoff {
    pub(super) fn new() -> Self {
        let place = || Place { state: AtomicU32::new(EMPTY), held: UnsafeCell::new(Held::nothing()) };
        Self { taken: AtomicU32::new(0), places: std::array::from_fn(|_| CachePadded(place())) }
    }

    /// The places in this state, as bits; the role's holder asks.
    #[inline]
    fn in_state(&self, state: u32) -> u32 {
        // ORDERING: a guess. A place with steps is seen: whoever gave them had seen it taken, and had the role.
        if self.taken.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // ORDERING: Acquire pairs with the Releases in hand_back() and go().
        let bit = |at: usize| u32::from(self.places[at].state.load(Ordering::Acquire) == state) << at;
        (0..PLACES).map(bit).sum()
    }

    /// The places of workers that wait for steps, as bits.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.in_state(WAITING)
    }

    /// The places with steps that were run, as bits; also those where that is to be expected any moment, for which it waits a little.
    /// What was written there is visible.
    #[inline]
    pub(super) fn done(&self, soon: u32) -> u32 {
        if soon != 0 {
            (0..LATE).take_while(|_| self.in_state(GIVEN) & soon != 0).for_each(|_| spin_hint());
        }
        self.in_state(DONE)
    }

    /// Takes the steps that were run at a place. None if its worker has taken them back.
    ///
    /// # Safety
    ///
    /// The caller holds the instance's role, and was told that they are [done](Self::done) since it has.
    pub(super) unsafe fn take_done(&self, at: usize) -> Option<Batch> {
        let place = &self.places[at];
        // SAFETY: it was done; only the role's holder changes what is held from then on.
        let batch = place.held.with(|held| unsafe { (*held).read(true) });
        place.go(DONE, WAITING).then_some(batch)
    }

    /// Gives steps to the worker that waits at a place. Answers whether it still does.
    ///
    /// # Safety
    ///
    /// The caller holds the instance's role, and was told that a worker [waits](Self::waiting) there since it has.
    pub(super) unsafe fn give(&self, at: usize, steps: &Batch) -> bool {
        let place = &self.places[at];
        // SAFETY: a worker waits there, or waited: what is held is the holder's.
        place.held.with_mut(|held| unsafe { (*held).write(steps) });
        place.go(WAITING, GIVEN)
    }

    /// Takes a place for a worker, if one is empty.
    pub(super) fn enter(&self) -> Option<usize> {
        // ORDERING: a hint.
        self.taken.fetch_add(1, Ordering::Relaxed);
        let place = (0..PLACES).find(|at| self.places[*at].go(EMPTY, WAITING));
        if place.is_none() {
            self.left();
        }
        place
    }

    fn left(&self) {
        // ORDERING: as in enter().
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    /// Looks for steps while `waits` says so, for a worker that waits at this place, or is done with the batch: then so often at most
    /// for the role's holder to come and count it. Answers whether there are some: they are in the batch, and in its hands. If not it
    /// has no place any more, and a batch that was not counted is its own.
    pub(super) fn look(&self, at: usize, batch: &mut Batch, comes: u32, mut waits: impl FnMut() -> bool) -> bool {
        let (place, mut looks) = (&self.places[at], 0);
        loop {
            // ORDERING: Acquire pairs with give() and take_done().
            let state = place.state.load(Ordering::Acquire);
            if state == GIVEN {
                // SAFETY: what was given is the worker's.
                *batch = place.held.with(|held| unsafe { (*held).read(false) });
                return true;
            }
            if state == WAITING {
                batch.clear();
            }
            looks += 1;
            if (!waits() || (state == DONE && looks > comes)) && place.go(state, EMPTY) {
                self.left();
                return false;
            }
            spin_hint();
        }
    }

    /// Says that a worker has run what was given to it. It looks for more next.
    ///
    /// # Safety
    ///
    /// The steps were given to the caller at this place, and it has not left it.
    pub(super) unsafe fn hand_back(&self, at: usize, batch: &Batch) {
        let place = &self.places[at];
        // SAFETY: what is held is the worker's.
        place.held.with_mut(|held| unsafe { (*held).write(batch) });
        // ORDERING: publishes it, and the writes of the steps; pairs with done().
        place.state.store(DONE, Ordering::Release);
    }

    /// Leaves a place with the steps that were given there.
    ///
    /// # Safety
    ///
    /// As for [`hand_back`](Self::hand_back).
    pub(super) unsafe fn leave(&self, at: usize) {
        // ORDERING: the next holder's writes follow our look.
        self.places[at].state.store(EMPTY, Ordering::Release);
        self.left();
    }
}
