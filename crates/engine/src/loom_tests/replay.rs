//! Replays: no port is left twice or never, no event and no token is lost, and each step runs once, after its
//! predecessors.

use super::{One, Variable, push, work};
use crate::op::{Device, Op, OpFlags, OpKind, OpPtr};
use crate::replay::{
    Batch, Bound, Call, Instance, Part, Plan, PortId, ReplayBuilder, StepContext, StepKind, StepOptions,
};
use crate::sched::{Order, PullNothing, Registrar};
use crate::sync::{AtomicU32, Ordering};
use crate::var::AccessKind;
use loom::cell::UnsafeCell;
use loom::thread;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// What the steps touch: how often each was run, and a place that two of them share in turn.
pub(super) struct Bindings {
    ran: [AtomicU32; 3],
    shared: UnsafeCell<u32>,
}

// SAFETY: that one step at a time is there is what the model checks.
unsafe impl Sync for Bindings {}
// SAFETY: as above.
unsafe impl Send for Bindings {}

pub(super) struct Shared {
    pub(super) registrar: Registrar,
    pub(super) variables: [Variable; 2],
    pub(super) plan: Arc<Plan>,
}

// SAFETY: the registrar and the plan are Sync; variables are the registrar's.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// Steps 0 and 1 mutate a port each, and step 2 comes after both; `chained` says whether step 1 comes after step 0.
fn plan(chained: bool, instances: u32) -> Arc<Plan> {
    let mut builder = ReplayBuilder::<Bindings>::new();
    builder.instances(instances);
    let ports = [builder.port(), builder.port()];
    let steps = [0, 1, 2].map(|at: usize| {
        let step = move |bindings: &Bindings, _: &mut StepContext<'_, '_>| {
            // ORDERING: a count of the test's.
            bindings.ran[at].fetch_add(1, Ordering::Relaxed);
            if at != 1 {
                // SAFETY: loom objects if step 2 does not come after step 0.
                bindings.shared.with_mut(|shared| unsafe { *shared += 1 });
            }
            Ok(())
        };
        // What may take long is offered to others.
        builder.step(step, &StepOptions { kind: StepKind::Plain, cost: 0, ..StepOptions::default() })
    });
    builder.needs(steps[2], steps[0]).unwrap();
    builder.needs(steps[2], steps[1]).unwrap();
    if chained {
        builder.needs(steps[1], steps[0]).unwrap();
    }
    for at in 0..2 {
        builder.uses(steps[at], ports[at], AccessKind::Mutate).unwrap();
    }
    builder.plan(|_, _: Device| 0).unwrap()
}

impl Shared {
    pub(super) fn new(chained: bool, instances: u32) -> Arc<Self> {
        let variables = [Variable::new(0), Variable::new(1)];
        Arc::new(Self { registrar: Registrar::new(|_| Order::Ready), variables, plan: plan(chained, instances) })
    }

    fn push(&self) -> Arc<Bindings> {
        let (call, bindings) = self.call(2, false);
        self.enter(call, 2);
        bindings
    }

    /// A call whose first `bound` ports are bound to the variables, supplied with an instance as a push does it.
    pub(super) fn call(&self, bound: usize, inside: bool) -> (Box<Call>, Arc<Bindings>) {
        let ran = [(); 3].map(|()| AtomicU32::new(0));
        let bindings = Arc::new(Bindings { ran, shared: UnsafeCell::new(0) });
        let mut call = Call::take(&self.plan);
        for (port, variable) in (0..).zip(&self.variables[..bound]) {
            assert!(call.access(PortId(port).0, variable.0, AccessKind::Mutate).is_ok());
            variable.node().count_version();
        }
        call.make_room();
        call.bind(Bound::new(Arc::clone(&bindings)));
        (call.inside, call.generation) = (inside, 0);
        call.gift = self.plan.supply(0, inside);
        (call, bindings)
    }

    /// Puts a call into the ring.
    pub(super) fn enter(&self, call: Box<Call>, bound: usize) {
        self.registrar.push(
            bound,
            |cell, _| {
                let (kind, flags) = (OpKind::Replay, OpFlags::default());
                // SAFETY: the cell is ours to fill.
                unsafe {
                    Op::fill(cell, kind, MaybeUninit::uninit(), &[], flags, 0, 0, None);
                    call.enter(cell);
                }
            },
            |_| thread::yield_now(),
        );
    }

    /// Does what a worker does, until there is nothing for it.
    pub(super) fn work(&self) {
        loop {
            let mut pull = One::default();
            self.registrar.drive(None, &mut pull);
            let Some(op) = pull.0 else { return };
            self.run(op);
        }
    }

    fn run(&self, op: OpPtr) {
        // SAFETY: a pulled op is this thread's.
        if unsafe { (*op.as_ptr()).kind } != OpKind::Part {
            return self.registrar.drive(Some(op), &mut PullNothing { register: false });
        }
        // SAFETY: the token holds the plan.
        let instance: *const Instance = unsafe { Part::of(op) }.instance();
        // SAFETY: as above.
        let held = unsafe { &*instance };
        held.pulled();
        let mut batch = Batch::new();
        loop {
            let todo = held.attend(&mut batch, (1, None), false);
            if !todo.is_empty() {
                self.registrar.carry_out(held, todo);
            }
            if batch.is_empty() {
                break;
            }
            // SAFETY: none of its steps is done.
            let bindings = unsafe { (*batch.call).bindings() };
            batch.run(|step, doomed| {
                assert!(!doomed);
                // SAFETY: the bindings are those of this plan.
                assert!(unsafe { held.plan().step(step).run(bindings, &mut StepContext::new(None, None)) }.is_ok());
                (step, 0)
            });
        }
        // SAFETY: the token has held it.
        unsafe { Instance::release(instance) };
    }

    pub(super) fn expect_settled(&self, ops: u64) {
        assert_eq!((self.registrar.settled(), self.registrar.pending()), (ops, 0));
        for variable in &self.variables {
            assert_eq!(variable.node().completed_version(), variable.node().version());
        }
    }
}

pub(super) fn expect_run(bindings: &Bindings) {
    // ORDERING: all threads have ended.
    let ran = bindings.ran.each_ref().map(|ran| ran.load(Ordering::Relaxed));
    assert_eq!(ran, [1, 1, 1], "each step runs once");
}

pub(super) fn spawn(shared: &Arc<Shared>, run: impl FnOnce(&Shared) + 'static) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || run(&shared))
}

/// Two workers at one replay, whose steps finish in any order: ports are left once, and the end comes once.
#[test]
fn two_workers() {
    loom::model(|| {
        let shared = Shared::new(false, 1);
        let bindings = shared.push();
        let other = spawn(&shared, Shared::work);
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(1);
        expect_run(&bindings);
        assert_eq!(Arc::strong_count(&bindings), 1, "the bindings are dropped");
    });
}

/// One port is granted while a worker runs what needed the other one.
#[test]
fn a_port_is_granted_meanwhile() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        push(&shared.registrar, &[&shared.variables[1]]);
        let mut pull = One::default();
        shared.registrar.drive(None, &mut pull);
        let writer = pull.0.expect("nothing holds it up");
        let bindings = shared.push();
        let other = spawn(&shared, Shared::work);
        shared.registrar.drive(Some(writer), &mut PullNothing { register: false });
        other.join().unwrap();
        shared.work();
        shared.expect_settled(2);
        expect_run(&bindings);
    });
}

/// Two pushes and one instance, which a worker hands on while another one may still look at it.
#[test]
fn an_instance_is_handed_on() {
    loom::model(|| {
        let shared = Shared::new(true, 1);
        let first = shared.push();
        let other = spawn(&shared, Shared::work);
        let second = shared.push();
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(2);
        expect_run(&first);
        expect_run(&second);
    });
}

/// Ops on the same variables beside a replay: `work` settles both.
#[test]
fn beside_an_op() {
    loom::model(|| {
        let shared = Shared::new(true, 2);
        let bindings = shared.push();
        let other = spawn(&shared, |shared| push(&shared.registrar, &[&shared.variables[0], &shared.variables[1]]));
        shared.work();
        other.join().unwrap();
        shared.work();
        shared.expect_settled(2);
        expect_run(&bindings);
        work(&shared.registrar, |_| unreachable!("nothing is left"));
    });
}
