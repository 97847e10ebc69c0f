//! The knowledge of the holder of a stream's turn: the fences that the stream is behind, and the ops that share an
//! event.

use super::fence::{Fence, Mark};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// Ops that have an event in common, at most.
const BLOCK: u64 = 16;
/// Lasting ops that have events of their own before some are given one in common, and after the first wait in vain.
const APART: u32 = 64;
/// As many at most: each wait in vain makes them four times as many.
const MOST_APART: u32 = 4096;

/// When the event behind an op is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marking {
    /// Right behind it: it will be asked for.
    Now,
    /// When somebody asks. It takes some microseconds at most.
    Brief,
    /// When somebody asks. Its time is unknown.
    Lasting,
}

/// The relation of a lasting op to those before it on its stream: their events, once for each fence.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    /// It comes behind these.
    followed: SmallVec<[*const Mark; 4]>,
    /// Its own fence takes the place of these.
    replaced: SmallVec<[*const Mark; 4]>,
}

impl Ties {
    #[inline]
    pub(crate) fn follow(&mut self, fence: &Fence) {
        self.followed.push(Arc::as_ptr(fence.mark()));
    }

    #[inline]
    pub(crate) fn replace(&mut self, fence: &Fence) {
        self.replaced.push(Arc::as_ptr(fence.mark()));
    }
}

/// The order of work on a stream.
pub(super) struct Order {
    /// For each stream, by number, the newest of its fences that this one is behind.
    pub(super) behind: Vec<u64>,
    /// The event of the ops that have none recorded behind them yet, as long as one of them has a fence.
    open: Weak<Mark>,
    /// How many ops that are.
    unmarked: u64,
    /// The number of the last of them that is lasting, or 0.
    lasting: u64,
    /// Lasting ops to come that are kept apart.
    apart: u32,
    /// As many after the next wait in vain.
    next_apart: u32,
}

impl Default for Order {
    fn default() -> Self {
        let (behind, open) = Default::default();
        Self { behind, open, unmarked: 0, lasting: 0, apart: APART, next_apart: APART }
    }
}

impl Order {
    /// The open event.
    #[inline]
    pub(super) fn open(&self) -> Option<Arc<Mark>> {
        self.open.upgrade()
    }

    /// Whether a lasting op may join those whose event is open, as none of them is likely to be asked for alone.
    pub(super) fn may_join(&mut self, ties: &Ties) -> bool {
        let Some(open) = self.open.upgrade() else { return true };
        let (mark, holders) = (Arc::as_ptr(&open), Arc::strong_count(&open) - 1);
        if ties.replaced.iter().filter(|replaced| **replaced == mark).count() >= holders {
            return true;
        }
        if self.apart > 0 {
            self.apart -= 1;
            return false;
        }
        ties.followed.contains(&mark)
    }

    /// Counts an op that was issued. Answers whether its event stays open.
    #[inline]
    pub(super) fn stays_open(&mut self, fence: &Fence, marking: Marking) -> bool {
        self.unmarked += 1;
        if marking == Marking::Now || self.unmarked >= BLOCK {
            return false;
        }
        if self.open.strong_count() == 0 {
            (self.open, self.lasting) = (Arc::downgrade(fence.mark()), 0);
        }
        if marking == Marking::Lasting {
            self.lasting = fence.number();
        }
        true
    }

    /// Notes that an op with an open event is asked for.
    pub(super) fn asked_for(&mut self, fence: &Fence) {
        if fence.number() < self.lasting {
            self.apart = self.next_apart;
            self.next_apart = (self.next_apart * 4).min(MOST_APART);
        }
    }

    /// The last op's event was not recorded.
    pub(super) fn retract(&mut self) {
        self.unmarked -= 1;
    }

    /// The open event was recorded.
    #[inline]
    pub(super) fn marked(&mut self) {
        (self.open, self.unmarked, self.lasting) = (Weak::new(), 0, 0);
    }
}
