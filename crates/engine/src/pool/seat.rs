//! A worker's place in its lane, as the others see it.

use crate::op::{Op, OpPtr};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering, Unparker};
use crossbeam_deque::Stealer;
use std::ptr;

/// Bits of a number among the threads of a trace.
const THREAD: u32 = 16;

/// It has cache lines of its own: its worker writes there at each op.
#[repr(align(64))]
pub(crate) struct WorkerSeat {
    pub(crate) native: Stealer<OpPtr>,
    pub(crate) hosted: Stealer<OpPtr>,
    unparker: Unparker,
    asleep: AtomicBool,
    running: AtomicPtr<Op>,
    /// The host's number of the worker's thread.
    host_thread: AtomicU64,
    /// When that began, if it is traced.
    since: AtomicU64,
    /// The last trace that the worker took part in, and below [`THREAD`] bits its number there.
    part: AtomicU64,
}

impl WorkerSeat {
    pub(crate) fn new(native: Stealer<OpPtr>, hosted: Stealer<OpPtr>, unparker: Unparker) -> Self {
        let (asleep, running) = (AtomicBool::new(false), AtomicPtr::new(ptr::null_mut()));
        Self {
            native,
            hosted,
            unparker,
            asleep,
            running,
            host_thread: AtomicU64::new(0),
            since: AtomicU64::new(0),
            part: AtomicU64::new(u64::MAX),
        }
    }

    /// States the host's number of the worker's thread; the worker does so before it notes an op.
    pub(crate) fn set_host_thread(&self, thread: u64) {
        // ORDERING: published with the ops that are noted after.
        self.host_thread.store(thread, Ordering::Relaxed);
    }

    pub(crate) fn host_thread(&self) -> u64 {
        // ORDERING: as above.
        self.host_thread.load(Ordering::Relaxed)
    }

    /// Announces that the worker is about to sleep.
    pub(crate) fn fall_asleep(&self) {
        // ORDERING: pairs with the swap in claim(); the lane's counters, changed next, carry the handshake.
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Takes the right to wake this worker, or, for the worker itself, the right to stay awake.
    pub(crate) fn claim(&self) -> bool {
        // ORDERING: as in fall_asleep(); one of several claimers wins.
        self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn wake(&self) {
        self.unparker.unpark();
    }

    /// Notes the op that the worker runs now; null for none.
    #[inline]
    pub(crate) fn note(&self, op: *mut Op) {
        // ORDERING: Release pairs with running(): a reader of the op sees its fields. The op is noted away before it is
        // delivered, so a noted op is pending for the holder of the role.
        self.running.store(op, Ordering::Release);
    }

    /// The worker's number in this trace, if it has taken part in it.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lowest bits
    pub(crate) fn thread_in(&self, trace: u32) -> Option<u16> {
        // ORDERING: the worker alone writes it.
        let part = self.part.load(Ordering::Relaxed);
        (part >> THREAD == u64::from(trace)).then_some(part as u16)
    }

    /// Notes the worker's number in a trace.
    pub(crate) fn take_part(&self, trace: u32, thread: u16) {
        // ORDERING: as in begin().
        self.part.store(u64::from(trace) << THREAD | u64::from(thread), Ordering::Release);
    }

    /// Notes when the op that is noted next begins.
    #[inline]
    pub(crate) fn begin(&self, since: u64) {
        // ORDERING: Release pairs with begun(): a reader of this sees that the op before was noted away.
        self.since.store(since, Ordering::Release);
    }

    /// The op that the worker runs, since when, and its thread in a trace; call it with the role.
    pub(crate) fn begun(&self) -> Option<(OpPtr, u64, u16)> {
        let op = self.running()?;
        // ORDERING: pairs with begin(). The worker may have gone on to the next op: then the second look finds it so.
        let (since, part) = (self.since.load(Ordering::Acquire), self.part.load(Ordering::Acquire));
        #[allow(clippy::cast_possible_truncation)] // the lowest bits
        Some((op, since, part as u16)).filter(|_| self.running() == Some(op))
    }

    /// The op that the worker runs.
    pub(crate) fn running(&self) -> Option<OpPtr> {
        // ORDERING: pairs with note().
        OpPtr::from_raw(self.running.load(Ordering::Acquire))
    }

    /// Whether others could steal from it.
    pub(crate) fn has_native(&self) -> bool {
        !self.native.is_empty()
    }

    pub(crate) fn has_hosted(&self) -> bool {
        !self.hosted.is_empty()
    }
}
