//! Ready ops, sorted by where they run, until a worker pulls them.
//!
//! A queue is one lane's native ops or one lane's hosted ops. While ops with a priority are
//! pending, ready ops go into the queue's ordered list, otherwise into its plain one: first come
//! first served, or, in the issuing lanes, in the order of their pushes.

use super::by_priority::Ordered;
use super::order::{Drawn, Order};
use super::pull::Pull;
use crate::op::{Op, OpPtr, Pushed};
use std::cmp;
use std::collections::BinaryHeap;
use std::ptr;

/// Lanes an engine may have.
pub(crate) const LANES: usize = if cfg!(loom) { 2 } else { 64 };
const _: () = assert!(LANES <= u8::MAX as usize, "an op notes its lane in a byte");
/// Queues an engine may have.
pub(crate) const QUEUES: usize = 2 * LANES;

/// The queue of a lane's native or hosted ops.
#[inline]
pub(crate) const fn queue_of(lane: u16, hosted: bool) -> usize {
    lane as usize * 2 + hosted as usize
}

/// A list of ops linked through them, first come first served.
pub(crate) struct Fifo {
    first: *mut Op,
    last: *mut Op,
}

impl Fifo {
    pub(crate) const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut() }
    }

    #[inline]
    pub(crate) fn push(&mut self, op: *mut Op) {
        // SAFETY: a ready op that was not handed out is the registrar's, and so are listed ones.
        unsafe {
            (*op).next = ptr::null_mut();
            if self.first.is_null() {
                self.first = op;
            } else {
                (*self.last).next = op;
            }
        }
        self.last = op;
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<OpPtr> {
        let op = OpPtr::from_raw(self.first)?;
        // SAFETY: as in push().
        self.first = unsafe { (*op.as_ptr()).next };
        Some(op)
    }

    /// The listed ops, first come first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = OpPtr> + use<> {
        // SAFETY: as in push().
        std::iter::successors(OpPtr::from_raw(self.first), |op| OpPtr::from_raw(unsafe { (*op.as_ptr()).next }))
    }
}

/// A ready op in the order of the pushes.
#[derive(Clone, Copy)]
struct InOrder {
    pushed: Pushed,
    op: OpPtr,
}

impl Ord for InOrder {
    /// The greatest was pushed first, as a heap hands that one out.
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        other.pushed.cmp(&self.pushed)
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for InOrder {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for InOrder {}

enum Plain {
    /// Those that became ready first.
    Ready(Fifo),
    /// Those that were pushed first.
    Pushed(BinaryHeap<InOrder>),
    /// Whichever is drawn.
    Drawn(Drawn),
}

impl Plain {
    #[inline]
    fn push(&mut self, op: OpPtr) {
        match self {
            Self::Ready(list) => list.push(op.as_ptr()),
            // SAFETY: a ready op that was handed to nobody is the registrar's.
            Self::Pushed(heap) => heap.push(InOrder { pushed: unsafe { Pushed::of(op.as_ptr()) }, op }),
            Self::Drawn(drawn) => drawn.push(op),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<OpPtr> {
        match self {
            Self::Ready(list) => list.pop(),
            Self::Pushed(heap) => heap.pop().map(|first| first.op),
            Self::Drawn(drawn) => drawn.pop(),
        }
    }

    fn draws(&self) -> bool {
        matches!(self, Self::Drawn(_))
    }
}

struct Queue {
    plain: Plain,
    by_priority: Ordered,
    count: usize,
    /// The count that others were last told.
    told: usize,
}

pub(crate) struct Queues {
    by_number: Vec<Queue>,
    /// Queues with counts that may have changed since others were told, as bits.
    changed: u128,
    /// Whether newly ready ops are ordered by priority.
    ordered: bool,
    /// Whether ops to be drawn are held back, unless a puller insists.
    held_back: bool,
}

impl Queues {
    /// Queues of lanes that hand out ready ops in these orders.
    pub(crate) fn new(order: impl Fn(u16) -> Order) -> Self {
        let queue = |lane| {
            let plain = match order(lane) {
                Order::Ready => Plain::Ready(Fifo::new()),
                Order::Pushed => Plain::Pushed(BinaryHeap::new()),
                Order::Drawn(seed) => Plain::Drawn(Drawn::new(seed)),
            };
            let by_priority = Ordered::new(order(lane) == Order::Pushed);
            Queue { plain, by_priority, count: 0, told: 0 }
        };
        #[allow(clippy::cast_possible_truncation)] // there are few
        let lanes = 0..LANES as u16;
        Self {
            by_number: lanes.flat_map(|lane| [lane; 2]).map(queue).collect(),
            changed: 0,
            ordered: false,
            held_back: false,
        }
    }

    /// The queue an op belongs to: the first one of its lane, or the second one if it is hosted, unless all are drawn from one.
    #[inline]
    fn home(&self, op: OpPtr) -> usize {
        // SAFETY: a ready op that was not handed out is the registrar's; its payload is still there.
        let (lane, hosted) =
            unsafe { ((*op.as_ptr()).lane.into(), (*op.as_ptr()).payload.assume_init_ref().is_hosted()) };
        let native = queue_of(lane, false);
        if hosted && !self.by_number[native].plain.draws() { queue_of(lane, true) } else { native }
    }

    /// Says whether ops to be drawn are held back from now on.
    #[inline]
    pub(crate) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Takes a ready op in, unless `take_over` takes it.
    #[inline]
    pub(crate) fn insert(&mut self, op: OpPtr, take_over: impl FnOnce(usize, OpPtr) -> bool) {
        let home = self.home(op);
        if take_over(home, op) {
            return;
        }
        let queue = &mut self.by_number[home];
        queue.count += 1;
        self.changed |= 1 << home;
        if self.ordered && !queue.plain.draws() {
            queue.by_priority.insert(op);
        } else {
            queue.plain.push(op);
        }
    }

    /// Says whether ops are ordered by priority from now on. When ordering begins, the ops in plain lists go into the
    /// ordered ones. When it ends, no op that is left has a priority. In a lane in the order of the pushes these ops then
    /// go back into the plain list, so that they and later ones are in one order.
    #[inline]
    pub(crate) fn set_ordered(&mut self, ordered: bool) {
        if ordered == self.ordered {
            return;
        }
        self.ordered = ordered;
        for queue in self.by_number.iter_mut().filter(|queue| queue.count > 0 && !queue.plain.draws()) {
            if ordered {
                while let Some(op) = queue.plain.pop() {
                    queue.by_priority.insert(op);
                }
            } else if matches!(queue.plain, Plain::Pushed(_)) {
                while let Some(op) = queue.by_priority.pop(i32::MIN) {
                    queue.plain.push(op);
                }
            }
        }
    }

    /// Gives `pull` the wanted ops of its queues.
    #[inline]
    pub(crate) fn pull(&mut self, pull: &mut impl Pull) {
        for queue in pull.queues() {
            self.pull_from(queue, pull);
        }
    }

    #[inline]
    fn pull_from(&mut self, queue: usize, pull: &mut impl Pull) {
        let from = &mut self.by_number[queue];
        if self.held_back && from.plain.draws() && !pull.insists() {
            return;
        }
        while from.count > 0 && pull.wanted() > 0 {
            // The puller's own ops became ready before, with priority 0. Once ordering has ended, ordered ops are older
            // than the others.
            let least = if self.ordered && pull.has_other() { 1 } else { i32::MIN };
            let op = match from.by_priority.highest() {
                Some(_) => from.by_priority.pop(least).or_else(|| from.plain.pop()),
                None => from.plain.pop(),
            };
            let Some(op) = op else { break };
            from.count -= 1;
            self.changed |= 1 << queue;
            pull.take(op);
            if self.ordered {
                break; // the next one is chosen when it is needed
            }
        }
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self, mut each: impl FnMut(OpPtr)) {
        for queue in &mut self.by_number {
            while let Some(op) = queue.by_priority.pop(i32::MIN).or_else(|| queue.plain.pop()) {
                queue.count -= 1;
                each(op);
            }
        }
    }

    /// Tells the counts that changed.
    #[inline]
    pub(crate) fn publish(&mut self, mut tell: impl FnMut(usize, usize)) {
        while self.changed != 0 {
            let at = self.changed.trailing_zeros() as usize;
            self.changed &= self.changed - 1;
            let queue = &mut self.by_number[at];
            if queue.told != queue.count {
                queue.told = queue.count;
                tell(at, queue.count);
            }
        }
    }

    /// Raises an ordered op to `priority`.
    pub(crate) fn lift(&mut self, op: OpPtr, priority: i32) {
        let home = self.home(op);
        self.by_number[home].by_priority.lift(op, priority);
    }

    /// All ordered ops.
    pub(crate) fn ordered_ops(&self) -> impl Iterator<Item = OpPtr> + '_ {
        self.by_number.iter().flat_map(|queue| queue.by_priority.iter())
    }
}
