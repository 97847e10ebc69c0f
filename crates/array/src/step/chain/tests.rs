//! Random chains against their loops, run one after the other; the same bits on all kinds of vectors.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const COUNT: usize = if cfg!(miri) { 300 } else { 999 };
const ARRAYS: usize = 4;
const SLOTS: usize = 3;

const FUNCTIONS: [Function; 13] = [
    Function::Add,
    Function::Subtract,
    Function::Multiply,
    Function::Divide,
    Function::Minimum,
    Function::Maximum,
    Function::Copy,
    Function::Negative,
    Function::Absolute,
    Function::Sqrt,
    Function::Square,
    Function::Reciprocal,
    Function::Rectify,
];

fn part(number: usize) -> Part {
    if number < ARRAYS { Part::Array(number) } else { Part::Slot(number - ARRAYS) }
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let input = (0..ARRAYS + SLOTS + 2, -4_i8..5).prop_map(|(number, value)| {
        if number < ARRAYS + SLOTS {
            return Input::At(part(number));
        }
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&(f32::from(value) / 2.0).to_ne_bytes());
        Input::Number(bytes)
    });
    let line = (0..FUNCTIONS.len(), input.clone(), input, 0..ARRAYS + SLOTS);
    let line = line.prop_map(|(function, left, right, to)| {
        let function = FUNCTIONS[function];
        let inputs = [left, right].into_iter().take(function.inputs()).collect();
        Line { exact: Exact { function, swapped: [false; 3] }, inputs, output: part(to) }
    });
    proptest::collection::vec(line, 1..40)
}

fn compute(function: Function, x: f32, y: f32) -> f32 {
    match function {
        Function::Add => x + y,
        Function::Subtract => x - y,
        Function::Multiply => x * y,
        Function::Divide => x / y,
        Function::Minimum => {
            if x.is_nan() || x < y {
                x
            } else {
                y
            }
        }
        Function::Maximum => {
            if x.is_nan() || x > y {
                x
            } else {
                y
            }
        }
        Function::Copy => x,
        Function::Negative => -x,
        Function::Absolute => x.abs(),
        Function::Sqrt => x.sqrt(),
        Function::Square => x * x,
        Function::Reciprocal => 1.0 / x,
        Function::Rectify => {
            if x <= 0.0 {
                0.0
            } else {
                x
            }
        }
        Function::And | Function::Or | Function::Xor | Function::Not => {
            unreachable!("floating-point numbers have none")
        }
    }
}

type Memory = BTreeMap<Part, Vec<f32>>;

fn memory() -> Memory {
    let values = [0.0, -0.0, 1.0, -1.5, 0.3, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 1e-40, 7.25];
    (0..ARRAYS + SLOTS)
        .map(|number| {
            (part(number), (0..COUNT).map(|at| values[(at * (number + 1) + number) % values.len()]).collect())
        })
        .collect()
}

/// The memory after the loops, run one after the other.
fn looped(lines: &[Line]) -> Memory {
    let mut memory = memory();
    for line in lines {
        let read = |input: &Input, at: usize| match input {
            Input::At(part) => memory[part][at],
            Input::Number(bytes) => f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        };
        let second = line.inputs.get(1).unwrap_or(&line.inputs[0]);
        let of = |at| compute(line.exact.function, read(&line.inputs[0], at), read(second, at));
        let made = (0..COUNT).map(of).collect();
        memory.insert(line.output, made);
    }
    memory
}

fn bits(values: &[f32], count: usize) -> Vec<u32> {
    // The loops decide which of two NaNs comes out.
    values[..count].iter().map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() }).collect()
}

proptest! {
    #[test]
    fn a_chain_leaves_what_its_loops_leave(lines in lines(), living in proptest::collection::vec(any::<bool>(), SLOTS)) {
        let expected = looped(&lines);
        for vectors in Vectors::all() {
            let lives = |slot: usize| living[slot];
            let Some(chain) = Chain::new(&lines, DType::Float32, vectors, &lives) else {
                prop_assert!(lines.iter().all(|line| matches!(line.output, Part::Slot(slot) if !living[slot])));
                continue;
            };
            let mut memory = memory();
            let starts: BTreeMap<Part, *mut u8> =
                memory.iter_mut().map(|(part, values)| (*part, values.as_mut_ptr().cast())).collect();
            // SAFETY: each part has this many elements, and only this test has them.
            let done = unsafe { chain.run(|part| starts[&part], COUNT) };
            // What is left of a round, and where that is short the round before, may be left to the loops.
            prop_assert!(done == COUNT || done % ROUND == 0 && COUNT - done < ROUND + SHORT);
            for number in 0..ARRAYS + SLOTS {
                let part = part(number);
                if !matches!(part, Part::Slot(slot) if !living[slot]) {
                    prop_assert_eq!(bits(&memory[&part], done), bits(&expected[&part], done), "{:?} {:?}", vectors, part);
                }
            }
        }
    }
}

fn line(function: Function, inputs: &[Input], output: Part) -> Line {
    Line { exact: Exact { function, swapped: [false; 3] }, inputs: inputs.into(), output }
}

fn number(value: f32) -> Input {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&value.to_ne_bytes());
    Input::Number(bytes)
}

#[test]
fn a_value_that_the_next_op_takes_is_not_stored() {
    let (x, y, to) = (Input::At(Part::Array(0)), Input::At(Part::Array(1)), Part::Slot(0));
    let mut lines = vec![line(Function::Copy, &[y], to)];
    for power in 0..20_u8 {
        lines.push(line(Function::Multiply, &[Input::At(to), x], to));
        lines.push(line(Function::Add, &[Input::At(to), number(f32::from(power))], to));
    }
    lines.push(line(Function::Copy, &[Input::At(to)], Part::Array(2)));
    let chain = Chain::new(&lines, DType::Float32, Vectors::Plain, &|_| false).unwrap();
    assert!(chain.instructions() <= lines.len() + 3, "{} instructions for {} loops", chain.instructions(), lines.len());
}

#[test]
fn two_values_are_in_registers_at_a_time() {
    let [x, y] = [0, 1].map(|at| Input::At(Part::Array(at)));
    let [t, u] = [0, 1].map(Part::Slot);
    let mut lines = Vec::new();
    for _ in 0..10 {
        lines.push(line(Function::Multiply, &[x, y], t));
        lines.push(line(Function::Add, &[x, y], u));
        lines.push(line(Function::Subtract, &[Input::At(t), Input::At(u)], Part::Array(0)));
    }
    let chain = Chain::new(&lines, DType::Float64, Vectors::Plain, &|_| false).unwrap();
    // The first round loads twice, the second operand is copied, the result is stored once.
    assert_eq!(chain.instructions(), 30 + 2 + 2 + 1);
}
