//! One strided loop and its operands.

use crate::buffer::Storage;
use crate::dtype::Element;
use crate::kernel::{Pointers, StridedLoop, Walk, signed};
use crate::lifetimes::Lifetimes;
use crate::{Array, ArrayError, Buffer, DType, Scalar, Strides};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::{Cause, Engine, OpContext, Payload};

/// What an op reads.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// An array, broadcast to the shape of the result.
    Array(&'a Array),
    /// The same number for every element, of this type.
    Scalar(Scalar, DType),
}

/// An operand of a pushed op.
pub(crate) enum Source {
    Buffer {
        buffer: Arc<Buffer>,
        offset: usize,
        /// Whether the output overlaps it elsewhere: then it is read before anything is written.
        copied: bool,
    },
    Scalar(Element),
}

/// What one op computes. It owns what it reads until it has run.
pub(crate) struct Step {
    kernel: StridedLoop,
    pub(crate) sources: SmallVec<[Source; 2]>,
    outputs: SmallVec<[(Arc<Storage>, usize); 1]>,
    /// Outputs that others have had before: while they are held, nobody takes their place.
    rewritten: SmallVec<[Arc<Buffer>; 1]>,
    walk: Walk,
    /// Bytes of the elements of each operand; 0 for a scalar.
    items: SmallVec<[u8; 4]>,
    /// Whether all arrays are whole buffers of one layout.
    flat: bool,
}

#[allow(clippy::cast_possible_truncation)] // elements have 16 bytes at most
#[inline]
fn item_of(array: &Array) -> u8 {
    array.dtype().size() as u8
}

impl Step {
    /// Checks the operands. `outputs` is not empty.
    #[inline]
    pub(crate) fn new(kernel: StridedLoop, outputs: &[&Array], inputs: &[Operand<'_>]) -> Result<Self, ArrayError> {
        if inputs.len() != kernel.inputs() || outputs.len() != kernel.outputs() {
            let message = format!("the loop has {} inputs and {} outputs", kernel.inputs(), kernel.outputs());
            return Err(ArrayError::Invalid(message));
        }
        let shape = &outputs[0].layout().shape;
        let mut items: SmallVec<[u8; 4]> = SmallVec::new();
        let mut sources: SmallVec<[Source; 2]> = SmallVec::new();
        // Whether elements lie one after the other everywhere, and whether the arrays are all of their buffers.
        let (mut in_rows, mut flat) = (true, true);
        for input in inputs {
            match input {
                Operand::Scalar(scalar, dtype) => {
                    let refuse = || ArrayError::Invalid(format!("{scalar:?} is no {}", dtype.name()));
                    sources.push(Source::Scalar(scalar.element(*dtype).ok_or_else(refuse)?));
                    items.push(0);
                }
                Operand::Array(array) => {
                    in_rows &= array.is_contiguous() && array.layout().shape == *shape;
                    flat &= array.is_flat();
                    let (buffer, offset) = (Arc::clone(array.buffer()), array.layout().offset);
                    sources.push(Source::Buffer { buffer, offset, copied: false });
                    items.push(item_of(array));
                }
            }
        }
        for output in outputs {
            output.buffer().check_writable()?;
            if output.layout().shape != *shape {
                let (from, to) = (output.layout().shape.to_vec(), shape.to_vec());
                return Err(ArrayError::Broadcast { from, to });
            }
            if output.layout().size() > 0
                && output
                    .layout()
                    .shape
                    .iter()
                    .zip(&output.layout().strides)
                    .any(|(&length, &stride)| length > 1 && stride == 0)
            {
                let message = "the output is a broadcast view: more than one of its elements are the same memory";
                return Err(ArrayError::Invalid(message.to_owned()));
            }
            in_rows &= output.is_contiguous();
            flat &= output.is_flat();
            items.push(item_of(output));
        }
        let walk = if in_rows { Walk::flat(outputs[0].layout().size(), &items) } else { general(outputs, inputs)? };
        for (input, source) in inputs.iter().zip(&mut sources) {
            if let (Operand::Array(array), Source::Buffer { copied, .. }) = (input, source) {
                for output in outputs.iter().filter(|output| Arc::ptr_eq(output.buffer(), array.buffer())) {
                    *copied |= is_elsewhere(output, array)?;
                }
            }
        }
        let storage = |output: &&Array| Ok((Arc::clone(output.buffer().storage()?), output.layout().offset));
        let outputs = outputs.iter().map(storage).collect::<Result<_, ArrayError>>()?;
        let flat = flat && in_rows;
        Ok(Self { kernel, sources, outputs, rewritten: SmallVec::new(), walk, items, flat })
    }

    /// The engine, if one of the buffers that it reads knows it.
    #[inline]
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.sources.iter().find_map(|source| match source {
            Source::Buffer { buffer, .. } => Some(buffer.engine()),
            Source::Scalar(_) => None,
        })
    }

    /// Number of elements.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.walk.size()
    }

    pub(crate) fn walk(&self) -> &Walk {
        &self.walk
    }

    /// Whether all arrays are whole buffers of one layout, so that a part of one is that part of all.
    pub(crate) fn is_flat(&self) -> bool {
        self.flat
    }

    /// Notes that an output is written once more.
    pub(crate) fn rewrite(&mut self, buffer: &Arc<Buffer>) {
        self.rewritten.push(Arc::clone(buffer));
    }

    /// Finds where the operands lie. Allocates what is to be written, or takes the place of something that nobody else
    /// can see any more. It is the op `at` of those whose lifetimes these are.
    pub(crate) fn prepare(&mut self, lifetimes: &mut Lifetimes, at: usize) -> Result<Prepared, Cause> {
        if self.flat
            && let [(storage, _)] = &self.outputs[..]
        {
            lifetimes.hand_on(at, &self.sources, storage);
        }
        let mut pointers = Pointers::new();
        let mut copies: SmallVec<[Box<[u8]>; 1]> = SmallVec::new();
        let mut elements: SmallVec<[Box<Element>; 1]> = SmallVec::new();
        for (operand, source) in self.sources.iter().enumerate() {
            pointers.push(match source {
                Source::Scalar(element) => {
                    let mut element = Box::new(*element);
                    let pointer = element.0.as_mut_ptr();
                    elements.push(element); // what it points to stays where it is
                    pointer
                }
                Source::Buffer { buffer, offset, copied } => {
                    let pointer = buffer.start()?.wrapping_add(*offset);
                    if *copied { self.copy(operand, pointer, &mut copies) } else { pointer }
                }
            });
        }
        for (storage, offset) in &self.outputs {
            pointers.push(storage.start()?.wrapping_add(*offset));
        }
        let overlap = self.sources.iter().any(|source| matches!(source, Source::Buffer { copied: true, .. }));
        Ok(Prepared {
            kernel: self.kernel,
            walk: self.walk.clone(),
            pointers,
            overlap,
            _copies: copies,
            _elements: elements,
        })
    }

    /// Runs all of it. The caller's accesses are granted.
    pub(crate) fn run(&mut self) -> Result<(), Cause> {
        let mut lifetimes = Lifetimes::default();
        lifetimes.note(0, self);
        let prepared = self.prepare(&mut lifetimes, 0)?;
        // SAFETY: as the caller says.
        unsafe { prepared.run(0..prepared.walk.shape[0]) };
        Ok(())
    }

    /// Copies an operand to where the output does not reach.
    fn copy(&self, operand: usize, from: *mut u8, copies: &mut SmallVec<[Box<[u8]>; 1]>) -> *mut u8 {
        let (mut low, mut high) = (0_isize, 0_isize);
        for (axis, &length) in self.walk.shape.iter().enumerate() {
            let far = self.walk.step(axis, operand) * (signed(length) - 1).max(0);
            if far < 0 { low += far } else { high += far }
        }
        let length = (high - low).unsigned_abs() + usize::from(self.items[operand]);
        // SAFETY: the operand's elements reach these bytes, which are inside its buffer.
        let bytes = unsafe { std::slice::from_raw_parts(from.wrapping_offset(low), length) };
        let mut bytes: Box<[u8]> = bytes.into();
        let first = bytes.as_mut_ptr().wrapping_offset(-low);
        copies.push(bytes); // what it points to stays where it is
        first
    }

    /// Hands out what it held, to be dropped.
    pub(crate) fn release(&mut self) -> (SmallVec<[Source; 2]>, SmallVec<[Arc<Buffer>; 1]>) {
        (std::mem::take(&mut self.sources), std::mem::take(&mut self.rewritten))
    }
}

/// The payload of a small op.
pub(crate) struct RunStep(pub(crate) Box<Step>);

impl Payload for RunStep {
    fn run(mut self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.0.run()
    }
}

/// A step ready to be run, and what has to live until then.
pub(crate) struct Prepared {
    kernel: StridedLoop,
    walk: Walk,
    pointers: Pointers,
    overlap: bool,
    _copies: SmallVec<[Box<[u8]>; 1]>,
    _elements: SmallVec<[Box<Element>; 1]>,
}

// SAFETY: it points into storage that its op may access, and into what it owns.
unsafe impl Send for Prepared {}
// SAFETY: as above; its parts are disjoint.
unsafe impl Sync for Prepared {}

impl Prepared {
    /// Whether an operand was copied because it overlaps the output: then all is run at once.
    pub(crate) fn has_overlap(&self) -> bool {
        self.overlap
    }

    /// Runs the loop over a part of the outermost axis.
    ///
    /// # Safety
    ///
    /// The accesses are granted, or are those of a follower (see `elementwise`).
    #[inline]
    pub(crate) unsafe fn run(&self, part: Range<usize>) {
        // SAFETY: the caller's promise; operands were checked against the walk.
        unsafe { self.walk.run(&self.kernel, &self.pointers, part) };
    }
}

/// A walk over operands of any layouts.
fn general(outputs: &[&Array], inputs: &[Operand<'_>]) -> Result<Walk, ArrayError> {
    let shape = &outputs[0].layout().shape;
    let mut strides: SmallVec<[Strides; 3]> = SmallVec::new();
    for input in inputs {
        strides.push(match input {
            Operand::Scalar(..) => Strides::from_elem(0, shape.len()),
            Operand::Array(array) => array.layout().broadcast(shape)?,
        });
    }
    strides.extend(outputs.iter().map(|output| output.layout().strides.clone()));
    let strides: SmallVec<[&[isize]; 4]> = strides.iter().map(|strides| &strides[..]).collect();
    Ok(Walk::new(shape, &strides))
}

/// Whether the output, on the same buffer, reaches bytes of the input at another element than the one that is
/// computed from it.
fn is_elsewhere(output: &Array, input: &Array) -> Result<bool, ArrayError> {
    let (written, read) = (output.range(), input.range());
    let overlap = written.start < read.end && read.start < written.end;
    let same = output.layout().offset == input.layout().offset
        && output.layout().strides == input.layout().broadcast(&output.layout().shape)?
        && output.dtype().size() == input.dtype().size();
    Ok(overlap && !same)
}
