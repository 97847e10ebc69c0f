//! The worker to wake, or to start, for a pushed or ready op.

use super::guest::Guest;
use super::lane::Lane;
use super::seat::WorkerSeat;
use super::state::Pool;
use super::worker;
use crate::op::{Device, OpPtr};
use crate::sched::{Pull, PullNothing};
use crate::sync::{Ordering, Parker, yield_now};
use crossbeam_deque::Worker as Deque;
use std::sync::Arc;
use std::thread;

/// A worker's stack. Deep recursion in a payload should meet the limits of its language first; unused memory costs
/// nothing.
const STACK: usize = 32 << 20;

/// Looks for a sleeper that is about to lie down.
const WAKING_TRIES: u32 = if cfg!(loom) { 4 } else { 10_000 };

impl Pool {
    /// A push for this lane was published: has a worker follow up.
    #[inline]
    pub(crate) fn pushed(self: &Arc<Self>, lane: u16, hosted: bool) {
        self.published(lane, hosted);
        if self.placement.is_inline() {
            self.run_inline(false);
        }
    }

    /// The same, but for threads that may not run ready ops themselves.
    #[inline]
    pub(crate) fn published(self: &Arc<Self>, lane: u16, hosted: bool) {
        if self.placement.is_inline() {
            return;
        }
        let lane = self.lane(lane);
        if lane.wants_waking() && !(hosted && self.is_gate_shut()) && !lane.naps() {
            self.wake_one(lane, false);
        }
    }

    /// A wait was published. It needs no worker: if no other thread is about to register it, its own does: a woken
    /// worker would then have its processor.
    pub(crate) fn asked(self: &Arc<Self>, guest: &mut Guest<'_>) {
        if self.placement.is_inline() {
            self.run_inline(false);
        } else if self.lane(0).wants_waking() || self.lends() {
            self.help(guest);
        }
    }

    /// Workers of the device's lane that search or sleep, if nothing is ready for them.
    pub(crate) fn idle_workers(self: &Arc<Self>, device: Device) -> usize {
        if self.placement.is_inline() {
            return 0;
        }
        // What finished ops make ready is known when they are settled.
        if self.registrar.has_left()
            && let Some(mut turn) = self.try_turn()
        {
            turn.settle_kept();
        }
        let lane = self.lane(self.placement.lane(device));
        let ready = self.registrar.has_news() || self.registrar.ready(lane.native_queue()) > 0;
        if ready { 0 } else { lane.idle() }
    }

    /// Registers some pushed ops, for a waiter: no other thread may be free to. It then takes the places that are
    /// [lent](super::guest).
    pub(crate) fn help(self: &Arc<Self>, guest: &mut Guest<'_>) {
        self.registrar.drive(None, &mut PullNothing { register: true });
        if self.placement.is_inline() {
            return self.run_inline(true);
        }
        if self.welcomes_guests() {
            for lane in self.lanes().filter(|lane| !lane.lends()) {
                self.wake_for_ready(lane);
            }
            self.receive(guest);
        }
        self.wake_for_all();
    }

    /// Wakes workers for ready ops, in any lane.
    pub(crate) fn wake_for_all(self: &Arc<Self>) {
        if self.placement.is_inline() {
            return self.run_inline(false);
        }
        self.wake_workers();
        if self.is_over() {
            self.stop();
        }
    }

    /// Wakes workers for ready ops. Under a policy without workers nothing happens.
    pub(crate) fn wake_workers(self: &Arc<Self>) {
        for lane in self.lanes() {
            self.wake_for_ready(lane);
        }
    }

    /// Wakes a worker of the lane if there is something for it.
    #[inline]
    pub(super) fn wake_for_ready(self: &Arc<Self>, lane: &Lane) {
        if (self.registrar.ready(lane.native_queue()) > 0
            || (self.registrar.ready(lane.hosted_queue()) > 0 && !self.is_gate_shut()))
            && lane.wants_waking()
        {
            self.wake_one(lane, false);
        }
    }

    /// A turn of one who works in this lane, and sees to what it makes ready there. Others may have left something for another
    /// lane, and have looked before it was ready: so workers of other lanes are woken.
    #[inline]
    pub(super) fn take_turn(self: &Arc<Self>, mine: &Lane, finished: Option<OpPtr>, pull: &mut impl Pull) {
        self.registrar.drive(finished, pull);
        self.wake_others(mine);
    }

    /// Wakes workers of other lanes than the caller's.
    #[inline]
    pub(super) fn wake_others(self: &Arc<Self>, mine: &Lane) {
        // ORDERING: a lane made later has had its own wake-up.
        if self.lanes_end.load(Ordering::Relaxed) > 1 {
            for lane in self.lanes().filter(|lane| lane.number != mine.number) {
                self.wake_for_ready(lane);
            }
        }
    }

    /// Wakes, or starts, one worker.
    #[cold]
    pub(super) fn wake_one(self: &Arc<Self>, lane: &Lane, even_if_one_searches: bool) {
        if !lane.claim_waking(even_if_one_searches) {
            return;
        }
        for _ in 0..WAKING_TRIES {
            if let Some(seat) = lane.seats().find(|seat| seat.claim()) {
                return seat.wake();
            }
            if let Some(number) = lane.take_seat() {
                return self.start_worker(lane, number);
            }
            // All seats are taken and the sleeper has not lain down yet: it will.
            yield_now();
        }
        // Unless its thread could not be started.
        lane.drowse();
    }

    fn start_worker(self: &Arc<Self>, lane: &Lane, number: usize) {
        let pool = Arc::clone(self);
        let lane_number = lane.number;
        let name = format!("{}-{lane_number}.{number}", self.name);
        let thread = thread::Builder::new().name(name).stack_size(STACK).spawn(move || {
            // A worker without a thread takes no seat: another one may yet. Until it sits here there is nothing for it.
            let (native, hosted) = (Deque::new_fifo(), Deque::new_fifo());
            let parker = Parker::new();
            let seat = WorkerSeat::new(native.stealer(), hosted.stealer(), parker.unparker());
            pool.lane(lane_number).sit(number, seat);
            pool.as_worker(lane_number, || {
                pool.host.worker_begins();
                worker::work(&pool, lane_number, number, native, hosted, &parker);
                pool.host.worker_ends();
            });
        });
        if let Ok(thread) = thread {
            self.threads().push(thread);
        } else {
            // The system gives no thread. Others may be there; if there are none, waits ask for it now and then.
            lane.return_seat(number);
            lane.end_search();
            lane.add_spare();
        }
    }

    /// Starts workers that could not be started, if there is something for them.
    pub(crate) fn start_missing(self: &Arc<Self>) {
        if self.lanes().any(Lane::lacks_worker) {
            self.registrar.drive(None, &mut PullNothing { register: true }); // what was pushed since, too
            self.wake_for_all();
        }
    }
}
