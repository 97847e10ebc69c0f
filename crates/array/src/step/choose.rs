//! The loop that chooses between two operands, element by element.

use super::kernel::StridedLoop;
use crate::DType;
use std::ffi::{c_char, c_void};

/// # Safety
///
/// As for the loop itself.
unsafe extern "C" fn choose<T: Copy>(
    args: *mut *mut c_char,
    dimensions: *const isize,
    steps: *const isize,
    _: *mut c_void,
) {
    // SAFETY: four operands and one axis, by the loop's contract; elements are moved as bytes, aligned or not.
    unsafe {
        let count = *dimensions;
        let [mask, first, second, to] = [0, 1, 2, 3].map(|at| (*args.add(at)).cast::<u8>());
        let by = [0, 1, 2, 3].map(|at| *steps.add(at));
        for index in 0..count {
            let chosen = mask.wrapping_offset(index * by[0]).read() != 0;
            let from =
                if chosen { first.wrapping_offset(index * by[1]) } else { second.wrapping_offset(index * by[2]) };
            let element = from.cast::<T>().read_unaligned();
            to.wrapping_offset(index * by[3]).cast::<T>().write_unaligned(element);
        }
    }
}

/// The loop of a mask and two operands of this type. Its result is the first one's element where the mask is true.
#[must_use]
pub fn choose_loop(dtype: DType) -> StridedLoop {
    let function = match dtype.size() {
        1 => choose::<u8>,
        2 => choose::<u16>,
        4 => choose::<u32>,
        8 => choose::<u64>,
        _ => choose::<u128>,
    };
    // SAFETY: it touches only its operands, and interprets only the mask.
    match unsafe { StridedLoop::new(function, std::ptr::null_mut(), &[DType::Bool, dtype, dtype], &[dtype]) } {
        Some(kernel) => kernel.with_effort(300),
        None => unreachable!("four operands are not too many"),
    }
}
