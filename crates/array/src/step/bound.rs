//! A strided loop bound to the arrays of one run.

use super::kernel::Pointers;
use super::lifetimes::{Lifetimes, Source};
use super::strided::{Copies, Operand, Strided};
use super::walk::Walk;
use crate::memory::{Buffer, Storage};
use crate::{Array, ArrayError};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::{Cause, Engine, OpContext, Payload};

/// The computation of one op. It owns its inputs until it has run.
pub(crate) struct Bound {
    strided: Strided,
    pub(crate) sources: SmallVec<[Source; 2]>,
    outputs: SmallVec<[(Arc<Storage>, usize); 1]>,
    /// Outputs with earlier users: while they are held, no other op takes their memory.
    rewritten: SmallVec<[Arc<Buffer>; 1]>,
}

impl Bound {
    /// A step on these operands, which have the layouts that it was made for.
    #[inline]
    pub(crate) fn new(strided: Strided, outputs: &[&Array], inputs: &[Operand<'_>]) -> Result<Self, ArrayError> {
        let mut sources: SmallVec<[Source; 2]> = SmallVec::new();
        for input in inputs {
            sources.push(match input {
                Operand::Scalar(..) => Source::Scalar,
                Operand::Array(array) => {
                    Source::Buffer { buffer: Arc::clone(array.buffer()), offset: array.layout().offset }
                }
            });
        }
        let storage = |output: &&Array| Ok((Arc::clone(output.buffer().storage()?), output.layout().offset));
        let outputs = outputs.iter().map(storage).collect::<Result<_, ArrayError>>()?;
        Ok(Self { strided, sources, outputs, rewritten: SmallVec::new() })
    }

    /// The engine, if one of the input buffers knows it.
    #[inline]
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.sources.iter().find_map(|source| match source {
            Source::Buffer { buffer, .. } => Some(buffer.engine()),
            Source::Scalar => None,
        })
    }

    #[inline]
    pub(crate) fn strided(&self) -> &Strided {
        &self.strided
    }

    /// Whether all arrays are whole buffers of one layout, so that a part of one is the same part of all.
    pub(crate) fn is_flat(&self) -> bool {
        self.strided.is_flat()
    }

    /// Its duration in nanoseconds, about.
    #[inline]
    pub(crate) fn nanoseconds(&self) -> usize {
        self.strided.nanoseconds()
    }

    /// Number of elements.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.strided.size()
    }

    /// Notes that an output was in use before.
    pub(crate) fn rewrite(&mut self, buffer: &Arc<Buffer>) {
        self.rewritten.push(Arc::clone(buffer));
    }

    /// Finds the addresses of the operands. Allocates the outputs, or gives them the memory of an input without another
    /// reader. `at` is the op's place among those of `lifetimes`.
    pub(crate) fn prepare(&mut self, lifetimes: &mut Lifetimes, at: usize) -> Result<Prepared, Cause> {
        if self.is_flat()
            && let [(storage, _)] = &self.outputs[..]
        {
            lifetimes.hand_on(at, &self.sources, storage);
        }
        let mut copies = Copies::new();
        let buffers = self.sources.iter().filter_map(|source| match source {
            Source::Buffer { buffer, offset } => Some(buffer.start().map(|start| start.wrapping_add(*offset))),
            Source::Scalar => None,
        });
        let outputs =
            self.outputs.iter().map(|(storage, offset)| storage.start().map(|start| start.wrapping_add(*offset)));
        let mut arrays = buffers.chain(outputs);
        let next = || arrays.next().unwrap_or_else(|| unreachable!("the loop has as many operands as it was made for"));
        // SAFETY: the arrays have the layouts that the step was made for.
        let pointers = unsafe { self.strided.pointers(next, &mut copies)? };
        let overlap = self.strided.has_overlap();
        let (kernel, walk) = (*self.strided.kernel(), self.strided.walk().clone());
        Ok(Prepared { kernel, walk, pointers, overlap, _copies: copies })
    }

    /// Runs all of it. The accesses are granted.
    pub(crate) fn run(&mut self) -> Result<(), Cause> {
        let mut lifetimes = Lifetimes::default();
        lifetimes.note(0, &self.sources);
        let prepared = self.prepare(&mut lifetimes, 0)?;
        // SAFETY: the accesses are granted.
        unsafe { prepared.run(0..prepared.walk.shape[0]) };
        Ok(())
    }

    /// Returns the arrays that it held, to be dropped.
    pub(crate) fn release(&mut self) -> (SmallVec<[Source; 2]>, SmallVec<[Arc<Buffer>; 1]>) {
        (std::mem::take(&mut self.sources), std::mem::take(&mut self.rewritten))
    }
}

/// The payload of a small op.
pub(crate) struct RunBound(pub(crate) Box<Bound>);

impl Payload for RunBound {
    fn run(mut self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.0.run()
    }
}

/// A step ready to run. The step that it was made of outlives it: scalars lie there.
pub(crate) struct Prepared {
    kernel: super::StridedLoop,
    walk: Walk,
    pointers: Pointers,
    overlap: bool,
    _copies: Copies,
}

// SAFETY: it points into storage that its op may access, into memory that it owns and into the step that it was made
// of.
unsafe impl Send for Prepared {}
// SAFETY: as above; its parts are disjoint.
unsafe impl Sync for Prepared {}

impl Prepared {
    /// Whether an operand was copied because it overlaps the output: then it runs in one part.
    pub(crate) fn has_overlap(&self) -> bool {
        self.overlap
    }

    /// Runs the loop over a part of the outermost axis.
    ///
    /// # Safety
    ///
    /// The accesses are granted, or are those of a follower (see `ops::large`); the step has not moved.
    #[inline]
    pub(crate) unsafe fn run(&self, part: Range<usize>) {
        // SAFETY: the caller's promise; operands were checked against the walk.
        unsafe { self.walk.run(&self.kernel, &self.pointers, part) };
    }
}
