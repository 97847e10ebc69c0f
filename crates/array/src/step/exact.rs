//! Ops that are defined to the last bit, by IEEE 754 or as integers, so that one of weft's machines may replace a loop.
//!
//! IEEE 754 leaves open which of two NaNs comes out, and NumPy's loops differ. So a loop counts as exact only if it
//! gives the bits of the machine, with its operands swapped if need be, on numbers of every kind. Each thread tries
//! each loop once.

use super::StridedLoop;
use super::chain::{ROUND, stands_in};
use crate::DType;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The function that a loop applies to each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Minimum,
    Maximum,
    /// The element itself.
    Copy,
    Negative,
    Absolute,
    Sqrt,
    /// The product with itself.
    Square,
    /// 1 divided by it.
    Reciprocal,
    And,
    Or,
    Xor,
    Not,
    /// 0 where the element is not greater.
    Rectify,
}

/// The operands that are one number for all elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    None,
    Left,
    Right,
}

/// A function, and the order of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) function: Function,
    /// Whether the operands change places, by `Numbers`.
    pub(super) swapped: [bool; 3],
}

impl Function {
    /// The function of NumPy's ufunc of this name, or of a loop of weft's.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "add" => Self::Add,
            "subtract" => Self::Subtract,
            "multiply" => Self::Multiply,
            "divide" => Self::Divide,
            "minimum" => Self::Minimum,
            "maximum" => Self::Maximum,
            "positive" => Self::Copy,
            "negative" => Self::Negative,
            "absolute" | "fabs" => Self::Absolute,
            "sqrt" => Self::Sqrt,
            "square" => Self::Square,
            "reciprocal" => Self::Reciprocal,
            "bitwise_and" => Self::And,
            "bitwise_or" => Self::Or,
            "bitwise_xor" => Self::Xor,
            "invert" => Self::Not,
            "nn.relu" => Self::Rectify,
            _ => return None,
        })
    }

    pub(super) fn inputs(self) -> usize {
        let of_two = [Self::Add, Self::Subtract, Self::Multiply, Self::Divide, Self::Minimum, Self::Maximum];
        let is_of_two = of_two.contains(&self) || [Self::And, Self::Or, Self::Xor].contains(&self);
        1 + usize::from(is_of_two)
    }
}

/// The function of a loop with the order of its operands, if a machine gives the same bits.
pub(super) fn exact(function: Function, kernel: &StridedLoop) -> Option<Exact> {
    /// Code and data of a loop, its function, the type of its elements.
    type Key = ((usize, usize), Function, u8);
    thread_local! {
        static KNOWN: RefCell<BTreeMap<Key, Option<Exact>>> = const { RefCell::new(BTreeMap::new()) };
    }
    let dtype = *kernel.dtypes().first()?;
    let key = (kernel.identity(), function, dtype as u8);
    KNOWN.with_borrow_mut(|known| *known.entry(key).or_insert_with(|| asked(function, kernel)))
}

fn asked(function: Function, kernel: &StridedLoop) -> Option<Exact> {
    let dtype = *kernel.dtypes().first()?;
    let alike = kernel.dtypes().iter().all(|other| *other == dtype);
    if !alike || kernel.inputs() != function.inputs() || kernel.outputs() != 1 {
        return None;
    }
    let mut swapped = [false; 3];
    let forms = [Numbers::None, Numbers::Left, Numbers::Right];
    for (form, swapped) in forms.iter().zip(&mut swapped).take(if function.inputs() == 2 { 3 } else { 1 }) {
        *swapped = match dtype {
            DType::Float32 => order(function, kernel, *form, &FLOAT32.map(f32::from_bits))?,
            DType::Float64 => order(function, kernel, *form, &FLOAT64.map(f64::from_bits))?,
            DType::Int32 | DType::UInt32 => order(function, kernel, *form, &INT32)?,
            DType::Int64 | DType::UInt64 => order(function, kernel, *form, &INT64)?,
            _ => return None,
        };
    }
    Some(Exact { function, swapped })
}

/// Zeros, ones, numbers that round, subnormal ones, the largest, infinities and NaNs, by their bits.
const FLOAT32: [u32; 14] = [
    0,
    0x8000_0000,
    0x3f80_0000,
    0xbfc0_0001,
    0x3eaa_aaab,
    0x4049_0fdb,
    1,
    0x807f_ffff,
    0x7f7f_ffff,
    0xff7f_fffe,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0123,
    0xffc4_5678,
];
const FLOAT64: [u64; 14] = [
    0,
    0x8000_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff8_0000_0000_0001,
    0x3fd5_5555_5555_5555,
    0x4009_21fb_5444_2d18,
    1,
    0x800f_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_fffe,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0123,
    0xfff8_4567_89ab_cdef,
];
/// Small and large integers of both signs.
const INT32: [i32; 14] =
    [0, 1, -1, 2, -2, 3, 46_341, -46_341, i32::MAX, i32::MIN, 1 - i32::MAX, 0x5555_5555, 123_456_789, -987_654_321];
const INT64: [i64; 14] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    4_294_967_296,
    -3_037_000_500,
    i64::MAX,
    i64::MIN,
    1 - i64::MAX,
    0x5555_5555_5555_5555,
    1_234_567_890_123,
    -98_765_432_109_876,
];

/// Elements of a trial: whole tiles of any machine, and all pairs of numbers.
const COUNT: usize = 4 * ROUND;

/// Whether a machine has to swap the operands to give the loop's bits; None if it never gives them.
fn order<T: Copy + Default>(function: Function, kernel: &StridedLoop, form: Numbers, values: &[T]) -> Option<bool> {
    let count = values.len();
    let left: Vec<T> = (0..COUNT).map(|at| values[at % count]).collect();
    let right: Vec<T> = (0..COUNT).map(|at| values[at / count % count]).collect();
    let numbers = if form == Numbers::None { &values[..1] } else { values };
    let mut orders = vec![false, true];
    for number in numbers {
        let mut found = vec![T::default(); COUNT];
        let step = size_of::<T>().cast_signed();
        let number_or = |is_number: bool, array: &[T]| {
            if is_number { (std::ptr::from_ref(number), 0) } else { (array.as_ptr(), step) }
        };
        let ((left, left_step), (right, right_step)) =
            (number_or(form == Numbers::Left, &left), number_or(form == Numbers::Right, &right));
        let (mut pointers, mut steps) = (vec![left.cast::<u8>().cast_mut()], vec![left_step]);
        if function.inputs() == 2 {
            pointers.push(right.cast::<u8>().cast_mut());
            steps.push(right_step);
        }
        pointers.push(found.as_mut_ptr().cast());
        steps.push(step);
        // SAFETY: the operands have this many elements, or one for all; the loop only reads its inputs.
        unsafe { kernel.call(&pointers, &[COUNT.cast_signed()], &steps) };
        // SAFETY: as above; the numbers are of the loop's type.
        orders.retain(|swapped| unsafe {
            stands_in(Exact { function, swapped: [*swapped; 3] }, kernel, form, &pointers, COUNT)
        });
    }
    orders.first().copied()
}
