//! Loops that are correct only for outputs without gaps between their elements.
//!
//! NumPy hardly ever calls its loops otherwise. Some of them, such as `isnan` of real numbers, then skip elements. Such
//! a loop writes to a line on the stack, and its results are copied from there to their places.

use super::kernel::signed;
use super::kernel::{OPERANDS, StridedLoop};
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// Bytes of the lines of all outputs together.
const BYTES: usize = 4096;

/// The lines, aligned to a cache line.
#[repr(align(64))]
struct Lines(MaybeUninit<[u8; BYTES]>);

impl StridedLoop {
    /// Whether an output has gaps between its elements, or is walked backwards. An output with a step of 0 belongs to a
    /// reduction and has none.
    pub(super) fn has_gaps(&self, steps: &[isize]) -> bool {
        let outputs = steps.iter().zip(self.dtypes()).skip(self.inputs());
        outputs.into_iter().any(|(step, dtype)| *step != 0 && *step != signed(dtype.size()))
    }

    /// Calls the loop by lines, so that its outputs never have gaps.
    ///
    /// # Safety
    ///
    /// As for [`call`](StridedLoop::call), along one axis.
    #[cold]
    pub(super) unsafe fn call_by_lines(&self, pointers: &[*mut u8], count: isize, steps: &[isize]) {
        let (inputs, dtypes) = (self.inputs(), self.dtypes());
        let widths: usize = dtypes[inputs..].iter().map(|dtype| dtype.size()).sum();
        // There are at most eight outputs of 16 bytes each: 32 elements fit.
        let longest = BYTES / widths / 32 * 32;
        let mut lines = Lines(MaybeUninit::uninit());
        let first = lines.0.as_mut_ptr().cast::<u8>();
        let mut done = 0;
        while done < count.unsigned_abs() {
            let part = longest.min(count.unsigned_abs() - done);
            let mut args = [std::ptr::null_mut::<c_char>(); OPERANDS];
            let mut near = [0; OPERANDS];
            let mut line = first;
            for (operand, dtype) in dtypes.iter().enumerate() {
                let there = pointers[operand].wrapping_offset(steps[operand].wrapping_mul(signed(done)));
                (args[operand], near[operand]) = if operand < inputs || steps[operand] == 0 {
                    (there.cast(), steps[operand])
                } else {
                    (line.cast(), signed(dtype.size()))
                };
                if operand >= inputs {
                    line = line.wrapping_add(longest * dtype.size());
                }
            }
            // SAFETY: the caller's promise for the inputs; the lines hold as many elements as a part has.
            unsafe { self.call_directly(&mut args, signed(part), &near) };
            let mut line = first;
            for (operand, dtype) in dtypes.iter().enumerate().skip(inputs) {
                let (size, step) = (dtype.size(), steps[operand]);
                for at in 0..if step == 0 { 0 } else { part } {
                    let to = pointers[operand].wrapping_offset(step.wrapping_mul(signed(done + at)));
                    // SAFETY: the loop wrote the element to its line; the caller's promise for the output.
                    unsafe { std::ptr::copy_nonoverlapping(line.wrapping_add(at * size), to, size) };
                }
                line = line.wrapping_add(longest * size);
            }
            done += part;
        }
    }
}
