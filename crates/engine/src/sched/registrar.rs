//! The registrar: the work of one thread at a time, and the notes that the others leave for it. How the role is taken
//! and given back is in `turn`.

use super::hands::Hands;
use super::inbox::Inbox;
use super::order::Order;
use super::queues::{QUEUES, Queues};
use super::ring::Ring;
use super::tracker::Tracker;
use crate::op::{Chunk, Op, OpPtr, Slab};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, CachePadded, Ordering, UnsafeCell};
use crate::var::Seat;

/// How many pushes ahead the registrar asks for the op that it will register.
const AHEAD: u64 = 4;

pub(crate) struct Registrar {
    pub(crate) ring: Ring,
    /// Whether a lane draws among ready ops: it is to know all of them before each draw.
    pub(crate) draws: bool,
    pub(super) inbox: Inbox,
    pub(super) hands: Hands,
    /// Settled ops with dropped payloads: their cells go back to the slab.
    pub(super) emptied: Inbox,
    pub(super) role: CachePadded<AtomicBool>,
    pub(super) tracker: UnsafeCell<Tracker>,
    /// Tickets whose op is settled.
    settled: CachePadded<AtomicU64>,
    /// Ready ops by queue, as of the last turn.
    ready: Box<[CachePadded<AtomicUsize>]>,
    /// Pending ops with a priority other than 0.
    prioritised: CachePadded<AtomicUsize>,
    /// Bytes held by pending ops.
    bytes: AtomicU64,
}

// SAFETY: the tracker is reached through the role alone, which one thread holds at a time.
unsafe impl Sync for Registrar {}

impl Registrar {
    /// One with lanes that hand out ready ops in these orders, and so many workers that may keep ops.
    pub(crate) fn new(order: impl Fn(u16) -> Order, hands: usize) -> Self {
        let mut slab = Slab::new();
        slab.supply(Chunk::new());
        let ring = Ring::new(|| slab.take());
        Self {
            ring,
            draws: order(0).draws(),
            inbox: Inbox::new(),
            hands: Hands::new(hands),
            emptied: Inbox::new(),
            role: CachePadded(AtomicBool::new(false)),
            tracker: UnsafeCell::new(Tracker::new(slab, Queues::new(order))),
            settled: CachePadded(AtomicU64::new(0)),
            ready: (0..QUEUES).map(|_| CachePadded(AtomicUsize::new(0))).collect(),
            prioritised: CachePadded(AtomicUsize::new(0)),
            bytes: AtomicU64::new(0),
        }
    }

    /// Pushes counted in but not settled, waits and releases included. May lag, never lead.
    #[inline]
    pub(crate) fn pending(&self) -> u64 {
        // ORDERING: counts only; `settled` is read first so that the difference cannot wrap.
        let settled = self.settled.load(Ordering::Acquire);
        self.ring.claimed() - settled
    }

    /// Tickets whose op is settled.
    #[inline]
    pub(crate) fn settled(&self) -> u64 {
        // ORDERING: pairs with the Release in publish_counts().
        self.settled.load(Ordering::Acquire)
    }

    pub(crate) fn bytes(&self) -> u64 {
        // ORDERING: a count only.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts bytes that an op about to be pushed holds.
    pub(crate) fn hold_bytes(&self, bytes: u64) {
        // ORDERING: a count only.
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts out an op with a priority that was not pushed after all.
    pub(crate) fn uncount_prioritised(&self) {
        // ORDERING: a count only; takes this thread's addition back.
        self.prioritised.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts an op with a priority that is about to be pushed.
    pub(crate) fn count_prioritised(&self) {
        // ORDERING: published with the op by the ring; the registrar reads it after taking the op.
        self.prioritised.fetch_add(1, Ordering::Relaxed);
    }

    /// Ready ops in this queue, as of the last turn.
    #[inline]
    pub(crate) fn ready(&self, queue: usize) -> usize {
        // ORDERING: SeqCst: a worker asks before it sleeps; pairs with the store in publish(): that thread looks for
        // sleepers next.
        self.ready[queue].load(Ordering::SeqCst)
    }

    /// Whether there is anything for the next holder to do.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.has_left() || !self.ring.is_idle()
    }

    /// Whether finished ops wait for the role's next holder.
    #[inline]
    pub(crate) fn has_left(&self) -> bool {
        !self.inbox.is_empty() || self.has_kept()
    }

    /// Whether workers keep finished ops.
    #[inline]
    pub(crate) fn has_kept(&self) -> bool {
        !self.hands.are_empty()
    }

    /// Whether the worker of this number may keep ops.
    #[inline]
    pub(crate) fn has_hand(&self, worker: usize) -> bool {
        self.hands.has(worker)
    }

    /// Keeps a finished op in a worker's hand, who looks next whether somebody counts on its end.
    #[inline]
    pub(crate) fn keep(&self, worker: usize, op: OpPtr) {
        self.hands.keep(worker, op);
    }

    /// Whether a thread waits for the end of an op.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.hands.is_awaited()
    }

    /// Leaves what a worker keeps to the role's next holder, as [`leave`](Self::leave) does. Answers whether there was anything.
    #[inline]
    pub(crate) fn leave_kept(&self, worker: usize) -> bool {
        self.inbox.put_taken(self.hands.take(worker))
    }

    /// Leaves an op for the role's next holder, the caller if no other comes: see [`drive`](Self::drive).
    #[inline]
    pub(crate) fn leave(&self, op: OpPtr) {
        self.inbox.put(op);
    }

    /// Puts an op with so many accesses into the ring: `fill` writes it into the cell it is given, and is told its number.
    /// `help` is called, with the ticket, while the ring is full.
    #[inline]
    pub(crate) fn push(&self, accesses: usize, fill: impl FnOnce(*mut Op, u64), mut help: impl FnMut(u64)) {
        let ticket = self.ring.claim();
        let cell = loop {
            match self.ring.cell(ticket, accesses) {
                Some(cell) => break cell,
                None => help(ticket),
            }
        };
        fill(cell, ticket);
        self.ring.publish(ticket);
    }

    #[inline]
    pub(super) fn is_ordered(&self) -> bool {
        // ORDERING: see count_prioritised().
        self.prioritised.load(Ordering::Relaxed) > 0
    }

    /// Whether the next op is chosen when all candidates are known.
    #[inline]
    pub(super) fn chooses_late(&self) -> bool {
        self.draws || self.is_ordered()
    }

    /// Pushes registered and not settled.
    #[inline]
    pub(super) fn in_hand(&self, tracker: &Tracker) -> u64 {
        // ORDERING: the registrar alone writes it.
        let settled = self.settled.load(Ordering::Relaxed) + tracker.settled_tickets;
        self.ring.registered() - settled
    }

    #[inline]
    pub(super) fn take_push(&self, tracker: &mut Tracker, seat: &Seat) -> Option<*mut Op> {
        self.ring.prefetch(seat, AHEAD, tracker.accesses);
        let number = self.ring.registered();
        let slab = &mut tracker.slab;
        let op = self.ring.take(seat, || slab.take())?;
        // SAFETY: it was filled, and is the registrar's since.
        unsafe { Op::open(op, number) };
        tracker.accesses = Op::accesses(op).1;
        Some(op)
    }

    /// Settles what the worker of this number keeps, and what one of the others does, the next one each time; without a number what all
    /// keep.
    #[inline]
    pub(super) fn settle_hands(&self, own: Option<usize>, tracker: &mut Tracker, seat: &Seat) {
        let Some(own) = own else {
            self.hands.keepers().for_each(|keeper| tracker.settle_all(seat, self.hands.take(keeper)));
            return;
        };
        tracker.settle_all(seat, self.hands.take(own));
        if let Some(keeper) = self.hands.keeper_behind(tracker.last_keeper) {
            tracker.last_keeper = keeper;
            tracker.settle_all(seat, self.hands.take(keeper));
        }
    }

    /// Lets others see the changes of this turn.
    #[inline]
    pub(super) fn publish(&self, tracker: &mut Tracker) {
        if tracker.settled_tickets > 0 {
            // ORDERING: the registrar alone writes it. Release pairs with pending() and settled().
            let settled = self.settled.load(Ordering::Relaxed) + std::mem::take(&mut tracker.settled_tickets);
            self.settled.store(settled, Ordering::Release);
        }
        tracker.queues.publish(|queue, count| {
            // ORDERING: SeqCst: published before the look for sleepers; see ready().
            self.ready[queue].store(count, Ordering::SeqCst);
        });
        if tracker.freed_bytes > 0 {
            // ORDERING: a count only.
            self.bytes.fetch_sub(std::mem::take(&mut tracker.freed_bytes), Ordering::Relaxed);
        }
        if tracker.settled_prioritised > 0 {
            // ORDERING: see count_prioritised().
            self.prioritised.fetch_sub(std::mem::take(&mut tracker.settled_prioritised), Ordering::Relaxed);
        }
        if !tracker.room.is_empty() {
            tracker.wake_for_room(tracker.pending(), self.bytes());
        }
        if tracker.outbox.chunk.is_none() {
            tracker.outbox.chunk = tracker.slab.surplus();
        }
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        // Unregistered releases, and the remains of these and of skipped ops.
        for _ in 0..2 {
            let mut turn = self.turn();
            turn.catch_up();
            // No turn comes after: all is delivered now, quiet or not.
            let (tracker, _) = turn.parts();
            let outbox = std::mem::take(&mut tracker.outbox);
            drop(turn);
            self.deliver(outbox);
        }
        self.drop_tokens();
        let cells: Vec<_> = self.ring.cells().collect();
        self.tracker.with_mut(|tracker| {
            for cell in cells {
                // SAFETY: `&mut self`: nobody else is here; unfilled cells came from this slab.
                unsafe { (*tracker).slab.give(cell) };
            }
        });
    }
}
