//! Random programs of which parts are captured, and replayed between other ops, against what they would do serially.

use crate::config;
use crate::machine::{Array, Machine};
use crate::watchdog::Watchdog;
use proptest::prelude::*;
use std::ops::Range;
use weft_cuda::driver::Pattern;
use weft_cuda::simulated::Settings;
use weft_cuda::{Graph, Label, Recorder, Region};
use weft_engine::AccessKind;

const WORDS: usize = 16;
const ARRAYS: usize = 5;

#[derive(Debug, Clone, Copy)]
enum Step {
    Axpy {
        out: usize,
        x: usize,
        factor: u64,
    },
    Scale {
        out: usize,
        x: usize,
        factor: u64,
    },
    /// Fills a half, or all, with a word.
    Fill {
        out: usize,
        part: usize,
        value: u32,
    },
    Copy {
        out: usize,
        from: usize,
        part: usize,
    },
}

fn step(word: u64) -> Step {
    let part = |shift: u32, of: usize| usize::try_from(word >> shift & 0xff).expect("a byte") % of;
    let (out, x, factor) = (part(8, ARRAYS), part(16, ARRAYS), word >> 40);
    match part(0, 8) {
        0..=2 => Step::Axpy { out, x, factor },
        3 | 4 if x != out => Step::Scale { out, x, factor },
        3..=5 => Step::Fill { out, part: part(24, 3), value: u32::try_from(word >> 48).expect("16 bits") },
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
        Step::Fill { out, part, value } => {
            arrays[out][words(part)].fill(u64::from(value) << 32 | u64::from(value));
        }
        Step::Copy { out, from, part } => {
            let from = arrays[from][words(part)].to_vec();
            arrays[out][words(part)].copy_from_slice(&from);
        }
    }
}

fn record(machine: &Machine, recorder: &mut Recorder, arrays: &[Array], step: Step) {
    let label = Label::from("step");
    let outcome = match step {
        Step::Axpy { out, x, factor } => recorder.launch(&machine.prepared("axpy", &arrays[out], &arrays[x], factor)),
        Step::Scale { out, x, factor } => recorder.launch(&machine.prepared("scale", &arrays[out], &arrays[x], factor)),
        Step::Fill { out, part, value } => recorder.fill(&label, &region(&arrays[out], part), Pattern::Word(value)),
        Step::Copy { out, from, part } => {
            recorder.copy(&label, &region(&arrays[out], part), &region(&arrays[from], part))
        }
    };
    outcome.expect("it is recorded");
}

fn replay(machine: &Machine, graph: &Graph, arrays: &[Array]) {
    let mut op = machine.engine.op(graph.clone()).name("replay");
    for access in graph.accesses() {
        if let Some(array) = arrays.iter().find(|array| std::sync::Arc::ptr_eq(&array.buffer, &access.buffer)) {
            let reads = access.kind == AccessKind::Read;
            op = if reads { op.read(&array.variable) } else { op.mutate(&array.variable) };
        }
    }
    op.push().expect("an open engine");
}

/// Captures each of the parts; then replays them in this order, with an op of its own between two.
fn check(seed: u64, dependencies: bool, parts: &[Vec<u64>], order: &[u64]) {
    let machine = Machine::new(Settings { seed, dependencies, ..Settings::default() }, 2);
    let arrays: Vec<_> = (0..ARRAYS).map(|_| machine.array(0, WORDS)).collect();
    let mut known: Vec<Vec<u64>> = Vec::new();
    for (array, value) in arrays.iter().zip(3_u32..) {
        machine.fill(array, value);
        known.push(vec![u64::from(value) << 32 | u64::from(value); WORDS]);
    }
    let parts: Vec<Vec<Step>> = parts.iter().map(|words| words.iter().copied().map(step).collect()).collect();
    let mut graphs = Vec::new();
    for steps in &parts {
        let mut recorder = machine.device(0).record(&Label::from("part")).expect("a recorder");
        steps.iter().for_each(|step| record(&machine, &mut recorder, &arrays, *step));
        graphs.push(recorder.finish(|_| false, Box::new(())).expect("a graph"));
    }
    for word in order {
        let at = usize::try_from(word & 0xff).expect("a byte") % parts.len();
        replay(&machine, &graphs[at], &arrays);
        parts[at].iter().for_each(|step| model(&mut known, *step));
        let (out, x) = ((word >> 8) as usize % ARRAYS, (word >> 16) as usize % ARRAYS);
        machine.launch("axpy", &arrays[out], &arrays[x], word >> 24);
        model(&mut known, Step::Axpy { out, x, factor: word >> 24 });
    }
    drop(graphs);
    let found: Vec<_> = arrays.iter().map(|array| machine.value(array)).collect();
    assert_eq!(found, known);
    machine.check();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn captured_and_replayed(
        seed: u64,
        dependencies: bool,
        parts in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..24), 1..4),
        order in prop::collection::vec(any::<u64>(), 1..8),
    ) {
        let _watchdog = Watchdog::new("captured and replayed");
        check(seed, dependencies, &parts, &order);
    }
}
