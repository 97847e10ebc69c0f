//! A worker that goes to sleep while work is published: it sees the work, or it is woken.

use crate::pool::{Lane, WorkerSeat};
use crate::sched::Registrar;
use crate::sync::Parker;
use crossbeam_deque::Worker as Deque;
use loom::thread;
use std::sync::Arc;

struct Pool {
    registrar: Registrar,
    lane: Lane,
}

impl Pool {
    /// A pool whose one worker is awake and searching, and where it parks.
    fn new() -> (Arc<Self>, Parker) {
        let pool = Arc::new(Self { registrar: Registrar::new(), lane: Lane::new(0, 1) });
        let parker = Parker::new();
        let (native, hosted) = (Deque::new_fifo(), Deque::new_fifo());
        let number = pool.lane.take_seat().expect("a seat");
        pool.lane.sit(number, WorkerSeat::new(native.stealer(), hosted.stealer(), parker.unparker()));
        assert!(pool.lane.claim_waking(false));
        (pool, parker)
    }

    /// What a pusher does: publish, look, wake.
    fn publish(&self) {
        super::push(&self.registrar, &[]);
        if self.lane.wants_waking() && self.lane.claim_waking(false) {
            let seat = loop {
                match self.lane.seats().find(|seat| seat.claim()) {
                    Some(seat) => break seat,
                    None => crate::sync::yield_now(),
                }
            };
            seat.wake();
        }
    }

    /// What a worker does that has found nothing; see `Worker::sleep`.
    fn sleep(&self, parker: &Parker) {
        let seat = self.lane.seat(0).expect("taken in new()");
        seat.fall_asleep();
        self.lane.drowse();
        if self.registrar.has_news() && self.lane.try_rouse() {
            if seat.claim() {
                return;
            }
            self.lane.drowse();
        }
        parker.park(None);
    }
}

#[test]
fn loom_sleeper_misses_no_push() {
    loom::model(|| {
        let (pool, parker) = Pool::new();
        let pusher = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.publish())
        };
        // If it slept through the push it would never come back, and loom reports a deadlock.
        pool.sleep(&parker);
        pusher.join().unwrap();
        let mut ran = 0;
        super::work(&pool.registrar, |_| ran += 1);
        assert_eq!(ran, 1);
        assert!(!pool.lane.wants_waking(), "the worker counts as searching again");
    });
}

#[test]
fn loom_sleeper_is_woken_once_by_two_pushers() {
    loom::model(|| {
        let (pool, parker) = Pool::new();
        let pushers: Vec<_> = (0..2)
            .map(|_| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || pool.publish())
            })
            .collect();
        pool.sleep(&parker);
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        assert!(!pool.lane.wants_waking(), "the worker counts as searching again");
        assert!(!pool.lane.claim_waking(true), "and as nothing else");
    });
}
