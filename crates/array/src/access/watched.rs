//! Ops of engines that are [watched](weft_engine::Engine::watch): the ones whose results hold a NaN or an infinity though all
//! that they read was finite.
//!
//! Results are looked at when the op has run, on a worker or at its push, and what it has read only if one of them is not
//! finite; of what it changes in place that is known before. So an op costs one walk over its results. Bytes that the host
//! does not reach are copied by nobody: such ops are counted. Ops without arrays to read have made such values because they
//! were asked to.

use super::{Access, Array};
use crate::DType;
use crate::layout::Scalar;
use crate::memory::Buffer;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use weft_engine::{Cause, InOrder, OpContext, Payload, PlaceOffset};

/// Places that are told apart; later ones are counted.
const PLACES: usize = 256;
/// Arrays that ops have read which are remembered for each of them.
const INPUTS: usize = 16;

/// The op of which values that are not finite came first, at one place of a program.
#[derive(Debug, Clone)]
pub struct Origin {
    /// What the op is called.
    pub name: Box<str>,
    /// Where it was pushed, in a way of the caller's own; 0 is nowhere.
    pub place: u64,
    /// Shape and dtype of the result.
    pub result: (Vec<usize>, DType),
    /// Shapes of what it has read.
    pub read: Vec<Vec<usize>>,
    /// Elements of the result that are no numbers, and that are infinite.
    pub found: (u64, u64),
    /// How often that has happened there.
    pub count: u64,
    /// The memory of what it has read, of the last times.
    inputs: Vec<Weak<Buffer>>,
}

impl Origin {
    fn has_read(&self, array: &Array) -> bool {
        self.inputs.iter().any(|input| std::ptr::eq(input.as_ptr(), Arc::as_ptr(array.buffer())))
    }

    fn keep_inputs<'a>(&mut self, read: impl Iterator<Item = &'a Array>) {
        self.inputs.extend(read.map(|array| Arc::downgrade(array.buffer())));
        let surplus = self.inputs.len().saturating_sub(INPUTS);
        self.inputs.drain(..surplus);
    }
}

/// What was found in watched engines.
#[derive(Debug, Default)]
pub struct Origins {
    /// In the order in which they were found.
    pub found: Vec<Origin>,
    /// Ops whose results were looked at.
    pub checked: u64,
    /// Ops whose results the host does not reach, or which end later than their payload.
    pub unseen: u64,
}

static ORIGINS: Mutex<Origins> = Mutex::new(Origins { found: Vec::new(), checked: 0, unseen: 0 });

/// What the op is that this thread pushes next.
#[derive(Default)]
struct Said {
    name: Box<str>,
    place: u64,
    /// Whether one of the numbers among its operands is not finite.
    scalar: bool,
}

thread_local! {
    static NEXT: RefCell<Option<Box<Said>>> = const { RefCell::new(None) };
}

/// Names the op that this thread is about to push on an engine that is watched.
#[cold]
pub fn announce(name: &str, place: u64) {
    NEXT.set(Some(Box::new(Said { name: name.into(), place, scalar: false })));
}

/// Looks at the numbers among the operands of that op.
#[cold]
pub(crate) fn announce_scalars(mut scalars: impl Iterator<Item = Scalar>) {
    let is_odd = |scalar: Scalar| match scalar {
        Scalar::Float(number) => !number.is_finite(),
        Scalar::Complex(real, imaginary) => !real.is_finite() || !imaginary.is_finite(),
        Scalar::Bool(_) | Scalar::Int(_) | Scalar::UInt(_) => false,
    };
    if scalars.any(is_odd) {
        NEXT.with_borrow_mut(|next| next.get_or_insert_default().scalar = true);
    }
}

/// Takes what was found since the last call.
#[must_use]
pub fn take_origins() -> Origins {
    std::mem::take(&mut *ORIGINS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A payload whose results are looked at.
pub(super) struct Watched<P> {
    payload: P,
    seen: Box<Seen>,
}

impl<P> Watched<P> {
    #[cold]
    pub(super) fn new(payload: P, arrays: &[(&Array, Access)]) -> Self {
        Self { payload, seen: Box::new(Seen::next(arrays)) }
    }
}

impl<P: Payload> Payload for Watched<P> {
    const HOSTED: bool = P::HOSTED;
    const PLACE: Option<PlaceOffset<Self>> = match P::PLACE {
        // SAFETY: the payload lies there.
        Some(place) => Some(unsafe { place.within(offset_of!(Self, payload)) }),
        None => None,
    };

    fn queue(&self) -> Option<InOrder> {
        self.payload.queue()
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let Self { payload, seen } = self;
        let is_looked_at = seen.is_looked_at();
        let outcome = payload.run(context);
        if outcome.is_ok() && is_looked_at {
            seen.look(context.ends_with_run());
        }
        outcome
    }

    fn discard(self) {
        self.payload.discard();
    }
}

/// The arrays of an op, and what it is.
struct Seen {
    arrays: SmallVec<[(Array, Access); 4]>,
    said: Said,
}

/// A look at an op that runs at its push.
pub(crate) struct LookAtPush {
    seen: Seen,
    is_due: bool,
}

impl LookAtPush {
    /// The look at the op that this thread has announced, before it runs.
    #[cold]
    pub(crate) fn before(arrays: &[(&Array, Access)]) -> Self {
        let seen = Seen::next(arrays);
        let is_due = seen.is_looked_at();
        Self { seen, is_due }
    }

    /// Looks at the results: it has run.
    pub(crate) fn after(&self) {
        if self.is_due {
            self.seen.look(true);
        }
    }

    /// It has not run, and is pushed next.
    pub(crate) fn announce_again(self) {
        NEXT.set(Some(Box::new(self.seen.said)));
    }
}

impl Seen {
    /// The op that this thread has announced, with these arrays.
    fn next(arrays: &[(&Array, Access)]) -> Self {
        let said = NEXT.take().map(|said| *said).unwrap_or_default();
        Self { arrays: arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect(), said }
    }

    /// Whether its results could be the first ones that are not finite. Asked before it runs.
    fn is_looked_at(&self) -> bool {
        self.is_to_be_seen() && self.are_changed_finite()
    }

    fn results(&self) -> impl Iterator<Item = &Array> {
        self.arrays.iter().filter(|(array, access)| *access != Access::Read && is_real(array)).map(|(array, _)| array)
    }

    fn read(&self) -> impl Iterator<Item = &Array> {
        self.arrays.iter().filter(|(_, access)| *access != Access::Overwrite).map(|(array, _)| array)
    }

    fn is_written(&self, buffer: &Arc<Buffer>) -> bool {
        self.arrays.iter().any(|(array, access)| *access != Access::Read && array.buffer().is_same(buffer))
    }

    /// Whether it computes values that may be not finite, of arrays.
    fn is_to_be_seen(&self) -> bool {
        !self.said.scalar && self.results().next().is_some() && self.read().next().is_some()
    }

    /// Whether what it changes in place is finite so far.
    fn are_changed_finite(&self) -> bool {
        self.read().filter(|array| self.is_written(array.buffer())).all(is_finite)
    }

    /// Looks at the results, and at what it has read if one of them is not finite.
    fn look(&self, has_ended: bool) {
        let seen = has_ended && self.results().all(|array| array.buffer().is_host());
        let mut found = None;
        if seen {
            let odd = self.results().find(|array| !is_finite(array));
            found = odd.filter(|_| self.read().filter(|array| !self.is_written(array.buffer())).all(is_finite));
        }
        let mut origins = ORIGINS.lock().unwrap_or_else(PoisonError::into_inner);
        if seen {
            origins.checked += 1;
        } else {
            origins.unseen += 1;
        }
        let Some(result) = found else { return };
        let Said { name, place, .. } = &self.said;
        if let Some(known) = origins.found.iter_mut().find(|known| known.place == *place && known.name == *name) {
            known.count += 1;
            known.keep_inputs(self.read());
        } else if origins.found.iter().any(|known| self.read().any(|array| known.has_read(array))) {
            // What another op, as the one of its gradient, makes of the same values has the same cause.
        } else if origins.found.len() < PLACES {
            let shape = |array: &Array| array.layout().shape.to_vec();
            let mut origin = Origin {
                name: name.clone(),
                place: *place,
                result: (shape(result), result.dtype()),
                read: self.read().map(shape).collect(),
                found: odd_elements(result),
                count: 1,
                inputs: Vec::new(),
            };
            origin.keep_inputs(self.read());
            origins.found.push(origin);
        }
    }
}

fn is_real(array: &Array) -> bool {
    array.dtype().is_floating() || matches!(array.dtype(), DType::Complex64 | DType::Complex128)
}

/// Whether all elements are finite; so are those of bytes that the host does not reach, and those of a version that has failed.
///
/// # Safety
///
/// Ops that write to the array have ended, and none begins meanwhile.
#[must_use]
pub unsafe fn are_finite(array: &Array) -> bool {
    is_finite(array) || array.failure().is_some()
}

/// Whether all elements are finite; so are those of bytes that nobody can look at.
fn is_finite(array: &Array) -> bool {
    if !is_real(array) || !array.buffer().is_host() {
        return true;
    }
    let mut odd = 0;
    each_row(array, |row, step, length| odd += count(array.dtype(), row, step, length).0);
    odd == 0
}

/// Elements that are no numbers, and that are infinite.
fn odd_elements(array: &Array) -> (u64, u64) {
    let (mut odd, mut nan) = (0, 0);
    each_row(array, |row, step, length| {
        let (all, of_these) = count(array.dtype(), row, step, length);
        odd += all;
        nan += of_these;
    });
    (nan, odd - nan)
}

/// Calls with the first byte of each row, the bytes between its elements, and their number.
pub(super) fn each_row(array: &Array, mut row: impl FnMut(*const u8, isize, usize)) {
    let (layout, item) = (array.layout(), array.dtype().size().cast_signed());
    let Ok(start) = array.buffer().start() else { return };
    let start = start.wrapping_add(layout.offset).cast_const();
    if layout.size() == 0 {
        return;
    }
    if array.is_contiguous() {
        return row(start, item, layout.size());
    }
    let (Some((&length, outer)), Some((&step, strides))) = (layout.shape.split_last(), layout.strides.split_last())
    else {
        return row(start, item, 1);
    };
    let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
    let mut offset = 0_isize;
    loop {
        row(start.wrapping_offset(offset), step, length);
        let mut axis = outer.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            at[axis] += 1;
            offset += strides[axis];
            if at[axis] < outer[axis] {
                break;
            }
            offset -= strides[axis] * outer[axis].cast_signed();
            at[axis] = 0;
        }
    }
}

/// Elements of a row that are not finite, and those of them that are no numbers.
fn count(dtype: DType, row: *const u8, step: isize, length: usize) -> (u64, u64) {
    // SAFETY: of all types the elements lie there, as the layout says, and the op that wrote them has run.
    unsafe {
        match dtype {
            DType::Float16 => count_of::<u16>(row, step, length, 0x7c00),
            DType::Float32 => count_of::<u32>(row, step, length, 0x7f80_0000),
            DType::Float64 => count_of::<u64>(row, step, length, 0x7ff0_0000_0000_0000),
            DType::Complex64 => {
                let [real, imaginary] =
                    [0, 4].map(|at| count_of::<u32>(row.wrapping_add(at), step, length, 0x7f80_0000));
                (real.0 + imaginary.0, real.1 + imaginary.1)
            }
            DType::Complex128 => {
                let bits = 0x7ff0_0000_0000_0000;
                let [real, imaginary] = [0, 8].map(|at| count_of::<u64>(row.wrapping_add(at), step, length, bits));
                (real.0 + imaginary.0, real.1 + imaginary.1)
            }
            _ => (0, 0),
        }
    }
}

/// The same of numbers whose exponent has these bits, all of which are set in those that are not finite.
///
/// # Safety
///
/// So many numbers lie there, each so many bytes behind the one before.
unsafe fn count_of<T>(row: *const u8, step: isize, length: usize, exponent: T) -> (u64, u64)
where
    T: Copy + PartialEq + PartialOrd + std::ops::BitAnd<Output = T> + std::ops::Shl<u32, Output = T>,
{
    // SAFETY: the caller's promise.
    let number = |at: usize| unsafe { row.wrapping_offset(step * at.cast_signed()).cast::<T>().read_unaligned() };
    let is_odd = |number: T| number & exponent == exponent;
    let mut odd = 0_u64;
    if step == size_of::<T>().cast_signed() {
        (0..length).for_each(|at| odd += u64::from(is_odd(number(at)))); // this one is made of vectors
    } else {
        (0..length).for_each(|at| odd += u64::from(is_odd(number(at))));
    }
    if odd == 0 {
        return (0, 0);
    }
    // Without the sign a NaN is more than an infinity.
    let is_nan = |number: T| is_odd(number) && number << 1 > exponent << 1;
    (odd, (0..length).filter(|&at| is_nan(number(at))).count() as u64)
}
