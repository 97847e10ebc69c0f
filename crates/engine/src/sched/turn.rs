//! The registrar's role: one thread at a time, never waited for by a push or a completion.
//!
//! | role | who | does |
//! |---|---|---|
//! | free | anybody | takes it by one compare-exchange, or goes on |
//! | held | the holder | settles, registers a bounded batch, hands ready ops out, gives it back |
//!
//! After giving it back the holder looks into the inbox once more (see `sched`). The guard does: a [`Turn`] that is
//! dropped settles the ops that came meanwhile, so no taker of the role can forget it.

use super::outbox::Outbox;
use super::pull::{Pull, PullNothing};
use super::registrar::Registrar;
use super::ring::SLOTS;
use super::tracker::Tracker;
use crate::op::{Chunk, OpPtr};
use crate::quiet::is_quiet;
use crate::sync::{Ordering, full_fence_after_rmw, spin_hint, yield_now};
use crate::var::Seat;

/// Pushes that one turn registers at most.
const BATCH: usize = if cfg!(loom) { 2 } else { 256 };

/// Pushes registered between two looks for ready ops.
const STRIDE: usize = if cfg!(loom) { 1 } else { 8 };

/// The role, held. Dropping it gives it back, does the work left for after it, and settles the ops left in the inbox
/// meanwhile.
pub(crate) struct Turn<'a> {
    registrar: &'a Registrar,
    seat: Seat,
}

impl Registrar {
    /// Takes the role if it is free.
    #[inline]
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        // ORDERING: SeqCst, the finisher's half of the handshake, behind its put into the inbox; pairs with the swap
        // in give_back(). It spares the cache line, and may send the finisher away, so it takes part; see `sched`.
        if self.role.load(Ordering::SeqCst) {
            return None;
        }
        // ORDERING: SeqCst: Acquire of the last holder's writes (pairs with give_back()). One that fails has read a
        // holder's write after the load above, and that one will look into the inbox.
        match self.role.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => {
                full_fence_after_rmw();
                // SAFETY: the role was free and is ours now.
                Some(Turn { registrar: self, seat: unsafe { Seat::take() } })
            }
            Err(_) => None,
        }
    }

    /// Takes the role, waiting for it. Only for calls that are rare: waits, figures, close, fork.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let mut tries = 0_u32;
        loop {
            if let Some(turn) = self.try_turn() {
                return turn;
            }
            tries += 1;
            if tries.is_multiple_of(64) { yield_now() } else { spin_hint() }
        }
    }

    /// Takes up a turn that was forgotten.
    ///
    /// # Safety
    ///
    /// The caller's thread had a turn, forgot it, and takes it up once.
    pub(crate) unsafe fn resume_turn(&self) -> Turn<'_> {
        // SAFETY: the caller's promise: the role is held, and the seat is free.
        Turn { registrar: self, seat: unsafe { Seat::take() } }
    }

    /// Takes the role, settles `finished` and ops that others left, registers pushes if `pull` wants more than it was
    /// handed, gives it ready ops, and gives the role back. If the role is not free, `finished` goes to the inbox and
    /// its holder does the rest.
    #[inline]
    pub(crate) fn drive(&self, mut finished: Option<OpPtr>, pull: &mut impl Pull) {
        loop {
            let Some(mut turn) = self.try_turn() else {
                let kept = pull.hand().is_some_and(|hand| self.leave_kept(hand));
                match finished.take() {
                    Some(op) => _ = self.inbox.put(op),
                    None if !kept => return,
                    None => {}
                }
                continue; // the holder may have looked before: try once more, now that it is visible
            };
            turn.work(finished.take(), pull);
            turn.end();
            if self.inbox.is_empty() {
                return;
            }
        }
    }
}

impl Turn<'_> {
    /// The tracker, and the proof that it is ours.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Tracker, &Seat) {
        // SAFETY: the role is held, so no other thread is in the tracker; the borrow ends with ours.
        let tracker = self.registrar.tracker.with_mut(|tracker| unsafe { &mut *tracker });
        (tracker, &self.seat)
    }

    /// One turn's work; see [`Registrar::drive`].
    #[inline]
    fn work(&mut self, finished: Option<OpPtr>, pull: &mut impl Pull) {
        let registrar = self.registrar;
        let (tracker, seat) = self.parts();
        if let Some(op) = finished {
            tracker.settle(seat, op, false);
        }
        registrar.settle_hands(pull.hand(), tracker, seat);
        tracker.settle_all(seat, registrar.inbox.take());
        // Where priorities count, the next op is chosen below.
        let late = registrar.chooses_late();
        tracker.sort(seat, |queue, op| !late && pull.take_over(queue, op));
        let mut left = match pull.wanted() {
            _ if late => SLOTS,
            0 => 0,
            _ => BATCH,
        };
        while left > 0 {
            // Where priorities count, the next op is chosen when all candidates are known.
            if !registrar.chooses_late() {
                tracker.queues.pull(pull);
                if registrar.in_hand(tracker) >= pull.reach() {
                    break;
                }
            }
            // A few at a time: looking into the queues between pushes is not free.
            let mut registered = false;
            for _ in 0..STRIDE.min(left) {
                let Some(op) = registrar.take_push(tracker, seat) else { break };
                tracker.register(seat, op);
                registered = true;
                left -= 1;
            }
            if !registered {
                break;
            }
            tracker.queues.set_ordered(registrar.is_ordered());
            tracker.sort(seat, |_, _| false);
        }
        if registrar.draws {
            tracker.queues.hold_back(!tracker.is_awaited());
        }
        tracker.queues.pull(pull);
        registrar.publish(tracker);
    }

    /// Settles finished ops and registers everything that was pushed before: what they have pushed, too, so that a chain of ops that
    /// push the next one is never seen without a pending one.
    pub(crate) fn catch_up(&mut self) {
        let registrar = self.registrar;
        let (tracker, seat) = self.parts();
        registrar.settle_hands(None, tracker, seat);
        tracker.settle_all(seat, registrar.inbox.take());
        let until = registrar.ring.claimed();
        while registrar.ring.registered() < until {
            match registrar.take_push(tracker, seat) {
                Some(op) => tracker.register(seat, op),
                // A pusher has its ticket but has not published yet; it will, without our help.
                None => yield_now(),
            }
        }
        tracker.queues.set_ordered(registrar.is_ordered());
        tracker.sort(seat, |_, _| false);
        registrar.publish(tracker);
    }
}

impl Registrar {
    /// Registers the ops of a full ring, for a pusher that has its ticket already, if the role is free. User code must
    /// not run before that ticket is published, so all that would run it stays with the tracker: for the next holder of
    /// the role, the pusher itself at the latest.
    pub(crate) fn make_room(&self) {
        while let Some(mut turn) = self.try_turn() {
            turn.work(None, &mut PullNothing { register: true });
            turn.give_back(false);
            std::mem::forget(turn);
            if self.inbox.is_empty() {
                break;
            }
        }
    }
}

impl Turn<'_> {
    /// Gives the role back and does the work left for after it. The caller looks into the inbox.
    #[inline]
    fn end(mut self) {
        self.end_by_reference();
        std::mem::forget(self);
    }

    #[inline]
    fn end_by_reference(&mut self) {
        let (outbox, low) = self.give_back(true);
        if low || outbox.is_some() {
            self.registrar.afterwards(outbox, low);
        }
    }

    /// Tells the workers that keep finished ops whether a thread waits for the end of one, and settles what they kept before.
    #[inline]
    fn tell_keepers(&mut self) {
        let registrar = self.registrar;
        let (tracker, _) = self.parts();
        let awaited = tracker.awaits_op();
        if awaited == tracker.told_awaited {
            return;
        }
        tracker.told_awaited = awaited;
        registrar.hands.set_awaited(awaited);
        if awaited {
            self.settle_kept();
        }
    }

    /// Settles what workers keep.
    pub(crate) fn settle_kept(&mut self) {
        let registrar = self.registrar;
        let (tracker, seat) = self.parts();
        if registrar.has_kept() {
            registrar.settle_hands(None, tracker, seat);
            tracker.sort(seat, |_, _| false);
            registrar.publish(tracker);
        }
    }

    /// Gives the role back. Answers the work for now, unless it is to be left to others, and whether the slab wants a
    /// chunk.
    #[inline]
    fn give_back(&mut self, deliver: bool) -> (Option<Outbox>, bool) {
        let registrar = self.registrar;
        self.tell_keepers();
        let (tracker, _) = self.parts();
        let mut at = registrar.emptied.take();
        while !at.is_null() {
            // SAFETY: emptied ops are settled, without payload, and known to nobody else.
            unsafe {
                let next = (*at).next;
                tracker.free_skipped(at);
                at = next;
            }
        }
        let deliver = deliver && !tracker.outbox.is_empty() && !is_quiet();
        let outbox = deliver.then(|| std::mem::take(&mut tracker.outbox));
        let low = tracker.slab.is_low();
        // ORDERING: SeqCst: Release of our writes (pairs with try_turn()), and the holder's half
        // of the handshake: it comes before the next look into the inbox.
        registrar.role.swap(false, Ordering::SeqCst);
        full_fence_after_rmw();
        (outbox, low)
    }
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        self.end_by_reference();
        if !self.registrar.inbox.is_empty() {
            self.registrar.drive(None, &mut PullNothing { register: false });
        }
    }
}

impl Registrar {
    /// The work that has no place under the role.
    #[cold]
    fn afterwards(&self, outbox: Option<Outbox>, low: bool) {
        if let Some(outbox) = outbox {
            self.deliver(outbox);
        }
        if low {
            self.supply(Chunk::new());
        }
    }

    fn supply(&self, chunk: Chunk) {
        if let Some(mut turn) = self.try_turn() {
            turn.parts().0.slab.supply(chunk);
            // The slab is no longer low, and the other work was done a moment ago.
            let rest = turn.give_back(true);
            std::mem::forget(turn);
            if let (Some(outbox), _) = rest {
                self.deliver(outbox);
            }
        }
    }

    /// Does the work that had no place under the role.
    pub(super) fn deliver(&self, outbox: Outbox) {
        let mut at = outbox.deliver().map_or(std::ptr::null_mut(), OpPtr::as_ptr);
        while let Some(op) = OpPtr::from_raw(at) {
            // SAFETY: a skipped op is ours until it is in the inbox.
            at = unsafe { (*at).next };
            self.emptied.put(op);
        }
    }
}
