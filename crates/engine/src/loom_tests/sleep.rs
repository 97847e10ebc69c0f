//! A worker that goes to sleep while work is published: it sees the work, or it is woken.
//!
//! A child of `worker`, so that the worker modelled is the one that is shipped.

use super::{Crowd, Doze, Hold, Pace, Parker, Worker};
use crate::loom_tests::{One, Variable, nothing, push, push_fence, push_payload, push_probe, push_to, push_with};
use crate::op::{OpContext, OpPtr, Payload};
use crate::pool::delivery::Delivery;
use crate::pool::seat::WorkerSeat;
use crate::pool::state::Pool;
use crate::pool::{DirectHost, Policy, is_called_away};
use crate::sched::PullNothing;
use crate::waiter::Waiter;
use crossbeam_deque::Worker as Deque;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

fn pool(workers: usize) -> Arc<Pool> {
    Arc::new(Pool::new(Policy::WorkStealing, workers, String::new(), Arc::new(DirectHost)))
}

/// What a worker's thread starts with.
struct Start {
    pool: Arc<Pool>,
    lane: u16,
    number: usize,
    parker: Parker,
    native: Deque<OpPtr>,
    hosted: Deque<OpPtr>,
}

impl Start {
    /// A worker that is awake and searching.
    fn awake(pool: &Arc<Pool>) -> Self {
        Self::awake_in(pool, 0)
    }

    /// The same, of this lane.
    fn awake_in(pool: &Arc<Pool>, lane: u16) -> Self {
        let number = pool.lane(lane).take_seat().expect("one for each worker");
        assert!(pool.lane(lane).claim_waking(true));
        let (native, hosted, parker) = (Deque::new_fifo(), Deque::new_fifo(), Parker::new());
        pool.lane(lane).sit(number, WorkerSeat::new(native.stealer(), hosted.stealer(), parker.unparker()));
        Self { pool: Arc::clone(pool), lane, number, parker, native, hosted }
    }

    /// One of this lane that sleeps, and looks for work when it is woken.
    fn asleep_in(pool: &Arc<Pool>, lane: u16) -> Self {
        let worker = Self::awake_in(pool, lane);
        pool.lane(lane).seat(worker.number).expect("it sits").fall_asleep();
        pool.lane(lane).drowse();
        worker
    }

    fn work(self, ops: u32) -> u32 {
        self.work_at(Pace::new(), ops)
    }

    /// Works, sleeping when there is nothing to do, until so many ops have run or the pool is over.
    /// Answers how many have run.
    fn work_at(self, pace: Pace, ops: u32) -> u32 {
        self.work_while(pace, |ran| ran < ops)
    }

    /// The same, until something has happened that its ops, or others', bring about.
    fn work_until(self, happened: impl Fn() -> bool) {
        self.work_while(Pace::new(), |_| !happened());
    }

    fn work_while(self, pace: Pace, goes_on: impl Fn(u32) -> bool) -> u32 {
        let mut ran = 0;
        self.as_worker(pace, |worker, parker| {
            while goes_on(ran) {
                if worker.run_native() {
                    ran += 1;
                    continue;
                }
                worker.search();
                // If it slept through anything it would never come back, and loom reports a deadlock.
                if !worker.sleep(parker) {
                    break;
                }
                thread::yield_now(); // a ticket that is not published yet is work, but not to be had
            }
        });
        ran
    }

    fn as_worker(self, pace: Pace, act: impl FnOnce(&mut Worker<'_>, &Parker)) {
        let (pool, lane) = (&self.pool, self.pool.lane(self.lane));
        let seat = lane.seat(self.number).expect("taken at the start");
        let deliver = Arc::new(Delivery(Arc::clone(pool)));
        let (native, hosted, doze) = (self.native, self.hosted, Doze::new(pool.registrar.settled()));
        let (seat_number, next, chained, searching, inside) = (self.number, None, 0, true, Duration::ZERO);
        let mut worker = Worker {
            pool,
            lane,
            seat,
            seat_number,
            deliver,
            native,
            hosted,
            next,
            chained,
            pace,
            natives: 0,
            searching,
            inside,
            doze,
            hold: Hold::default(),
            crowd: Crowd::new(),
            patience: 0,
        };
        act(&mut worker, &self.parker);
    }
}

/// Calls `act` on other threads, so many times.
fn meanwhile(pool: &Arc<Pool>, times: usize, act: fn(&Arc<Pool>)) -> Vec<thread::JoinHandle<()>> {
    (0..times).map(|_| Arc::clone(pool)).map(|pool| thread::spawn(move || act(&pool))).collect()
}

/// Explores so many preemptions at most: three threads with so many steps take seconds with one, and hours with two.
fn model(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(check);
}

/// What ops wait for.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// An op that lasts until the gate is open.
    fn waits(&self) -> impl Payload + use<> {
        let gate = self.clone();
        move |_: &mut OpContext<'_>| {
            let mut open = gate.0.0.lock().unwrap();
            while !*open {
                open = gate.0.1.wait(open).unwrap();
            }
            Ok(())
        }
    }

    /// An op that opens it.
    fn opens(&self) -> impl Payload + use<> {
        let gate = self.clone();
        move |_: &mut OpContext<'_>| {
            gate.open();
            Ok(())
        }
    }
}

/// What a pusher does.
fn publish(pool: &Arc<Pool>) {
    push(&pool.registrar, &[]);
    pool.pushed(0, false);
}

#[test]
fn a_push_is_noticed() {
    loom::model(|| {
        let pool = pool(1);
        let worker = Start::awake(&pool);
        let others = meanwhile(&pool, 1, publish);
        assert_eq!(worker.work(1), 1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(pool.registrar.pending(), 0);
    });
}

#[test]
fn pushes_of_two_threads_are_noticed() {
    loom::model(|| {
        let pool = pool(1);
        let worker = Start::awake(&pool);
        let others = meanwhile(&pool, 2, publish);
        assert_eq!(worker.work(2), 2);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(pool.registrar.pending(), 0);
        assert!(!pool.lane(0).claim_waking(true), "the one worker counts as awake");
    });
}

/// What is pushed before a stop is run before the worker leaves.
#[test]
fn a_stop_is_noticed() {
    loom::model(|| {
        let pool = pool(1);
        let worker = Start::awake(&pool);
        let others = meanwhile(&pool, 1, |pool| {
            publish(pool);
            pool.stop();
        });
        assert_eq!(worker.work(u32::MAX), 1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(pool.registrar.pending(), 0);
    });
}

/// The first of two ops lasts until the second has run. So whoever takes the first must not keep the
/// second, nor may the pusher count on it.
#[test]
fn a_blocked_worker_has_woken_another() {
    model(1, || {
        let (pool, gate) = (pool(2), Gate::default());
        let workers = [Start::awake(&pool), Start::awake(&pool)];
        let workers = workers.map(|worker| thread::spawn(move || worker.work(u32::MAX)));
        push_payload(&pool.registrar, gate.waits());
        pool.pushed(0, false);
        push_payload(&pool.registrar, gate.opens());
        pool.pushed(0, false);
        pool.stop();
        let ran = workers.map(|worker| worker.join().unwrap());
        assert_eq!((ran[0] + ran[1], pool.registrar.pending()), (2, 0));
    });
}

/// An op of a worker that has others at hand is kept for a later turn. Both workers then have their hands full until the wait for
/// that op has ended.
#[test]
fn what_is_kept_and_waited_for_is_settled() {
    model(1, || {
        let (pool, gate, variable) = (pool(2), Gate::default(), Variable::new(0));
        push(&pool.registrar, &[&variable]);
        push_payload(&pool.registrar, gate.waits());
        pool.registrar.turn().catch_up();
        push_payload(&pool.registrar, gate.waits());
        pool.registrar.turn().catch_up(); // one worker may pull all of them, and the other one steal
        let workers = [Start::awake(&pool), Start::awake(&pool)];
        let workers = workers.map(|worker| thread::spawn(move || worker.work_at(Pace::brief(), u32::MAX)));
        let parker = Parker::new();
        let waiter = Waiter::new(&parker);
        push_probe(&pool.registrar, &variable, &waiter);
        pool.turn().catch_up(); // nobody else may be free to register it
        assert!(waiter.sleep(&parker, None));
        gate.open();
        pool.stop();
        let ran = workers.map(|worker| worker.join().unwrap());
        assert_eq!((ran[0] + ran[1], pool.registrar.pending()), (3, 0));
    });
}

/// A thread waits for the op that the one worker keeps as it runs the next one, which lasts until that wait has ended.
#[test]
fn who_waits_is_told_of_what_is_kept() {
    loom::model(|| {
        let (pool, gate, variable) = (pool(1), Gate::default(), Variable::new(0));
        push(&pool.registrar, &[&variable]);
        push_payload(&pool.registrar, gate.waits());
        pool.registrar.turn().catch_up();
        let worker = Start::awake(&pool);
        let worker = thread::spawn(move || worker.work_at(Pace::brief(), 2));
        let parker = Parker::new();
        let waiter = Waiter::new(&parker);
        push_probe(&pool.registrar, &variable, &waiter);
        pool.turn().catch_up();
        assert!(waiter.sleep(&parker, None));
        gate.open();
        assert_eq!(worker.join().unwrap(), 2);
    });
}

/// A worker keeps an op as another one lies down. The next op lasts until that one has run what the kept one makes ready.
#[test]
fn who_lies_down_is_given_what_a_kept_op_makes_ready() {
    model(2, || {
        let (pool, gate, variable) = (pool(2), Gate::default(), Variable::new(0));
        push(&pool.registrar, &[&variable]);
        push_payload(&pool.registrar, gate.waits());
        pool.registrar.turn().catch_up();
        let keeper = Start::awake(&pool);
        let other = Start::awake(&pool);
        keeper.as_worker(Pace::brief(), |worker, _| {
            worker.follow_up(None, false); // has both of them
            push_with(0, &pool.registrar, &variable, gate.opens());
            pool.turn().catch_up(); // the third one waits for the first
            let other = thread::spawn(move || other.work(1));
            assert!(worker.run_native() && worker.run_native());
            assert_eq!(other.join().unwrap(), 1);
        });
    });
}

/// The same, and the op that becomes ready is of a lane whose worker lies down.
#[test]
fn another_lane_is_given_what_a_kept_op_makes_ready() {
    model(2, || {
        let (pool, gate, variable) = (pool(1), Gate::default(), Arc::new(Variable::new(0)));
        push(&pool.registrar, &[&variable]);
        push_payload(&pool.registrar, gate.waits());
        pool.registrar.turn().catch_up();
        let keeper = Start::awake(&pool);
        keeper.as_worker(Pace::brief(), |worker, _| {
            worker.follow_up(None, false);
            let other = {
                let (pool, variable, gate) = (Arc::clone(&pool), Arc::clone(&variable), gate.clone());
                thread::spawn(move || {
                    let other = Start::awake_in(&pool, 1);
                    push_with(1, &pool.registrar, &variable, gate.opens());
                    other.work(1)
                })
            };
            assert!(worker.run_native() && worker.run_native());
            assert_eq!(other.join().unwrap(), 1);
        });
    });
}

/// A worker keeps an op as the last one that searches finds something, and a third one sleeps: that one is woken, or the op is settled.
/// Another thread has the role for a moment.
#[test]
fn who_has_found_something_settles_what_was_kept_as_it_searched() {
    model(3, || {
        let (pool, variable) = (pool(3), Variable::new(0));
        push(&pool.registrar, &[&variable]);
        push(&pool.registrar, &[]);
        let [keeper, finder] = [(); 2].map(|()| Start::awake(&pool));
        let sleeper = Start::asleep_in(&pool, 0);
        keeper.as_worker(Pace::brief(), |worker, _| {
            worker.found();
            worker.follow_up(None, false);
            let others = meanwhile(&pool, 1, |pool| drop(pool.registrar.turn()));
            let finder = thread::spawn(move || finder.as_worker(Pace::new(), |worker, _| worker.found()));
            assert!(worker.run_native());
            others.into_iter().chain([finder]).for_each(|other| other.join().unwrap());
            let is_woken = !pool.lane(0).seat(sleeper.number).expect("it sits").claim();
            assert!(is_woken || variable.node().completed_version() == 1, "the next op may last");
            assert!(worker.run_native());
        });
        assert_eq!(pool.registrar.pending(), 0);
    });
}

/// A worker keeps no op as it goes on with one that a wait for all does not cover: the wait ends before that one does.
#[test]
fn what_a_wait_for_all_covers_is_not_kept_for_what_it_does_not() {
    loom::model(|| {
        let (pool, gate) = (pool(1), Gate::default());
        let parker = Parker::new();
        let waiter = Waiter::new(&parker);
        push_payload(&pool.registrar, nothing);
        pool.registrar.turn().catch_up();
        push_fence(&pool.registrar, &waiter);
        pool.registrar.turn().catch_up();
        push_payload(&pool.registrar, gate.waits());
        pool.registrar.turn().catch_up();
        let worker = Start::awake(&pool);
        let worker = thread::spawn(move || worker.work_at(Pace::brief(), 2));
        assert!(waiter.sleep(&parker, None));
        gate.open();
        assert_eq!(worker.join().unwrap(), 2);
    });
}

/// An op that another thread leaves, as it does the steps of replays. The next op is of lane 1, whose worker sleeps.
struct Left {
    pool: Arc<Pool>,
    variable: Variable,
    op: OpPtr,
    sleeper: Start,
}

impl Left {
    fn new(pool: &Arc<Pool>) -> Self {
        let variable = Variable::new(0);
        push(&pool.registrar, &[&variable]);
        let mut pulled = One::default();
        pool.registrar.drive(None, &mut pulled);
        push_to(1, &pool.registrar, &variable);
        pool.turn().catch_up();
        let op = pulled.0.expect("it was ready");
        Self { pool: Arc::clone(pool), variable, op, sleeper: Start::asleep_in(pool, 1) }
    }

    fn leave(&self) -> thread::JoinHandle<()> {
        let (pool, op) = (Arc::clone(&self.pool), self.op);
        thread::spawn(move || {
            pool.registrar.leave(op);
            pool.registrar.drive(None, &mut PullNothing { register: false });
            pool.wake_workers();
        })
    }

    /// Lane 1 has its op, and its worker was woken for it.
    fn check(self) {
        let seat = self.pool.lane(1).seat(self.sleeper.number).expect("it sits");
        assert!(!seat.claim(), "nobody has woken the worker of the other lane");
        assert_eq!(self.sleeper.work(1), 1);
        drop(self.variable);
    }
}

/// A worker settles what was left when it ends its search by `act`; others have looked by then whether there is something for
/// lane 1.
fn another_lane_is_woken(act: fn(&mut Worker<'_>, &Parker)) {
    model(3, move || {
        let pool = pool(1);
        let left = Left::new(&pool);
        push(&pool.registrar, &[]);
        Start::awake(&pool).as_worker(Pace::new(), |worker, parker| {
            let other = left.leave();
            worker.follow_up(None, false);
            act(worker, parker);
            other.join().unwrap();
            left.check();
            worker.run_native();
        });
        assert_eq!(pool.registrar.pending(), 0);
    });
}

/// A worker has found an op, which may last.
#[test]
fn who_has_found_something_wakes_other_lanes() {
    another_lane_is_woken(|worker, _| worker.found());
}

/// A worker retires. Its op waits for a stand-in here.
#[test]
fn who_retires_wakes_other_lanes() {
    another_lane_is_woken(|worker, parker| {
        parker.unparker().unpark();
        worker.retire(parker);
    });
}

/// The same for a guest, when its op begins.
#[test]
fn a_guest_wakes_other_lanes() {
    model(3, || {
        let pool = pool(1);
        pool.lane(0).serve(true);
        let left = Left::new(&pool);
        let worker = Start::asleep_in(&pool, 0);
        let other = left.leave();
        push_payload(&pool.registrar, move |_: &mut OpContext<'_>| {
            other.join().unwrap();
            left.check();
            Ok(())
        });
        pool.help(&mut |_| false);
        if pool.registrar.pending() > 0 {
            worker.work(1); // the other thread has woken it
        }
        assert_eq!(pool.registrar.pending(), 0);
    });
}

/// An op that counts itself.
fn counted(pool: &Arc<Pool>, ran: &Arc<Mutex<u32>>) {
    let ran = Arc::clone(ran);
    push_payload(&pool.registrar, move |_: &mut OpContext<'_>| {
        *ran.lock().unwrap() += 1;
        Ok(())
    });
    pool.pushed(0, false);
}

/// A thread pushes an op, helps as a guest that is called away or is not, and pushes so many ops more, beside a worker that goes
/// to sleep: the last op is the worker's, or it sleeps for ever.
fn a_guest_beside_a_worker(is_called_away: bool, more: u32) {
    model(2, move || {
        let (pool, ran) = (pool(1), Arc::new(Mutex::new(0)));
        pool.lane(0).serve(true);
        let worker = Start::awake(&pool);
        let other = {
            let (pool, ran) = (Arc::clone(&pool), Arc::clone(&ran));
            thread::spawn(move || {
                counted(&pool, &ran);
                pool.help(&mut |_| is_called_away);
                (0..more).for_each(|_| counted(&pool, &ran));
            })
        };
        worker.work_until(|| *ran.lock().unwrap() == 1 + more);
        other.join().unwrap();
        assert_eq!((*ran.lock().unwrap(), pool.registrar.pending()), (1 + more, 0));
        assert!(!pool.lane(0).claim_waking(true), "the worker counts as awake, and the guest not any more");
    });
}

/// A waiting thread takes the place of a worker that goes to sleep, and what is pushed meanwhile and after is run by one of
/// them: a worker that naps sees what woke nobody.
#[test]
fn a_guest_and_the_worker_miss_nothing() {
    a_guest_beside_a_worker(false, 1);
}

/// A guest that is called away leaves what is ready to the worker.
#[test]
fn what_a_guest_leaves_is_noticed() {
    a_guest_beside_a_worker(true, 0);
}

/// A guest that was called away once leaves the rest of its op to the worker, however often it helps after that.
#[test]
fn who_was_called_away_does_not_take_the_rest() {
    model(2, || {
        let (pool, ran) = (pool(1), Arc::new(Mutex::new(0)));
        pool.lane(0).serve(true);
        let worker = Start::awake(&pool);
        let guest = {
            let (pool, ran) = (Arc::clone(&pool), Arc::clone(&ran));
            thread::spawn(move || {
                let (pushing, left) = (Arc::clone(&pool), Arc::new(Mutex::new(false)));
                push_payload(&pool.registrar, move |_: &mut OpContext<'_>| {
                    if is_called_away(true) {
                        push_payload(&pushing.registrar, move |_: &mut OpContext<'_>| {
                            assert!(!is_called_away(false), "the worker is no guest");
                            *ran.lock().unwrap() += 1;
                            Ok(())
                        });
                        pushing.pushed(0, false);
                    } else {
                        *ran.lock().unwrap() += 1;
                    }
                    Ok(())
                });
                pool.pushed(0, false);
                for _ in 0..2 {
                    pool.help(&mut |long| {
                        let mut left = left.lock().unwrap();
                        *left |= long;
                        *left
                    });
                }
            })
        };
        worker.work_until(|| *ran.lock().unwrap() == 1);
        guest.join().unwrap();
    });
}
