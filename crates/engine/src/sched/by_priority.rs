//! Ready ops in order of priority.
//!
//! While ops with a priority are pending, every ready op of a lane goes through one of these: first by
//! priority, then first come first served. An op that was passed over [`PATIENCE`] times goes next regardless
//! of its priority, so that low ones do not starve. Of many priorities some are looked at in turn, so that a
//! pop takes the same time however many there are. In the issuing lanes, those of one priority go in the
//! order of their pushes.
//!
//! The lists are linked through the ops; only the registrar touches them.

use crate::op::{Op, OpFlags, OpPtr, Pushed};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::ptr;

/// Pops after which the longest-waiting op goes next.
pub(crate) const PATIENCE: u32 = 1024;

/// Pops from one look for such an op to the next.
const POPS: u32 = 64;
/// Priorities looked at each time.
const LOOKS: usize = 64;

struct List {
    first: *mut Op,
    last: *mut Op,
}

/// The ordered ready ops of one lane.
#[derive(Default)]
pub(crate) struct Ordered {
    levels: BTreeMap<Reverse<i32>, List>,
    pops: u32,
    /// The level that was looked at last.
    looked: Option<Reverse<i32>>,
    in_order: bool,
}

impl Ordered {
    /// Ready ops of a lane: those of one priority go in the order of their pushes, or as they come.
    pub(crate) fn new(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    /// Takes a ready op in.
    pub(crate) fn insert(&mut self, op: OpPtr) {
        let op = op.as_ptr();
        // SAFETY: a ready op that was not handed out is the registrar's, here and below.
        unsafe {
            (*op).last.listed.ready_since = self.pops;
            self.append(op);
        }
    }

    unsafe fn append(&mut self, op: *mut Op) {
        // SAFETY: as in insert(); listed ops are alive.
        unsafe {
            (*op).flags.set(OpFlags::LISTED);
            let list = self
                .levels
                .entry(Reverse((*op).priority))
                .or_insert(List { first: ptr::null_mut(), last: ptr::null_mut() });
            let (mut previous, mut next) = (list.last, ptr::null_mut::<Op>());
            while self.in_order && !previous.is_null() && Pushed::of(op) < Pushed::of(previous) {
                (previous, next) = ((*previous).last.listed.previous, previous);
            }
            (*op).last.listed.previous = previous;
            (*op).next = next;
            if previous.is_null() {
                list.first = op;
            } else {
                (*previous).next = op;
            }
            if next.is_null() {
                list.last = op;
            } else {
                (*next).last.listed.previous = op;
            }
        }
    }

    unsafe fn remove(&mut self, op: *mut Op) {
        // SAFETY: as in insert(); the op is listed at its priority.
        unsafe {
            let (next, previous) = ((*op).next, (*op).last.listed.previous);
            (*op).flags.clear(OpFlags::LISTED);
            let level = Reverse((*op).priority);
            let Some(list) = self.levels.get_mut(&level) else { return };
            if previous.is_null() {
                list.first = next;
            } else {
                (*previous).next = next;
            }
            if next.is_null() {
                list.last = previous;
            } else {
                (*next).last.listed.previous = previous;
            }
            if list.first.is_null() {
                self.levels.remove(&level);
            }
        }
    }

    /// Raises a listed op to `priority`.
    pub(crate) fn lift(&mut self, op: OpPtr, priority: i32) {
        // SAFETY: the caller names an op that is listed here.
        unsafe {
            self.remove(op.as_ptr());
            (*op.as_ptr()).priority = priority;
            self.append(op.as_ptr());
        }
    }

    /// Among the due levels, the op that waited so long that it goes next.
    fn overdue(&mut self) -> Option<*mut Op> {
        let from = self.looked.map_or(Bound::Unbounded, Bound::Excluded);
        let turn = self.levels.range((from, Bound::Unbounded)).chain(&self.levels).take(LOOKS);
        let (mut oldest, mut longest) = (None, PATIENCE);
        for (level, list) in turn {
            // SAFETY: listed ops are alive.
            let waited = self.pops.wrapping_sub(unsafe { (*list.first).last.listed.ready_since });
            if waited >= longest {
                (oldest, longest) = (Some(list.first), waited);
            }
            self.looked = Some(*level);
        }
        oldest
    }

    /// The highest priority in here.
    pub(crate) fn highest(&self) -> Option<i32> {
        self.levels.first_key_value().map(|(&Reverse(priority), _)| priority)
    }

    /// Takes the next op of at least this priority; an overdue one of any priority.
    pub(crate) fn pop(&mut self, least: i32) -> Option<OpPtr> {
        let (&Reverse(highest), list) = self.levels.first_key_value()?;
        let mut op = list.first;
        // Looking at levels takes time, so it is done now and then.
        if self.pops.is_multiple_of(POPS)
            && let Some(overdue) = self.overdue()
        {
            op = overdue;
        } else if highest < least {
            return None;
        }
        self.pops = self.pops.wrapping_add(1);
        // SAFETY: `op` is the first of a list, so it is listed and alive.
        unsafe { self.remove(op) };
        OpPtr::from_raw(op)
    }

    /// The listed ops, highest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = OpPtr> + '_ {
        self.levels.values().flat_map(|list| {
            // SAFETY: listed ops are alive.
            std::iter::successors(OpPtr::from_raw(list.first), |op| OpPtr::from_raw(unsafe { (*op.as_ptr()).next }))
        })
    }
}
