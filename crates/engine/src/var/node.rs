//! The node behind a variable's handle.

use super::queue::Queue;
use super::{AccessKind, AccessNode, Seat, Settled};
use crate::failure::Failure;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, CachePadded, Ordering, UnsafeCell};
use std::sync::Arc;

/// What is left of a variable's last good version.
pub(crate) enum Health {
    /// An op holds the variable alone.
    Busy,
    /// It is the value. `made` says whether an op has ever made one.
    Good { made: bool },
    /// What came after it failed without having begun: it is there.
    Kept { failure: Arc<Failure>, made: bool },
    /// What came after it has begun.
    Spoilt(Arc<Failure>),
}

/// What all handles on, and all accesses of, one variable share.
///
/// Two halves on separate cache lines: pushers count versions on one, the registrar keeps the
/// queue on the other, and neither takes the other's line away.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct VarNode {
    version: AtomicU64,
    deleted: AtomicBool,
    /// How often its process was forked when the queue was last fresh.
    generation: AtomicU32,
    /// Number of the variable in its engine, from 0.
    pub(crate) number: u64,
    pub(crate) name: Option<Box<str>>,
    /// Bytes that it stands for; 0 if that is not known.
    pub(crate) bytes: u64,
    /// The last trace that was told of it.
    noted: AtomicU32,
    tracked: CachePadded<Tracked>,
}

#[derive(Debug)]
struct Tracked {
    queue: UnsafeCell<Queue>,
    completed: AtomicU64,
    failed: AtomicBool,
}

impl VarNode {
    pub(crate) fn new(number: u64, name: Option<Box<str>>, bytes: u64, generation: u32) -> Self {
        Self {
            version: AtomicU64::new(0),
            deleted: AtomicBool::new(false),
            generation: AtomicU32::new(generation),
            number,
            name,
            bytes,
            noted: AtomicU32::new(0),
            tracked: CachePadded(Tracked {
                queue: UnsafeCell::new(Queue::new()),
                completed: AtomicU64::new(0),
                failed: AtomicBool::new(false),
            }),
        }
    }

    /// The name to show: the given one, or the number.
    pub(crate) fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| format!("variable #{}", self.number), |name| format!("'{name}'"))
    }

    /// Whether this trace was not told of the variable, or nearly so: of two threads that come at the same time both may tell it.
    #[inline]
    pub(crate) fn is_news(&self, trace: u32) -> bool {
        // ORDERING: a hint that spares telling it again.
        self.noted.load(Ordering::Relaxed) != trace
    }

    /// Notes that this trace is told of the variable.
    pub(crate) fn note(&self, trace: u32) {
        // ORDERING: as in is_news().
        self.noted.store(trace, Ordering::Relaxed);
    }

    /// Counts one more pushed mutation.
    #[inline]
    pub(crate) fn count_version(&self) {
        // ORDERING: a count alone; the op that makes the version is published by the ring.
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // ORDERING: as in count_version(); a thread sees its own pushes by coherence.
        self.version.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn completed_version(&self) -> u64 {
        // ORDERING: pairs with the Release in leave(): who sees a version complete sees its value.
        self.tracked.completed.load(Ordering::Acquire)
    }

    /// Whether the last finished version failed.
    #[inline]
    pub(crate) fn failed(&self) -> bool {
        // ORDERING: ordered behind completed_version() by its Acquire; read after it.
        self.tracked.failed.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_deleted(&self) -> bool {
        // ORDERING: pairs with the AcqRel in mark_deleted().
        self.deleted.load(Ordering::Acquire)
    }

    /// Marks the variable as deleted. Answers whether this call was the one that did.
    pub(crate) fn mark_deleted(&self) -> bool {
        // ORDERING: pairs with the Acquire in is_deleted().
        !self.deleted.swap(true, Ordering::AcqRel)
    }

    /// Whether the queue is of this generation of the process.
    #[inline]
    pub(crate) fn is_of(&self, generation: u32) -> bool {
        // ORDERING: pairs with the Release in adopt().
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Starts over in a forked child: what was queued in the parent stays there. If a version was
    /// unfinished, it failed with the failure that `lost` makes; the one before is answered, to be
    /// dropped elsewhere.
    pub(crate) fn adopt(
        &self,
        _seat: &Seat,
        generation: u32,
        lost: impl FnOnce() -> Arc<Failure>,
    ) -> Option<Arc<Failure>> {
        let unfinished = self.version() != self.completed_version();
        // SAFETY: the seat proves that no other thread is in the queue.
        let before = self.tracked.queue.with_mut(|queue| unsafe {
            // The parent's accesses are not ours to drop; the failure is.
            let mut before = (*queue).failure.take();
            let (begun, made) = ((*queue).begun, (*queue).made);
            queue.write(Queue::new());
            (*queue).failure = if unfinished { Some(lost()) } else { before.take() };
            // What the parent was about to write may be half of it here.
            ((*queue).begun, (*queue).made) = (begun || unfinished, made);
            // ORDERING: published by the Release below, as is the count.
            self.tracked.failed.store((*queue).failure.is_some(), Ordering::Relaxed);
            before
        });
        // ORDERING: as above.
        self.tracked.completed.store(self.version(), Ordering::Relaxed);
        // ORDERING: pairs with the Acquire in is_of().
        self.generation.store(generation, Ordering::Release);
        before
    }

    /// Takes an access in, of an op of this priority. Answers whether it is granted at once.
    ///
    /// # Safety
    ///
    /// `access` is of this variable and stays where it is until it has left.
    #[inline]
    pub(crate) unsafe fn enter(&self, _seat: &Seat, access: *mut AccessNode, priority: i32) -> bool {
        // SAFETY: the seat proves that no other thread is in the queue; the rest is the caller's.
        self.tracked.queue.with_mut(|queue| unsafe { (*queue).enter(access, priority) })
    }

    /// Ends a granted access, records what it made of its version, and hands every access that
    /// this grants to `granted`. Answers the failure that this ends, to be dropped elsewhere.
    #[inline]
    pub(crate) fn leave(
        &self,
        _seat: &Seat,
        kind: AccessKind,
        settled: Settled<'_>,
        granted: impl FnMut(*mut AccessNode),
    ) -> Option<Arc<Failure>> {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe {
            let mut ended = None;
            if kind.makes_version() {
                ended = (*queue).note(kind, settled);
                let failed = (*queue).failure.is_some();
                // ORDERING: published by the Release below.
                self.tracked.failed.store(failed, Ordering::Relaxed);
                // ORDERING: the registrar alone writes; it may read its own count relaxed.
                let completed = self.tracked.completed.load(Ordering::Relaxed);
                // ORDERING: pairs with the Acquire in completed_version().
                self.tracked.completed.store(completed + 1, Ordering::Release);
            }
            (*queue).leave(kind, granted);
            ended
        })
    }

    /// Takes a queued access out again; see `Queue::withdraw`.
    pub(crate) fn withdraw(&self, _seat: &Seat, access: *mut AccessNode, granted: impl FnMut(*mut AccessNode)) -> bool {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe { (*queue).withdraw(access, granted) })
    }

    /// The failure of the last finished version.
    pub(crate) fn failure(&self, _seat: &Seat) -> Option<Arc<Failure>> {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe { (*queue).failure.clone() })
    }

    /// Whether an op that ran has changed what the last good version left.
    pub(crate) fn has_begun(&self, _seat: &Seat) -> bool {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe { (*queue).begun })
    }

    /// How far the last good version is from being the value: see [`Health`].
    pub(crate) fn health(&self, _seat: &Seat) -> Health {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe {
            let (made, queue) = ((*queue).made, &*queue);
            match &queue.failure {
                _ if !queue.writer.is_null() => Health::Busy,
                None => Health::Good { made },
                Some(failure) if queue.begun => Health::Spoilt(Arc::clone(failure)),
                Some(failure) => Health::Kept { failure: Arc::clone(failure), made },
            }
        })
    }

    /// Whether an access to it was granted and not left yet. Where none is held, none is queued.
    pub(crate) fn is_held(&self, _seat: &Seat) -> bool {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe { (*queue).readers > 0 || !(*queue).writer.is_null() })
    }

    /// Makes the last good version the value again, if it is [kept](Health::Kept). Answers the failure that this ends, to be
    /// dropped elsewhere.
    pub(crate) fn recover(&self, seat: &Seat) -> Option<Arc<Failure>> {
        if !matches!(self.health(seat), Health::Kept { .. }) {
            return None;
        }
        // SAFETY: the seat proves that no other thread is in the queue.
        let ended = self.tracked.queue.with_mut(|queue| unsafe { (*queue).failure.take() });
        // ORDERING: a fact for whoever asks; ops and waits that come behind look under the role.
        self.tracked.failed.store(false, Ordering::Relaxed);
        ended
    }

    /// Notes that whoever `access` waits for is being lifted; see `Queue::lift`.
    pub(crate) fn lift(&self, _seat: &Seat, access: *mut AccessNode, kind: AccessKind, priority: i32) -> bool {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe { (*queue).lift(access, kind.is_exclusive(), priority) })
    }

    /// The queued accesses, first come first. Walk on only while the queue stays as it is.
    pub(crate) fn queued(&self, seat: &Seat) -> impl Iterator<Item = *mut AccessNode> + use<> {
        let (_, _, head) = self.holders(seat);
        let some = |access: *mut AccessNode| (!access.is_null()).then_some(access);
        // SAFETY: queued accesses live until they have left.
        std::iter::successors(some(head), move |&access| some(unsafe { (*access).next }))
    }

    /// Owner of the granted exclusive access, number of granted reads, first queued access.
    pub(crate) fn holders(&self, _seat: &Seat) -> (*mut u8, u32, *mut AccessNode) {
        // SAFETY: the seat proves that no other thread is in the queue.
        self.tracked.queue.with_mut(|queue| unsafe { ((*queue).writer, (*queue).readers, (*queue).head) })
    }
}
