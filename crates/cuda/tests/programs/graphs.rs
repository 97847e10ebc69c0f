//! Random programs of which parts are issued together, as graphs from the second time on, between other ops, against what they
//! would do serially.

use crate::config;
use crate::machine::bundles::issue_all;
use crate::machine::{Array, Machine};
use crate::watchdog::Watchdog;
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use weft_cuda::simulated::Settings;
use weft_cuda::{Bundle, CopyWithin, Label, Member, Region};
use weft_engine::{Cause, OpContext};

const WORDS: usize = 16;
const ARRAYS: usize = 5;

#[derive(Debug, Clone, Copy)]
enum Step {
    Axpy { out: usize, x: usize, factor: u64 },
    Scale { out: usize, x: usize, factor: u64 },
    Copy { out: usize, from: usize, part: usize },
}

fn step(word: u64) -> Step {
    let part = |shift: u32, of: usize| usize::try_from(word >> shift & 0xff).expect("a byte") % of;
    let (out, x, factor) = (part(8, ARRAYS), part(16, ARRAYS), word >> 40);
    match part(0, 8) {
        0..=2 => Step::Axpy { out, x, factor },
        3 | 4 if x != out => Step::Scale { out, x, factor },
        _ if x != out => Step::Copy { out, from: x, part: part(24, 3) },
        _ => Step::Axpy { out, x, factor },
    }
}

/// Words of an array: the first half, the second, or all.
fn words(part: usize) -> Range<usize> {
    [0..WORDS / 2, WORDS / 2..WORDS, 0..WORDS][part].clone()
}

fn region(array: &Array, part: usize) -> Region {
    let words = words(part);
    Region::new(&array.buffer, words.start * 8, words.len() * 8).expect("it is within")
}

fn model(arrays: &mut [Vec<u64>], step: Step) {
    match step {
        Step::Axpy { out, x, factor } => {
            let x = arrays[x].clone();
            arrays[out].iter_mut().zip(x).for_each(|(out, x)| *out = x.wrapping_mul(factor).wrapping_add(*out));
        }
        Step::Scale { out, x, factor } => {
            arrays[out] = arrays[x].iter().map(|x| x.wrapping_mul(factor)).collect();
        }
        Step::Copy { out, from, part } => {
            let from = arrays[from][words(part)].to_vec();
            arrays[out][words(part)].copy_from_slice(&from);
        }
    }
}

fn member(machine: &Machine, arrays: &[Array], step: Step) -> Member {
    match step {
        Step::Axpy { out, x, factor } => Member::Launch(machine.prepared("axpy", &arrays[out], &arrays[x], factor)),
        Step::Scale { out, x, factor } => Member::Launch(machine.prepared("scale", &arrays[out], &arrays[x], factor)),
        Step::Copy { out, from, part } => {
            let (to, from) = (region(&arrays[out], part), region(&arrays[from], part));
            Member::Copy(CopyWithin::new(Label::from("copy"), to, from).expect("as large"))
        }
    }
}

fn issue(machine: &Machine, bundle: &Arc<Bundle>, arrays: &[Array], steps: &[Step]) {
    let members: Vec<_> = steps.iter().map(|step| member(machine, arrays, *step)).collect();
    let bundle = Arc::clone(bundle);
    let issue = move |_: &mut OpContext<'_>| issue_all(&bundle, &members).map_err(Cause::from);
    let op = machine.engine.op_of(machine.device(0).issuing(issue)).name("bundle");
    arrays.iter().fold(op, |op, array| op.mutate(&array.variable)).push().expect("an open engine");
}

/// Issues the parts in this order, with an op of its own between two.
fn check(seed: u64, dependencies: bool, parts: &[Vec<u64>], order: &[u64]) {
    let machine = Machine::new(Settings { seed, dependencies, ..Settings::default() }, 2);
    let arrays: Vec<_> = (0..ARRAYS).map(|_| machine.array(0, WORDS)).collect();
    let mut known: Vec<Vec<u64>> = Vec::new();
    for (array, value) in arrays.iter().zip(3_u32..) {
        machine.fill(array, value);
        known.push(vec![u64::from(value) << 32 | u64::from(value); WORDS]);
    }
    let parts: Vec<Vec<Step>> = parts.iter().map(|words| words.iter().copied().map(step).collect()).collect();
    let bundles: Vec<_> =
        parts.iter().map(|_| Arc::new(Bundle::new(&machine.device(0), Label::from("part")))).collect();
    for word in order {
        let at = usize::try_from(word & 0xff).expect("a byte") % parts.len();
        issue(&machine, &bundles[at], &arrays, &parts[at]);
        parts[at].iter().for_each(|step| model(&mut known, *step));
        let (out, x) = ((word >> 8) as usize % ARRAYS, (word >> 16) as usize % ARRAYS);
        machine.launch("axpy", &arrays[out], &arrays[x], word >> 24);
        model(&mut known, Step::Axpy { out, x, factor: word >> 24 });
    }
    drop(bundles);
    let found: Vec<_> = arrays.iter().map(|array| machine.value(array)).collect();
    assert_eq!(found, known);
    machine.check();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn issued_together(
        seed: u64,
        dependencies: bool,
        parts in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..24), 1..3),
        order in prop::collection::vec(any::<u64>(), 1..12),
    ) {
        let _watchdog = Watchdog::new("issued together");
        check(seed, dependencies, &parts, &order);
    }
}
