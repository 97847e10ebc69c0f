//! The pool: lanes, the registrar they serve, and the threads.

use super::Device;
use super::host::Host;
use super::lane::Lane;
use super::policy::{Placement, Policy};
use super::seat::WorkerSeat;
use super::timer::{Timed, Timer, Untimed};
use super::vigil::Vigil;
use super::worker;
use crate::failure::{Cause, Failure};
use crate::op::{Deferred, Deliver, Op, OpContext, OpFlags, OpPtr, clear_current, set_current};
use crate::quiet::{dispose, is_quiet, quietly};
use crate::sched::{LANES, Pull, PullNothing, Registrar};
use crate::sync::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, CachePadded, Ordering, Parker, thread_cell, yield_now,
};
use crate::trace::Recorder;
use crossbeam_deque::Worker as Deque;
use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Runs nested inside inline runs before the next one is left to the outermost.
const NESTING: u32 = 64;

/// A worker's stack. Deep recursion in a payload should meet the limits of its language first; what is
/// not used is not paid for.
const STACK: usize = 32 << 20;

/// Looks for a sleeper that is about to lie down.
const WAKING_TRIES: u32 = if cfg!(loom) { 4 } else { 10_000 };

/// How long a thread that has left the host waits for a worker to enter.
const HAND_OVER: Duration = Duration::from_millis(1);

pub(crate) struct Pool {
    pub(crate) registrar: Registrar,
    pub(crate) host: Arc<dyn Host>,
    placement: &'static dyn Placement,
    lanes: Box<[OnceLock<Lane>]>,
    /// Lanes in use are those below this number.
    lanes_end: CachePadded<AtomicUsize>,
    pub(super) workers: usize,
    name: String,
    /// Somebody waits to enter the host: nobody else should.
    gate: CachePadded<AtomicBool>,
    /// When it was shut, in microseconds after `start`.
    gate_shut_at: AtomicU64,
    start: Instant,
    stopping: AtomicBool,
    /// The process was forked and this pool is its parent's.
    dead: AtomicBool,
    /// Ops that did not start are to fail instead.
    cancelling: AtomicBool,
    /// How many of these there are: a trace, a cancellation. With any, runs are looked at.
    pub(super) watched: AtomicU32,
    /// The trace; 0 is none.
    pub(super) trace: AtomicU32,
    pub(super) recorder: Mutex<Option<Arc<Recorder>>>,
    /// Ops whose completion tokens are out.
    deferred: Deferred,
    /// Waits that sleep, and whether anything moves meanwhile.
    pub(crate) vigil: Mutex<Vigil>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

thread_cell! {
    /// Pool (by address) and lane whose worker this thread is.
    static WORKER: (*const Pool, u16) = (ptr::null(), 0);
    /// Pool (by address) of the innermost inline run on this thread's stack, and how many of it are nested.
    static NESTED: (usize, u32) = (0, 0);
}

impl Pool {
    pub(crate) fn new(policy: Policy, workers: usize, name: String, host: Arc<dyn Host>) -> Self {
        Self {
            registrar: Registrar::new(|lane| policy.placement().is_in_order(lane)),
            host,
            placement: policy.placement(),
            lanes: (0..LANES).map(|_| OnceLock::new()).collect(),
            lanes_end: CachePadded(AtomicUsize::new(0)),
            workers,
            name,
            gate: CachePadded(AtomicBool::new(false)),
            gate_shut_at: AtomicU64::new(0),
            start: Instant::now(),
            stopping: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            cancelling: AtomicBool::new(false),
            watched: AtomicU32::new(0),
            trace: AtomicU32::new(0),
            recorder: Mutex::new(None),
            deferred: Deferred::new(),
            vigil: Mutex::new(Vigil::new()),
            threads: Mutex::new(Vec::new()),
        }
    }

    #[inline]
    pub(crate) fn placement(&self) -> &'static dyn Placement {
        self.placement
    }

    #[inline]
    pub(super) fn lane(&self, number: u16) -> &Lane {
        self.lanes[usize::from(number)].get_or_init(|| {
            let in_order = self.placement.is_in_order(number);
            let lane = Lane::new(number, in_order, self.placement.workers(number, self.workers));
            let end = usize::from(number) + 1;
            // ORDERING: pairs with lanes(); lanes are made by pushes, before their ops are seen.
            while self.lanes_end.load(Ordering::Acquire) < end {
                let now = self.lanes_end.load(Ordering::Acquire);
                // ORDERING: as above.
                let _ = self.lanes_end.compare_exchange(now, now.max(end), Ordering::AcqRel, Ordering::Acquire);
            }
            lane
        })
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        // ORDERING: pairs with lane().
        let end = self.lanes_end.load(Ordering::Acquire);
        self.lanes[..end].iter().filter_map(OnceLock::get)
    }

    pub(super) fn is_stopping(&self) -> bool {
        // ORDERING: SeqCst: a worker asks before it sleeps; pairs with stop().
        self.stopping.load(Ordering::SeqCst)
    }

    /// A push for this lane was published: sees to it that somebody follows up.
    #[inline]
    pub(crate) fn pushed(self: &Arc<Self>, lane: u16, hosted: bool) {
        self.published(lane, hosted);
        if self.placement.is_inline() {
            self.run_inline(false);
        }
    }

    /// The same, but for threads that may not run what is ready themselves.
    #[inline]
    pub(crate) fn published(self: &Arc<Self>, lane: u16, hosted: bool) {
        if self.placement.is_inline() {
            return;
        }
        let lane = self.lane(lane);
        if lane.wants_waking() && !(hosted && self.is_gate_shut()) {
            self.wake_one(lane, false);
        }
    }

    /// Workers of the device's lane that search or sleep, if nothing is ready for them.
    pub(crate) fn idle_workers(&self, device: Device) -> usize {
        if self.placement.is_inline() {
            return 0;
        }
        let lane = self.lane(self.placement.lane(device));
        let ready = self.registrar.has_news() || self.registrar.ready(lane.native_queue()) > 0;
        if ready { 0 } else { lane.idle() }
    }

    /// Registers some of what was pushed, for a waiter: nobody else may be free to.
    pub(crate) fn help(self: &Arc<Self>) {
        self.registrar.drive(None, &mut PullNothing { register: true });
        if self.placement.is_inline() {
            return self.run_inline(true);
        }
        self.wake_for_all();
    }

    /// Leaves this pool to the parent process: nobody here has its threads, or its role.
    pub(crate) fn bury(&self) {
        // ORDERING: set while there is one thread.
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_dead(&self) -> bool {
        // ORDERING: as in bury().
        self.dead.load(Ordering::Relaxed)
    }

    /// Wakes workers for what is ready, in whatever lane.
    pub(crate) fn wake_for_all(self: &Arc<Self>) {
        if self.placement.is_inline() {
            return self.run_inline(false);
        }
        self.wake_workers();
        if self.is_over() {
            self.stop();
        }
    }

    /// Wakes workers for what is ready. Under a policy without workers nothing happens.
    pub(crate) fn wake_workers(self: &Arc<Self>) {
        for lane in self.lanes() {
            self.wake_for_ready(lane);
        }
    }

    /// Whether the pool is stopping and nothing is left to be done.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopping() && self.registrar.pending() == 0
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

    /// Wakes workers of other lanes than the caller's for what its turn made ready.
    #[inline]
    pub(super) fn wake_others(self: &Arc<Self>, mine: &Lane) {
        // ORDERING: a lane made later has had its own wake-up.
        if self.lanes_end.load(Ordering::Relaxed) > 1 {
            for lane in self.lanes().filter(|lane| lane.number != mine.number) {
                self.wake_for_ready(lane);
            }
        }
    }

    #[inline]
    pub(super) fn is_gate_shut(&self) -> bool {
        // ORDERING: SeqCst: who finds it shut leaves its op to the one who shut it; pairs with the
        // store by which that one opens it and then looks.
        self.gate.load(Ordering::SeqCst)
    }

    /// Gives a worker that waits to enter the host time to do so, if it has waited for longer than
    /// `patience`. The caller has left the host.
    pub(crate) fn let_hosted_in(&self, patience: Duration) {
        let deadline = Instant::now() + HAND_OVER;
        while self.is_gate_overdue(patience) && Instant::now() < deadline {
            yield_now();
        }
    }

    /// Whether a worker has waited to enter the host for longer than `patience`.
    pub(crate) fn is_gate_overdue(&self, patience: Duration) -> bool {
        // ORDERING: a time to compare with; written before the gate is seen shut.
        self.is_gate_shut() && self.now().saturating_sub(self.gate_shut_at.load(Ordering::Relaxed)) > micros(patience)
    }

    /// Shuts the gate, unless somebody else has.
    pub(super) fn shut_gate(&self) -> bool {
        // ORDERING: SeqCst, see is_gate_shut().
        if self.gate.swap(true, Ordering::SeqCst) {
            return false;
        }
        // ORDERING: see is_gate_overdue(); a reader that misses it hands over once too often.
        self.gate_shut_at.store(self.now(), Ordering::Relaxed);
        true
    }

    /// Opens it: the host was entered.
    pub(super) fn open_gate(&self) {
        // ORDERING: SeqCst: from here others may come; what was left to us we look for next.
        self.gate.store(false, Ordering::SeqCst);
    }

    /// Microseconds since the pool was made.
    fn now(&self) -> u64 {
        micros(self.start.elapsed())
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
            WORKER.with(|worker| worker.set((Arc::as_ptr(&pool), lane_number)));
            // Who has no thread takes no seat: another one may yet. Until it sits here nobody has anything for it.
            let (native, hosted) = (Deque::new_fifo(), Deque::new_fifo());
            let parker = Parker::new();
            let seat = WorkerSeat::new(native.stealer(), hosted.stealer(), parker.unparker());
            pool.lane(lane_number).sit(number, seat);
            pool.host.worker_begins();
            worker::work(&pool, lane_number, number, native, hosted, &parker);
            pool.host.worker_ends();
            WORKER.with(|worker| worker.set((ptr::null(), 0)));
        });
        if let Ok(thread) = thread {
            self.threads().push(thread);
        } else {
            // The system gives no thread. Others may be there; if there are none, waits keep asking.
            lane.return_seat(number);
            lane.end_search();
            lane.add_spare();
        }
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an op and lets `seat` show it meanwhile. Answers it if it is finished, for the caller to
    /// settle; otherwise its completion token will.
    #[inline]
    pub(super) fn run(&self, op: OpPtr, deliver: &Arc<dyn Deliver>, seat: Option<&WorkerSeat>) -> Option<OpPtr> {
        // ORDERING: an op that misses a cancellation has started before. One that is traced misses no trace: whoever
        // pushed it knew of that, and has handed it over.
        if self.watched.load(Ordering::Relaxed) > 0 {
            return self.run_watched(op, deliver, seat);
        }
        self.run_timed(op, deliver, seat, &Untimed)
    }

    /// Runs an op while there is a trace or a cancellation.
    #[inline(never)] // out of the way of those without
    fn run_watched(&self, op: OpPtr, deliver: &Arc<dyn Deliver>, seat: Option<&WorkerSeat>) -> Option<OpPtr> {
        // ORDERING: a flag of its own.
        if self.cancelling.load(Ordering::Relaxed) && Self::cancel(op) {
            return Some(op);
        }
        // SAFETY: a pulled op is this thread's.
        let traced = unsafe { (*op.as_ptr()).flags }.has(OpFlags::TRACED);
        if traced {
            let thread = self.running_thread_in_trace(seat).unwrap_or(u16::MAX);
            return self.run_timed(op, deliver, seat, &Timed { thread });
        }
        self.run_timed(op, deliver, seat, &Untimed)
    }

    #[inline]
    fn run_timed(
        &self,
        op: OpPtr,
        deliver: &Arc<dyn Deliver>,
        seat: Option<&WorkerSeat>,
        timer: &impl Timer,
    ) -> Option<OpPtr> {
        let mut context = OpContext::new(op, deliver);
        let before = set_current(self.address(), op);
        let note = |op| seat.map_or((), |seat| seat.note(op));
        timer.begin(op, seat);
        note(op.as_ptr());
        // SAFETY: a ready op was pulled by this thread alone, and was not run before.
        let result =
            catch_unwind(AssertUnwindSafe(|| unsafe { (*op.as_ptr()).payload.assume_init_mut().run(&mut context) }));
        timer.end(op);
        clear_current(before);
        note(ptr::null_mut()); // from here on the op may be delivered
        match context.conclude(result.unwrap_or_else(|panic| Err(Cause::Panic(message_of(panic))))) {
            None => None,
            Some(Ok(())) => Some(op),
            Some(Err(cause)) => {
                self.fail(op, cause);
                Some(op)
            }
        }
    }

    /// The pool and the lane of which the calling thread is a worker.
    pub(super) fn of_worker() -> Option<(Arc<Self>, u16)> {
        let (pool, lane) = WORKER.with(Cell::get);
        if pool.is_null() {
            return None;
        }
        // SAFETY: the pointer is that of an Arc which the worker thread holds until it ends.
        let pool = unsafe {
            Arc::increment_strong_count(pool);
            Arc::from_raw(pool)
        };
        Some((pool, lane))
    }

    /// The lane of which the calling thread is a worker.
    pub(crate) fn lane_of_worker(&self) -> Option<u16> {
        let (pool, lane) = WORKER.with(Cell::get);
        (pool == ptr::from_ref(self)).then_some(lane)
    }

    /// Fails an op that has not started. Answers whether it does: clean-up runs all the same.
    #[cold]
    fn cancel(op: OpPtr) -> bool {
        // SAFETY: a pulled op is this thread's, and was not run.
        unsafe {
            if (*op.as_ptr()).flags.has(OpFlags::ALWAYS_RUN) {
                return false;
            }
            let payload = (*op.as_ptr()).payload.assume_init_mut();
            // A panicking drop ends nobody else's work.
            quietly(|| payload.discard());
        }
        // SAFETY: as above.
        unsafe { (*op.as_ptr()).failure = Some(Arc::new(Failure::new(Op::label(op), Cause::Cancelled))) };
        true
    }

    /// From now on ops that have not started fail.
    pub(crate) fn cancel_unstarted(self: &Arc<Self>) {
        // ORDERING: as in run_watched().
        if !self.cancelling.swap(true, Ordering::Relaxed) {
            // ORDERING: as in run().
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        self.turn().parts().0.cancel();
    }

    /// Notes why a running op failed.
    #[cold]
    pub(crate) fn fail(&self, op: OpPtr, cause: Cause) {
        // SAFETY: the op is the caller's until it is delivered.
        let (flags, number) = unsafe { ((*op.as_ptr()).flags, (*op.as_ptr()).number) };
        if flags.has(OpFlags::TRACED)
            && let Some(recorder) = self.recorder()
        {
            recorder.failed(number, first_line_of(&cause));
        }
        // SAFETY: as above.
        unsafe { (*op.as_ptr()).failure = Some(Arc::new(Failure::new(Op::label(op), cause))) };
    }

    /// What `op::current` knows this engine by.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Runs what is ready on this thread, until nothing is. Deep inside other inline runs that is
    /// left to the outermost, unless the caller is about to wait for it.
    pub(crate) fn run_inline(self: &Arc<Self>, about_to_wait: bool) {
        let outer = NESTED.with(Cell::get);
        let depth = if outer.0 == self.address() { outer.1 } else { 0 };
        if depth >= NESTING && !about_to_wait {
            return;
        }
        if is_quiet() {
            return self.catch_up_later();
        }
        NESTED.with(|nested| nested.set((self.address(), depth + 1)));
        let deliver: Arc<dyn Deliver> = Arc::new(Delivery(Arc::clone(self)));
        let mut finished = None;
        loop {
            let mut pull = PullOne(None);
            self.registrar.drive(finished.take(), &mut pull);
            let Some(op) = pull.0 else {
                // Another thread had the role. It may have registered an op of this one's and gone, or
                // this one an op of its: who finds nothing looks whether there is something by now.
                if self.has_inline_work() {
                    yield_now();
                    continue;
                }
                break;
            };
            // SAFETY: a pulled op is this thread's, and was not run.
            let hosted = unsafe { (*op.as_ptr()).payload.assume_init_ref().is_hosted() };
            let mut run = || finished = self.run(op, &deliver, None);
            if hosted { self.host.enter(&mut run) } else { run() }
        }
        NESTED.with(|nested| nested.set(outer));
    }

    fn has_inline_work(&self) -> bool {
        self.registrar.has_news() || self.registrar.ready(0) > 0 || self.registrar.ready(1) > 0
    }

    /// The ops that workers run now. They are pending for as long as the caller has the role.
    pub(crate) fn running_ops(&self) -> impl Iterator<Item = OpPtr> {
        self.lanes().flat_map(Lane::seats).filter_map(WorkerSeat::running)
    }

    /// The ops that have begun and not ended: those that workers run, and those that wait for their completion tokens.
    /// They are pending for as long as the caller has the role.
    pub(crate) fn begun_ops(&self) -> Vec<OpPtr> {
        let mut ops: Vec<_> = self.running_ops().collect();
        let mut deferred = self.deferred.ops();
        deferred.retain(|op| !ops.contains(op));
        ops.extend(deferred);
        ops
    }

    /// What the host knows the thread of the worker by that runs this op.
    pub(crate) fn host_thread_of(&self, op: OpPtr) -> Option<u64> {
        self.lanes().flat_map(Lane::seats).find(|seat| seat.running() == Some(op)).map(WorkerSeat::host_thread)
    }

    /// Labels of the ops that run now.
    pub(crate) fn running(self: &Arc<Self>) -> Vec<String> {
        let _turn = self.turn();
        self.running_ops()
            // SAFETY: a noted op is pending, and stays so while we have the role.
            .map(|op| unsafe { Op::label(op) })
            .collect()
    }

    /// Tells the workers to end when they have nothing to do.
    pub(crate) fn stop(&self) {
        // ORDERING: SeqCst: pairs with is_stopping(), asked after a sleep was announced.
        self.stopping.store(true, Ordering::SeqCst);
        for seat in self.lanes().flat_map(Lane::seats) {
            seat.wake();
        }
    }

    /// Waits for the worker threads to end. Not from one of them.
    pub(crate) fn join(&self) {
        loop {
            let threads = std::mem::take(&mut *self.threads());
            if threads.is_empty() {
                return;
            }
            for thread in threads {
                // A worker's panic was a payload's and is its op's failure.
                let _ = thread.join();
            }
        }
    }

    /// Whether the calling thread is one of this pool's workers.
    pub(crate) fn is_worker(&self) -> bool {
        WORKER.with(Cell::get).0 == ptr::from_ref(self)
    }

    /// Makes the calling thread, the only one of a forked child, a worker no more.
    pub(crate) fn forget_worker() {
        WORKER.with(|worker| worker.set((ptr::null(), 0)));
    }
}

/// Takes back what ran: the way of completion tokens into the pool.
pub(super) struct Delivery(pub(super) Arc<Pool>);

impl Deliver for Delivery {
    fn deliver(&self, op: OpPtr, result: Result<(), Cause>) {
        if self.0.is_dead() {
            return;
        }
        self.0.complete_in_trace(op);
        if let Err(cause) = result {
            self.0.fail(op, cause);
        }
        self.0.registrar.drive(Some(op), &mut PullNothing { register: false });
        self.0.turned();
    }

    fn deferred(&self) -> Option<&Deferred> {
        // In a forked child a thread that is gone may hold the lock.
        (!self.0.is_dead()).then_some(&self.0.deferred)
    }

    fn stray(&self, op: &str, cause: Cause) {
        if self.0.is_dead() {
            return;
        }
        let failure = Arc::new(Failure::new(op.to_owned(), cause));
        self.0.turn().parts().0.note_failure(failure);
    }

    fn host(&self) -> &dyn Any {
        &*self.0.host
    }
}

/// Stands for a worker that is blocked in a wait: another one works in its place meanwhile.
pub(crate) struct BlockedWorker {
    pool: Arc<Pool>,
    lane: u16,
}

impl BlockedWorker {
    /// For a worker thread about to block; nothing for other threads.
    /// Answers an error if there are too many already.
    pub(crate) fn enter() -> Result<Option<Self>, usize> {
        let Some((pool, lane_number)) = Pool::of_worker() else { return Ok(None) };
        let lane = pool.lane(lane_number);
        if lane.is_full() {
            return Err(lane.seats().count());
        }
        lane.add_spare();
        pool.wake_one(lane, true);
        Ok(Some(Self { pool: Arc::clone(&pool), lane: lane_number }))
    }
}

impl Drop for BlockedWorker {
    fn drop(&mut self) {
        self.pool.lane(self.lane).remove_spare();
    }
}

/// Pulls one op of lane 0, native ones first, for inline runs.
struct PullOne(Option<OpPtr>);

impl Pull for PullOne {
    fn queues(&self) -> Range<usize> {
        0..2
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

#[allow(clippy::cast_possible_truncation)] // half a million years
fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

fn message_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("with something that is no text").to_owned();
    dispose(panic);
    text
}

/// The first line of what a cause says of itself, which a user may have written.
fn first_line_of(cause: &Cause) -> String {
    let describe = || cause.to_string().lines().next().unwrap_or_default().to_owned();
    catch_unwind(AssertUnwindSafe(describe)).unwrap_or_else(|panic| {
        dispose(panic);
        "an error whose description panics".to_owned()
    })
}
