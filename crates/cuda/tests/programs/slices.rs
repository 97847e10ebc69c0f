//! Random programs over slices: disjoint, overlapping, nested, and of whole arrays.

use crate::machine::{Host, Machine, Slice, Sliced};
use crate::watchdog::Watchdog;
use proptest::prelude::*;
use std::ops::Range;
use weft_cuda::simulated::Settings;

const ARRAYS: usize = 3;
const WORDS: usize = 96;
/// Blocks with a variable of their own: slices in different blocks are not ordered by the engine.
const BLOCKS: usize = 12;
const BLOCK: usize = WORDS / BLOCKS;

/// Where a slice begins and how long it is; cut to what there is.
type Place = (usize, usize);

#[derive(Debug, Clone)]
enum Step {
    Axpy { out: Place, x: Place, arrays: (usize, usize), factor: u64 },
    Scale { out: Place, x: Place, arrays: (usize, usize), factor: u64 },
    Fill { to: Place, array: usize, value: u32 },
    Copy { to: Place, from: Place, arrays: (usize, usize) },
    CopyIn { to: Place, array: usize, value: u64 },
    CopyOut { from: Place, array: usize },
    Replace { array: usize, value: u32 },
}

fn place() -> impl Strategy<Value = Place> {
    let block = (0..BLOCKS).prop_map(|block| (block * BLOCK, BLOCK));
    prop_oneof![6 => block, 3 => (0..WORDS, 1..3 * BLOCK), 1 => Just((0, WORDS))]
}

fn step() -> impl Strategy<Value = Step> {
    let arrays = || (0..ARRAYS, 0..ARRAYS);
    prop_oneof![
        4 => (place(), place(), arrays(), any::<u64>()).prop_map(|(out, x, arrays, factor)| Step::Axpy { out, x, arrays, factor }),
        2 => (place(), place(), arrays(), any::<u64>()).prop_map(|(out, x, arrays, factor)| Step::Scale { out, x, arrays, factor }),
        2 => (place(), 0..ARRAYS, any::<u32>()).prop_map(|(to, array, value)| Step::Fill { to, array, value }),
        2 => (place(), place(), arrays()).prop_map(|(to, from, arrays)| Step::Copy { to, from, arrays }),
        3 => (place(), 0..ARRAYS, any::<u64>()).prop_map(|(to, array, value)| Step::CopyIn { to, array, value }),
        3 => (place(), 0..ARRAYS).prop_map(|(from, array)| Step::CopyOut { from, array }),
        1 => (0..ARRAYS, any::<u32>()).prop_map(|(array, value)| Step::Replace { array, value }),
    ]
}

fn range((start, length): Place) -> Range<usize> {
    start..WORDS.min(start + length)
}

/// The same number of words at both places.
fn ranges(one: Place, other: Place) -> (Range<usize>, Range<usize>) {
    let (one, other) = (range(one), range(other));
    let length = one.len().min(other.len());
    (one.start..one.start + length, other.start..other.start + length)
}

fn double(value: u32) -> u64 {
    u64::from(value) << 32 | u64::from(value)
}

/// Which device an array is on: all but the last are on the first one.
fn device_of(devices: usize, array: usize) -> usize {
    if array + 1 == ARRAYS { devices - 1 } else { 0 }
}

struct Run<'m> {
    machine: &'m Machine,
    devices: usize,
    arrays: Vec<Sliced>,
    model: Vec<Vec<u64>>,
    copies: Vec<(Host, Vec<u64>)>,
}

impl Run<'_> {
    /// An array whose blocks are filled one by one, the last ones first.
    fn fresh(&self, array: usize, value: u32) -> Sliced {
        let fresh = self.machine.sliced(device_of(self.devices, array), WORDS, BLOCKS);
        for block in (0..BLOCKS).rev() {
            self.machine.fill_slice(&fresh.slice(block * BLOCK..(block + 1) * BLOCK), value);
        }
        fresh
    }

    fn slice(&self, array: usize, range: &Range<usize>) -> Slice {
        self.arrays[array].slice(range.clone())
    }

    fn step(&mut self, step: &Step) {
        let machine = self.machine;
        match *step {
            Step::Axpy { out, x, arrays: (to, from), factor } | Step::Scale { out, x, arrays: (to, from), factor } => {
                let ((out, x), adds) = (ranges(out, x), matches!(step, Step::Axpy { .. }));
                if device_of(self.devices, to) != device_of(self.devices, from) {
                    return;
                }
                let kernel = if adds { "axpy" } else { "scale" };
                machine.launch_slice(kernel, &self.slice(to, &out), &self.slice(from, &x), factor);
                let x = self.model[from][x].to_vec();
                for (out, x) in self.model[to][out].iter_mut().zip(x) {
                    *out = x.wrapping_mul(factor).wrapping_add(if adds { *out } else { 0 });
                }
            }
            Step::Fill { to, array, value } => {
                machine.fill_slice(&self.slice(array, &range(to)), value);
                self.model[array][range(to)].fill(double(value));
            }
            Step::Copy { to, from, arrays: (target, source) } => {
                let (to, from) = ranges(to, from);
                if target == source && to.start < from.end && from.start < to.end {
                    return; // a copy between overlapping places is none
                }
                machine.copy_slice(&self.slice(target, &to), &self.slice(source, &from));
                let words = self.model[source][from].to_vec();
                self.model[target][to].copy_from_slice(&words);
            }
            Step::CopyIn { to, array, value } => {
                let words: Vec<_> = (0..range(to).len() as u64).map(|word| word.wrapping_add(value)).collect();
                machine.copy_in_slice(&self.slice(array, &range(to)), words.clone());
                self.model[array][range(to)].copy_from_slice(&words);
            }
            Step::CopyOut { from, array } => {
                let copied = machine.copy_out_slice(&self.slice(array, &range(from)));
                self.copies.push((copied, self.model[array][range(from)].to_vec()));
            }
            Step::Replace { array, value } => {
                self.arrays[array] = self.fresh(array, value);
                self.model[array].fill(double(value));
            }
        }
    }
}

fn check(devices: usize, workers: usize, seed: u64, steps: &[Step]) {
    let machine = Machine::new(Settings { devices, seed, ..Settings::default() }, workers);
    let mut run = Run { machine: &machine, devices, arrays: Vec::new(), model: Vec::new(), copies: Vec::new() };
    for array in 0..ARRAYS {
        let fresh = run.fresh(array, 1);
        run.arrays.push(fresh);
        run.model.push(vec![double(1); WORDS]);
    }
    steps.iter().for_each(|step| run.step(step));
    for array in 0..ARRAYS {
        let copied = machine.copy_out_slice(&run.arrays[array].whole());
        run.copies.push((copied, run.model[array].clone()));
    }
    for (found, wanted) in &run.copies {
        assert_eq!(machine.read(found), *wanted);
    }
    drop(run);
    machine.engine.wait_for_all().expect("no op fails");
    machine.driver.run_until_idle();
    machine.check();
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn slices(devices in 1..3_usize, workers in 0..4_usize, seed: u64, steps in prop::collection::vec(step(), 1..150)) {
        let _watchdog = Watchdog::new("slices");
        check(devices, workers, seed, &steps);
    }
}
