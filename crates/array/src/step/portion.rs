//! Parts of steps, which may run side by side.
//!
//! The split of a step depends on its shape alone, and no bit of its results depends on the split.

use super::{Fused, Matmul, Reduce, Step, Strided};
use std::ops::Range;
use std::sync::Arc;

/// Elements, times loops, of a part at least: such a part is worth a hand-over.
const LEAST: usize = 32_768;
/// Parts of a step at most.
const PARTS: usize = 64;
/// Parts are whole multiples of this many elements: cache lines of any type.
const ROUND: usize = 1024;

/// A native step, or a part of one.
pub enum Portion {
    /// All of a loop.
    Strided(Arc<Strided>),
    /// Some elements of a loop in rows.
    Rows(Arc<Strided>, Range<usize>),
    /// A range of a loop's outermost axis.
    Outer(Arc<Strided>, Range<usize>),
    /// A reduction.
    Reduce(Arc<Reduce>),
    /// Some blocks of fused loops.
    Fused(Arc<Fused>, Range<usize>),
    /// One block of a product.
    Matmul(Arc<Matmul>, usize),
}

/// Equal ranges of a length, each a whole multiple of `round`, and at least `least` long.
fn stretches(length: usize, least: usize, round: usize) -> impl Iterator<Item = Range<usize>> {
    let size = least.max(length.div_ceil(PARTS)).next_multiple_of(round.max(1)).max(1);
    (0..length.div_ceil(size).max(1)).map(move |part| part * size..((part + 1) * size).min(length))
}

impl Portion {
    /// The parts of a native step; one part if it is `whole`. None for a step with shared memory for its blocks, and
    /// for an opaque one.
    #[must_use]
    pub fn of(step: &Step, whole: bool) -> Vec<Self> {
        match step {
            Step::Strided(strided) if whole || strided.has_overlap() || strided.size() < 2 * LEAST => {
                vec![Self::Strided(Arc::clone(strided))]
            }
            Step::Strided(strided) if strided.is_in_rows() => {
                stretches(strided.size(), LEAST, ROUND).map(|part| Self::Rows(Arc::clone(strided), part)).collect()
            }
            Step::Strided(strided) => {
                let (length, row) = (strided.walk().shape[0], strided.walk().row());
                let least = LEAST.div_ceil(row.max(1));
                stretches(length, least, 1).map(|part| Self::Outer(Arc::clone(strided), part)).collect()
            }
            Step::Reduce(reduce) => vec![Self::Reduce(Arc::clone(reduce))],
            Step::Fused(fused) if whole => vec![Self::Fused(Arc::clone(fused), 0..fused.blocks())],
            Step::Fused(fused) => {
                let least = LEAST.div_ceil(fused.size().div_ceil(fused.blocks().max(1)).max(1) * fused.weight().max(1));
                stretches(fused.blocks(), least, 1).map(|part| Self::Fused(Arc::clone(fused), part)).collect()
            }
            Step::Matmul(matmul) => (0..matmul.blocks()).map(|block| Self::Matmul(Arc::clone(matmul), block)).collect(),
            Step::Blocked(_) | Step::Opaque(_) => Vec::new(),
        }
    }

    /// The range of elements that it touches in every operand, if that is one range, the same for all.
    #[must_use]
    pub fn rows(&self) -> Option<Range<usize>> {
        match self {
            Self::Rows(_, rows) => Some(rows.clone()),
            Self::Fused(fused, blocks) => Some(fused.rows(blocks)),
            Self::Strided(_) | Self::Outer(..) | Self::Reduce(_) | Self::Matmul(..) => None,
        }
    }

    /// Its duration in nanoseconds, roughly, if it touches this many bytes.
    #[must_use]
    pub fn cost(&self, bytes: usize) -> u32 {
        let work = match self {
            Self::Matmul(matmul, _) => matmul.operations() / matmul.blocks().max(1) / 16,
            Self::Fused(fused, blocks) => fused.rows(blocks).len() * fused.weight() / 2,
            _ => bytes / 8,
        };
        u32::try_from(work + 100).unwrap_or(u32::MAX)
    }

    /// Runs it.
    ///
    /// # Safety
    ///
    /// As for [`Step::run`], for the elements that it touches.
    #[inline]
    pub unsafe fn run(&self, arrays: &[*mut u8]) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Strided(step) => step.run(arrays),
                Self::Rows(step, part) | Self::Outer(step, part) => step.run_rows(arrays, part.clone()),
                Self::Reduce(step) => step.run(arrays),
                Self::Fused(step, blocks) => step.run_blocks(arrays, blocks.clone()),
                Self::Matmul(step, block) => step.run_block(arrays, *block),
            }
        }
    }
}
