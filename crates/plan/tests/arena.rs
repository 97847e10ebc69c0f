//! Plans of random networks, run: whatever order the dependencies and the plan's edges leave open, each op reads what it should.

mod networks;

use networks::{Random, config, network};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_plan::{Memory, Network, Op, Options, Pair, Plan, PlanError, Settings, Share, Value, plan_network, recompute};

const MODES: [Memory; 3] = [Memory::Min, Memory::Balanced, Memory::Speed];

/// Ops that must be done before each op begins.
fn before(network: &Network, plan: &Plan) -> Vec<Vec<usize>> {
    let mut before: Vec<Vec<usize>> = network.ops.iter().map(|op| op.after.clone()).collect();
    for (index, op) in network.ops.iter().enumerate() {
        for (maker, other) in network.ops.iter().enumerate() {
            if other.outputs.iter().any(|value| op.inputs.contains(value)) {
                before[index].push(maker);
            }
            let mutated =
                op.pairs.iter().filter(|pair| pair.share == Share::Mutation).map(|pair| op.inputs[pair.input]);
            if maker != index && mutated.into_iter().any(|value| other.inputs.contains(&value)) {
                before[index].push(maker);
            }
        }
    }
    plan.edges.iter().for_each(|&(one, other)| before[other].push(one));
    before
}

/// Memory by byte, each byte by the content that was written to it.
struct Machine<'a> {
    network: &'a Network,
    plan: &'a Plan,
    bytes: BTreeMap<u64, usize>,
    /// What each value holds: an identity holds what its input does.
    content: Vec<usize>,
}

impl Machine<'_> {
    fn write(&mut self, offset: Option<u64>, size: u64, content: usize) {
        if let Some(offset) = offset {
            self.bytes.extend((offset..offset + size).map(|byte| (byte, content)));
        }
    }

    fn holds(&self, value: usize) -> bool {
        let size = self.network.values[value].size;
        let offset = self.plan.offsets[value];
        offset.is_none_or(|offset| {
            (offset..offset + size).all(|byte| self.bytes.get(&byte) == Some(&self.content[value]))
        })
    }

    fn shares(&self, op: &Op, place: usize) -> bool {
        op.outputs.iter().any(|&output| self.plan.storages[output] == self.plan.storages[op.inputs[place]])
    }

    fn begin(&mut self, op: &Op, index: usize) {
        assert!(op.inputs.iter().all(|&value| self.holds(value)), "{} reads what is gone", op.name);
        self.write(self.plan.workspaces[index], op.workspace, usize::MAX);
        for &output in op.outputs.iter().filter(|&&output| self.plan.taken[output].is_none()) {
            self.write(self.plan.offsets[output], self.network.values[output].size, usize::MAX - 1);
        }
    }

    fn end(&mut self, op: &Op, index: usize) {
        let read = (0..op.inputs.len()).filter(|&place| !self.shares(op, place));
        assert!(read.map(|place| op.inputs[place]).all(|value| self.holds(value)), "{} lost an input", op.name);
        let workspace = self.plan.workspaces[index];
        assert!(workspace.is_none_or(|at| (at..at + op.workspace).all(|byte| self.bytes[&byte] == usize::MAX)));
        for (place, &output) in op.outputs.iter().enumerate() {
            let identity = op.pairs.iter().find(|pair| pair.output == place && pair.share == Share::Identity);
            self.content[output] = identity.map_or(output, |pair| self.content[op.inputs[pair.input]]);
            self.write(self.plan.offsets[output], self.network.values[output].size, self.content[output]);
        }
    }
}

/// Runs a plan, ops overlapping where they may, in an order that the seed decides.
fn run(network: &Network, plan: &Plan, seed: u64) {
    let mut random = Random(seed);
    let before = before(network, plan);
    let count = network.ops.len();
    let mut machine = Machine { network, plan, bytes: BTreeMap::new(), content: (0..network.values.len()).collect() };
    let mut outside: Vec<usize> = (0..network.values.len()).collect();
    outside.retain(|value| !network.ops.iter().any(|op| op.outputs.contains(value)));
    for value in outside {
        machine.write(plan.offsets[value], network.values[value].size, value);
    }
    let (mut begun, mut done) = (vec![false; count], vec![false; count]);
    while done.contains(&false) {
        let can_begin = |op: usize| !begun[op] && before[op].iter().all(|&other| done[other]);
        let can: Vec<usize> = (0..count).filter(|&op| can_begin(op) || begun[op] && !done[op]).collect();
        assert!(!can.is_empty(), "the edges make a circle");
        let op = can[random.below(can.len())];
        if begun[op] {
            machine.end(&network.ops[op], op);
            done[op] = true;
        } else {
            machine.begin(&network.ops[op], op);
            begun[op] = true;
        }
    }
    for value in (0..network.values.len()).filter(|&value| network.values[value].kept) {
        assert!(machine.holds(value), "result {value} is gone");
    }
}

proptest! {
    #![proptest_config(config(300))]
    #[test]
    fn every_op_reads_what_it_should(seed: u64, ops in 1_usize..30) {
        let network = network(seed, ops);
        for memory in MODES {
            let options = Options { alignment: 8, ..Options::default() };
            let plan = plan_network(&network, &Settings { memory, options, ..Settings::default() }).unwrap();
            let naive: u64 = network.values.iter().filter(|value| !value.external).map(|value| value.size.next_multiple_of(8)).sum();
            let spaces: u64 = network.ops.iter().map(|op| op.workspace.next_multiple_of(8)).sum();
            prop_assert!(plan.peak_live_nbytes <= plan.nbytes && plan.nbytes <= naive + spaces);
            let (without, with) = plan.critical_path;
            match memory {
                Memory::Min => {}
                Memory::Balanced => prop_assert!(with <= without + without / 20),
                Memory::Speed => prop_assert_eq!(with, without),
            }
            let mut place = vec![0; network.ops.len()];
            (0..).zip(&plan.order).for_each(|(time, &op)| place[op] = time);
            for (op, before) in before(&network, &plan).into_iter().enumerate() {
                prop_assert!(before.iter().all(|&other| place[other] < place[op]));
            }
            for turn in 0..4 {
                run(&network, &plan, seed ^ turn);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(60))]
    #[test]
    fn what_runs_again_makes_the_same_in_less_memory(seed: u64, ops in 1_usize..40) {
        let network = network(seed, ops);
        for memory in MODES {
            let settings = Settings { memory, ..Settings::default() };
            let plain = plan_network(&network, &settings).unwrap();
            let smallest = recompute(&network, None, &settings).unwrap();
            let smaller = smallest.plan.nbytes < plain.nbytes;
            prop_assert!(smaller || (smallest.copies.is_empty() && smallest.plan == plain));
            let limit = plain.nbytes - (plain.nbytes - smallest.plan.nbytes) / 2;
            let fitting = recompute(&network, Some(limit), &settings).unwrap();
            prop_assert!(fitting.plan.nbytes <= limit);
            for again in [&smallest, &fitting] {
                prop_assert_eq!(again.network.ops.len(), network.ops.len() + again.copies.len());
                for (&of, copy) in again.copies.iter().zip(&again.network.ops[network.ops.len()..]) {
                    prop_assert!(network.ops[of].again);
                    prop_assert_eq!(&copy.name, &format!("{} again", network.ops[of].name));
                }
                for turn in 0..3 {
                    run(&again.network, &again.plan, seed ^ turn);
                }
            }
        }
    }
}

/// A deep network's training: `depth` layers forward, each of which backward needs again; backward costs twice as much.
fn training(depth: usize) -> Network {
    let mut network = Network::default();
    let mut values = vec![network.value(Value { size: 1024, external: true, ..Value::default() })];
    for layer in 0..depth {
        let next = network.value(Value { size: 1024, ..Value::default() });
        let name = format!("layer_{layer}");
        network.op(Op {
            name,
            inputs: vec![values[layer]],
            outputs: vec![next],
            cost: 10,
            again: true,
            ..Op::default()
        });
        values.push(next);
    }
    let mut flow = values[depth];
    for layer in (0..depth).rev() {
        let next = network.value(Value { size: 1024, kept: layer == 0, ..Value::default() });
        let inputs = vec![flow, values[layer], values[layer + 1]];
        let name = format!("backward_{layer}");
        network.op(Op { name, inputs, outputs: vec![next], cost: 20, ..Op::default() });
        flow = next;
    }
    network
}

#[test]
fn deep_chains_need_the_square_root() {
    for depth in [64, 100, 225] {
        let network = training(depth);
        for memory in MODES {
            let settings = Settings { memory, ..Settings::default() };
            let plain = plan_network(&network, &settings).unwrap();
            let again = recompute(&network, None, &settings).unwrap();
            assert!(3 * again.plan.nbytes <= plain.nbytes, "{depth}: {} of {}", again.plan.nbytes, plain.nbytes);
            let cost = |network: &Network| network.ops.iter().map(|op| op.cost).sum::<u64>();
            assert!(3 * cost(&again.network) <= 4 * cost(&network));
            run(&again.network, &again.plan, 1);
        }
    }
}

#[test]
fn a_limit_takes_the_cheapest_set_that_fits() {
    let network = training(100);
    let settings = Settings::default();
    let plain = plan_network(&network, &settings).unwrap().nbytes;
    assert!(recompute(&network, Some(plain), &settings).unwrap().copies.is_empty());
    let copies = |limit| recompute(&network, Some(limit), &settings).unwrap().copies.len();
    let (most, half, third) = (copies(plain - 1024), copies(plain / 2), copies(plain / 3));
    assert!(0 < most && most < half && half < third, "{most}, {half}, {third}");
    let error = recompute(&network, Some(3 * 1024), &settings).unwrap_err();
    let PlanError::Limit { limit: 3072, best, bound: 4096, op } = &error else { panic!("{error}") };
    assert!(*best <= plain / 3 && op.starts_with("backward_"), "{error}");
}

/// `width` chains of `depth` ops that each make 64 bytes, from one argument.
fn chains(width: usize, depth: usize, pairs: &[Pair]) -> Network {
    let mut network = Network::default();
    let argument = network.value(Value { size: 64, external: true, ..Value::default() });
    for _ in 0..width {
        let mut last = argument;
        for place in 0..depth {
            let next = network.value(Value { size: 64, kept: place + 1 == depth, ..Value::default() });
            let pairs = pairs.to_vec();
            network.op(Op {
                name: "f".into(),
                inputs: vec![last],
                outputs: vec![next],
                pairs,
                cost: 10,
                ..Op::default()
            });
            last = next;
        }
    }
    network
}

#[test]
fn a_chain_needs_two_places_and_in_place_one() {
    let pairs = [Pair { input: 0, output: 0, share: Share::InPlace }];
    for memory in MODES {
        let settings = Settings { memory, ..Settings::default() };
        assert_eq!(plan_network(&chains(1, 50, &[]), &settings).unwrap().nbytes, 128);
        assert_eq!(plan_network(&chains(1, 50, &pairs), &settings).unwrap().nbytes, 64);
    }
}

#[test]
fn one_input_gives_its_memory_to_one_output() {
    let mut network = Network::default();
    let [x, y, z] = [(); 3].map(|()| network.value(Value { size: 64, ..Value::default() }));
    let pair = |output, share| Pair { input: 0, output, share };
    let pairs = vec![pair(0, Share::InPlace), pair(1, Share::Identity)];
    network.op(Op { name: "split".into(), inputs: vec![x], outputs: vec![y, z], pairs, ..Op::default() });
    network.op(Op { name: "use".into(), inputs: vec![y, z], ..Op::default() });
    let plan = plan_network(&network, &Settings::default()).unwrap();
    assert_ne!(plan.storages[y], plan.storages[z]);
}

#[test]
fn memory_or_speed() {
    let network = chains(4, 6, &[]);
    let [min, balanced, speed] =
        MODES.map(|memory| plan_network(&network, &Settings { memory, ..Settings::default() }).unwrap());
    assert_eq!(min.nbytes, 5 * 64, "four results, and one to work with");
    assert_eq!((speed.nbytes, speed.critical_path), (8 * 64, (60, 60)));
    assert!(balanced.critical_path.1 <= 63);
}

#[test]
fn updates_move_up_to_where_their_gradient_is_there() {
    // Gradients one after the other, then all updates, as optimizers are written.
    let mut network = Network::default();
    let mut flow = network.value(Value { size: 64, external: true, ..Value::default() });
    let mut gradients = Vec::new();
    for _ in 0..10 {
        let [gradient, next] = [1024, 64].map(|size| network.value(Value { size, ..Value::default() }));
        network.op(Op { name: "backward".into(), inputs: vec![flow], outputs: vec![gradient, next], ..Op::default() });
        gradients.push(gradient);
        flow = next;
    }
    for gradient in gradients {
        let weight = network.value(Value { size: 1024, external: true, ..Value::default() });
        let updated = network.value(Value { size: 1024, external: true, kept: true });
        let pairs = vec![Pair { input: 0, output: 0, share: Share::Mutation }];
        network.op(Op {
            name: "update".into(),
            inputs: vec![weight, gradient],
            outputs: vec![updated],
            pairs,
            ..Op::default()
        });
    }
    let plan = plan_network(&network, &Settings { memory: Memory::Min, ..Settings::default() }).unwrap();
    assert!(plan.nbytes <= 1024 + 2 * 64, "{}", plan.nbytes);
}

#[test]
fn what_does_not_fit_together_is_told_with_the_op() {
    let op = |inputs: &[usize], outputs: &[usize]| Op {
        name: "add_3".into(),
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
        ..Op::default()
    };
    let values = vec![Value { size: 8, ..Value::default() }; 2];
    let mutation = Pair { input: 0, output: 0, share: Share::Mutation };
    let kept = vec![Value { kept: true, ..values[0].clone() }; 2];
    let larger = vec![Value { size: 8, ..Value::default() }, Value { size: 16, ..Value::default() }];
    for (values, ops, message) in [
        (&values, vec![op(&[2], &[])], "op add_3: there is no value 2, but only 2"),
        (&values, vec![Op { after: vec![7], ..op(&[], &[]) }], "op add_3: there is no op 7"),
        (&values, vec![op(&[], &[0]), op(&[], &[0])], "op add_3: value 0 is made twice"),
        (&values, vec![op(&[1], &[0]), op(&[0], &[1])], "op add_3: it waits for itself"),
        (&values, vec![Op { pairs: vec![mutation], ..op(&[], &[0]) }], "op add_3: it has no input 0 or no output 0"),
        (&kept, vec![Op { pairs: vec![mutation], ..op(&[0], &[1]) }], "op add_3: it mutates value 0, which is kept"),
        (&larger, vec![Op { pairs: vec![mutation], ..op(&[0], &[1]) }], "op add_3: value 1 is larger than value 0"),
    ] {
        let network = Network { values: values.clone(), ops };
        let error = plan_network(&network, &Settings::default()).unwrap_err();
        assert!(matches!(error, PlanError::Graph { .. }) && error.to_string().starts_with(message), "{error}");
    }
}
