//! A worker that goes to sleep while work is published: it sees the work, or it is woken.
//!
//! A child of `worker`, so that the worker modelled is the one that is shipped.

use super::{Parker, Worker};
use crate::loom_tests::push;
use crate::pool::run::{Delivery, Pool};
use crate::pool::seat::WorkerSeat;
use crate::pool::{DirectHost, Policy};
use crossbeam_deque::Worker as Deque;
use loom::thread;
use std::sync::Arc;

/// A pool of one worker, awake and searching, with the seat number 0.
struct Awake {
    pool: Arc<Pool>,
    parker: Parker,
    native: Deque<crate::op::OpPtr>,
    hosted: Deque<crate::op::OpPtr>,
}

impl Awake {
    fn new() -> Self {
        let pool = Arc::new(Pool::new(Policy::WorkStealing, 1, String::new(), Arc::new(DirectHost)));
        let (native, hosted, parker) = (Deque::new_fifo(), Deque::new_fifo(), Parker::new());
        let lane = pool.lane(0);
        assert!(lane.claim_waking(false));
        assert_eq!(lane.take_seat(), Some(0));
        lane.sit(0, WorkerSeat::new(native.stealer(), hosted.stealer(), parker.unparker()));
        Self { pool, parker, native, hosted }
    }

    /// Calls `act` on other threads, so many times.
    fn meanwhile(&self, times: usize, act: fn(&Arc<Pool>)) -> Vec<thread::JoinHandle<()>> {
        let pool = || Arc::clone(&self.pool);
        (0..times).map(|_| pool()).map(|pool| thread::spawn(move || act(&pool))).collect()
    }

    /// Works, sleeping when there is nothing to do, until so many ops have run.
    /// Answers whether the pool goes on.
    fn work(self, ops: u32) -> bool {
        let (pool, lane) = (&self.pool, self.pool.lane(0));
        let seat = lane.seat(0).expect("taken in new()");
        let deliver = Arc::new(Delivery(Arc::clone(pool)));
        let (native, hosted, settled) = (self.native, self.hosted, 0);
        let (seat_number, next, searching) = (0, None, true);
        let mut worker = Worker { pool, lane, seat, seat_number, deliver, native, hosted, next, searching, settled };
        let mut ran = 0;
        while ran < ops {
            if worker.run_native() {
                ran += 1;
                continue;
            }
            worker.search();
            // If it slept through anything it would never come back, and loom reports a deadlock.
            if !worker.sleep(&self.parker) {
                return false;
            }
            thread::yield_now(); // a ticket that is not published yet is work, but not to be had
        }
        true
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
        let awake = Awake::new();
        let others = awake.meanwhile(1, publish);
        let pool = Arc::clone(&awake.pool);
        assert!(awake.work(1));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(pool.registrar.pending(), 0);
    });
}

#[test]
fn pushes_of_two_threads_are_noticed() {
    loom::model(|| {
        let awake = Awake::new();
        let others = awake.meanwhile(2, publish);
        let pool = Arc::clone(&awake.pool);
        assert!(awake.work(2));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(pool.registrar.pending(), 0);
        assert!(!pool.lane(0).claim_waking(true), "the one worker counts as awake");
    });
}

/// What is pushed before a stop is run before the worker leaves.
#[test]
fn a_stop_is_noticed() {
    loom::model(|| {
        let awake = Awake::new();
        let others = awake.meanwhile(1, |pool| {
            publish(pool);
            pool.stop();
        });
        let pool = Arc::clone(&awake.pool);
        assert!(!awake.work(u32::MAX));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(pool.registrar.pending(), 0);
    });
}
