//! Kernels on data in lanes give the bits of those in rows.

use std::sync::Arc;
use weft_array::{Blocked, DType, Lanes};
use weft_kernels::{Channels, Channelwise, Pool, Pooling, Window};

/// Numbers of which no two sums are the same, some of them signed zeros, infinite, or none.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let special = [0.0, -0.0, f32::NAN, f32::NEG_INFINITY];
    let small = |at: usize| f32::from(u16::try_from((at + seed) * 40_503 % 65_521).unwrap_or(0)) / 4096.0 - 8.0;
    (0..count).map(|at| if at % 11 == 3 { special[at / 11 % 4] } else { small(at) }).collect()
}

/// The same elements, in these lanes.
fn laid_out(rows: &[f32], lanes: Option<Lanes>) -> Vec<f32> {
    let Some(Lanes { width, inner }) = lanes else { return rows.to_vec() };
    let mut all = vec![0.0; rows.len()];
    for (at, value) in rows.iter().enumerate() {
        let (plane, element) = (at / inner, at % inner);
        all[(plane / width * inner + element) * width + plane % width] = *value;
    }
    all
}

fn run(step: &Arc<dyn Blocked>, inputs: &[Vec<f32>], count: usize) -> Vec<f32> {
    let mut out = vec![f32::INFINITY; count];
    let mut arrays: Vec<*mut u8> = inputs.iter().map(|input| input.as_ptr().cast_mut().cast()).collect();
    arrays.push(out.as_mut_ptr().cast());
    let none = std::ptr::null_mut();
    for block in 0..step.blocks() {
        // SAFETY: operands have the sizes that the step was made for, and it asks for no scratch memory.
        assert!(unsafe { step.run_block(&arrays, none, block) }.is_ok());
    }
    out
}

/// Checks the step of each way in which its first operand and its last may lie, and how many there are.
fn check(step: &Arc<dyn Blocked>, inputs: &[Vec<f32>], lanes: [Lanes; 2], count: usize) {
    let wanted = run(step, inputs, count);
    for (first, last) in [(true, true), (true, false), (false, true)] {
        let [first, last] = [first.then_some(lanes[0]), last.then_some(lanes[1])];
        let mut operands = vec![None; inputs.len() + 1];
        (operands[0], operands[inputs.len()]) = (first, last);
        let found = step.in_lanes(&operands).expect("a twin");
        let mut inputs = inputs.to_vec();
        inputs[0] = laid_out(&inputs[0], first);
        let (found, wanted) = (run(&found, &inputs, count), laid_out(&wanted, last));
        assert!(found.iter().zip(&wanted).all(|(one, other)| one.to_bits() == other.to_bits()));
        let liked = step.likes(&operands);
        assert_eq!((liked[0], liked[inputs.len()]), (Some(lanes[0]), Some(lanes[1])));
    }
    let other = Lanes { inner: lanes[0].inner + 1, ..lanes[0] };
    let mut operands = vec![None; inputs.len() + 1];
    operands[0] = Some(other);
    assert!(step.in_lanes(&operands).is_none());
    operands[0] = Some(Lanes { width: 5, ..lanes[0] });
    assert!(step.in_lanes(&operands).is_none());
}

#[test]
fn pooling_gives_the_same_bits() {
    let windows = [
        ([1, 6, 8], [1, 2, 2], [1, 2, 2], [0, 0, 0], [1, 3, 4]),
        ([1, 7, 9], [1, 3, 3], [1, 2, 2], [0, 1, 1], [1, 4, 5]),
        ([3, 4, 5], [2, 3, 2], [1, 2, 3], [1, 1, 0], [4, 2, 2]),
    ];
    for (lengths, kernel, stride, before, counts) in windows {
        let window = Window { lengths, kernel, stride, before, dilation: [1; 3], counts };
        let padded = std::array::from_fn(|axis| lengths[axis] + 2 * before[axis]);
        for (pool, reach) in [(Pool::Largest, None), (Pool::Mean, None), (Pool::Mean, Some(padded))] {
            for width in [4, 8, 16] {
                let own = Pooling { pool, planes: 32, window, reach };
                let data = numbers(32 * window.channel(), width);
                let lanes = [window.channel(), window.total()].map(|inner| Lanes { width, inner });
                let step = own.step(DType::Float32).expect("a step");
                check(&step, &[data], lanes, 32 * window.total());
            }
        }
    }
    let window = Window {
        lengths: [1, 2, 2],
        kernel: [1; 3],
        stride: [1; 3],
        before: [0; 3],
        dilation: [1; 3],
        counts: [1, 2, 2],
    };
    let step = Pooling { pool: Pool::ToMean, planes: 16, window, reach: None }.step(DType::Float32);
    let lanes = Some(Lanes { width: 16, inner: 4 });
    assert!(step.expect("a step").in_lanes(&[lanes, lanes]).is_none());
}

#[test]
fn normalisation_gives_the_same_bits() {
    for (outer, inner) in [(3, 35), (1, 130)] {
        let own = Channels { what: Channelwise::Normal, outer, channels: 48, inner, eps: 1e-3 };
        let vector = |seed: usize| {
            numbers(48, seed).iter().map(|value| if value.is_finite() { value.abs() } else { 1.0 }).collect()
        };
        let inputs = [numbers(outer * 48 * inner, 1), vector(2), vector(3), vector(4), vector(5)];
        for rectified in [false, true] {
            let step = own.followed(DType::Float32, rectified).expect("a step");
            for width in [4, 8, 16] {
                check(&step, &inputs, [Lanes { width, inner }; 2], outer * 48 * inner);
            }
        }
    }
}
