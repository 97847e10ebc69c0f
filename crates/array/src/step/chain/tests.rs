//! Random chains against their loops, run one after the other; the same bits on all kinds of vectors.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const COUNT: usize = if cfg!(miri) { 300 } else { 999 };
const ARRAYS: usize = 4;
const SLOTS: usize = 3;
/// Of this array the first element is read alone.
const ONE: Part = Part::Array(ARRAYS);

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
    let input = (0..ARRAYS + SLOTS + 3, -4_i8..5).prop_map(|(number, value)| {
        if number < ARRAYS + SLOTS {
            return Input::At(part(number));
        }
        if number == ARRAYS + SLOTS {
            return Input::One(ONE);
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
    let parts = (0..ARRAYS + SLOTS).map(part).chain([ONE]).enumerate();
    let numbers = |number| (0..COUNT).map(|at| values[(at * (number + 1) + number) % values.len()]).collect();
    parts.map(|(number, part)| (part, numbers(number))).collect()
}

/// The memory after the loops, run one after the other.
fn looped(lines: &[Line]) -> Memory {
    let mut memory = memory();
    for line in lines {
        let read = |input: &Input, at: usize| match input {
            Input::At(part) => memory[part][at],
            Input::One(part) => memory[part][0],
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
        for (vectors, coded) in Vectors::all().flat_map(|vectors| [(vectors, false), (vectors, true)]) {
            let lives = |slot: usize| living[slot];
            let Some(chain) = Chain::new(&lines, DType::Float32, vectors, &lives) else {
                prop_assert!(lines.iter().all(|line| matches!(line.output, Part::Slot(slot) if !living[slot])));
                continue;
            };
            let chain = if coded { chain.with_code(vectors) } else { chain };
            let mut memory = memory();
            let starts: BTreeMap<Part, *mut u8> =
                memory.iter_mut().map(|(part, values)| (*part, values.as_mut_ptr().cast())).collect();
            // SAFETY: each part has this many elements, and only this test has them.
            let done = unsafe { chain.run(|part, _| starts[&part], COUNT) };
            // What is left of a round, and where that is short the round before, may be left to the loops.
            prop_assert!(done == COUNT || done % ROUND == 0 && COUNT - done < ROUND + SHORT);
            for number in 0..ARRAYS + SLOTS {
                let part = part(number);
                if !matches!(part, Part::Slot(slot) if !living[slot]) {
                    prop_assert_eq!(bits(&memory[&part], done), bits(&expected[&part], done), "{:?} {:?} {:?}", vectors, coded, part);
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

/// By the bits alone: as a number a NaN may change on its way through a register.
#[test]
fn of_two_nans_the_first_one_is_the_result_of_all_elements() {
    const COUNT: usize = 2 * ROUND;
    let (first, second) = (0x7fc0_0001_u32, 0xffc0_0002);
    let [x, y] = [0, 1].map(|at| Input::At(Part::Array(at)));
    let (t, z) = (Part::Slot(0), Part::Array(2));
    for function in [Function::Add, Function::Subtract, Function::Multiply, Function::Divide] {
        // From memory on the left, from memory on the right, both in registers.
        for inputs in [[Input::At(t), x], [y, Input::At(t)], [Input::At(t), Input::At(t)]] {
            let lines = [line(Function::Copy, &[if inputs[0] == y { x } else { y }], t), line(function, &inputs, z)];
            for vectors in Vectors::all().filter(|vectors| *vectors != Vectors::Plain) {
                let chain = Chain::new(&lines, DType::Float32, vectors, &|_| false).unwrap().with_code(vectors);
                let mut arrays = [[first; COUNT], [second; COUNT], [0; COUNT]];
                let starts = arrays.each_mut().map(|array| array.as_mut_ptr().cast::<u8>());
                let start =
                    |part, _| if let Part::Array(at) = part { starts[at] } else { unreachable!("it is in a register") };
                // SAFETY: each array has this many elements.
                let done = unsafe { chain.run(start, COUNT) };
                assert_eq!(done, COUNT);
                assert!(arrays[2].iter().all(|bits| *bits == second), "{vectors:?} {function:?} {inputs:?}");
            }
        }
    }
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

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod native_code {
    //! Each instruction as a machine runs it and as code, on the same numbers: all bits are equal.

    use super::super::code::{Instruction, Meaning, Op, Place, STORE_A, STORE_B, code};
    use super::super::native::Native;
    use super::super::vectors::Vectors;
    use super::super::*;

    const TYPES: [DType; 6] =
        [DType::Float32, DType::Float64, DType::Int32, DType::UInt32, DType::Int64, DType::UInt64];
    const OF_ONE: [Op; 5] = [Op::Copy, Op::Negative, Op::Absolute, Op::Sqrt, Op::Not];
    /// Elements of an operand.
    const COUNT: usize = 2 * ROUND;

    /// Bytes of all kinds: each third number has the exponent of a NaN or of an infinity.
    fn operand(seed: usize, item: usize) -> Vec<Splat> {
        let bytes = (0..COUNT * item).map(|at| {
            let special = (at / item + seed).is_multiple_of(3);
            match item - at % item {
                1 if special => 0x7f | ((at + seed).to_le_bytes()[0] & 0x80),
                2 if special => 0xff_u8 << ((at / item) % 5),
                _ => ((at * 131 + seed * 71) ^ (at / 7)).to_le_bytes()[0],
            }
        });
        let bytes: Vec<u8> = bytes.collect();
        bytes.chunks(SPLAT).map(|chunk| Splat(chunk.try_into().unwrap())).collect()
    }

    fn run(program: &[Instruction], dtype: DType, vectors: Vectors, in_code: bool) -> Option<Vec<Splat>> {
        let item = dtype.size();
        let mut operands: Vec<Vec<Splat>> = (0..7).map(|seed| operand(seed, item)).collect();
        let home = |at| Home { part: Part::Array(at), own: None, is_kept: false, is_read: true, is_written: true };
        let homes: Vec<Home> = (0..operands.len()).map(home).collect();
        let address = |operand: &mut Vec<Splat>| Address { start: operand.as_mut_ptr().cast(), mask: usize::MAX };
        let addresses: Addresses = operands.iter_mut().map(address).collect();
        let splats: Vec<Splat> = [2.5_f64.to_ne_bytes(), f64::NAN.to_ne_bytes(), (-0.0_f64).to_ne_bytes()]
            .iter()
            .map(|bytes| Splat::new(&[*bytes, *bytes].concat().try_into().unwrap(), item))
            .collect();
        if in_code {
            let native = Native::new(program, &homes, dtype, vectors)?;
            // SAFETY: the operands have as many elements; the processor has the vectors.
            unsafe { native.run(&addresses, splats.as_ptr().cast(), COUNT / native.tile()) };
        } else {
            let machine = vectors.machine(dtype)?;
            // SAFETY: as above.
            unsafe { (machine.run)(program, &addresses, splats.as_ptr().cast(), COUNT / machine.tile) };
        }
        Some(operands.into_iter().flatten().collect())
    }

    /// Loads both registers, runs one instruction, stores both. More operands than general registers are read before.
    fn around(one: Instruction) -> Vec<Instruction> {
        let copy =
            |to, address| Instruction { code: code(Op::Copy, to, Place::Memory, Place::Memory), address, splat: 0 };
        let store = |code, address| Instruction { code, address, splat: 0 };
        let mut program: Vec<Instruction> = [4, 5, 6, 3, 2].map(|address| copy(Place::B, address)).into();
        program.extend([copy(Place::A, 0), copy(Place::B, 1), one, one, store(STORE_A, 3), store(STORE_B, 4)]);
        program
    }

    #[test]
    #[cfg_attr(miri, ignore = "no machine code runs there")]
    fn each_instruction_gives_the_machines_bits() {
        let places = [Place::A, Place::B, Place::Memory, Place::Splat];
        let in_register = |place| matches!(place, Place::A | Place::B);
        let mut compared = 0;
        for (vectors, dtype) in Vectors::all().flat_map(|vectors| TYPES.map(|dtype| (vectors, dtype))) {
            for op in Op::ALL.into_iter().filter(|op| op.is_for(dtype)) {
                let pairs = places.iter().flat_map(|left| places.map(|right| (*left, right)));
                let meant = |(left, right): &(Place, Place)| {
                    if OF_ONE.contains(&op) { left == right } else { in_register(*left) || in_register(*right) }
                };
                for (left, right) in pairs.filter(meant) {
                    for to in [Place::A, Place::B] {
                        for splat in 0..3 {
                            let one = Instruction { code: code(op, to, left, right), address: 2, splat };
                            assert_eq!(one.meaning(), Meaning::Op { op, to, left, right });
                            let program = around(one);
                            let Some(found) = run(&program, dtype, vectors, true) else { continue };
                            let expected = run(&program, dtype, vectors, false).unwrap();
                            let first = found.iter().zip(&expected).position(|(one, other)| one != other);
                            let shown = first.map(|at| (at, found[at].0, expected[at].0));
                            assert!(
                                first.is_none(),
                                "{vectors:?} {dtype:?} {op:?} {to:?} {left:?} {right:?}: {shown:?}"
                            );
                            compared += 1;
                        }
                    }
                }
            }
        }
        let wide = Vectors::all().any(|vectors| vectors >= Vectors::Avx2);
        assert_eq!(compared > 0, wide, "{compared} instructions");
    }
}
