//! Numbers of half precision, computed as numbers of single precision, a piece at a time.
//!
//! Processors convert many at once. NumPy converts them one by one, bit by bit, which takes ten times as long as an addition; the
//! results are the same: one operation in single precision, rounded once.

use super::kernel::StridedLoop;
use crate::DType;
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// Numbers that are converted together: they stay in the cache nearest to the processor.
const PIECE: usize = 256;
const SIZE: isize = size_of::<f16>().cast_signed();

/// Picoseconds for an element, beside those for its bytes.
const EFFORT: u16 = 300;

/// Converts a piece.
fn to_singles(halves: &[f16; PIECE], singles: &mut [f32; PIECE]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("f16c") && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has these instructions.
        unsafe { lanes::to_singles(halves, singles) };
        return;
    }
    halves.convert_to_f32_slice(singles);
}

/// Converts a piece, rounding to the nearest half, the even one of two.
fn to_halves(singles: &[f32; PIECE], halves: &mut [f16; PIECE]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("f16c") && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has these instructions.
        unsafe { lanes::to_halves(singles, halves) };
        return;
    }
    halves.convert_from_f32_slice(singles);
}

/// Eight at once. The crate `half` has these instructions as well, but calls a function for each eight.
#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::{PIECE, f16};
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph,
        _mm256_loadu_ps, _mm256_storeu_ps,
    };

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn to_singles(halves: &[f16; PIECE], singles: &mut [f32; PIECE]) {
        for (from, to) in halves.chunks_exact(8).zip(singles.chunks_exact_mut(8)) {
            // SAFETY: there are eight of each; aligned or not.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast()))) };
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn to_halves(singles: &[f32; PIECE], halves: &mut [f16; PIECE]) {
        for (from, to) in singles.chunks_exact(8).zip(halves.chunks_exact_mut(8)) {
            // SAFETY: there are eight of each; aligned or not.
            unsafe {
                let found = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr()));
                _mm_storeu_si128(to.as_mut_ptr().cast(), found);
            }
        }
    }
}

/// Reads as many halves, `step` bytes apart, as `into` has places.
///
/// # Safety
///
/// They are there; aligned or not.
pub(super) unsafe fn widen(source: *const u8, step: isize, into: &mut [f32]) {
    let (mut halves, mut singles) = ([f16::ZERO; PIECE], [0.0; PIECE]);
    for (piece, into) in into.chunks_mut(PIECE).enumerate() {
        let first = source.wrapping_offset((piece * PIECE).cast_signed() * step);
        let given = &mut halves[..into.len()];
        if step == SIZE {
            // SAFETY: the caller's promise; bytes of an array of our own.
            unsafe { std::ptr::copy_nonoverlapping(first, given.as_mut_ptr().cast::<u8>(), size_of_val(given)) };
        } else {
            for (at, half) in given.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *half = unsafe { first.wrapping_offset(at.cast_signed() * step).cast::<f16>().read_unaligned() };
            }
        }
        if let Ok(whole) = into.try_into() {
            to_singles(&halves, whole);
        } else {
            to_singles(&halves, &mut singles);
            into.copy_from_slice(&singles[..into.len()]);
        }
    }
}

/// Writes numbers as halves, `step` bytes apart.
///
/// # Safety
///
/// There is room for them; aligned or not.
pub(super) unsafe fn narrow(from: &[f32], target: *mut u8, step: isize) {
    let (mut halves, mut singles) = ([f16::ZERO; PIECE], [0.0; PIECE]);
    for (piece, from) in from.chunks(PIECE).enumerate() {
        let first = target.wrapping_offset((piece * PIECE).cast_signed() * step);
        if let Ok(whole) = from.try_into() {
            to_halves(whole, &mut halves);
        } else {
            singles[..from.len()].copy_from_slice(from);
            to_halves(&singles, &mut halves);
        }
        let halves = &halves[..from.len()];
        if step == SIZE {
            // SAFETY: the caller's promise; bytes of an array of our own.
            unsafe { std::ptr::copy_nonoverlapping(halves.as_ptr().cast::<u8>(), first, size_of_val(halves)) };
        } else {
            for (at, half) in halves.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { first.wrapping_offset(at.cast_signed() * step).cast::<f16>().write_unaligned(*half) };
            }
        }
    }
}

/// Casts halves to single precision.
///
/// # Safety
///
/// As for the loop that it is.
#[allow(clippy::cast_ptr_alignment)] // written unaligned
pub(super) unsafe extern "C" fn to_single(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    _: *mut c_void,
) {
    let mut found = [0.0; PIECE];
    // SAFETY: two operands and one axis, by the loop's contract.
    let (count, [from, to], [source, target]) =
        unsafe { (*dimensions, [*steps, *steps.add(1)], [*args, *args.add(1)].map(<*mut c_char>::cast::<u8>)) };
    for start in (0..count).step_by(PIECE) {
        let found = &mut found[..(count - start).unsigned_abs().min(PIECE)];
        // SAFETY: as above.
        unsafe { widen(source.wrapping_offset(start * from), from, found) };
        for (at, number) in found.iter().enumerate() {
            let place = target.wrapping_offset((start + at.cast_signed()) * to).cast::<f32>();
            // SAFETY: as above.
            unsafe { place.write_unaligned(*number) };
        }
    }
}

/// Casts numbers of single precision to halves.
///
/// # Safety
///
/// As for the loop that it is.
#[allow(clippy::cast_ptr_alignment)] // read unaligned
pub(super) unsafe extern "C" fn of_single(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    _: *mut c_void,
) {
    let mut given = [0.0; PIECE];
    // SAFETY: two operands and one axis, by the loop's contract.
    let (count, [from, to], [source, target]) =
        unsafe { (*dimensions, [*steps, *steps.add(1)], [*args, *args.add(1)].map(<*mut c_char>::cast::<u8>)) };
    for start in (0..count).step_by(PIECE) {
        let given = &mut given[..(count - start).unsigned_abs().min(PIECE)];
        for (at, number) in given.iter_mut().enumerate() {
            let place = source.wrapping_offset((start + at.cast_signed()) * from).cast::<f32>();
            // SAFETY: as above.
            *number = unsafe { place.read_unaligned() };
        }
        // SAFETY: as above.
        unsafe { narrow(given, target.wrapping_offset(start * to), to) };
    }
}

/// Functions that have loops here, by NumPy's names.
const NAMES: [&str; 4] = ["add", "subtract", "multiply", "divide"];
/// NumPy's loops for them, which sum up: they know how to keep what a long sum loses.
static NUMPYS: [OnceLock<StridedLoop>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];

/// A loop over halves that gives what NumPy's of this name gives, several times as fast; None if there is none.
#[must_use]
pub fn half_loop(name: &str, numpys: StridedLoop) -> Option<StridedLoop> {
    let at = NAMES.iter().position(|known| *known == name)?;
    if numpys.dtypes() != [DType::Float16; 3] {
        return None;
    }
    NUMPYS[at].get_or_init(|| numpys);
    let function = [compute::<0>, compute::<1>, compute::<2>, compute::<3>][at];
    // SAFETY: it touches nothing but its operands, in any alignment; an output that overlaps an input is written after it was read.
    let made = unsafe { StridedLoop::new(function, std::ptr::null_mut(), &[DType::Float16; 2], &[DType::Float16]) };
    made.map(|made| made.with_effort(EFFORT))
}

/// # Safety
///
/// As for the loop that it is.
unsafe extern "C" fn compute<const AT: usize>(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    _: *mut c_void,
) {
    // SAFETY: three operands and one axis, by the loop's contract.
    let (count, own, pointers) = unsafe {
        let pointers = [*args, *args.add(1), *args.add(2)].map(<*mut c_char>::cast::<u8>);
        (*dimensions, [*steps, *steps.add(1), *steps.add(2)], pointers)
    };
    if own[2] == 0 && count > 1 {
        if let Some(numpys) = NUMPYS[AT].get() {
            // SAFETY: the caller's promise.
            unsafe { numpys.call(&pointers, &[count], &own) };
        }
        return;
    }
    let (mut left, mut right) = ([0.0; PIECE], [0.0; PIECE]);
    for start in (0..count).step_by(PIECE) {
        let length = (count - start).unsigned_abs().min(PIECE);
        let (left, right) = (&mut left[..length], &mut right[..length]);
        let at = |which: usize| pointers[which].wrapping_offset(start * own[which]);
        // SAFETY: as above.
        unsafe {
            widen(at(0), own[0], left);
            widen(at(1), own[1], right);
        }
        for (left, right) in left.iter_mut().zip(right.iter()) {
            *left = match AT {
                0 => *left + *right,
                1 => *left - *right,
                2 => *left * *right,
                _ => *left / *right,
            };
        }
        // SAFETY: as above.
        unsafe { narrow(left, at(2), own[2]) };
    }
}

/// Of the length that is summed over, so much is converted at a time.
const DEPTH: usize = if cfg!(miri) { 64 } else { 4096 };

/// Writes a product of `[rows, inner, columns]` to the last pointer: sums of single precision, rounded once.
///
/// # Safety
///
/// The steps stay inside of the matrices; the output is nobody else's.
pub(super) unsafe fn multiply(
    [rows, inner, columns]: [isize; 3],
    [left, right, output]: [*mut u8; 3],
    steps: [isize; 6],
) {
    let [rows, inner, columns] = [rows, inner, columns].map(isize::unsigned_abs);
    let depth = inner.min(DEPTH);
    let (mut a, mut b, mut sums) = (vec![0.0; rows * depth], vec![0.0; depth * columns], vec![0.0_f32; rows * columns]);
    for start in (0..inner).step_by(DEPTH) {
        let length = (inner - start).min(DEPTH);
        let from = start.cast_signed();
        // SAFETY: the caller's promise.
        let ([a_row, a_column], [b_row, b_column]) = unsafe {
            (
                widened(left.wrapping_offset(from * steps[1]), [rows, length], [steps[0], steps[1]], &mut a),
                widened(right.wrapping_offset(from * steps[2]), [length, columns], [steps[2], steps[3]], &mut b),
            )
        };
        // SAFETY: matrices of these shapes lie there.
        unsafe {
            gemm::gemm::<f32>(
                rows,
                columns,
                length,
                sums.as_mut_ptr(),
                1,
                columns.cast_signed(),
                start > 0,
                a.as_ptr(),
                a_column,
                a_row,
                b.as_ptr(),
                b_column,
                b_row,
                1.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }
    for (row, sums) in sums.chunks(columns.max(1)).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { narrow(sums, output.wrapping_offset(row.cast_signed() * steps[4]), steps[5]) };
    }
}

/// Writes a matrix as numbers of single precision, along the axis along which it lies; returns how far apart rows and columns are.
///
/// # Safety
///
/// It lies there, its rows and columns so many bytes apart.
unsafe fn widened(
    source: *const u8,
    [rows, columns]: [usize; 2],
    [by_row, by_column]: [isize; 2],
    into: &mut [f32],
) -> [isize; 2] {
    let down = by_row == SIZE && by_column != SIZE;
    let (lines, length, apart, step) =
        if down { (columns, rows, by_column, by_row) } else { (rows, columns, by_row, by_column) };
    for (at, line) in into.chunks_mut(length.max(1)).take(lines).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { widen(source.wrapping_offset(at.cast_signed() * apart), step, line) };
    }
    if down { [1, length.cast_signed()] } else { [length.cast_signed(), 1] }
}

#[cfg(test)]
mod tests {
    use super::{DEPTH, multiply, of_single, to_single};
    use half::f16;

    #[test]
    fn casts_are_those_of_single_numbers_at_any_step() {
        let every = (0..u16::MAX).step_by(61).map(f16::from_bits);
        let given: Vec<f16> = every.filter(|half| !half.is_nan()).take(1000).collect();
        let (mut wide, mut back) = (vec![0.0_f32; 2000], vec![f16::ZERO; 1000]);
        let count = 1000_isize;
        // SAFETY: so many elements are there, at these steps.
        unsafe {
            let mut args = [given.as_ptr().cast_mut().cast(), wide.as_mut_ptr().cast()];
            to_single(args.as_mut_ptr(), &raw const count, [2, 8].as_ptr(), std::ptr::null_mut());
            let mut args = [wide.as_mut_ptr().cast(), back.as_mut_ptr().cast()];
            of_single(args.as_mut_ptr(), &raw const count, [8, 2].as_ptr(), std::ptr::null_mut());
        }
        for (at, half) in given.iter().enumerate() {
            assert_eq!(half.to_f32().to_bits(), wide[2 * at].to_bits());
            assert_eq!(half.to_bits(), back[at].to_bits());
        }
    }

    #[test]
    fn products_of_any_layout_are_rounded_once() {
        let [rows, inner, columns] = [5, 2 * DEPTH + 8, 3];
        let number = |at: usize| f16::from_f32(f32::from(u8::try_from((at * 37) % 64).unwrap_or(0)) / 64.0 - 0.5);
        let left: Vec<f16> = (0..rows * inner).map(number).collect();
        let right: Vec<f16> = (0..inner * columns).map(number).collect();
        let shape = [rows, inner, columns].map(usize::cast_signed);
        for turned in [false, true] {
            let mut found = vec![f16::ZERO; rows * columns];
            let by = if turned { [2, 2 * shape[0]] } else { [2 * shape[1], 2] };
            let pointers =
                [left.as_ptr().cast_mut().cast(), right.as_ptr().cast_mut().cast(), found.as_mut_ptr().cast()];
            // SAFETY: matrices of these shapes lie there.
            unsafe { multiply(shape, pointers, [by[0], by[1], 2 * shape[2], 2, 2 * shape[2], 2]) };
            for row in 0..rows {
                for column in 0..columns {
                    let at = |k: usize| if turned { left[k * rows + row] } else { left[row * inner + k] };
                    let due: f64 = (0..inner).map(|k| at(k).to_f64() * right[k * columns + column].to_f64()).sum();
                    let error = (found[row * columns + column].to_f64() - due).abs();
                    assert!(error <= due.abs() / 1024.0 + 0.01, "{error} beside {due}");
                }
            }
        }
    }
}
