//! Random programs on arrays, large and small, against what the serial policy makes of them.

#![allow(clippy::cast_ptr_alignment)] // buffers are aligned; views of 4-byte elements start at multiples of 4

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::time::Duration;
use weft_array::{
    Array, Buffer, DType, Layout, Operand, Ownership, Scalar, StridedLoop, copy_loop, push_elementwise, push_reduce,
};
use weft_engine::{Engine, Policy, PushOptions, Settings, Wait};

/// `out = a * 3 + b`, wrapping, so that the order of everything shows.
unsafe extern "C" fn mix(args: *mut *mut c_char, count: *const isize, steps: *const isize, _: *mut c_void) {
    // SAFETY: three operands of one axis, as for all loops.
    unsafe {
        let at = |operand: usize, index: isize| {
            (*args.add(operand)).wrapping_offset(*steps.add(operand) * index).cast::<u32>()
        };
        for index in 0..*count {
            let value = at(0, index).read_unaligned().wrapping_mul(3).wrapping_add(at(1, index).read_unaligned());
            at(2, index).write_unaligned(value);
        }
    }
}

fn mixing() -> StridedLoop {
    // SAFETY: it touches nothing but its operands.
    unsafe { StridedLoop::new(mix, std::ptr::null_mut(), &[DType::UInt32; 2], &[DType::UInt32]) }
        .expect("three operands")
}

/// One step: what to do, and numbers to choose arrays and ranges with.
type Step = (u8, u8, u8, u8, u16, u16);

const ARRAYS: usize = 5;

struct World {
    engine: Engine,
    arrays: Vec<Array>,
    length: usize,
}

impl World {
    fn new(policy: Policy, workers: usize, length: usize) -> Self {
        let settings = Settings { policy, workers: Some(workers), ..Settings::default() };
        let engine = Engine::new(settings).expect("valid settings");
        let fresh = |number: u8| {
            if number % 2 == 1 {
                return Self::filled_by_someone_else(&engine, length, number);
            }
            let array = Array::empty(&engine, &[length], DType::UInt32).expect("a small array");
            let filler = Operand::Scalar(Scalar::Int(number.into()), DType::UInt32);
            push_elementwise(copy_loop(DType::UInt32), &[&array], &[filler], PushOptions::default()).expect("it fits");
            array
        };
        let arrays = (0..).take(ARRAYS).map(fresh).collect();
        Self { engine, arrays, length }
    }

    /// An array on memory whose values no op has made.
    fn filled_by_someone_else(engine: &Engine, length: usize, number: u8) -> Array {
        let mut values = vec![u32::from(number); length]; // a box would claim its bytes for itself where it is moved
        let start = NonNull::new(values.as_mut_ptr().cast()).expect("an allocation");
        // SAFETY: the keeper owns the bytes, and nobody else reaches them.
        let buffer = unsafe { Buffer::foreign(engine, start, length * 4, false, Ownership::Owned, Box::new(values)) };
        Array::on(buffer, Layout::contiguous(&[length], 4).expect("small"), DType::UInt32).expect("all of it")
    }

    /// A slice of `length` elements from `start`, backwards or not.
    fn slice(array: &Array, start: usize, length: usize, backwards: bool) -> Array {
        let (offset, stride) = if backwards { (start + length - 1, -4) } else { (start, 4) };
        let layout = Layout {
            shape: [length].as_slice().into(),
            strides: [stride].as_slice().into(),
            offset: array.layout().offset + offset * 4,
        };
        Array::on(array.buffer().clone(), layout, DType::UInt32).expect("inside")
    }

    fn step(&mut self, (what, target, left, right, start, length): Step) {
        let choose = |number: u8| number as usize % ARRAYS;
        let (target, left, right) = (choose(target), choose(left), choose(right));
        let options = PushOptions::default;
        match what % 8 {
            // A new array in the place of the old one, whose handle goes.
            0..=2 => {
                let output = Array::empty(&self.engine, &[self.length], DType::UInt32).expect("a small array");
                let inputs = [Operand::Array(&self.arrays[left]), Operand::Array(&self.arrays[right])];
                push_elementwise(mixing(), &[&output], &inputs, options()).expect("they fit");
                self.arrays[target] = output;
            }
            // In place.
            3 => {
                let inputs = [Operand::Array(&self.arrays[target]), Operand::Array(&self.arrays[right])];
                push_elementwise(mixing(), &[&self.arrays[target]], &inputs, options()).expect("they fit");
            }
            4 => {
                let inputs = [Operand::Array(&self.arrays[left]), Operand::Scalar(Scalar::Int(7), DType::UInt32)];
                push_elementwise(mixing(), &[&self.arrays[target]], &inputs, options()).expect("they fit");
            }
            // Parts, which may overlap.
            5 | 6 => {
                let length = 1 + usize::from(length) % self.length;
                let start = usize::from(start) % (self.length - length + 1);
                let other = (start * 7 + 3) % (self.length - length + 1);
                let output = Self::slice(&self.arrays[target], start, length, false);
                let one = Self::slice(&self.arrays[left], other, length, what % 2 == 1);
                let two = Self::slice(&self.arrays[right], start, length, false);
                push_elementwise(mixing(), &[&output], &[Operand::Array(&one), Operand::Array(&two)], options())
                    .expect("they fit");
            }
            // The sum, written to one element.
            _ => {
                if target != left {
                    let output = Self::slice(&self.arrays[target], usize::from(start) % self.length, 1, false);
                    push_reduce(mixing(), None, &output, &self.arrays[left], &[0], options()).expect("they fit");
                }
            }
        }
    }

    fn values(&self) -> Vec<Vec<u32>> {
        self.arrays
            .iter()
            .map(|array| {
                let mut wait = Wait { timeout: Some(Duration::from_secs(200)), ..Wait::default() };
                array.wait_to_read(&mut wait).expect("no op fails");
                let start = array.buffer().start().expect("it is there").cast::<u32>();
                // SAFETY: the array is contiguous, filled, and nobody writes to it.
                unsafe { std::slice::from_raw_parts(start, self.length) }.to_vec()
            })
            .collect()
    }
}

/// Miri, under which they take ten thousand times as long, looks at the first ones.
fn check(cases: u32, lengths: std::ops::Range<usize>, steps: usize) {
    let cases = if cfg!(miri) { 1 } else { cases };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let programs = (lengths, vec(any::<Step>(), 0..steps));
    TestRunner::new_with_rng(config, rng)
        .run(&programs, |(length, steps)| {
            let run = |policy, workers| {
                let mut world = World::new(policy, workers, length);
                steps.iter().for_each(|step| world.step(*step));
                world.values()
            };
            let expected = run(Policy::Serial, 1);
            for workers in [1, 2, 4] {
                prop_assert_eq!(&run(Policy::WorkStealing, workers), &expected, "{} workers", workers);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn small_arrays() {
    check(120, 1..50, 200);
}

/// Large enough to be run block by block, with followers and helpers.
#[test]
#[cfg_attr(miri, ignore)] // minutes for each array
fn large_arrays() {
    check(40, 65_000..200_000, 40);
}

#[test]
#[cfg_attr(miri, ignore)] // as above
fn followers_share_memory_with_nobody_else() {
    // The sum of what was there before is wanted after its handle is gone.
    let mut world = World::new(Policy::WorkStealing, 2, 100_000);
    for round in 0..200 {
        let steps: [Step; 4] = [(0, 0, 1, 2, 0, 0), (0, 3, 0, 0, 0, 0), (3, 0, 0, 3, 0, 0), (0, 1, 0, 3, 0, 0)];
        steps.iter().for_each(|step| world.step(*step));
        if round % 50 == 49 {
            assert_eq!(world.values().len(), ARRAYS);
        }
    }
    let mut serial = World::new(Policy::Serial, 1, 100_000);
    for _ in 0..200 {
        let steps: [Step; 4] = [(0, 0, 1, 2, 0, 0), (0, 3, 0, 0, 0, 0), (3, 0, 0, 3, 0, 0), (0, 1, 0, 3, 0, 0)];
        steps.iter().for_each(|step| serial.step(*step));
    }
    assert_eq!(world.values(), serial.values());
}
