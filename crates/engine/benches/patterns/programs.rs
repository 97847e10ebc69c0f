//! The five patterns; `benches/peers/patterns.hpp` has the same.

use crate::program::{Op, Program};

const SEED: u64 = 0x7765_6674; // "weft"
const INDEPENDENT_VARIABLES: usize = 1024;
const RANDOM_VARIABLES: u64 = 256;
const FAN_READERS: usize = 64;
const STENCIL_WIDTH: usize = 64;

/// splitmix64 (Steele, Lea, Flood 2014), written out so that every implementation draws the same numbers.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn variable(&mut self) -> usize {
        usize::try_from(self.next() % RANDOM_VARIABLES).expect("a small number")
    }
}

fn mutation(variable: usize) -> Op {
    Op { mutates: Some(variable), ..Op::default() }
}

fn fan(id: usize) -> Op {
    match id % (FAN_READERS + 2) {
        0 | 65 => mutation(0),
        _ => Op { read_count: 1, ..Op::default() },
    }
}

fn random(numbers: &mut SplitMix64) -> Op {
    let first = numbers.variable();
    let second = std::iter::repeat_with(|| numbers.variable()).find(|&it| it != first).expect("endless");
    let mut others = std::iter::repeat_with(|| numbers.variable());
    let target = others.find(|&it| it != first && it != second);
    Op { reads: [first, second, 0], read_count: 2, mutates: target }
}

/// Clipped at both ends: the outermost ops of a row read two variables.
fn stencil(id: usize) -> Op {
    let (row, column) = (id / STENCIL_WIDTH, id % STENCIL_WIDTH);
    let before = (row + 1) % 2 * STENCIL_WIDTH;
    let mut op = mutation(row % 2 * STENCIL_WIDTH + column);
    for neighbour in column.saturating_sub(1)..=(column + 1).min(STENCIL_WIDTH - 1) {
        op.reads[op.read_count] = before + neighbour;
        op.read_count += 1;
    }
    op
}

impl Program {
    pub(crate) fn new(pattern: &str, ops: usize) -> Self {
        let mut numbers = SplitMix64(SEED);
        let (variables, ops) = match pattern {
            "chain" => (1, (0..ops).map(|_| mutation(0)).collect()),
            "independent" => (INDEPENDENT_VARIABLES, (0..ops).map(|id| mutation(id % INDEPENDENT_VARIABLES)).collect()),
            "fan" => (1, (0..ops).map(fan).collect()),
            "random" => (256, (0..ops).map(|_| random(&mut numbers)).collect()),
            "stencil" => (2 * STENCIL_WIDTH, (0..ops).map(stencil).collect()),
            other => panic!("unknown pattern: {other}"),
        };
        Self { variables, ops }
    }
}
