//! Walks along the queues: the chain of blocked ops.
//!
//! Both walks use that an op knows its accesses and a variable its queue. Granted readers are
//! counted and not listed, so the holders of a variable have no full list; the waiters for an op
//! have one: everything behind its accesses.

use super::tracker::Tracker;
use crate::op::{Op, OpFlags, OpKind, OpPtr};
use crate::replay::{self, Call};
use crate::var::{AccessNode, Seat, VarNode};
use std::collections::HashMap;
use std::ptr::NonNull;

/// Steps along queues that one push takes at most to lift its blockers, so that a turn stays short. Those at the heads
/// of the queues, which go next, are lifted first.
pub(super) const LIFT_STEPS: usize = 4096;

/// The first of the queued accesses that `access` waits for, or nothing if it is granted. Each one looked at takes one of
/// `steps`, and none is looked at when those are used up.
fn ahead_of(seat: &Seat, access: *mut AccessNode, steps: &mut usize) -> Option<Vec<*mut AccessNode>> {
    let mut ahead = Vec::new();
    if is_alone(seat, access) {
        return None;
    }
    // SAFETY: pending ops' accesses live.
    for queued in unsafe { (*access).var() }.queued(seat) {
        if *steps == 0 {
            // An exclusive one that does not have the variable is queued; of a read that is not known.
            // SAFETY: as above.
            return unsafe { (*access).kind().is_exclusive() }.then_some(ahead);
        }
        *steps -= 1;
        if queued == access {
            // SAFETY: as above.
            unsafe {
                while !(*access).kind().is_exclusive()
                    && ahead.pop_if(|last: &mut *mut AccessNode| !(**last).kind().is_exclusive()).is_some()
                {
                } // reads do not wait for the reads right before them
            }
            return Some(ahead);
        }
        ahead.push(queued);
    }
    None
}

/// Whether the variable is this access's alone.
fn is_alone(seat: &Seat, access: *mut AccessNode) -> bool {
    // SAFETY: pending ops' accesses live.
    unsafe {
        let (writer, _, _) = (*access).var().holders(seat);
        (*access).kind().is_exclusive() && writer == (*access).owner()
    }
}

/// The owners of the accesses that wait for `access` to leave.
fn behind(seat: &Seat, access: *mut AccessNode) -> Vec<OpPtr> {
    let mut owners = Vec::new();
    let mut beside = false;
    // SAFETY: pending ops' accesses live.
    for queued in unsafe { (*access).var() }.queued(seat) {
        // SAFETY: as above.
        let (exclusive, owner) = unsafe { ((*queued).kind().is_exclusive(), (*queued).owner()) };
        if queued == access {
            // It is queued itself: only those after it wait for it, and reads do not wait for a read.
            owners.clear();
            beside = !exclusive;
        } else {
            beside &= !exclusive;
            owners.extend(OpPtr::from_raw(owner).filter(|_| !beside));
        }
    }
    owners
}

/// The calls that wait for the instance of this one, if it is a replay's call and has one.
fn behind_instance(seat: &Seat, op: OpPtr) -> Vec<OpPtr> {
    if !Op::is_replay(op) {
        return Vec::new();
    }
    // SAFETY: a pending op is alive, and so is its call.
    let call = unsafe { &*Call::of(op.as_ptr()) };
    if call.inside || call.waits_for_instance() {
        return Vec::new(); // those behind one that waits wait for the same holders
    }
    let waiting = call.plan().calls(seat, true);
    // SAFETY: as above.
    waiting.into_iter().filter_map(|call| OpPtr::from_raw(unsafe { (*call).op })).collect()
}

/// A waiter: an op, or the first asker.
pub(crate) struct Blocked {
    pub(crate) op: Option<OpPtr>,
    /// Label of the variable.
    pub(crate) variable: String,
    /// Labels of the ops that have it.
    pub(crate) by: Vec<String>,
}

/// The ops that have a variable: the one that has it alone, or those that read it, as far as they are known. Reads are
/// counted and not listed, so that only running ones are.
fn holders(seat: &Seat, variable: NonNull<VarNode>, running: &[OpPtr]) -> Vec<OpPtr> {
    // SAFETY: the caller's: a living variable.
    let (writer, _, _) = unsafe { variable.as_ref() }.holders(seat);
    match OpPtr::from_raw(writer.cast()) {
        Some(op) => vec![op],
        None => running.iter().copied().filter(|op| Op::touches(op.as_ptr(), variable)).collect(),
    }
}

/// A variable that an op waits for; nothing if all its accesses are granted.
fn waits_for(seat: &Seat, op: OpPtr) -> Option<NonNull<VarNode>> {
    let (first, count) = Op::accesses(op.as_ptr());
    // SAFETY: pending ops' accesses live.
    let mut accesses =
        (0..count).map(|index| unsafe { first.add(index) }).filter(|&access| !AccessNode::has_left(access));
    // SAFETY: as above.
    let is_queued = |access: &*mut AccessNode| ahead_of(seat, *access, &mut usize::MAX.clone()).is_some();
    // SAFETY: as above.
    accesses.find(is_queued).map(|access| unsafe { (*access).var })
}

impl Tracker {
    /// Raises the ops that block `op`, directly or not, to its priority.
    pub(super) fn lift_blockers(&mut self, seat: &Seat, op: *mut Op) {
        // The op itself makes it so; a ready op must be listed to be raised.
        self.queues.set_ordered(true);
        // SAFETY: registered ops are alive; their priorities and flags are the registrar's.
        unsafe {
            let priority = (*op).priority;
            let mut steps = LIFT_STEPS;
            let mut todo = vec![op];
            while let Some(op) = todo.pop() {
                let (first, count) = Op::accesses(op);
                for index in 0..count {
                    let access = first.add(index);
                    if AccessNode::has_left(access) {
                        continue;
                    }
                    if !(*access).var().lift(seat, access, (*access).kind(), priority) {
                        continue;
                    }
                    let Some(ahead) = ahead_of(seat, access, &mut steps) else { continue };
                    let (writer, readers, _) = (*access).var().holders(seat);
                    let blockers = ahead.iter().map(|&ahead| (*ahead).owner::<Op>()).chain([writer.cast()]);
                    for blocker in blockers.filter(|blocker| !blocker.is_null()) {
                        if self.lift(blocker, priority) {
                            todo.push(blocker);
                        }
                    }
                    if readers > 0 {
                        self.lift_readers((*access).var, priority, &mut steps);
                    }
                }
                if (*op).kind == OpKind::Replay && (*Call::of(op)).waits_for_instance() {
                    for holder in (*Call::of(op)).plan().calls(seat, false) {
                        if self.lift((*holder).op, priority) {
                            todo.push((*holder).op);
                        }
                    }
                }
            }
        }
    }

    /// Raises one op. Answers whether it is blocked itself.
    unsafe fn lift(&mut self, op: *mut Op, priority: i32) -> bool {
        // SAFETY: the caller's: a registered op.
        unsafe {
            if (*op).priority >= priority || !matches!((*op).kind, OpKind::Run | OpKind::Replay) {
                return false;
            }
            if (*op).kind == OpKind::Replay {
                self.lift_replay(op, priority);
            }
            if (*op).flags.has(OpFlags::LISTED) {
                if let Some(op) = OpPtr::from_raw(op) {
                    self.queues.lift(op, priority);
                }
                return false;
            }
            (*op).priority = priority;
            (*op).countdown > 0 || ((*op).kind == OpKind::Replay && (*Call::of(op)).waits_for_instance())
        }
    }

    /// Raises the ready ops that hold a granted read on `var`.
    fn lift_readers(&mut self, var: NonNull<VarNode>, priority: i32, steps: &mut usize) {
        let mut looked_at = 0;
        let low: Vec<OpPtr> = self
            .queues
            .ordered_ops()
            .take(*steps)
            .inspect(|_| looked_at += 1)
            // SAFETY: listed ops are alive and the registrar's.
            .filter(|op| unsafe { (*op.as_ptr()).priority } < priority && Op::touches(op.as_ptr(), var))
            .collect();
        for op in low {
            self.queues.lift(op, priority);
        }
        *steps -= looked_at;
        for op in self.granted.iter().take(*steps) {
            *steps -= 1;
            // SAFETY: as above.
            unsafe {
                if (*op.as_ptr()).priority < priority && Op::touches(op.as_ptr(), var) {
                    (*op.as_ptr()).priority = priority;
                }
            }
        }
    }

    /// The obstacles of a wait: the wait on this variable, then the op that has it, if that waits for another one
    /// itself, and so on, `limit` of them at most. `running` are the ops that run.
    pub(crate) fn chain(seat: &Seat, from: NonNull<VarNode>, running: &[OpPtr], limit: usize) -> Vec<Blocked> {
        let mut chain = Vec::new();
        let (mut waiting, mut variable) = (None, from);
        while chain.len() < limit {
            let holders = holders(seat, variable, running);
            // SAFETY: the first variable is its waiter's, the others those of pending ops.
            let label = unsafe { variable.as_ref() }.label();
            // SAFETY: pending ops are alive, here and below.
            let by = holders.iter().map(|&op| unsafe { replay::label(op) }).collect();
            chain.push(Blocked { op: waiting, variable: label, by });
            let known = |op: OpPtr| chain.iter().any(|blocked| blocked.op == Some(op));
            let next = holders.into_iter().filter(|&op| !known(op)).find_map(|op| Some((op, waits_for(seat, op)?)));
            let Some((op, on)) = next else { break };
            (waiting, variable) = (Some(op), on);
        }
        chain
    }

    /// Whether `probe`, a wait of the running op `asker`, waits for `asker` itself. Answers the labels along the cycle.
    ///
    /// Calls of replays on the way that lack an instance get one: eager ops would not wait there.
    pub(crate) fn cycle(&mut self, seat: &Seat, asker: OpPtr, probe: OpPtr) -> Option<Vec<String>> {
        loop {
            let path = Self::way(seat, asker, probe)?;
            let mut resolved = false;
            for &op in &path {
                if !Op::is_replay(op) {
                    continue;
                }
                // SAFETY: pending ops are alive; a registered call without an instance waits for one.
                unsafe {
                    let call = &*Call::of(op.as_ptr());
                    if call.waits_for_instance() {
                        call.plan().give_further(Call::of(op.as_ptr()));
                        self.granted.list(call);
                        resolved = true;
                    }
                }
            }
            if !resolved {
                // SAFETY: pending ops are alive.
                return Some(path.into_iter().map(|op| unsafe { replay::label(op) }).collect());
            }
        }
    }

    /// The ops from `asker` to itself by way of `probe`: each waits for the one before.
    fn way(seat: &Seat, asker: OpPtr, probe: OpPtr) -> Option<Vec<OpPtr>> {
        // From each op that waits for `asker`: the op it waits for.
        let mut waits_for: HashMap<*mut Op, OpPtr> = HashMap::new();
        let mut todo = vec![asker];
        while let Some(op) = todo.pop() {
            for waiting in behind_instance(seat, op) {
                if waiting != asker && !waits_for.contains_key(&waiting.as_ptr()) {
                    waits_for.insert(waiting.as_ptr(), op);
                    todo.push(waiting);
                }
            }
            let (first, count) = Op::accesses(op.as_ptr());
            // SAFETY: pending ops are alive, and so are their accesses.
            let accesses = (0..count).map(|index| unsafe { first.add(index) });
            for access in accesses.filter(|&access| !AccessNode::has_left(access)) {
                for waiting in behind(seat, access) {
                    if waits_for.contains_key(&waiting.as_ptr()) || waiting == asker {
                        continue;
                    }
                    waits_for.insert(waiting.as_ptr(), op);
                    if waiting == probe {
                        return Some(Self::path(asker, op, &waits_for));
                    }
                    // A probe holds up its waiter's op. SAFETY: as above.
                    let next = unsafe { (*waiting.as_ptr()).extra.as_ref() }.and_then(|extra| extra.asker);
                    let next = next.unwrap_or(waiting);
                    if next != waiting && waits_for.insert(next.as_ptr(), op).is_some() {
                        continue;
                    }
                    todo.push(next);
                }
            }
        }
        None
    }

    fn path(asker: OpPtr, from: OpPtr, waits_for: &HashMap<*mut Op, OpPtr>) -> Vec<OpPtr> {
        let mut ops = vec![asker];
        let mut at = from;
        while at != asker {
            ops.push(at);
            match waits_for.get(&at.as_ptr()) {
                Some(&next) => at = next,
                None => break,
            }
        }
        ops.push(asker);
        ops
    }
}
