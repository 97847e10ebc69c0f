//! Grants of one variable, by the table of transitions.

use super::{AccessKind, AccessNode, Seat, Settled, VarNode};
use crate::failure::{Cause, Failure};
use AccessKind::{Exclusive, Mutate, Overwrite, Read};
use std::ptr::NonNull;
use std::sync::Arc;

/// Accesses of one variable, known by their numbers.
struct Queue {
    node: Box<VarNode>,
    /// They stay where they are.
    accesses: Vec<*mut AccessNode>,
    owners: Box<[u64; 16]>,
}

impl Queue {
    fn new() -> Self {
        Self { node: Box::new(VarNode::new(0, None, 0, 0)), accesses: Vec::new(), owners: Box::new([0; 16]) }
    }

    fn seat() -> Seat {
        // SAFETY: there is one thread.
        unsafe { Seat::take() }
    }

    /// Answers whether it is granted at once.
    fn enter(&mut self, kind: AccessKind) -> bool {
        let owner = &raw mut self.owners[self.accesses.len()];
        let access = Box::into_raw(Box::new(AccessNode::new(NonNull::from(&*self.node), owner, kind)));
        self.accesses.push(access);
        // SAFETY: the access is of this variable and stays in its box.
        unsafe { self.node.enter(&Self::seat(), access, 0) }
    }

    fn number(&self, granted: *mut AccessNode) -> usize {
        // SAFETY: accesses live as long as the queue.
        let owner = unsafe { (*granted).owner::<u64>() };
        // SAFETY: owners are places in one array.
        unsafe { owner.offset_from_unsigned(self.owners.as_ptr()) }
    }

    /// Ends an access. Answers the accesses that this grants.
    fn leave(&mut self, number: usize) -> Vec<usize> {
        self.leave_as(number, Settled::Done).0
    }

    fn leave_as(&mut self, number: usize, settled: Settled<'_>) -> (Vec<usize>, Option<Arc<Failure>>) {
        let mut granted = Vec::new();
        // SAFETY: accesses live as long as the queue.
        let kind = unsafe { (*self.accesses[number]).kind() };
        let ended = self.node.leave(&Self::seat(), kind, settled, |access| granted.push(access));
        (granted.into_iter().map(|access| self.number(access)).collect(), ended)
    }

    /// Answers what this grants, or nothing if the access was not queued.
    fn withdraw(&mut self, number: usize) -> Option<Vec<usize>> {
        let mut granted = Vec::new();
        let was_there = self.node.withdraw(&Self::seat(), self.accesses[number], |access| granted.push(access));
        was_there.then(|| granted.into_iter().map(|access| self.number(access)).collect())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        for &access in &self.accesses {
            // SAFETY: made by Box::into_raw in enter().
            drop(unsafe { Box::from_raw(access) });
        }
    }
}

#[test]
fn reads_are_granted_together_and_mutations_alone() {
    let mut queue = Queue::new();
    assert!(queue.enter(Read) && queue.enter(Read));
    let waiting = [Mutate, Read, Read, Overwrite, Exclusive];
    assert!(waiting.iter().all(|&kind| !queue.enter(kind)), "nobody overtakes a queued mutation");
    assert_eq!(queue.leave(0), []);
    assert_eq!(queue.leave(1), [2]);
    assert_eq!(queue.leave(2), [3, 4]);
    assert!(!queue.enter(Read));
    assert_eq!(queue.leave(4), []);
    assert_eq!(queue.leave(3), [5]);
    assert_eq!(queue.leave(5), [6]);
    assert_eq!(queue.leave(6), [7]);
    assert_eq!(queue.leave(7), []);
    assert!(queue.enter(Overwrite));
    assert_eq!(queue.node.completed_version(), 2);
}

#[test]
fn versions_keep_failures() {
    let mut queue = Queue::new();
    let failures = ["first", "second"].map(|op| Arc::new(Failure::new(op.to_owned(), Cause::Cancelled)));
    for kind in [Mutate, Read, Mutate, Exclusive, Overwrite, Overwrite, Mutate] {
        queue.enter(kind);
    }
    let mut leave = |number, settled| queue.leave_as(number, settled).1.map(|failure| failure.op().to_owned());
    assert_eq!(leave(0, Settled::Failed(&failures[0])), None);
    assert_eq!(leave(1, Settled::Failed(&failures[1])), None, "a read makes no version");
    assert_eq!(leave(2, Settled::Done), None, "a mutation of something broken leaves it so");
    assert_eq!(leave(3, Settled::Done), None);
    assert_eq!(leave(4, Settled::Failed(&failures[1])).as_deref(), Some("first"));
    assert_eq!(leave(5, Settled::Done).as_deref(), Some("second"));
    assert_eq!(leave(6, Settled::Done), None);
    assert!(!queue.node.failed());
    assert_eq!(queue.node.completed_version(), 5);
}

#[test]
fn what_ran_has_begun() {
    let failure = Arc::new(Failure::new("one".to_owned(), Cause::Cancelled));
    let skipped = |begun| Settled::Skipped { failure: &failure, begun };
    let failed = Settled::Failed(&failure);
    // What ops do in turn, and whether the version before them is there.
    let cases: [(&[(AccessKind, Settled<'_>)], bool); 7] = [
        (&[(Mutate, skipped(false)), (Overwrite, skipped(false))], true),
        (&[(Mutate, failed)], false),
        (&[(Overwrite, failed), (Mutate, skipped(false))], false),
        (&[(Mutate, skipped(false)), (Mutate, Settled::Done)], false),
        (&[(Mutate, failed), (Overwrite, Settled::Done), (Mutate, skipped(false))], true),
        (&[(Mutate, skipped(true)), (Mutate, skipped(false))], false),
        (&[(Mutate, skipped(false)), (Read, failed)], true),
    ];
    for (number, (ops, kept)) in cases.into_iter().enumerate() {
        let mut queue = Queue::new();
        for (at, (kind, settled)) in ops.iter().enumerate() {
            assert!(queue.enter(*kind));
            queue.leave_as(at, *settled);
        }
        assert!(queue.node.failed());
        assert_eq!(queue.node.recover(&Queue::seat()).is_some(), kept, "case {number}");
        assert_ne!(queue.node.failed(), kept, "case {number}");
    }
    let mut queue = Queue::new();
    queue.enter(Mutate);
    queue.leave_as(0, skipped(false));
    queue.enter(Overwrite);
    assert!(queue.node.recover(&Queue::seat()).is_none(), "an op has it");
}

#[test]
fn who_withdraws_was_never_there() {
    let mut queue = Queue::new();
    for kind in [Read, Exclusive, Read, Mutate, Read, Exclusive] {
        queue.enter(kind);
    }
    assert_eq!(queue.withdraw(0), None, "it is granted");
    assert_eq!(queue.withdraw(5), Some(vec![]), "the last");
    assert!(!queue.enter(Read), "number 6 stands behind number 4");
    assert_eq!(queue.withdraw(1), Some(vec![2]), "the first: the read behind it joins those before it");
    assert_eq!(queue.withdraw(1), None, "it is gone");
    assert_eq!(queue.leave(0), []);
    assert_eq!(queue.leave(2), [3]);
    assert_eq!(queue.withdraw(4), Some(vec![]));
    assert_eq!(queue.leave(3), [6]);
    assert_eq!(queue.leave(6), []);
}

#[test]
fn accesses_merge() {
    assert_eq!(Read.merged(Read), Read);
    assert_eq!(Overwrite.merged(Overwrite), Overwrite);
    for (one, other) in [(Read, Mutate), (Read, Overwrite), (Mutate, Mutate), (Mutate, Overwrite)] {
        assert_eq!((one.merged(other), other.merged(one)), (Mutate, Mutate));
    }
}
