//! From what was noted, thread by thread, to a recording.

use super::clock::{Moment, Scale};
use super::log::{READY, READY_WORDS, SETTLED_WORDS, SHIFT, is_since};
use super::recorder::{ACCESS_WORDS, INSIDE, PUSH, PUSH_WORDS, Recorder, Single, VARIABLE_WORDS};
use super::recording::{Outcome, RecordedAccess, RecordedOp, RecordedVariable, Recording};
use super::{Kind, Log, Ran};
use crate::sync::Ordering;
use crate::var::AccessKind;
use std::collections::HashMap;
use std::ops::Range;

/// An op that runs while the trace is read.
pub(crate) struct Running {
    /// Low half of its number.
    pub(crate) number: u32,
    pub(crate) started: u64,
    pub(crate) thread: u16,
}

/// An op before it has its place among all. Its times are raw.
struct Draft {
    op: RecordedOp,
    /// Low half of the number of the op inside which it was pushed.
    parent: Option<u32>,
    /// Its accesses, in `Drafts::accesses`.
    accesses: Range<usize>,
    error: Option<String>,
}

/// Ops that went through the engine, in the order of their pushes.
struct Drafts {
    /// The first ticket of the trace.
    first: u64,
    ops: Vec<Draft>,
    /// Number of the variable, what is done to it, its version.
    accesses: Vec<(u64, AccessKind, u64)>,
    /// Name and bytes of variables.
    variables: HashMap<u64, (u32, u64)>,
}

fn signed(ticks: u64) -> i64 {
    ticks.cast_signed()
}

#[allow(clippy::cast_possible_truncation)] // the halves of words
const fn low(word: u64) -> u32 {
    word as u32
}

const fn high(word: u64) -> u32 {
    low(word >> 32)
}

fn blank(number: u64, kind: Kind, pusher: u16) -> RecordedOp {
    RecordedOp {
        number,
        name: 0,
        place: 0,
        kind,
        lane: 0,
        priority: 0,
        bytes: 0,
        pusher,
        worker: None,
        parent: None,
        pushed: 0,
        ready: 0,
        started: 0,
        ended: 0,
        settled: 0,
        outcome: Outcome::Pending,
    }
}

impl Drafts {
    /// Reads what a thread has pushed.
    fn read_pushes(&mut self, log: &Log, thread: u16) {
        log.each(|words| {
            while let Some(head) = words.next() {
                let number = head & ((1 << SHIFT) - 1);
                if head >> SHIFT == PUSH {
                    let rest: [u64; PUSH_WORDS - 1] = std::array::from_fn(|_| words.next().unwrap_or(0));
                    self.read_push(number, rest, thread, words);
                } else {
                    let rest: [u64; VARIABLE_WORDS - 1] = std::array::from_fn(|_| words.next().unwrap_or(0));
                    self.variables.insert(number, (low(rest[1]), rest[0]));
                }
            }
        });
    }

    #[allow(clippy::cast_possible_truncation)] // parts of words
    fn read_push(
        &mut self,
        number: u64,
        [pushed, texts, how, counts, bytes]: [u64; PUSH_WORDS - 1],
        thread: u16,
        words: &mut dyn Iterator<Item = u64>,
    ) {
        let mut op = blank(number, Kind::from_bits(how as u8), thread);
        (op.name, op.place, op.pushed, op.bytes) = (high(texts), low(texts), signed(pushed), bytes);
        (op.priority, op.lane) = (high(how).cast_signed(), (how >> 16) as u16);
        let begin = self.accesses.len();
        for _ in 0..high(counts) {
            let [access, version]: [u64; ACCESS_WORDS] = std::array::from_fn(|_| words.next().unwrap_or(0));
            let kind = AccessKind::from_bits((access >> SHIFT) as usize);
            self.accesses.push((access & ((1 << SHIFT) - 1), kind, version));
        }
        let parent = (how & INSIDE != 0).then(|| low(counts));
        self.ops.push(Draft { op, parent, accesses: begin..self.accesses.len(), error: None });
    }

    /// The op whose ticket has this low half.
    fn find(&mut self, number: u32) -> Option<&mut Draft> {
        let first = low(self.first);
        let ticket = self.first + u64::from(number.wrapping_sub(first));
        let at = is_since(first, number).then(|| self.ops.binary_search_by_key(&ticket, |draft| draft.op.number));
        at?.ok().map(|at| &mut self.ops[at])
    }

    /// Reads what became of them.
    #[allow(clippy::cast_possible_truncation)] // parts of words
    fn read_registered(&mut self, log: &Log, threads: u16) {
        log.each(|words| {
            while let Some(head) = words.next() {
                let is_ready = head >> SHIFT == READY;
                let count = if is_ready { READY_WORDS } else { SETTLED_WORDS } - 1;
                let mut rest = [0; SETTLED_WORDS - 1];
                rest[..count].iter_mut().for_each(|word| *word = words.next().unwrap_or(0));
                let Some(Draft { op, .. }) = self.find(low(head)) else { continue };
                if is_ready {
                    op.ready = signed(rest[0]);
                    continue;
                }
                let [started, span, settled] = rest;
                op.outcome = Outcome::from_bits((head >> 32) as u8);
                op.settled = signed(settled);
                if started > 0 {
                    let ran = Ran::of_words([started, span]);
                    (op.started, op.ended) = (signed(started), signed(ran.ended()));
                    op.worker = Some(ran.thread()).filter(|&thread| thread < threads);
                    // What was taken along by another op was computed before it had its turn.
                    op.ready = op.ready.min(op.started);
                }
            }
        });
    }
}

impl Single {
    fn draft(&self) -> Draft {
        let mut op = blank(u64::MAX, self.note.kind.unwrap_or_default(), self.thread);
        (op.name, op.place, op.outcome) = (self.note.name, self.note.place, Outcome::Done);
        let (started, ended) = (signed(self.ran.started), signed(self.ran.ended()));
        (op.pushed, op.ready, op.started, op.ended, op.settled) = (started, started, started, ended, ended);
        op.worker = (op.kind != Kind::Wait).then_some(self.thread);
        Draft { op, parent: self.parent, accesses: 0..0, error: None }
    }
}

impl Recorder {
    /// Everything up to now. What the registrar has to say of errors, and what runs, is the caller's to tell.
    pub(crate) fn recording(&self, errors: &[(u32, String)], running: &[Running]) -> Recording {
        let scale = Scale::between(self.start, Moment::now());
        let mut drafts = Drafts { first: self.first, ops: Vec::new(), accesses: Vec::new(), variables: HashMap::new() };
        let shared = self.shared();
        for (thread, log) in (0..).zip(&shared.logs) {
            drafts.read_pushes(log, thread);
        }
        drafts.ops.sort_unstable_by_key(|draft| draft.op.number);
        drafts.read_registered(&self.registered, u16::try_from(shared.threads.len()).unwrap_or(u16::MAX));
        for running in running {
            if let Some(Draft { op, .. }) = drafts.find(running.number)
                && op.started == 0
            {
                (op.started, op.worker) = (signed(running.started), Some(running.thread));
            }
        }
        for draft in drafts.ops.iter_mut().filter(|draft| draft.op.kind == Kind::Wait) {
            draft.op.started = draft.op.pushed;
        }
        for &(number, ended, outcome) in &shared.waits {
            if let Some(Draft { op, .. }) = drafts.find(low(number)) {
                (op.ended, op.settled, op.outcome) = (signed(ended), signed(ended), outcome);
            }
        }
        for (number, reason) in errors.iter().chain(&shared.errors) {
            if let Some(draft) = drafts.find(*number) {
                draft.error = Some(reason.clone());
            }
        }
        let mut singles: Vec<_> = shared.singles.iter().map(Single::draft).collect();
        singles.sort_by_key(|draft| draft.op.pushed);
        let mut recording = Recording {
            epoch: self.epoch,
            duration: scale.duration,
            // ORDERING: a count alone.
            dropped: self.dropped.load(Ordering::Relaxed),
            names: shared.names.all(),
            places: shared.places.all(),
            threads: shared.threads.clone(),
            ..Recording::default()
        };
        drop(shared);
        drafts.finish(singles, &scale, &mut recording);
        recording
    }
}

impl Drafts {
    /// Puts ops that did not go through the engine between those that did, by the time of their push, and translates.
    fn finish(self, singles: Vec<Draft>, scale: &Scale, recording: &mut Recording) {
        let tickets: Vec<u64> = self.ops.iter().map(|draft| draft.op.number).collect();
        let mut singles = singles.into_iter().peekable();
        let mut merged = Vec::with_capacity(tickets.len() + singles.len());
        let mut places = Vec::with_capacity(tickets.len()); // of the tickets, in `merged`
        for draft in self.ops {
            while let Some(single) = singles.next_if(|single| single.op.pushed < draft.op.pushed) {
                merged.push(single);
            }
            places.push(merged.len());
            merged.push(draft);
        }
        merged.extend(singles);
        let mut numbers = HashMap::new();
        for (index, draft) in merged.into_iter().enumerate() {
            let mut op = draft.op;
            for time in [&mut op.pushed, &mut op.ready, &mut op.started, &mut op.ended, &mut op.settled] {
                *time = scale.nanoseconds(time.cast_unsigned());
            }
            op.parent = draft.parent.and_then(|parent| {
                let ticket = self.first + u64::from(parent.wrapping_sub(low(self.first)));
                is_since(low(self.first), parent).then(|| tickets.binary_search(&ticket).ok().map(|at| places[at]))?
            });
            for &(number, kind, version) in &self.accesses[draft.accesses] {
                let variable = *numbers.entry(number).or_insert_with(|| {
                    let (name, bytes) = self.variables.get(&number).copied().unwrap_or_default();
                    let name = (name > 0).then(|| recording.names[name as usize].clone());
                    recording.variables.push(RecordedVariable { number, name, bytes });
                    low(recording.variables.len() as u64 - 1)
                });
                recording.accesses.push(RecordedAccess { op: index, variable, kind, version });
            }
            recording.ops.push(op);
            recording.errors.extend(draft.error.map(|error| (index, error)));
        }
        order_versions(recording);
    }
}

/// Of two threads that push mutations of one variable at once, the one with the later ticket may have counted its
/// version first. The versions are those that the order of tickets makes.
fn order_versions(recording: &mut Recording) {
    let mut made: Vec<Vec<u64>> = vec![Vec::new(); recording.variables.len()];
    for access in recording.accesses.iter().filter(|access| access.kind.makes_version()) {
        made[access.variable as usize].push(access.version);
    }
    made.iter_mut().for_each(|versions| versions.sort_unstable());
    let mut passed = vec![0; made.len()];
    for access in &mut recording.accesses {
        let (versions, passed) = (&made[access.variable as usize], &mut passed[access.variable as usize]);
        *passed += usize::from(access.kind.makes_version());
        access.version = match (*passed, versions.first()) {
            (0, Some(first)) => access.version.min(first - 1),
            (0, None) => access.version,
            (count, _) => versions[count - 1],
        };
    }
}
