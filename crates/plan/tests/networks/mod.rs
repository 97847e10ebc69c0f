//! Random networks, and how many.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;
use weft_plan::{Network, Op, Pair, Share, Value};

/// So many cases, from a fixed seed; `PROPTEST_CASES` of them where that is set.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..default }
}

/// A linear congruential generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

/// A network of so many ops: in-place pairs, identities, mutations, workspaces, results, arguments, values of no size.
pub(crate) fn network(seed: u64, ops: usize) -> Network {
    let mut random = Random(seed);
    let mut network = Network::default();
    for _ in 0..=random.below(3) {
        let external = random.below(2) == 0;
        network.value(Value { size: random.below(40) as u64, external, kept: false });
    }
    // Values that were mutated are read no more.
    let mut readable: Vec<usize> = (0..network.values.len()).collect();
    for index in 0..ops {
        let inputs: Vec<usize> = (0..random.below(3)).map(|_| readable[random.below(readable.len())]).collect();
        let mut op = Op {
            name: format!("op_{index}"),
            inputs,
            cost: random.below(9) as u64,
            again: index < ops / 2 && random.below(4) > 0,
            ..Op::default()
        };
        if index > 0 && random.below(8) == 0 {
            op.after.push(random.below(index));
        }
        if random.below(4) == 0 {
            op.workspace = random.below(30) as u64;
        }
        for output in 0..random.below(3) {
            let mut value = Value { size: random.below(40) as u64, external: false, kept: random.below(9) == 0 };
            if !op.inputs.is_empty() && random.below(2) == 0 {
                let input = random.below(op.inputs.len());
                let of = network.values[op.inputs[input]].clone();
                let share = [Share::InPlace, Share::Identity, Share::Mutation][random.below(3)];
                let taken = op.pairs.iter().any(|pair| op.inputs[pair.input] == op.inputs[input]);
                let read_twice = op.inputs.iter().filter(|&&value| value == op.inputs[input]).count() > 1;
                if share != Share::Mutation || (!taken && !read_twice && readable.contains(&op.inputs[input])) {
                    value.size = of.size;
                    value.external = share == Share::Mutation && of.external;
                    op.pairs.push(Pair { input, output, share });
                    if share == Share::Mutation {
                        network.values[op.inputs[input]].kept = false;
                        readable.retain(|&value| value != op.inputs[input]);
                    }
                }
            }
            op.outputs.push(network.value(value));
        }
        readable.extend(&op.outputs);
        if readable.is_empty() {
            readable.push(network.value(Value { size: 8, ..Value::default() }));
        }
        network.op(op);
    }
    network
}
