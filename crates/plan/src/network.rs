//! The ops of a plan, as far as memory is concerned: their values, and the size of each.

use crate::error::PlanError;

/// A value: an op's result, or one from outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Value {
    /// Bytes; 0 for a value without memory.
    pub size: u64,
    /// It lies in foreign memory: an argument, a state. It gets no offset.
    pub external: bool,
    /// It is wanted after the last op: a result keeps its memory to the end, and no op mutates it.
    pub kept: bool,
}

/// How an output may lie where an input lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// It may take the input's memory if the input dies here: its size must not be larger.
    InPlace,
    /// It is the input's bytes, unchanged: both may go on in one memory, unless either is mutated later.
    Identity,
    /// It is the next version of the input, in its memory: a mutation. All other readers of the input come before.
    Mutation,
}

/// An input and an output, by their places in the op's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Which input.
    pub input: usize,
    /// Which output.
    pub output: usize,
    /// How they may share.
    pub share: Share,
}

/// An op.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Op {
    /// Its name in errors.
    pub name: String,
    /// The values that it reads.
    pub inputs: Vec<usize>,
    /// The values that it makes.
    pub outputs: Vec<usize>,
    /// Ops that come before it, besides those that make its inputs.
    pub after: Vec<usize>,
    /// Which outputs may lie where inputs lie.
    pub pairs: Vec<Pair>,
    /// Bytes that it needs while it runs.
    pub workspace: u64,
    /// How long it takes, in any unit; 0 counts as 1.
    pub cost: u64,
    /// It can run again to make the same values, instead of keeping them: pure, and of the forward part.
    pub again: bool,
}

/// Ops and the values between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// The values.
    pub values: Vec<Value>,
    /// The ops, in a possible order of running.
    pub ops: Vec<Op>,
}

impl Network {
    /// Adds a value.
    pub fn value(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len() - 1
    }

    /// Adds an op.
    pub fn op(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }
}

/// A network, checked, with all its dependencies.
#[derive(Debug)]
pub(crate) struct Linked<'a> {
    pub(crate) network: &'a Network,
    /// The op that makes each value.
    pub(crate) maker: Vec<Option<usize>>,
    /// The ops that read each value, each once.
    pub(crate) readers: Vec<Vec<usize>>,
    /// The ops that come before each op, each once.
    pub(crate) before: Vec<Vec<usize>>,
    /// And after.
    pub(crate) behind: Vec<Vec<usize>>,
    /// Values that a later op mutates.
    pub(crate) mutated: Vec<bool>,
}

impl<'a> Linked<'a> {
    /// Whether this is each op once, after those that come before it.
    pub(crate) fn may_run(&self, order: &[usize]) -> bool {
        let mut done = vec![false; self.before.len()];
        order.len() == done.len()
            && order.iter().all(|&op| {
                let first = op < done.len() && !std::mem::replace(&mut done[op], true);
                first && self.before[op].iter().all(|&before| done[before])
            })
    }

    pub(crate) fn new(network: &'a Network) -> Result<Self, PlanError> {
        let Network { values, ops } = network;
        let wrong = |op: &Op, what: String| Err(PlanError::Graph { what: format!("op {}: {what}", op.name) });
        let mut maker = vec![None; values.len()];
        let mut readers = vec![Vec::new(); values.len()];
        let mut mutated = vec![false; values.len()];
        let mut sum = 0_u64;
        for (index, size) in values.iter().map(|value| value.size).chain(ops.iter().map(|op| op.workspace)).enumerate()
        {
            sum = sum.checked_add(size).ok_or(PlanError::TooLarge { index })?;
        }
        for (index, op) in ops.iter().enumerate() {
            for &value in op.inputs.iter().chain(&op.outputs) {
                if value >= values.len() {
                    return wrong(op, format!("there is no value {value}, but only {}", values.len()));
                }
            }
            if let Some(other) = op.after.iter().find(|&&other| other >= ops.len()) {
                return wrong(op, format!("there is no op {other} for it to come after, but only {}", ops.len()));
            }
            for &value in &op.outputs {
                if maker[value].replace(index).is_some() {
                    return wrong(op, format!("value {value} is made twice"));
                }
            }
            for &value in &op.inputs {
                if readers[value].last() != Some(&index) {
                    readers[value].push(index);
                }
            }
            for pair in &op.pairs {
                let Some((&input, &output)) = op.inputs.get(pair.input).zip(op.outputs.get(pair.output)) else {
                    return wrong(op, format!("it has no input {} or no output {}", pair.input, pair.output));
                };
                if pair.share == Share::Mutation {
                    if std::mem::replace(&mut mutated[input], true) {
                        return wrong(
                            op,
                            format!("value {input} is mutated twice; the second mutates what the first made"),
                        );
                    }
                    if values[input].kept {
                        return wrong(
                            op,
                            format!("it mutates value {input}, which is kept; keep value {output}, or a copy"),
                        );
                    }
                    if values[output].size > values[input].size {
                        return wrong(
                            op,
                            format!("value {output} is larger than value {input}, in whose memory it is made"),
                        );
                    }
                }
            }
        }
        let mut before: Vec<Vec<usize>> = ops.iter().map(|op| op.after.clone()).collect();
        for (index, op) in ops.iter().enumerate() {
            before[index].extend(op.inputs.iter().filter_map(|&value| maker[value]));
            for pair in op.pairs.iter().filter(|pair| pair.share == Share::Mutation) {
                let others = readers[op.inputs[pair.input]].iter().copied();
                before[index].extend(others.filter(|&other| other != index));
            }
        }
        let mut behind = vec![Vec::new(); ops.len()];
        for (index, before) in before.iter_mut().enumerate() {
            before.sort_unstable();
            before.dedup();
            before.iter().for_each(|&other| behind[other].push(index));
        }
        let linked = Self { network, maker, readers, before, behind, mutated };
        let order = linked.by_rank(&vec![0; ops.len()]);
        if order.len() < ops.len() {
            let mut done = vec![false; ops.len()];
            order.iter().for_each(|&op| done[op] = true);
            let first = (0..ops.len()).find(|&op| !done[op]).unwrap_or(0);
            return wrong(&ops[first], "it waits for itself, through what it comes after".to_owned());
        }
        Ok(linked)
    }

    /// The cost of an op.
    pub(crate) fn cost(&self, op: usize) -> u64 {
        self.network.ops[op].cost.max(1)
    }

    /// The order by rank: of the ops that may come next, the one of the lowest rank does; of equals the first.
    pub(crate) fn by_rank(&self, rank: &[u64]) -> Vec<usize> {
        use std::cmp::Reverse;
        let mut open: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let ready = (0..open.len()).filter(|&op| open[op] == 0).map(|op| Reverse((rank[op], op)));
        let mut ready: std::collections::BinaryHeap<_> = ready.collect();
        let mut order = Vec::with_capacity(open.len());
        while let Some(Reverse((_, op))) = ready.pop() {
            order.push(op);
            for &next in &self.behind[op] {
                open[next] -= 1;
                if open[next] == 0 {
                    ready.push(Reverse((rank[next], next)));
                }
            }
        }
        order
    }
}
