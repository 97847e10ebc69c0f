//! The registrar's own bookkeeping.

use super::by_priority::{Ordered, PATIENCE};
use super::epoch::Epochs;
use super::order::Order;
use super::pull::Pull;
use super::queues::Queues;
use super::tracker::Tracker;
use super::walk::LIFT_STEPS;
use crate::op::{Chunk, Op, OpContext, OpFlags, OpKind, OpPtr, RawPayload, Slab};
use crate::sync::Parker;
use crate::var::{AccessKind, Seat, VarNode};
use crate::waiter::Waiter;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

fn slab() -> Slab {
    let mut slab = Slab::new();
    slab.supply(Chunk::new());
    slab
}

/// Cells that go back when a test ends: what is in use is nobody's to free.
struct Cells {
    slab: Slab,
    taken: Vec<*mut Op>,
}

impl Cells {
    fn new() -> Self {
        Self { slab: slab(), taken: Vec::new() }
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        // SAFETY: op() took them; a fence has nothing to drop, and queues do not look at their ops when they go.
        self.taken.iter().for_each(|&cell| unsafe { self.slab.give(cell) });
    }
}

fn op(cells: &mut Cells, priority: i32) -> OpPtr {
    let cell = cells.slab.take();
    cells.taken.push(cell);
    let (payload, flags) = (MaybeUninit::uninit(), OpFlags::default());
    // SAFETY: the cell is new, and nobody runs it.
    unsafe {
        Op::fill(cell, OpKind::Fence, payload, &[], flags, priority, 0, None);
        Op::open(cell, 0);
    }
    OpPtr::from_raw(cell).expect("a cell")
}

/// The same with this number.
fn numbered(cells: &mut Cells, priority: i32, number: u32) -> OpPtr {
    let op = op(cells, priority);
    // SAFETY: it is nobody else's.
    unsafe { (*op.as_ptr()).number = number };
    op
}

/// Whatever the order in which they become ready, and where numbers begin anew.
#[test]
fn where_work_is_issued_equals_go_in_the_order_of_their_pushes() {
    let (mut cells, mut ordered) = (Cells::new(), Ordered::new(true));
    let numbers = [3, u32::MAX, 1, u32::MAX - 2, 2, 0];
    let ops = numbers.map(|number| numbered(&mut cells, 0, number));
    ops.into_iter().for_each(|op| ordered.insert(op));
    let urgent = numbered(&mut cells, 1, 4);
    ordered.insert(urgent);
    ordered.lift(ops[4], 1);
    let popped: Vec<_> = std::iter::from_fn(|| ordered.pop(i32::MIN)).collect();
    assert_eq!(popped, [ops[4], urgent, ops[3], ops[1], ops[5], ops[2], ops[0]]);
}

/// Takes all that is ready.
struct Everything(Vec<OpPtr>);

impl Pull for Everything {
    fn queues(&self) -> Range<usize> {
        0..1
    }

    fn wanted(&self) -> usize {
        usize::MAX
    }

    fn has_other(&self) -> bool {
        false
    }

    fn reach(&self) -> u64 {
        u64::MAX
    }

    fn take(&mut self, op: OpPtr) {
        self.0.push(op);
    }
}

/// Also when the last one that has a priority is done while others are ready.
#[test]
fn the_order_of_pushes_outlasts_that_of_priorities() {
    let (mut cells, mut queues, mut taken) = (Cells::new(), Queues::new(|_| Order::Pushed), Everything(Vec::new()));
    let ops = [4, 2, 3, 1].map(|number| {
        let op = numbered(&mut cells, 0, number);
        let payload = RawPayload::new(|_: &mut OpContext<'_>| Ok(()));
        // SAFETY: it is nobody else's, and nobody runs it.
        unsafe { (*op.as_ptr()).payload = MaybeUninit::new(payload) };
        op
    });
    let nobody = |_, _| false;
    queues.insert(ops[0], nobody);
    queues.set_ordered(true);
    queues.insert(ops[1], nobody);
    queues.set_ordered(false);
    queues.insert(ops[2], nobody);
    queues.insert(ops[3], nobody);
    queues.pull(&mut taken);
    assert_eq!(taken.0, [ops[3], ops[1], ops[2], ops[0]]);
}

#[test]
fn the_highest_goes_first_and_equals_in_turn() {
    let (mut cells, mut ordered) = (Cells::new(), Ordered::default());
    let ops = [0, 5, -5, 5, 0].map(|priority| op(&mut cells, priority));
    ops.into_iter().for_each(|op| ordered.insert(op));
    assert_eq!(ordered.highest(), Some(5));
    ordered.lift(ops[2], 7);
    assert!(ordered.iter().eq([ops[2], ops[1], ops[3], ops[0], ops[4]]));
    assert_eq!(ordered.pop(8), None, "none is that high");
    let popped: Vec<_> = std::iter::from_fn(|| ordered.pop(i32::MIN)).collect();
    assert_eq!(popped, [ops[2], ops[1], ops[3], ops[0], ops[4]]);
    assert_eq!(ordered.highest(), None);
}

#[test]
fn who_was_passed_over_long_enough_goes_next() {
    let (mut cells, mut ordered) = (Cells::new(), Ordered::default());
    let low = op(&mut cells, -5);
    ordered.insert(low);
    let mut high: VecDeque<_> = (0..3).map(|_| op(&mut cells, 5)).collect();
    let bound = PATIENCE as usize;
    let passed_over = (0..2 * bound).position(|_| {
        let next = high.pop_front().expect("as many as come back");
        ordered.insert(next);
        let popped = ordered.pop(i32::MIN).expect("there are two");
        high.push_back(popped);
        popped == low
    });
    assert!((bound..bound + 64).contains(&passed_over.expect("it goes at last")));
}

#[test]
fn nobody_starves_among_many_priorities() {
    const LEVELS: i32 = 200; // more than one look sees
    let (mut cells, mut ordered) = (Cells::new(), Ordered::default());
    let low = op(&mut cells, -5);
    ordered.insert(low);
    (0..LEVELS).for_each(|priority| ordered.insert(op(&mut cells, priority)));
    // At worst every other level is served first.
    let bound = PATIENCE as usize + 64 * (LEVELS as usize + 2);
    let goes = (0..bound).any(|_| {
        let popped = ordered.pop(i32::MIN).expect("there are as many as before");
        ordered.insert(popped);
        popped == low
    });
    assert!(goes);
}

#[test]
fn a_wait_ends_with_its_epoch_and_all_before() {
    let parker = Parker::new();
    let waiters = [(); 3].map(|()| Waiter::new(&parker));
    let (mut epochs, mut ended) = (Epochs::new(), Vec::new());
    let first = [epochs.enter(), epochs.enter()];
    epochs.close(Arc::clone(&waiters[0]), |waiter| ended.push(waiter));
    let second = epochs.enter();
    epochs.close(Arc::clone(&waiters[1]), |waiter| ended.push(waiter));
    let third = epochs.enter();
    epochs.leave(third, |waiter| ended.push(waiter));
    epochs.leave(second, |waiter| ended.push(waiter));
    epochs.leave(first[1], |waiter| ended.push(waiter));
    assert!(ended.is_empty(), "one of the first epoch is left");
    epochs.leave(first[0], |waiter| ended.push(waiter));
    let ended_now = |ended: &[Arc<Waiter>], count: usize| {
        ended.len() == count && ended.iter().zip(&waiters).all(|(one, other)| Arc::ptr_eq(one, other))
    };
    assert!(ended_now(&ended, 2), "in their order");
    epochs.close(Arc::clone(&waiters[2]), |waiter| ended.push(waiter));
    assert!(ended_now(&ended, 3), "nothing is pending");
}

/// Cells are distinct, come back, and whole chunks with them.
#[test]
fn cells_are_used_again() {
    let mut slab = slab();
    for round in 0..3 {
        let cells: Vec<_> = (0..2000).map(|_| slab.take()).collect();
        let mut sorted = cells.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 2000);
        // SAFETY: they are taken, empty, and known here alone.
        cells.iter().rev().for_each(|&cell| unsafe { slab.give(cell) });
        let surplus = std::iter::from_fn(|| slab.surplus()).count();
        assert!(round > 0 || surplus == 0 || surplus < 8, "some are kept");
    }
}

/// However many ops wait for a variable, a push with a priority looks at so many of them: a turn stays short.
#[test]
fn a_push_lifts_so_many_at_most() {
    let node = VarNode::new(0, None, 0, 0);
    let mut tracker = Tracker::new(slab(), Queues::new(|_| Order::Ready));
    // SAFETY: nobody else is here.
    let seat = unsafe { Seat::take() };
    let mut push = |priority| {
        let cell = tracker.slab.take();
        let payload = MaybeUninit::new(RawPayload::new(|_: &mut OpContext<'_>| Ok(())));
        let accesses = [(NonNull::from(&node), AccessKind::Mutate)];
        // SAFETY: the cell is new, and nobody runs it; the variable outlives it.
        unsafe {
            Op::fill(cell, OpKind::Run, payload, &accesses, OpFlags::default(), priority, 0, None);
            Op::open(cell, 0);
        }
        tracker.register(&seat, cell);
        cell
    };
    let low: Vec<_> = (0..3 * LIFT_STEPS).map(|_| push(0)).collect();
    let urgent = push(1);
    // SAFETY: nobody has run it.
    let is_lifted = |op: &*mut Op| unsafe { (**op).priority == 1 };
    let lifted = low.iter().filter(|op| is_lifted(op)).count();
    assert!((LIFT_STEPS / 2..=LIFT_STEPS + 1).contains(&lifted), "{lifted} were lifted");
    assert!(low[..lifted].iter().all(is_lifted), "those that go next are");
    let mut slab = std::mem::replace(&mut tracker.slab, Slab::new());
    drop(tracker);
    for cell in low.into_iter().chain([urgent]) {
        // SAFETY: nobody knows it any more, and its payload owns nothing.
        unsafe { slab.give(cell) };
    }
}
