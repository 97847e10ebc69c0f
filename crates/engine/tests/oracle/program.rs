//! Random programs: words from proptest, decoded so that smaller words are simpler steps.
//!
//! A program's outcome must not depend on timing, or there would be nothing to compare. So each
//! pushing thread has variables of its own; what all threads touch is only added to, or logged,
//! by ops that always run and never fail; and an op that pushes onto its thread's variables from
//! inside is waited for before its thread goes on.

use weft_engine::{AccessKind, Device, DeviceLane, InOrder};

/// How the payload ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Error,
    Panic,
}

/// How the payload is made and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// A closure small enough to lie in its op.
    Small,
    /// A closure that must be boxed.
    Large,
    /// A payload for the host.
    Hosted,
    /// A payload for a worker of this queue's own.
    InOrder(InOrder),
    /// Another thread completes the op.
    Elsewhere,
    /// It completes its own token.
    Itself,
}

/// What an op does to pass the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Quick,
    Spins,
    Yields,
}

/// What an op pushes from inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Nested {
    /// This op, onto its thread's variables.
    Same(usize),
    /// These ops, onto a variable made on the spot; then perhaps it waits for it.
    Fresh { slot: usize, ops: Vec<usize>, wait: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct Op {
    /// As pushed, duplicates included. Numbers are slots: places of variables.
    pub(crate) accesses: Vec<(usize, AccessKind)>,
    /// Each variable once, in the order in which they were named first.
    pub(crate) merged: Vec<(usize, AccessKind)>,
    pub(crate) end: End,
    pub(crate) body: Body,
    pub(crate) pace: Pace,
    pub(crate) always_run: bool,
    pub(crate) priority: i32,
    pub(crate) device: Device,
    pub(crate) nested: Vec<Nested>,
    pub(crate) thread: usize,
    /// It is pushed by its thread, not by an op.
    pub(crate) outermost: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Push(usize),
    WaitForVar(usize),
    WaitToWrite(usize),
    WaitForAll,
    /// Deletes the variable of the first slot, with this op as the finalizer; the second slot gets a new one.
    Delete(usize, usize, usize),
    /// Tries to use the deleted variable of this slot.
    Misuse(usize),
}

/// The slot that all threads add to, and the one in which they log.
pub(crate) const SUM: usize = 0;
pub(crate) const LOG: usize = 1;
const SHARED: usize = 2;

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) threads: Vec<Vec<Step>>,
    pub(crate) ops: Vec<Op>,
    pub(crate) slots: usize,
    /// Slots whose variables exist from the start.
    pub(crate) initial: usize,
}

/// Takes a word apart, lowest bits first; there are always more zeros.
struct Bits(u64);

impl Bits {
    fn take(&mut self, count: u32) -> usize {
        let bits = self.0 & ((1 << count) - 1);
        self.0 >>= count;
        usize::try_from(bits).expect("few bits")
    }

    /// Starts anew with bits mixed from the word; zero stays zero. For steps that need many.
    fn mix(word: u64) -> Self {
        let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Self(word ^ (word >> 27))
    }
}

const KINDS: [AccessKind; 4] = [AccessKind::Read, AccessKind::Mutate, AccessKind::Overwrite, AccessKind::Read];

/// Decodes one thread's words.
struct Decoder<'p> {
    program: &'p mut Program,
    thread: usize,
    failures: bool,
    /// Slots of this thread's variables now; the last is only read, and only by ops to be waited for.
    slots: Vec<usize>,
    deleted: Vec<usize>,
}

impl Program {
    /// Decodes a program with this many variables for each thread.
    pub(crate) fn decode(variables: usize, failures: bool, words: &[Vec<u64>]) -> Self {
        let initial = SHARED + words.len() * (variables + 1);
        let mut program = Self { threads: Vec::new(), ops: Vec::new(), slots: initial, initial };
        for (thread, words) in words.iter().enumerate() {
            let first = SHARED + thread * (variables + 1);
            let slots = (first..=first + variables).collect();
            let mut decoder = Decoder { program: &mut program, thread, failures, slots, deleted: Vec::new() };
            let mut steps = Vec::new();
            words.iter().for_each(|&word| decoder.step(word, &mut steps));
            program.threads.push(steps);
        }
        program
    }
}

impl Decoder<'_> {
    fn step(&mut self, word: u64, steps: &mut Vec<Step>) {
        let mut bits = Bits(word);
        match bits.take(4) {
            0..=9 => steps.push(Step::Push(self.op(&mut bits, 3))),
            10 => steps.push(Step::Push(self.op(&mut bits, 7))),
            11 => steps.push(Step::Push(self.wide(word))),
            12 => steps.push(Step::Push(self.shared(&mut bits))),
            13 => self.nesting(&mut bits, word, steps),
            14 => steps.push(self.wait(&mut bits)),
            _ => self.delete(&mut bits, steps),
        }
    }

    fn slot(&self, bits: &mut Bits) -> usize {
        self.slots[bits.take(5) % (self.slots.len() - 1)]
    }

    fn accesses(&self, bits: &mut Bits, count: usize) -> Vec<(usize, AccessKind)> {
        (0..count).map(|_| (self.slot(bits), KINDS[bits.take(2)])).collect()
    }

    fn add(&mut self, op: Op) -> usize {
        self.program.ops.push(op);
        self.program.ops.len() - 1
    }

    /// An op on these variables, with the rest drawn.
    fn finish(&mut self, bits: &mut Bits, accesses: Vec<(usize, AccessKind)>) -> usize {
        let end = match bits.take(5) {
            31 if self.failures => End::Error,
            30 if self.failures => End::Panic,
            _ => End::Done,
        };
        let body = match bits.take(4) {
            15 => Body::Itself,
            14 => Body::Elsewhere,
            12 | 13 => Body::Hosted,
            11 => Body::Large,
            10 => Body::InOrder(InOrder::named("oracle")),
            9 => Body::InOrder(InOrder::lent("oracle:lent")),
            _ => Body::Small,
        };
        // A token's second use, by the error after it, is for tests of its own.
        let end = if body == Body::Itself { End::Done } else { end };
        let pace = match bits.take(4) {
            15 => Pace::Yields,
            13 | 14 => Pace::Spins,
            _ => Pace::Quick,
        };
        let always_run = bits.take(3) == 7;
        let priority = [0, 0, 0, 0, 0, 1, -1, 7][bits.take(3)];
        let lane = if bits.take(2) == 3 { DeviceLane::Copy } else { DeviceLane::Compute };
        let device = Device { index: u16::from(bits.take(1) == 1), lane };
        let merged = merged(&accesses);
        let (nested, thread, outermost) = (Vec::new(), self.thread, true);
        self.add(Op { accesses, merged, end, body, pace, always_run, priority, device, nested, thread, outermost })
    }

    fn op(&mut self, bits: &mut Bits, most: usize) -> usize {
        let count = if most == 3 { [1, 2, 3, 0][bits.take(2)] } else { 4 + bits.take(2) };
        let accesses = self.accesses(bits, count);
        self.finish(&mut if most == 3 { Bits(bits.0) } else { Bits::mix(bits.0) }, accesses)
    }

    /// More accesses than are compared one by one.
    fn wide(&mut self, word: u64) -> usize {
        let mut bits = Bits::mix(word);
        let count = 17 + bits.take(4);
        let accesses = (0..count as u64)
            .flat_map(|index| self.accesses(&mut Bits::mix(word.wrapping_mul(2 * index + 3)), 1))
            .collect();
        self.finish(&mut bits, accesses)
    }

    /// An op on what all threads share.
    fn shared(&mut self, bits: &mut Bits) -> usize {
        let mut accesses = [vec![SUM], vec![LOG], vec![SUM, LOG], vec![LOG, SUM]][bits.take(2)]
            .iter()
            .map(|&slot| (slot, AccessKind::Mutate))
            .collect::<Vec<_>>();
        let own = bits.take(1);
        accesses.extend(self.accesses(bits, own));
        let id = self.finish(bits, accesses);
        let op = &mut self.program.ops[id];
        (op.end, op.always_run) = (End::Done, true);
        id
    }

    fn inner(&mut self, id: usize) -> usize {
        self.program.ops[id].outermost = false;
        id
    }

    fn fresh(&mut self, bits: &mut Bits) -> Nested {
        let slot = self.program.slots;
        self.program.slots += 1;
        let wait = bits.take(2) == 3;
        let ops = (0..=bits.take(1))
            .map(|_| {
                let kind = KINDS[1 + bits.take(1)];
                let id = self.finish(bits, vec![(slot, kind)]);
                let op = &mut self.program.ops[id];
                if !wait {
                    // Nobody waits for it, so nobody could tell when it has failed.
                    op.end = End::Done;
                } else if op.body == Body::Elsewhere {
                    // Serially, the waiting op may itself run on the thread that completes this one.
                    op.body = Body::Itself;
                }
                self.inner(id)
            })
            .collect();
        Nested::Fresh { slot, ops, wait }
    }

    /// An op that pushes ops.
    fn nesting(&mut self, bits: &mut Bits, word: u64, steps: &mut Vec<Step>) {
        let what = bits.take(2);
        let id = self.op(bits, 3);
        let mut bits = Bits::mix(word);
        let mut nested = Vec::new();
        if what != 1 {
            nested.push(self.fresh(&mut bits));
        }
        if what == 2 {
            let inner = self.shared(&mut bits);
            nested.push(Nested::Same(self.inner(inner)));
        }
        if what != 0 {
            let inner = self.op(&mut bits, 3);
            nested.push(Nested::Same(self.inner(inner)));
            // The op reads what nobody mutates, so that its thread can wait for its end.
            let gate = self.slots[self.slots.len() - 1];
            let op = &mut self.program.ops[id];
            op.accesses.push((gate, AccessKind::Read));
            op.merged.push((gate, AccessKind::Read));
            op.body = Body::Small;
            steps.extend([Step::Push(id), Step::WaitToWrite(gate)]);
        } else {
            steps.push(Step::Push(id));
        }
        self.program.ops[id].nested = nested;
    }

    fn wait(&mut self, bits: &mut Bits) -> Step {
        let slot = self.slot(bits);
        match bits.take(3) {
            7 => Step::WaitForAll,
            0..=3 => Step::WaitForVar(slot),
            _ => Step::WaitToWrite(slot),
        }
    }

    fn delete(&mut self, bits: &mut Bits, steps: &mut Vec<Step>) {
        if bits.take(1) == 1
            && let Some(&slot) = self.deleted.last()
        {
            return steps.push(Step::Misuse(slot));
        }
        let at = bits.take(5) % (self.slots.len() - 1);
        let (old, new) = (self.slots[at], self.program.slots);
        self.program.slots += 1;
        let finalizer = self.finish(bits, vec![(old, AccessKind::Read)]);
        let op = &mut self.program.ops[finalizer];
        (op.always_run, op.priority, op.device) = (true, 0, Device::default());
        self.slots[at] = new;
        self.deleted.push(old);
        steps.push(Step::Delete(old, finalizer, new));
    }
}

fn merged(accesses: &[(usize, AccessKind)]) -> Vec<(usize, AccessKind)> {
    let mut merged: Vec<(usize, AccessKind)> = Vec::new();
    for &(slot, kind) in accesses {
        match merged.iter_mut().find(|(other, _)| *other == slot) {
            None => merged.push((slot, kind)),
            Some((_, all)) if *all != kind => *all = AccessKind::Mutate,
            Some(_) => {}
        }
    }
    merged
}
