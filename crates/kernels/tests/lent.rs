//! Numbers that change while a kernel runs, as memory that somebody lends may: it refuses them, and reads nowhere else.

use weft_array::{Blocked, DType};
use weft_kernels::{CrossEntropy, Lookup};

const WRONG: [i64; 5] = [i64::MAX, i64::MIN, -1, 4, 1 << 40];

/// Runs a step of float32 on operands with numbers that are changed after they were checked.
fn refused(step: &dyn Blocked, at: usize, wrong: i64) -> String {
    let mut numbers = vec![1_i64; 6];
    let mut operands: Vec<Vec<f32>> = vec![vec![0.5; 64]; 4];
    let mut arrays: Vec<*mut u8> = operands.iter_mut().map(|operand| operand.as_mut_ptr().cast()).collect();
    let start: *mut i64 = numbers.as_mut_ptr();
    arrays[at] = start.cast();
    let arrays = &arrays[..if at == 2 { 4 } else { 3 }];
    let none = std::ptr::null_mut();
    // SAFETY: the operands are at least as large as the step takes them, and nobody else's; the numbers are what it is about.
    unsafe {
        step.begin(arrays, none).expect("all numbers are right");
        start.add(5).write(wrong);
        (0..step.blocks())
            .find_map(|block| step.run_block(arrays, none, block).err())
            .expect("one is wrong")
            .to_string()
    }
}

#[test]
fn rows_are_looked_up_where_they_are() {
    for gradient in [false, true] {
        let step = Lookup { gradient, numbers: DType::Int64, count: 6, rows: 4, width: 3 }.step(DType::Float32);
        let step = step.expect("a look-up of float32");
        for wrong in WRONG {
            let message = refused(step.as_ref(), usize::from(gradient), wrong);
            assert_eq!(message, format!("there is no row {wrong} among 4: rows count from 0"));
        }
    }
}

#[test]
fn classes_are_those_that_there_are() {
    for gradient in [false, true] {
        let step = CrossEntropy { gradient, classes: Some(DType::Int64), outer: 6, length: 4 }.step(DType::Float32);
        let step = step.expect("an entropy of float32");
        for wrong in WRONG {
            let message = refused(step.as_ref(), 1 + usize::from(gradient), wrong);
            assert_eq!(message, format!("there is no class {wrong} among 4: classes count from 0"));
        }
    }
}
