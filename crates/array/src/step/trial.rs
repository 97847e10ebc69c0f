//! Trials of foreign loops, at their look-up: whether a loop computes the same with gaps between the elements of its
//! outputs. A loop that fails is called by [`lines`](super::lines).

use super::kernel::signed;
use super::kernel::{OPERANDS, StridedLoop};
use crate::{DType, Scalar};

/// Elements of a trial: more than two vectors of bytes, and a rest.
const COUNT: usize = 131;
/// Steps, in elements, of the inputs and the outputs: NumPy has special loops for several of them.
const STEPS: [(usize, isize); 8] = [(0, 17), (1, 2), (1, -1), (2, 2), (3, -3), (4, 2), (4, 4), (5, 3)];
/// The content of the gaps.
const GAP: u8 = 0xa5;

impl StridedLoop {
    /// The same loop, after a trial on arbitrary numbers: its results must not depend on their places.
    ///
    /// # Safety
    ///
    /// The loop runs along one axis, element by element.
    #[must_use]
    pub unsafe fn tried(self) -> Self {
        let (inputs, outputs) = self.dtypes().split_at(self.inputs());
        let numbers: Vec<Vec<u8>> = inputs.iter().enumerate().map(|(at, dtype)| numbers(*dtype, at)).collect();
        let is_right = STEPS.iter().all(|&(near, far)| {
            let mut expected: Vec<Vec<u8>> = outputs.iter().map(|dtype| vec![GAP; COUNT * dtype.size()]).collect();
            // Elements left unwritten are wrong, whatever value is expected.
            // SAFETY: the caller's promise; each operand has as many elements as the trial.
            unsafe { self.run_trial(&numbers, near, &mut expected, 1) };
            let spread = outputs.iter().zip(&expected).map(|(dtype, row)| spread(row, dtype.size(), far));
            let mut found: Vec<Vec<u8>> = spread.collect();
            // SAFETY: as above.
            unsafe { self.run_trial(&numbers, near, &mut found, far) };
            let mut each = outputs.iter().zip(&expected).zip(&found);
            each.all(|((dtype, row), apart)| is_like(*dtype, row, apart, far))
        });
        self.with_gaps(is_right)
    }

    /// # Safety
    ///
    /// Inputs and outputs hold [`COUNT`] elements at these steps.
    unsafe fn run_trial(&self, inputs: &[Vec<u8>], near: usize, outputs: &mut [Vec<u8>], far: isize) {
        let (mut pointers, mut steps) = ([std::ptr::null_mut(); OPERANDS], [0; OPERANDS]);
        for (operand, dtype) in self.dtypes().iter().enumerate() {
            let size = dtype.size();
            if let Some(numbers) = inputs.get(operand) {
                pointers[operand] = numbers.as_ptr().cast_mut(); // loops only read their inputs
                steps[operand] = signed(near * size);
            } else {
                let output = &mut outputs[operand - inputs.len()];
                pointers[operand] = output.as_mut_ptr().wrapping_add(first(far) * size);
                steps[operand] = far * signed(size);
            }
        }
        let operands = self.dtypes().len();
        // SAFETY: the caller's promise.
        unsafe { self.call(&pointers[..operands], &[signed(COUNT)], &steps[..operands]) };
    }
}

/// The place of the first of [`COUNT`] elements at this step.
fn first(step: isize) -> usize {
    if step < 0 { (COUNT - 1) * step.unsigned_abs() } else { 0 }
}

/// The place of an element.
fn place(at: usize, step: isize, size: usize) -> usize {
    let index = if step < 0 { COUNT - 1 - at } else { at };
    index * step.unsigned_abs() * size
}

/// Memory for elements at this step, each filled with the opposite of its expected value.
fn spread(row: &[u8], size: usize, step: isize) -> Vec<u8> {
    let mut bytes = vec![GAP; COUNT * step.unsigned_abs() * size];
    for (at, element) in row.chunks_exact(size).enumerate() {
        let to = place(at, step, size);
        bytes[to..to + size].iter_mut().zip(element).for_each(|(byte, expected)| *byte = !expected);
    }
    bytes
}

/// Whether the elements of `apart` equal those of `row`, and the gaps are unchanged. Floating-point numbers may differ
/// in their last places, as NumPy's own do.
fn is_like(dtype: DType, row: &[u8], apart: &[u8], step: isize) -> bool {
    let size = dtype.size();
    let elements = row.chunks_exact(size).enumerate();
    let mut gaps = apart.chunks_exact(step.unsigned_abs() * size).map(|chunk| &chunk[size..]);
    gaps.all(|gap| gap.iter().all(|byte| *byte == GAP))
        && elements.into_iter().all(|(at, expected)| {
            let found = &apart[place(at, step, size)..][..size];
            expected == found || dtype.is_floating() && is_near(dtype, expected, found)
        })
}

/// Whether two floating-point numbers differ at most in their last places.
fn is_near(dtype: DType, one: &[u8], other: &[u8]) -> bool {
    let (single, digits) = match dtype {
        DType::Float16 => (2, 2e-3),
        DType::Float32 | DType::Complex64 => (4, 1e-5),
        _ => (8, 1e-13),
    };
    let parts = one.chunks_exact(single).zip(other.chunks_exact(single));
    let parts: Vec<(f64, f64)> = parts.map(|(one, other)| (real(one), real(other))).collect();
    let large = parts.iter().map(|(one, _)| one.abs()).fold(0.0, f64::max);
    parts.iter().all(|(one, other)| one.is_nan() && other.is_nan() || (one - other).abs() <= large * digits)
}

fn real(bytes: &[u8]) -> f64 {
    match *bytes {
        [a, b] => half::f16::from_ne_bytes([a, b]).to_f64(),
        [a, b, c, d] => f64::from(f32::from_ne_bytes([a, b, c, d])),
        _ => bytes.try_into().map_or(f64::NAN, f64::from_ne_bytes),
    }
}

/// Numbers that a loop of any kind takes, with room for the largest step, in an order of the operand's own.
fn numbers(dtype: DType, operand: usize) -> Vec<u8> {
    const REAL: [f64; 11] = [1.0, -2.5, f64::INFINITY, f64::NAN, 0.0, 0.75, -0.0, 3.0, f64::NEG_INFINITY, 1e-3, -0.5];
    let most = STEPS.iter().map(|(near, _)| *near).fold(1, usize::max);
    let mut bytes = Vec::with_capacity(COUNT * most * dtype.size());
    for at in 0..COUNT * most {
        let at = at + 5 * operand;
        // Small integers serve as divisors and shifts, too.
        let small = [1_i8, 2, 5, 3, 7, 4, 6][at % 7];
        let scalar = match dtype {
            DType::Bool => Scalar::Bool(at.is_multiple_of(3)),
            DType::Complex64 | DType::Complex128 => Scalar::Complex(f64::from(small), 0.25 * f64::from(small) - 1.0),
            _ if dtype.is_floating() => Scalar::Float(REAL[at % REAL.len()]),
            _ => Scalar::Int(i64::from(small)),
        };
        match scalar.bytes(dtype) {
            Some(element) => bytes.extend_from_slice(&element[..dtype.size()]),
            None => unreachable!("the number is of the type's kind and small"),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::StridedLoop;
    use crate::DType;
    use std::ffi::{c_char, c_void};

    /// Twice each number; a faulty one skips the last elements of an output with gaps.
    unsafe extern "C" fn twice<const FAULTY: bool>(
        args: *mut *mut c_char,
        dimensions: *const isize,
        steps: *const isize,
        _: *mut c_void,
    ) {
        // SAFETY: two operands and one axis, by the loop's contract.
        unsafe {
            let (from, to, near, far) = (*args, *args.add(1), *steps, *steps.add(1));
            let left_out = if FAULTY && far != 4 { *dimensions % 16 } else { 0 };
            for at in 0..*dimensions - left_out {
                let number = from.wrapping_offset(at * near).cast::<i32>().read_unaligned();
                to.wrapping_offset(at * far).cast::<i32>().write_unaligned(2 * number);
            }
        }
    }

    fn kernel<const FAULTY: bool>() -> StridedLoop {
        let (data, dtypes) = (std::ptr::null_mut(), [DType::Int32]);
        // SAFETY: it touches only its operands.
        match unsafe { StridedLoop::new(twice::<FAULTY>, data, &dtypes, &dtypes) } {
            Some(kernel) => kernel,
            None => unreachable!("two operands are not too many"),
        }
    }

    fn run(kernel: &StridedLoop, count: usize, far: isize) -> Vec<i32> {
        let from: Vec<i32> = (0..).take(count).collect();
        let mut to = vec![-1; count * far.unsigned_abs()];
        let first = if far < 0 { (count - 1) * far.unsigned_abs() } else { 0 };
        let pointers = [from.as_ptr().cast_mut().cast::<u8>(), to.as_mut_ptr().wrapping_add(first).cast()];
        // SAFETY: both reach this many elements.
        unsafe { kernel.call(&pointers, &[isize::try_from(count).unwrap_or(0)], &[4, 4 * far]) };
        to
    }

    #[test]
    #[cfg_attr(miri, ignore)] // minutes: all combinations of strides
    fn a_loop_that_leaves_elements_out_is_called_without_gaps() {
        // SAFETY: both run along one axis.
        let (right, wrong) = unsafe { (kernel::<false>().tried(), kernel::<true>().tried()) };
        assert!(right.takes_gaps() && !wrong.takes_gaps());
        for count in [1, 15, 16, 1000, 5000] {
            for far in [1, 2, -1, -3] {
                assert_eq!(run(&wrong, count, far), run(&right, count, far), "{count} elements, {far} apart");
            }
        }
        assert_ne!(run(&kernel::<true>(), 20, 2), run(&right, 20, 2), "the fault is there");
    }
}
