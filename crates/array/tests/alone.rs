//! Steps that fall into blocks, run by one thread on operands that begin anywhere.

use weft_array::{Access, Blocked, DType, run_alone};
use weft_engine::Cause;

/// Adds the first operand to the second, which it changes, by way of scratch memory.
struct Adding(usize);

impl Blocked for Adding {
    fn blocks(&self) -> usize {
        1
    }

    fn operations(&self) -> usize {
        self.0
    }

    fn scratch(&self) -> usize {
        self.0 * size_of::<f64>()
    }

    #[allow(clippy::cast_ptr_alignment)] // it is looked at first
    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, _: usize) -> Result<(), Cause> {
        for start in arrays {
            assert!(start.addr().is_multiple_of(align_of::<f64>()), "a step takes aligned operands");
        }
        assert!(scratch.addr().is_multiple_of(64), "scratch memory is aligned to a cache line");
        // SAFETY: there are so many of each.
        let [from, to, between] = unsafe {
            [arrays[0], arrays[1], scratch].map(|start| std::slice::from_raw_parts_mut(start.cast::<f64>(), self.0))
        };
        for ((from, to), between) in from.iter().zip(to).zip(between) {
            *between = *from + *to;
            *to = *between;
        }
        Ok(())
    }
}

#[test]
fn what_begins_between_two_elements_is_changed_too() {
    for count in [1, 7, 200] {
        for shift in [0, 1, 3] {
            let numbers = |by: f64| (1..=count).flat_map(move |at| (by * f64::from(at)).to_ne_bytes());
            let mut all: [Vec<u8>; 2] = [1.0, 10.0].map(|by| vec![0; shift].into_iter().chain(numbers(by)).collect());
            let mut pointers = all.each_mut().map(|bytes| bytes.as_mut_ptr().wrapping_add(shift));
            let length = usize::try_from(count).expect("small");
            let bytes = length * size_of::<f64>();
            let operands = [(bytes, DType::Float64, Access::Read), (bytes, DType::Float64, Access::Mutate)];
            // SAFETY: the operands are as long as the step takes them, and nobody else's.
            unsafe { run_alone(&Adding(length), operands.into_iter(), &mut pointers) }.expect("it does not fail");
            assert!(all[1][shift..].iter().copied().eq(numbers(11.0)), "{count} elements, {shift} bytes on");
        }
    }
}
