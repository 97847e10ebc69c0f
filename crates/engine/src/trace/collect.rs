//! From the notes, thread by thread, to a recording.

use super::clock::{Moment, Scale};
use super::record::{self, Became, Pushed, Run, Variable};
use super::recorder::{Recorder, Single};
use super::recording::{Outcome, RecordedAccess, RecordedOp, RecordedVariable, Recording};
use super::registered::is_since;
use super::{Kind, Log};
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
    /// Number of the variable, and the access to it.
    accesses: Vec<(u64, AccessKind)>,
    variables: HashMap<u64, Variable>,
}

#[allow(clippy::cast_possible_truncation)] // the low half
const fn low(number: u64) -> u32 {
    number as u32
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
    fn new(first: u64) -> Self {
        Self { first, ops: Vec::new(), accesses: Vec::new(), variables: HashMap::new() }
    }

    /// The ticket that has this low half, if it was taken since the first one.
    fn ticket(first: u64, number: u32) -> Option<u64> {
        is_since(low(first), number).then(|| first + u64::from(number.wrapping_sub(low(first))))
    }

    /// Reads the pushes of a thread.
    fn read_pushes(&mut self, log: &Log, thread: u16) {
        let Self { first, ops, accesses, variables } = self;
        let push = |pushed: Pushed, touched: &mut dyn Iterator<Item = (u64, AccessKind)>| {
            let Some(ticket) = Self::ticket(*first, pushed.number) else { return };
            let mut op = blank(ticket, pushed.kind, thread);
            (op.name, op.place, op.lane) = (pushed.name, pushed.place, pushed.lane);
            (op.priority, op.bytes, op.pushed) = (pushed.priority, pushed.bytes, pushed.time.cast_signed());
            let begin = accesses.len();
            accesses.extend(touched);
            ops.push(Draft { op, parent: pushed.parent, accesses: begin..accesses.len(), error: None });
        };
        record::read_pushes(log, push, |number, variable| {
            variables.entry(number).or_insert(variable);
        });
    }

    /// The op with this low half of its ticket.
    fn find(&mut self, number: u32) -> Option<&mut Draft> {
        let ticket = Self::ticket(self.first, number)?;
        let at = self.ops.binary_search_by_key(&ticket, |draft| draft.op.number);
        at.ok().map(|at| &mut self.ops[at])
    }

    /// Reads their outcome.
    fn read_registered(&mut self, log: &Log, threads: usize) {
        record::read_registered(log, |number, became| {
            let Some(Draft { op, .. }) = self.find(number) else { return };
            match became {
                // The op before it counts as settled when its run ends; if the registrar comes to that later, the op
                // may have been pushed between.
                Became::Ready { time } => op.ready = op.pushed.max(time.cast_signed()),
                Became::Settled { outcome, run, time } => {
                    (op.outcome, op.settled) = (outcome, time.cast_signed());
                    if let Some(Run { started, ended, thread }) = run {
                        (op.started, op.ended) = (started.cast_signed(), ended.cast_signed());
                        op.worker = Some(thread).filter(|&thread| usize::from(thread) < threads);
                        // An op taken along by another one was computed before it had its turn.
                        op.ready = op.ready.min(op.started);
                    }
                }
            }
        });
    }
}

impl Single {
    fn draft(&self) -> Draft {
        let mut op = blank(u64::MAX, self.note.kind.unwrap_or_default(), self.thread);
        (op.name, op.place, op.outcome) = (self.note.name, self.note.place, Outcome::Done);
        let (started, ended) = (self.ran.started.cast_signed(), self.ran.ended().cast_signed());
        (op.pushed, op.ready, op.started, op.ended, op.settled) = (started, started, started, ended, ended);
        op.worker = (op.kind != Kind::Wait).then_some(self.thread);
        Draft { op, parent: self.parent, accesses: 0..0, error: None }
    }
}

impl Recorder {
    /// Everything up to now. The registrar's knowledge of errors, and of running ops, is the caller's to add.
    pub(crate) fn recording(&self, errors: &[(u32, String)], running: &[Running]) -> Recording {
        let scale = Scale::between(self.start, Moment::now());
        let mut drafts = Drafts::new(self.first);
        let shared = self.shared();
        for (thread, log) in (0..).zip(&shared.logs) {
            drafts.read_pushes(log, thread);
        }
        drafts.ops.sort_unstable_by_key(|draft| draft.op.number);
        drafts.read_registered(&self.registered, shared.threads.len());
        for running in running {
            if let Some(Draft { op, .. }) = drafts.find(running.number)
                && op.started == 0
            {
                (op.started, op.worker) = (running.started.cast_signed(), Some(running.thread));
            }
        }
        for draft in drafts.ops.iter_mut().filter(|draft| draft.op.kind == Kind::Wait) {
            draft.op.started = draft.op.pushed;
        }
        for &(number, ended, outcome) in &shared.waits {
            if let Some(Draft { op, .. }) = drafts.find(low(number)) {
                (op.ended, op.settled, op.outcome) = (ended.cast_signed(), ended.cast_signed(), outcome);
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
            start: Some(self.start.instant),
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
                let ticket = Self::ticket(self.first, parent)?;
                tickets.binary_search(&ticket).ok().map(|at| places[at])
            });
            for &(number, kind) in &self.accesses[draft.accesses] {
                let (variable, version) = numbers.entry(number).or_insert_with(|| {
                    let (bytes, name, version) = match self.variables.get(&number) {
                        Some(known) => (known.bytes, known.name, known.version),
                        None => (0, 0, 0), // told by a thread that has not published it yet
                    };
                    let name = (name > 0).then(|| recording.names[name as usize].clone());
                    recording.variables.push(RecordedVariable { number, name, bytes });
                    (low(recording.variables.len() as u64 - 1), version)
                });
                *version += u64::from(kind.makes_version());
                recording.accesses.push(RecordedAccess { op: index, variable: *variable, kind, version: *version });
            }
            recording.ops.push(op);
            recording.errors.extend(draft.error.map(|error| (index, error)));
        }
    }
}
