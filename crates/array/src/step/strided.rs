//! A strided loop over operands of given layouts, without their addresses.

use super::Given;
use super::kernel::{OPERANDS, Pointers, StridedLoop, signed};
use super::walk::Walk;
use crate::layout::Element;
use crate::{Array, ArrayError, DType, Scalar, Strides};
use smallvec::SmallVec;
use std::convert::Infallible;
use std::ops::Range;

/// An input of an op.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// An array, broadcast to the shape of the result.
    Array(&'a Array),
    /// The same number for every element, of this type.
    Scalar(Scalar, DType),
}

impl Strided {
    /// For each input the number given in place of an array, as bytes of this type.
    pub(crate) fn operands(&self) -> Vec<Given> {
        let inputs = self.inputs.iter().zip(self.kernel.dtypes());
        inputs
            .map(|(input, dtype)| if let Input::Scalar(number) = input { Some((number.0, *dtype)) } else { None })
            .collect()
    }

    /// The numbers among the inputs, without their types.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &[u8; 16]> {
        self.inputs.iter().filter_map(|input| if let Input::Scalar(number) = input { Some(&number.0) } else { None })
    }
}

impl Operand<'_> {
    /// Whether it has this shape, or no axes.
    fn is_shaped(&self, shape: &[usize]) -> bool {
        match self {
            Self::Array(array) => array.layout().shape.is_empty() || array.layout().shape[..] == *shape,
            Self::Scalar(..) => true,
        }
    }

    #[inline]
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::Array(array) => array.dtype(),
            Self::Scalar(_, dtype) => *dtype,
        }
    }

    /// The number, if it is not an array.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        if let Self::Scalar(scalar, _) = self { Some(*scalar) } else { None }
    }
}

enum Input {
    /// A number in the step itself.
    Scalar(Element),
    /// An array, bound later. If the output overlaps it at other elements, it is copied before the loop writes.
    Array { copied: bool },
}

/// One loop and its walk over its operands. It runs many times, on any memory of the layouts that it was made for.
pub struct Strided {
    kernel: StridedLoop,
    walk: Walk,
    inputs: SmallVec<[Input; 2]>,
    /// Bytes of the elements of each operand; 0 for a scalar.
    items: SmallVec<[u8; 4]>,
    /// Whether all arrays are whole buffers of one layout.
    flat: bool,
    /// Whether an input is copied.
    overlap: bool,
}

/// Copies of inputs that the output overwrites.
pub(crate) type Copies = SmallVec<[Box<[u8]>; 1]>;

#[allow(clippy::cast_possible_truncation)] // elements have 16 bytes at most
#[inline]
fn item_of(array: &Array) -> u8 {
    array.dtype().size() as u8
}

impl Strided {
    /// Checks the operands, which have the loop's types. `outputs` is not empty.
    #[inline]
    pub(crate) fn new(kernel: StridedLoop, outputs: &[&Array], operands: &[Operand<'_>]) -> Result<Self, ArrayError> {
        let shape = &outputs[0].layout().shape;
        let mut items: SmallVec<[u8; 4]> = SmallVec::new();
        let mut inputs: SmallVec<[Input; 2]> = SmallVec::new();
        // Whether all elements are contiguous, and whether the arrays are all of their buffers.
        let (mut in_rows, mut flat) = (true, true);
        for operand in operands {
            match operand {
                Operand::Scalar(scalar, dtype) => {
                    let refuse = || ArrayError::Invalid(format!("{scalar} is no {}", dtype.name()));
                    inputs.push(Input::Scalar(scalar.element(*dtype).ok_or_else(refuse)?));
                    items.push(0);
                }
                Operand::Array(array) => {
                    in_rows &= array.is_contiguous() && array.layout().shape == *shape;
                    flat &= array.is_flat();
                    inputs.push(Input::Array { copied: false });
                    items.push(item_of(array));
                }
            }
        }
        for (at, output) in outputs.iter().enumerate() {
            check_output(output, &outputs[..at], shape)?;
            in_rows &= output.is_contiguous();
            flat &= output.is_flat();
            items.push(item_of(output));
        }
        let size = outputs[0].layout().size();
        let walk = if in_rows {
            Walk::flat(size, &items)
        } else if size == 1 && operands.iter().all(|operand| operand.is_shaped(shape)) {
            Walk::flat(1, &one_element(operands, &items))
        } else {
            general(outputs, operands)?
        };
        let mut overlap = false;
        for (operand, input) in operands.iter().zip(&mut inputs) {
            if let (Operand::Array(array), Input::Array { copied }) = (operand, input) {
                for output in outputs.iter().filter(|output| output.buffer().is_same(array.buffer())) {
                    *copied |= is_elsewhere(output, array)?;
                    overlap |= *copied;
                }
            }
        }
        Ok(Self { kernel, walk, inputs, items, flat: flat && in_rows, overlap })
    }

    /// The loop.
    #[must_use]
    pub fn kernel(&self) -> &StridedLoop {
        &self.kernel
    }

    /// Number of elements.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        self.walk.size()
    }

    /// Its duration in nanoseconds, about.
    #[inline]
    pub(crate) fn nanoseconds(&self) -> usize {
        self.walk.nanoseconds(self.kernel.effort())
    }

    /// Whether all arrays are whole buffers of one layout, so that a part of one is the same part of all.
    #[must_use]
    #[inline]
    pub fn is_flat(&self) -> bool {
        self.flat
    }

    /// Whether an operand is copied because it overlaps the output at other elements.
    #[must_use]
    #[inline]
    pub fn has_overlap(&self) -> bool {
        self.overlap
    }

    /// Whether each operand is contiguous, or one element for all: then a part of the step is a part of each.
    #[must_use]
    pub fn is_in_rows(&self) -> bool {
        let item = |operand: usize| isize::from(self.items[operand]);
        self.walk.shape.len() == 1
            && !self.overlap
            && (0..self.items.len()).all(|operand| self.walk.step(0, operand) == item(operand))
    }

    /// Whether each output is contiguous, and each input, too, or one element for all: then a block of the step is a block of
    /// its outputs and of the first kind of inputs.
    #[must_use]
    pub fn is_in_blocks(&self) -> bool {
        let is_one = |operand: usize| operand < self.inputs.len() && self.walk.step(0, operand) == 0;
        let item = |operand: usize| isize::from(self.items[operand]);
        self.walk.shape.len() == 1
            && !self.overlap
            && (0..self.items.len()).all(|operand| is_one(operand) || self.walk.step(0, operand) == item(operand))
    }

    /// Whether a machine may replace its loop: fused neighbours of this kind are one chain.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.kernel.exact().is_some()
    }

    /// Whether it walks over these operands alike; they are numbered among the arrays, inputs first. With the same
    /// start they are then the same elements, and it reads each before it writes to it.
    #[must_use]
    pub fn walks_alike(&self, operands: impl IntoIterator<Item = usize>) -> bool {
        let scalar = |at: &usize| matches!(self.inputs.get(*at), Some(Input::Scalar(_)));
        let arrays: SmallVec<[usize; 4]> = (0..self.items.len()).filter(|at| !scalar(at)).collect();
        let mut numbers = operands.into_iter().map(|operand| arrays[operand]);
        let Some(first) = numbers.next() else { return true };
        let same = |other: usize| {
            let mut axes = 0..self.walk.shape.len();
            self.items[first] == self.items[other]
                && axes.all(|axis| self.walk.step(axis, first) == self.walk.step(axis, other))
        };
        !self.overlap && numbers.all(same)
    }

    /// The scalars among its inputs: their bytes, or None for an array.
    pub fn scalars(&self) -> impl Iterator<Item = Option<[u8; 16]>> + '_ {
        self.inputs.iter().map(|input| match input {
            Input::Scalar(element) => Some(element.0),
            Input::Array { .. } => None,
        })
    }

    /// Bytes from element to element of its operands that are arrays, inputs first: 0 if there is one for all. It is [in
    /// blocks](Self::is_in_blocks).
    pub(super) fn item_steps(&self) -> impl Iterator<Item = usize> + '_ {
        let scalar = |at: &usize| matches!(self.inputs.get(*at), Some(Input::Scalar(_)));
        (0..self.items.len()).filter(move |at| !scalar(at)).map(|at| self.walk.step(0, at).unsigned_abs())
    }

    /// The number of its outputs.
    pub(super) fn outputs(&self) -> usize {
        self.items.len() - self.inputs.len()
    }

    /// Whether another step does the same with operands of the same layouts.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.kernel.identity() == other.kernel.identity()
            && self.kernel.dtypes() == other.kernel.dtypes()
            && self.walk == other.walk
            && self.items == other.items
            && self.overlap == other.overlap
            && self.scalars().eq(other.scalars())
    }

    pub(crate) fn walk(&self) -> &Walk {
        &self.walk
    }

    /// Whether an input is copied first.
    #[inline]
    pub(crate) fn is_copied(&self, input: usize) -> bool {
        matches!(self.inputs[input], Input::Array { copied: true })
    }

    /// Pointers to the first elements of all operands, made from those of the arrays. Pointers to scalars are into the
    /// step, those to copies into `copies`.
    ///
    /// # Safety
    ///
    /// The pointers reach the bytes of the layouts.
    #[inline]
    pub(crate) unsafe fn pointers<E>(
        &self,
        mut next: impl FnMut() -> Result<*mut u8, E>,
        copies: &mut Copies,
    ) -> Result<Pointers, E> {
        let mut pointers = Pointers::new();
        for (operand, input) in self.inputs.iter().enumerate() {
            pointers.push(match input {
                Input::Scalar(element) => element.0.as_ptr().cast_mut(), // loops only read their inputs
                Input::Array { copied: false } => next()?,
                // SAFETY: the caller's promise.
                Input::Array { copied: true } => unsafe { self.copy(operand, next()?, copies) },
            });
        }
        for _ in self.inputs.len()..self.items.len() {
            pointers.push(next()?);
        }
        Ok(pointers)
    }

    /// Runs all of it on these arrays, inputs first.
    ///
    /// # Safety
    ///
    /// Each pointer is to the first element of an operand of the layout that the step was made for. Inputs have no
    /// other writer, and outputs no other user.
    #[inline]
    pub unsafe fn run(&self, arrays: &[*mut u8]) {
        let mut arrays = arrays.iter();
        // SAFETY: the caller's promise: there is one pointer for each array.
        unsafe { self.run_next(|| arrays.next().copied().unwrap_or(std::ptr::null_mut())) };
    }

    /// The same on the arrays that `next` returns: a short loop leaves room for little code around it.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    #[inline]
    pub unsafe fn run_next(&self, mut next: impl FnMut() -> *mut u8) {
        // SAFETY: the caller's promise; one axis without copies is one row.
        unsafe {
            match (&self.walk.shape[..], self.overlap) {
                ([count], false) if *count > 0 => self.run_row(next, *count),
                _ => {
                    let mut copies = Copies::new();
                    let Ok(pointers) = self.pointers(|| Ok::<_, Infallible>(next()), &mut copies);
                    self.run_part(&pointers, 0..self.walk.shape[0]);
                }
            }
        }
    }

    /// Runs a part of the outermost axis, without copies of inputs. The part counts elements if the step [is in
    /// rows](Self::is_in_rows).
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    #[inline]
    pub unsafe fn run_rows(&self, arrays: &[*mut u8], part: Range<usize>) {
        let mut arrays = arrays.iter();
        let next = || arrays.next().copied().ok_or(());
        // SAFETY: the caller's promise.
        unsafe {
            if let Ok(pointers) = self.pointers(next, &mut Copies::new()) {
                self.run_part(&pointers, part);
            }
        }
    }

    /// Runs `count` of its elements, if it has one axis and copies nothing, on the arrays that `next` returns: a short
    /// block leaves room for little code around its loop.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run), for these elements.
    #[inline]
    pub(super) unsafe fn run_row(&self, mut next: impl FnMut() -> *mut u8, count: usize) {
        let mut pointers = [std::ptr::null_mut(); OPERANDS];
        for (pointer, input) in pointers.iter_mut().zip(&self.inputs) {
            *pointer = match input {
                Input::Scalar(element) => element.0.as_ptr().cast_mut(), // loops only read their inputs
                Input::Array { .. } => next(),
            };
        }
        for pointer in &mut pointers[self.inputs.len()..self.items.len()] {
            *pointer = next();
        }
        // SAFETY: the caller's promise; the walk has one axis.
        unsafe { self.kernel.call_on(&mut pointers, signed(count), self.walk.inner_steps()) };
    }

    /// Runs a part of the outermost axis.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run); the pointers are to all operands.
    #[inline]
    pub(crate) unsafe fn run_part(&self, pointers: &[*mut u8], part: Range<usize>) {
        // SAFETY: the caller's promise; operands were checked against the walk.
        unsafe { self.walk.run(&self.kernel, pointers, part) };
    }

    /// Copies an operand to memory outside the output.
    ///
    /// # Safety
    ///
    /// `from` is its first element.
    unsafe fn copy(&self, operand: usize, from: *mut u8, copies: &mut Copies) -> *mut u8 {
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
        copies.push(bytes); // the bytes do not move
        first
    }
}

/// Refuses an output that has several elements in one place.
#[inline]
fn check_output(output: &Array, others: &[&Array], shape: &[usize]) -> Result<(), ArrayError> {
    output.buffer().check_writable()?;
    let layout = output.layout();
    if layout.shape[..] != *shape {
        let (from, to) = (layout.shape.to_vec(), shape.to_vec());
        return Err(ArrayError::Broadcast { from, to });
    }
    let repeats = || layout.shape.iter().zip(&layout.strides).any(|(&length, &stride)| length > 1 && stride == 0);
    if layout.size() > 0 && repeats() {
        let message = "the output is a broadcast view: more than one of its elements are the same memory";
        return Err(ArrayError::Invalid(message.to_owned()));
    }
    let (own, shares) = (output.range(), |other: &&&Array| other.buffer().is_same(output.buffer()));
    if others.iter().filter(shares).any(|other| other.range().start < own.end && own.start < other.range().end) {
        return Err(ArrayError::Invalid("two outputs overlap: give each its own memory".to_owned()));
    }
    Ok(())
}

/// Steps for one element, equal to NumPy's, because the bits of some of its loops depend on them. An operand without
/// axes is broadcast. For different shapes NumPy's iterator broadcasts all operands, as `general` does.
fn one_element(operands: &[Operand<'_>], items: &[u8]) -> SmallVec<[u8; 4]> {
    let mut steps: SmallVec<[u8; 4]> = items.into();
    for (step, operand) in steps.iter_mut().zip(operands) {
        if matches!(operand, Operand::Array(array) if array.layout().shape.is_empty()) {
            *step = 0;
        }
    }
    steps
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
    Ok(Walk::new(shape, &strides).lengthened())
}

/// Whether the output shares a buffer with the input, and reaches bytes of it other than those of the element being
/// computed.
fn is_elsewhere(output: &Array, input: &Array) -> Result<bool, ArrayError> {
    let (written, read) = (output.range(), input.range());
    let overlap = written.start < read.end && read.start < written.end;
    let same = output.layout().offset == input.layout().offset
        && output.layout().strides == input.layout().broadcast(&output.layout().shape)?
        && output.dtype().size() == input.dtype().size();
    Ok(overlap && !same)
}
