//! The memory that the tape knows by itself: leaves, and the writes of heard ops.
//!
//! A program refers to memory, and may have met it through a handle that is out of reach now, such as an item of a list. So
//! the assumptions of its recording are checked by buffer.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use weft_array::Buffer;

#[derive(Default)]
struct Counts {
    leaves: usize,
    inputs: usize,
    written: usize,
    left: usize,
}

/// Why memory is marked.
#[derive(Clone, Copy)]
pub(crate) enum Why {
    /// A leaf lies there.
    Leaf,
    /// A leaf whose gradient is stored by nobody lies there.
    Input,
    /// A heard op has written there.
    Written,
    /// A handle that a recording may have met there is on other memory now.
    Left,
}

impl Counts {
    fn of(&mut self, why: Why) -> &mut usize {
        match why {
            Why::Leaf => &mut self.leaves,
            Why::Input => &mut self.inputs,
            Why::Written => &mut self.written,
            Why::Left => &mut self.left,
        }
    }
}

#[derive(Default)]
struct Marks {
    /// Counts changes.
    generation: u64,
    /// By the address of a buffer, which its marks keep from being anybody else's.
    known: HashMap<usize, Counts>,
}

static MARKS: LazyLock<Mutex<Marks>> = LazyLock::new(Mutex::default);

fn marks() -> MutexGuard<'static, Marks> {
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One place in a buffer that the tape knows, for as long as it does.
pub(crate) struct Mark {
    buffer: Weak<Buffer>,
    why: Why,
}

impl Mark {
    pub(crate) fn new(buffer: &Arc<Buffer>, why: Why) -> Self {
        let made = Self { buffer: Arc::downgrade(buffer), why };
        let mut marks = marks();
        marks.generation += 1;
        *marks.known.entry(made.address()).or_default().of(why) += 1;
        made
    }

    /// Whether it is of this buffer.
    pub(crate) fn is_of(&self, buffer: &Arc<Buffer>) -> bool {
        self.address() == Arc::as_ptr(buffer).addr()
    }

    /// Whether its buffer is there still.
    pub(crate) fn counts(&self) -> bool {
        self.buffer.strong_count() > 0
    }

    fn address(&self) -> usize {
        self.buffer.as_ptr().addr()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut marks = marks();
        marks.generation += 1;
        if let Some(counts) = marks.known.get_mut(&self.address()) {
            *counts.of(self.why) -= 1;
            if counts.leaves + counts.inputs + counts.written + counts.left == 0 {
                marks.known.remove(&self.address());
            }
        }
    }
}

/// How the tape knew some buffers: 0 not by themselves, 1 for a leaf, 2 for what was written, 3 for a leaf whose gradient
/// nobody stores; and four times as many handles as were on them once.
pub(crate) struct Standings {
    buffers: Vec<(Weak<Buffer>, u64)>,
    /// Up to which generation it is known to be so still.
    seen: Mutex<u64>,
}

impl Standings {
    pub(crate) fn of<'a>(buffers: impl Iterator<Item = &'a Arc<Buffer>>) -> Self {
        let marks = marks();
        let buffers = buffers.map(|buffer| (Arc::downgrade(buffer), marks.standing(Arc::as_ptr(buffer)))).collect();
        Self { buffers, seen: Mutex::new(marks.generation) }
    }

    /// Whether it knows them so still.
    #[inline]
    pub(crate) fn hold(&self) -> bool {
        if self.buffers.is_empty() {
            return true;
        }
        let marks = marks();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == marks.generation {
            return true;
        }
        let hold = self.buffers.iter().all(|(buffer, standing)| marks.standing(buffer.as_ptr()) == *standing);
        if hold {
            *seen = marks.generation;
        }
        hold
    }

    /// How it knew each.
    pub(crate) fn each(&self) -> impl Iterator<Item = u64> {
        self.buffers.iter().map(|(_, standing)| *standing)
    }
}

impl Marks {
    fn standing(&self, buffer: *const Buffer) -> u64 {
        let Some(counts) = self.known.get(&buffer.addr()) else { return 0 };
        let known = match counts {
            Counts { leaves: 1.., .. } => 1,
            Counts { inputs: 1.., .. } => 3,
            Counts { written: 1.., .. } => 2,
            _ => 0,
        };
        known + 4 * counts.left as u64
    }
}
