//! Replays: no port is left twice or never, no event and no token is lost, and each step runs once, after its
//! predecessors.

use super::{One, Variable, push, work};
use crate::op::{Device, Op, OpFlags, OpKind, OpPtr};
use crate::replay::{
    Batch, Bound, Call, Instance, Part, Plan, PortId, ReplayBuilder, StepContext, StepKind, StepOptions, Wanted,
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

/// An instance, for another thread.
struct Sent(*const Instance);

// SAFETY: instances are Sync.
unsafe impl Send for Sent {}

impl Sent {
    /// # Safety
    ///
    /// Its plan lives.
    unsafe fn get(&self) -> &Instance {
        // SAFETY: the caller's promise.
        unsafe { &*self.0 }
    }
}

pub(super) struct Shared {
    pub(super) registrar: Registrar,
    pub(super) variables: [Variable; 2],
    pub(super) plan: Arc<Plan>,
}

// SAFETY: the registrar and the plan are Sync; variables are the registrar's.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// Edges between three steps.
const JOIN: &[(usize, usize)] = &[(0, 2), (1, 2)];
const CHAIN: &[(usize, usize)] = &[(0, 2), (1, 2), (0, 1)];
const FORK: &[(usize, usize)] = &[(0, 1), (0, 2)];

/// Steps 0 and 1 mutate a port each, and edges lead from steps to later ones.
fn plan(edges: &[(usize, usize)], instances: u32) -> Arc<Plan> {
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
    for &(first, then) in edges {
        builder.needs(steps[then], steps[first]).unwrap();
    }
    for at in 0..2 {
        builder.uses(steps[at], ports[at], AccessKind::Mutate).unwrap();
    }
    builder.plan(|_, _: Device| 0).unwrap()
}

impl Shared {
    pub(super) fn new(chained: bool, instances: u32) -> Arc<Self> {
        Self::of(if chained { CHAIN } else { JOIN }, instances)
    }

    fn of(edges: &[(usize, usize)], instances: u32) -> Arc<Self> {
        let variables = [Variable::new(0), Variable::new(1)];
        Arc::new(Self { registrar: Registrar::new(|_| Order::Ready, 0), variables, plan: plan(edges, instances) })
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
            self.run(op, false);
        }
    }

    fn run(&self, op: OpPtr, shares: bool) {
        // SAFETY: a pulled op is this thread's.
        if unsafe { (*op.as_ptr()).kind } != OpKind::Part {
            return self.registrar.drive(Some(op), &mut PullNothing { register: false });
        }
        // SAFETY: the token holds the plan.
        let instance: *const Instance = unsafe { Part::of(op) }.instance();
        // SAFETY: as above.
        let held = unsafe { &*instance };
        held.pulled();
        self.attend(held, shares);
        // SAFETY: the token has held it.
        unsafe { Instance::release(instance) };
    }

    /// Runs steps for as long as there are any. A worker that shares looks once for those that others hand out.
    fn attend(&self, held: &Instance, shares: bool) {
        let mut batch = Batch::new();
        let wanted = Wanted { steps: 1, draw: None, shares };
        let look_once = || {
            let mut looks = 0;
            move || std::mem::replace(&mut looks, 1) == 0
        };
        let run = |batch: &mut Batch| {
            // SAFETY: none of its steps is done.
            let bindings = unsafe { (*batch.call).bindings() };
            batch.run(|step, doomed| {
                assert!(!doomed);
                // SAFETY: the bindings are those of this plan.
                assert!(unsafe { held.plan().step(step).run(bindings, &mut StepContext::new(None, None)) }.is_ok());
                (step, 0)
            });
        };
        loop {
            let todo = held.attend(&mut batch, wanted, false, &mut look_once());
            if !todo.is_empty() {
                self.registrar.carry_out(held, todo);
            }
            if batch.is_empty() && shares {
                // It leaves with the second batch, if there is one, and counts it itself.
                let mut batches = 0;
                held.run_handed(&mut batch, look_once, |batch| {
                    run(batch);
                    batches += 1;
                    (batches < 2).then_some(1)
                });
                if !batch.is_empty() {
                    continue;
                }
            }
            if batch.is_empty() {
                return;
            }
            run(&mut batch);
        }
    }

    /// Two workers at one replay that share its steps: one with its token, one that is there already.
    fn share(self: &Arc<Self>) {
        let mut pull = One::default();
        self.registrar.drive(None, &mut pull);
        let token = pull.0.expect("the call has begun");
        // SAFETY: the token holds the plan, and so does the model.
        let instance: *const Instance = unsafe { Part::of(token) }.instance();
        let there = Sent(instance);
        let other = spawn(self, move |shared| {
            // SAFETY: as above.
            shared.attend(unsafe { there.get() }, true);
        });
        self.run(token, true);
        other.join().unwrap();
        self.work();
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

/// Two workers wait for each other's steps: whoever stays with the role finds those of the other one.
#[test]
fn a_worker_stays() {
    loom::model(|| {
        let shared = Shared::of(JOIN, 1);
        let bindings = shared.push();
        shared.share();
        shared.expect_settled(1);
        expect_run(&bindings);
    });
}

/// A step goes from hand to hand, or its receiver is gone.
#[test]
fn steps_are_handed_over() {
    loom::model(|| {
        let shared = Shared::of(FORK, 1);
        let bindings = shared.push();
        shared.share();
        shared.expect_settled(1);
        expect_run(&bindings);
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
