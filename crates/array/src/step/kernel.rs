//! Strided loops.

use super::exact::{Exact, Function, exact};
use crate::ArrayError;
use crate::layout::DType;
use smallvec::SmallVec;
use std::ffi::{c_char, c_void};

/// A compiled loop over one axis, in the form of NumPy's inner loops. `args` point to the first elements of the
/// operands, inputs first; `dimensions[0]` is their number, `steps` their distances in bytes.
type Code =
    unsafe extern "C" fn(args: *mut *mut c_char, dimensions: *const isize, steps: *const isize, data: *mut c_void);

/// A strided loop and its constant arguments.
#[derive(Debug, Clone, Copy)]
pub struct StridedLoop {
    function: Code,
    data: *mut c_void,
    inputs: u8,
    outputs: u8,
    /// Picoseconds for an element, besides those for its bytes.
    effort: u16,
    /// Whether it is correct for outputs with gaps between their elements.
    gaps: bool,
    /// The function of its name, if a machine may replace it.
    named: Option<Function>,
    /// Of the operands, inputs first.
    dtypes: [DType; OPERANDS],
}

/// The effort of an unknown loop.
const UNKNOWN: u16 = 4000;

/// Operands of a loop at most.
pub(super) const OPERANDS: usize = 8;

// SAFETY: the caller of new() vouches for calls from any thread.
unsafe impl Send for StridedLoop {}
// SAFETY: as above.
unsafe impl Sync for StridedLoop {}

/// Pointers to the first elements of the operands.
pub(crate) type Pointers = SmallVec<[*mut u8; 4]>;

impl StridedLoop {
    /// Whether it calls the same function with the same data.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.function, other.function) && self.data == other.data
    }

    /// A loop over operands of these types; None if there are more than eight.
    ///
    /// # Safety
    ///
    /// Calls are sound on any thread, at any time, several at the same time, if the operands are elements of these
    /// types, aligned or not, and outputs overlap inputs only as the same elements.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // eight at most
    pub const unsafe fn new(function: Code, data: *mut c_void, inputs: &[DType], outputs: &[DType]) -> Option<Self> {
        if inputs.len() + outputs.len() > OPERANDS {
            return None;
        }
        let mut dtypes = [DType::Bool; OPERANDS];
        let mut at = 0;
        while at < inputs.len() + outputs.len() {
            dtypes[at] = if at < inputs.len() { inputs[at] } else { outputs[at - inputs.len()] };
            at += 1;
        }
        Some(Self {
            function,
            data,
            inputs: inputs.len() as u8,
            outputs: outputs.len() as u8,
            effort: UNKNOWN,
            named: None,
            gaps: true,
            dtypes,
        })
    }

    /// The same loop, with its picoseconds for an element, besides those for its bytes.
    #[must_use]
    pub const fn with_effort(self, effort: u16) -> Self {
        Self { effort, ..self }
    }

    /// The same loop, with the promise or the denial that it is correct for outputs with gaps between their elements.
    #[must_use]
    pub(super) const fn with_gaps(self, gaps: bool) -> Self {
        Self { gaps, ..self }
    }

    /// Whether it may be called on outputs with gaps between their elements. Otherwise it writes to a line first.
    #[must_use]
    pub const fn takes_gaps(&self) -> bool {
        self.gaps
    }

    /// The same loop, named as NumPy's ufunc, or one of weft's: it may join a chain if a machine gives its bits.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        Self { named: Function::named(name), ..self }
    }

    /// Its function, if a machine gives the same bits.
    pub(super) fn exact(&self) -> Option<Exact> {
        exact(self.named?, self)
    }

    /// Picoseconds for an element, besides those for its bytes, about.
    #[must_use]
    #[inline]
    pub(crate) const fn effort(&self) -> usize {
        self.effort as usize
    }

    /// The number of its inputs.
    #[must_use]
    #[inline]
    pub const fn inputs(&self) -> usize {
        self.inputs as usize
    }

    /// The number of its outputs.
    #[must_use]
    #[inline]
    pub const fn outputs(&self) -> usize {
        self.outputs as usize
    }

    /// The types of its operands, inputs first.
    #[must_use]
    #[inline]
    pub fn dtypes(&self) -> &[DType] {
        &self.dtypes[..self.inputs() + self.outputs()]
    }

    /// Refuses operands of another number or of other types than the loop's.
    #[inline]
    pub(crate) fn check(
        &self,
        inputs: impl ExactSizeIterator<Item = DType>,
        outputs: impl ExactSizeIterator<Item = DType>,
    ) -> Result<(), ArrayError> {
        if inputs.len() != self.inputs() || outputs.len() != self.outputs() {
            let message = format!("the loop has {} inputs and {} outputs", self.inputs, self.outputs);
            return Err(ArrayError::Invalid(message));
        }
        let mut at = 0;
        for found in inputs {
            self.check_operand(at, found)?;
            at += 1;
        }
        for found in outputs {
            self.check_operand(at, found)?;
            at += 1;
        }
        Ok(())
    }

    #[inline]
    fn check_operand(&self, at: usize, found: DType) -> Result<(), ArrayError> {
        if found == self.dtypes[at] { Ok(()) } else { Err(Self::refusal(at, found, self.dtypes[at])) }
    }

    #[cold]
    fn refusal(at: usize, found: DType, wanted: DType) -> ArrayError {
        ArrayError::Invalid(format!("operand {at} of the loop is {}, not {}", wanted.name(), found.name()))
    }

    /// The addresses of its code and its data: equal loops share both.
    #[must_use]
    pub fn identity(&self) -> (usize, usize) {
        (self.function as usize, self.data.addr())
    }

    /// Calls the loop over `count` elements, with pointers that it may change.
    ///
    /// # Safety
    ///
    /// As for [`call`](Self::call).
    #[inline]
    pub(crate) unsafe fn call_on(&self, pointers: &mut [*mut u8], count: isize, steps: &[isize]) {
        if !self.gaps && self.has_gaps(steps) {
            // SAFETY: the caller's promise.
            return unsafe { self.call_by_lines(pointers, count, steps) };
        }
        // SAFETY: the caller's promise; pointers to bytes are pointers to characters.
        unsafe { (self.function)(pointers.as_mut_ptr().cast(), &raw const count, steps.as_ptr(), self.data) };
    }

    /// Calls the loop over `count` elements, with any gaps.
    ///
    /// # Safety
    ///
    /// As for [`call`](Self::call).
    pub(super) unsafe fn call_directly(&self, args: &mut [*mut c_char; OPERANDS], count: isize, steps: &[isize]) {
        // SAFETY: the caller's promise.
        unsafe { (self.function)(args.as_mut_ptr(), &raw const count, steps.as_ptr(), self.data) };
    }

    /// Calls the loop over `count` elements.
    ///
    /// # Safety
    ///
    /// `pointers` and `steps` are those of the loop's operands, which reach valid memory as [`new`](Self::new) demands.
    #[inline]
    pub(crate) unsafe fn call(&self, pointers: &[*mut u8], dimensions: &[isize], steps: &[isize]) {
        if !self.gaps && self.has_gaps(steps) {
            // SAFETY: the caller's promise; loops that were tried have one axis.
            return unsafe { self.call_by_lines(pointers, dimensions[0], steps) };
        }
        // The loops may change the array of pointers.
        let mut args = [std::ptr::null_mut::<c_char>(); OPERANDS];
        for (arg, pointer) in args.iter_mut().zip(pointers) {
            *arg = pointer.cast();
        }
        // SAFETY: the caller's promise.
        unsafe { (self.function)(args.as_mut_ptr(), dimensions.as_ptr(), steps.as_ptr(), self.data) };
    }
}

/// # Safety
///
/// As for the loop itself.
unsafe extern "C" fn copy<const SIZE: usize>(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    _: *mut c_void,
) {
    // SAFETY: two operands and one axis, by the loop's contract; elements are moved as bytes, so that alignment does
    // not matter.
    unsafe {
        let (count, from, to) = (*dimensions, *steps, *steps.add(1));
        let (mut source, mut target) = (*args, *args.add(1));
        if from == signed(SIZE) && to == signed(SIZE) {
            std::ptr::copy(source, target, count.unsigned_abs() * SIZE);
            return;
        }
        for _ in 0..count {
            let element = source.cast::<[u8; SIZE]>().read();
            target.cast::<[u8; SIZE]>().write(element);
            source = source.wrapping_offset(from);
            target = target.wrapping_offset(to);
        }
    }
}

/// The loop that copies elements of this type.
#[must_use]
pub fn copy_loop(dtype: DType) -> StridedLoop {
    let function: Code = match dtype.size() {
        1 => copy::<1>,
        2 => copy::<2>,
        4 => copy::<4>,
        8 => copy::<8>,
        _ => copy::<16>,
    };
    // SAFETY: it touches only its operands, and interprets none of them.
    match unsafe { StridedLoop::new(function, std::ptr::null_mut(), &[dtype], &[dtype]) } {
        Some(kernel) => kernel.with_effort(0).with_name("positive"),
        None => unreachable!("two operands are not too many"),
    }
}

/// A length as NumPy's loops take it. Layouts were checked to be below `isize::MAX`.
#[allow(clippy::cast_possible_wrap)]
#[inline]
pub(crate) const fn signed(length: usize) -> isize {
    length as isize
}
