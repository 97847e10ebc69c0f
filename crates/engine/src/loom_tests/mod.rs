//! Every interleaving, up to a bound on preemptions, of the shipped protocols.
//!
//! `.ci/run loom` runs them. A protocol's tables are in its own module; here are the models that
//! fail if they are wrong. The models of sleep are in `pool::worker`, whose inside they need.

mod hands;
mod inline;
mod registrar;
mod replay;
mod ring;
mod slots;
mod token;
mod waiter;

use crate::failure::Cause;
use crate::op::{Extra, Op, OpContext, OpFlags, OpKind, OpPtr, Payload, RawPayload};
use crate::sched::{Pull, Registrar};
use crate::var::{AccessKind, VarNode};
use crate::waiter::Waiter;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

pub(crate) fn nothing(_: &mut OpContext<'_>) -> Result<(), Cause> {
    Ok(())
}

/// Fills a cell with an op of these accesses.
fn fill(cell: *mut Op, accesses: &[(NonNull<VarNode>, AccessKind)], payload: impl Payload) {
    fill_for(0, cell, accesses, payload);
}

/// The same, for this lane.
fn fill_for(lane: u16, cell: *mut Op, accesses: &[(NonNull<VarNode>, AccessKind)], payload: impl Payload) {
    let payload = MaybeUninit::new(RawPayload::new(payload));
    // SAFETY: the cell is the caller's to fill.
    unsafe { Op::fill(cell, OpKind::Run, payload, accesses, OpFlags::default(), 0, lane, None) };
}

/// Fills a cell with a wait for a variable.
fn fill_probe(cell: *mut Op, accesses: &[(NonNull<VarNode>, AccessKind)], waiter: &Arc<Waiter>) {
    fill_wait(OpKind::Probe, cell, accesses, waiter);
}

fn fill_wait(kind: OpKind, cell: *mut Op, accesses: &[(NonNull<VarNode>, AccessKind)], waiter: &Arc<Waiter>) {
    let extra = Box::new(Extra { waiter: Some(Arc::clone(waiter)), ..Extra::default() });
    let (payload, flags) = (MaybeUninit::uninit(), OpFlags::default());
    // SAFETY: the cell is the caller's to fill; a wait has no payload.
    unsafe { Op::fill(cell, kind, payload, accesses, flags, 0, 0, Some(extra)) };
}

/// A variable's node, which the model drops when all is settled.
pub(crate) struct Variable(NonNull<VarNode>);

// SAFETY: as for the handles of the shipped code.
unsafe impl Send for Variable {}
// SAFETY: as above.
unsafe impl Sync for Variable {}

impl Variable {
    pub(crate) fn new(number: u64) -> Self {
        Self(NonNull::from(Box::leak(Box::new(VarNode::new(number, None, 0, 0)))))
    }

    pub(crate) fn node(&self) -> &VarNode {
        // SAFETY: it lives as long as `self`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Variable {
    fn drop(&mut self) {
        // SAFETY: made by Box::leak; the model is over.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Pushes an op that mutates these variables.
pub(crate) fn push(registrar: &Registrar, variables: &[&Variable]) {
    let accesses: Vec<_> = variables.iter().map(|variable| (variable.0, AccessKind::Mutate)).collect();
    let publish = |cell: *mut Op, _: u64| {
        variables.iter().for_each(|variable| variable.node().count_version());
        fill(cell, &accesses, nothing);
    };
    registrar.push(accesses.len(), publish, |_| crate::sync::yield_now());
}

/// Pushes an op of this lane that mutates a variable.
pub(crate) fn push_to(lane: u16, registrar: &Registrar, variable: &Variable) {
    push_with(lane, registrar, variable, nothing);
}

/// The same, of an op that does this.
pub(crate) fn push_with(lane: u16, registrar: &Registrar, variable: &Variable, payload: impl Payload) {
    let publish = |cell: *mut Op, _: u64| {
        variable.node().count_version();
        fill_for(lane, cell, &[(variable.0, AccessKind::Mutate)], payload);
    };
    registrar.push(1, publish, |_| crate::sync::yield_now());
}

/// Pushes a wait for all.
pub(crate) fn push_fence(registrar: &Registrar, waiter: &Arc<Waiter>) {
    let publish = |cell: *mut Op, _: u64| fill_wait(OpKind::Fence, cell, &[], waiter);
    registrar.push(0, publish, |_| crate::sync::yield_now());
}

/// Pushes an op that does this.
pub(crate) fn push_payload(registrar: &Registrar, payload: impl Payload) {
    registrar.push(0, |cell, _| fill(cell, &[], payload), |_| crate::sync::yield_now());
}

/// Pushes a wait for this variable.
pub(crate) fn push_probe(registrar: &Registrar, variable: &Variable, waiter: &Arc<Waiter>) {
    let publish = |cell: *mut Op, _: u64| fill_probe(cell, &[(variable.0, AccessKind::Read)], waiter);
    registrar.push(1, publish, |_| crate::sync::yield_now());
}

/// Pulls one op.
#[derive(Default)]
pub(crate) struct One(pub(crate) Option<OpPtr>);

impl Pull for One {
    fn queues(&self) -> Range<usize> {
        0..1
    }

    fn wanted(&self) -> usize {
        usize::from(self.0.is_none())
    }

    fn has_other(&self) -> bool {
        false
    }

    fn reach(&self) -> u64 {
        if self.0.is_none() { u64::MAX } else { 0 }
    }

    fn take(&mut self, op: OpPtr) {
        self.0 = Some(op);
    }
}

/// Runs, by `run`, what is ready, until nothing is.
fn work(registrar: &Registrar, mut run: impl FnMut(OpPtr)) {
    let mut finished = None;
    loop {
        let mut pull = One::default();
        registrar.drive(finished.take(), &mut pull);
        let Some(op) = pull.0 else { return };
        run(op);
        finished = Some(op);
    }
}
