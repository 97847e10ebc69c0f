//! Reuse of memory among ops that run together.
//!
//! Such ops run one after the other over each block, on elements of the same place in all operands. So an operand at
//! its last read can share its place with the output of that op, or of any later one. The operand must have no other
//! reader: no handle on it is left, and no other op reads it. Only a holder of a buffer can clone it. So if only
//! operands of these ops hold a buffer, it stays so.

use crate::memory::{Buffer, Storage};
use smallvec::SmallVec;
use std::sync::Arc;
use weft_engine::handles;

/// An input of a pushed op.
pub(crate) enum Source {
    Buffer { buffer: Arc<Buffer>, offset: usize },
    Scalar,
}

struct Use {
    buffer: *const Buffer,
    /// The number of its operands on the buffer.
    count: usize,
    /// The last op that reads it.
    last: usize,
}

/// The inputs of several ops in order, and the free ones among them.
#[derive(Default)]
pub(crate) struct Lifetimes {
    uses: SmallVec<[Use; 2]>,
    free: Vec<Arc<Storage>>,
}

impl Lifetimes {
    /// Adds the op `at` with its inputs.
    pub(crate) fn note(&mut self, at: usize, sources: &[Source]) {
        for source in sources {
            let Source::Buffer { buffer, .. } = source else { continue };
            let buffer = Arc::as_ptr(buffer);
            match self.uses.iter_mut().find(|known| known.buffer == buffer) {
                Some(known) => (known.count, known.last) = (known.count + 1, at),
                None => self.uses.push(Use { buffer, count: 1, last: at }),
            }
        }
    }

    /// Whether the buffer has no reader after the op `at`.
    fn ends(&self, buffer: &Arc<Buffer>, at: usize) -> bool {
        let known = self.uses.iter().find(|known| known.buffer == Arc::as_ptr(buffer));
        known.is_some_and(|known| known.last == at && known.count == handles(buffer))
    }

    /// Gives `output` of the op `at` the memory of a free buffer, and notes the buffers that become free.
    pub(crate) fn hand_on(&mut self, at: usize, sources: &[Source], output: &Arc<Storage>) {
        let mut placed = false;
        for source in sources {
            if let Source::Buffer { buffer, .. } = source
                && self.ends(buffer, at)
            {
                if let Ok(storage) = buffer.storage() {
                    if !placed && output.take_place(storage) {
                        placed = true;
                    } else {
                        self.free.push(Arc::clone(storage));
                    }
                }
                // An op may read a buffer twice.
                self.uses.retain(|known| known.buffer != Arc::as_ptr(buffer));
            }
        }
        if !placed && let Some(found) = self.free.iter().position(|free| output.take_place(free)) {
            self.free.swap_remove(found);
        }
    }
}
