//! Loops for operands of one dtype: the first look of a walk, without a lock.
//!
//! Most calls of element-wise ops are over arrays of one dtype, and numbers beside them. Type slots look here, and
//! calls by name. What is not here yet has a plan made, which enters its loop.

use crate::pushes::Loop;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::OnceLock;
use weft_array::DType;

/// Whose memory operands are in.
#[derive(Clone, Copy)]
pub(super) enum Memory {
    Host = 0,
    Device = 1,
}

/// The loops of an op, by the dtype of its operands.
#[derive(Default)]
pub(super) struct Alike {
    loops: [OnceLock<Py<Loop>>; DType::COUNT],
    /// Whether a user computes the op there: its loops, or their kernels, serve it no longer.
    replaced: [OnceLock<()>; 2],
}

impl Alike {
    /// The loop for operands of this dtype in such memory.
    #[inline]
    pub(super) fn find(&self, memory: Memory, dtype: DType) -> Option<&Py<Loop>> {
        self.loops[dtype as usize].get().filter(|_| !self.is_replaced(memory))
    }

    #[inline]
    pub(super) fn is_replaced(&self, memory: Memory) -> bool {
        self.replaced[memory as usize].get().is_some()
    }

    /// Lets operands of this dtype use a loop.
    pub(super) fn enter(&self, dtype: DType, of: Py<Loop>) {
        let _ = self.loops[dtype as usize].set(of); // a second one has named the same loop
    }

    /// Leaves operands in such memory to the op's plans, permanently.
    pub(super) fn replace(&self, memory: Memory) {
        self.replaced[memory as usize].get_or_init(|| ());
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.loops.iter().filter_map(OnceLock::get).try_for_each(|of| visit.call(of))
    }
}
