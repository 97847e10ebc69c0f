//! The ring of pushes: many producers, one slot each, one consumer.
//!
//! Every slot holds a cell. A free slot holds an empty one, supplied by the registrar; the pusher
//! fills it and publishes it; the registrar takes it and puts the next empty one in its place. So
//! a push allocates nothing and shares nothing but the counter of tickets.
//!
//! | slot's `turn` | the cell is | who may touch it |
//! |---|---|---|
//! | `ticket` | empty | the pusher with this ticket |
//! | `ticket + 1` | filled | the registrar |
//! | `ticket + SLOTS` | empty, for the next lap | the pusher with ticket + SLOTS |

use crate::op::Op;
use crate::sync::{AtomicPtr, AtomicU64, CachePadded, Ordering, full_fence_after_rmw};
use crate::var::Seat;

/// Slots of a ring: a power of two. Under loom small, so that laps and a full ring are met; under Miri so that an engine is made in
/// less than a minute.
pub(crate) const SLOTS: usize = if cfg!(loom) {
    2
} else if cfg!(miri) {
    64
} else {
    8192
};

/// How many slots ahead a pusher asks for the cell that it, or another pusher, will fill.
const AHEAD: u64 = 4;

struct Slot {
    turn: AtomicU64,
    /// Atomic only because a pusher glances at the slots ahead of its own; `turn` hands it over.
    cell: AtomicPtr<Op>,
}

pub(crate) struct Ring {
    slots: Box<[Slot]>,
    /// The next ticket.
    tickets: CachePadded<AtomicU64>,
    /// Tickets registered so far.
    registered: CachePadded<AtomicU64>,
}

impl Ring {
    /// A ring with the cells that `supply` answers in its slots.
    pub(crate) fn new(mut supply: impl FnMut() -> *mut Op) -> Self {
        let slots =
            (0..SLOTS as u64).map(|turn| Slot { turn: AtomicU64::new(turn), cell: AtomicPtr::new(supply()) }).collect();
        Self { slots, tickets: CachePadded(AtomicU64::new(0)), registered: CachePadded(AtomicU64::new(0)) }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked
    fn slot(&self, ticket: u64) -> &Slot {
        &self.slots[ticket as usize & (SLOTS - 1)]
    }

    /// Takes the next ticket. From here to [`publish`](Self::publish) the pusher must not fail.
    #[inline]
    pub(crate) fn claim(&self) -> u64 {
        // ORDERING: SeqCst, the pusher's half of the handshake with a worker that goes to sleep;
        // pairs with is_idle().
        let ticket = self.tickets.fetch_add(1, Ordering::SeqCst);
        full_fence_after_rmw();
        ticket
    }

    /// The empty cell for this ticket, once the slot's last lap is over. The op that goes there, and perhaps those behind
    /// it, have so many accesses.
    #[inline]
    pub(crate) fn cell(&self, ticket: u64, accesses: usize) -> Option<*mut Op> {
        let slot = self.slot(ticket);
        // ORDERING: pairs with the Release in take(); the cell was emptied before.
        if slot.turn.load(Ordering::Acquire) != ticket {
            return None;
        }
        // ORDERING: a glance; a cell that is not supplied yet is asked for in vain.
        let soon = self.slot(ticket + AHEAD).cell.load(Ordering::Relaxed);
        Op::prefetch_to_fill(soon, accesses);
        // ORDERING: handed over by `turn`.
        Some(slot.cell.load(Ordering::Relaxed))
    }

    /// Hands the filled cell to the registrar.
    #[inline]
    pub(crate) fn publish(&self, ticket: u64) {
        // ORDERING: pairs with the Acquire in take(): the registrar sees the filled op.
        self.slot(ticket).turn.store(ticket + 1, Ordering::Release);
    }

    /// Takes the next published op and leaves the cell that `supply` answers in its place.
    #[inline]
    pub(crate) fn take(&self, _seat: &Seat, supply: impl FnOnce() -> *mut Op) -> Option<*mut Op> {
        // ORDERING: the registrar alone advances it; successive holders are ordered by the role.
        let at = self.registered.load(Ordering::Relaxed);
        let slot = self.slot(at);
        // ORDERING: pairs with the Release in publish().
        if slot.turn.load(Ordering::Acquire) != at + 1 {
            return None;
        }
        // ORDERING: handed over by `turn`, here and back below.
        let op = slot.cell.load(Ordering::Relaxed);
        slot.cell.store(supply(), Ordering::Relaxed);
        // ORDERING: pairs with the Acquire in cell().
        slot.turn.store(at + SLOTS as u64, Ordering::Release);
        // ORDERING: pairs with the loads in is_idle() and registered(), which only compare.
        self.registered.store(at + 1, Ordering::Release);
        Some(op)
    }

    /// Asks for the cache lines of the op `ahead` places on, if it is published. It may have so many accesses.
    #[inline]
    pub(crate) fn prefetch(&self, _seat: &Seat, ahead: u64, accesses: usize) {
        // ORDERING: as in take().
        let at = self.registered.load(Ordering::Relaxed) + ahead;
        let slot = self.slot(at);
        // ORDERING: as in take().
        if slot.turn.load(Ordering::Acquire) == at + 1 {
            // ORDERING: handed over by `turn`.
            let op = slot.cell.load(Ordering::Relaxed);
            Op::prefetch_to_open(op, accesses);
        }
    }

    /// Whether every ticket taken so far is registered. A worker asks before it sleeps.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        // ORDERING: SeqCst, the sleeper's half of the handshake; pairs with claim(). A ticket that
        // is taken but not yet published counts as work.
        let tickets = self.tickets.load(Ordering::SeqCst);
        // ORDERING: pairs with the Release in take(); a stale value is smaller and says "work".
        self.registered.load(Ordering::Acquire) == tickets
    }

    /// Tickets taken so far.
    #[inline]
    pub(crate) fn claimed(&self) -> u64 {
        // ORDERING: SeqCst: the closer of an engine looks here next; pairs with claim(): its caller looks next whether
        // the engine is closed.
        self.tickets.load(Ordering::SeqCst)
    }

    /// Tickets registered so far.
    pub(crate) fn registered(&self) -> u64 {
        // ORDERING: pairs with the Release in take().
        self.registered.load(Ordering::Acquire)
    }

    /// Slots that are free behind this ticket, when `registered` tickets are registered.
    pub(crate) fn free_after(&self, ticket: u64, registered: u64) -> usize {
        let taken = usize::try_from(ticket - registered.min(ticket)).unwrap_or(usize::MAX);
        self.slots.len().saturating_sub(taken)
    }

    /// The cells in the slots, to be given back to their slab when the ring dies.
    pub(crate) fn cells(&mut self) -> impl Iterator<Item = *mut Op> + '_ {
        // ORDERING: `&mut self`: nobody else is here.
        self.slots.iter().map(|slot| slot.cell.load(Ordering::Relaxed))
    }
}
