//! Words are read back as they were written.

use super::log::{Log, Reserve};
use super::note::{Describe, note};
use super::record::{Became, Run, read_pushes, read_registered, write_push, write_ready, write_settled};
use super::recorder::Recorder;
use super::recording::Outcome;
use super::registered::Registered;
use super::{Kind, Note, Push, Ran, Seen, ticks};
use crate::var::AccessKind;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

fn push(number: u64) -> Push<'static> {
    let (note, name, kind) = (Note::default(), None, Kind::Native);
    Push { number, note, name, kind, lane: 0, priority: 0, bytes: 0, parent: None }
}

/// Pushes that have everything and nothing, few accesses and more than fit a head.
#[test]
fn pushes_are_read_back() {
    let (log, moment) = (Log::new(Reserve::new(1)), Cell::new(0));
    let full = Push { lane: 7, priority: -3, bytes: u64::MAX, parent: Some(u32::MAX), ..push(1 << 32 | 5) };
    let kinds = [AccessKind::Read, AccessKind::Mutate, AccessKind::Overwrite, AccessKind::Exclusive];
    let mut expected = Vec::new();
    for (push, shown, count) in [
        (push(4), (Kind::Native, 0, 0), 0),
        (full, (Kind::Finalizer, u32::MAX, u32::MAX), 3),
        (push(6), (Kind::Copy, 1, 0), 0x7ffe),
        (push(7), (Kind::Copy, 0, 9), 0x7fff),
        (push(8), (Kind::Launch, 3, 0), 0x8001),
    ] {
        let accesses: Vec<_> = (0..count).map(|at| ((1 << 61) + at, kinds[usize::try_from(at % 4).unwrap()])).collect();
        // SAFETY: the log is this thread's.
        unsafe { write_push(&log, &moment, &push, shown, &accesses, |&access| access) };
        let number = u32::try_from(push.number & u64::from(u32::MAX)).unwrap();
        expected.push((number, shown, (push.lane, push.priority, push.bytes, push.parent), accesses));
    }
    let mut times = Vec::new();
    let mut found = Vec::new();
    let read = |push: super::record::Pushed, accesses: &mut dyn Iterator<Item = _>| {
        times.push(push.time);
        let shown = (push.kind, push.name, push.place);
        let rest = (push.lane, push.priority, push.bytes, push.parent);
        found.push((push.number, shown, rest, accesses.collect::<Vec<_>>()));
    };
    read_pushes(&log, read, |_, _| panic!("no variable was told of"));
    assert_eq!(found, expected);
    assert!(times.is_sorted() && times[0] > 0 && times[4] <= super::ticks(), "{times:?}");
}

/// Times near the last moment and far from it, before and after.
#[test]
fn what_became_of_ops_is_read_back() {
    let log = Log::new(Reserve::new(1));
    let (mut moment, mut expected) = (0, Vec::new());
    let far = 1 << 40;
    for (number, ready, started, took, after) in [
        (0, 10, 20, 30, 0),
        (1, 1 << 30, (1 << 30) + 1, 1, 5),
        (2, far, far - (1 << 35), 1 << 34, 0),
        (3, far + 1, far + 2, (1 << 32) - 1, 0),
        (4, far + 3, far + 4, 1 << 32, 1 << 33),
        (5, 7, far + 5, 6, 1 << 32),
    ] {
        let ran = Ran::of(started, took, number);
        // SAFETY: the log is this thread's.
        unsafe {
            write_ready(&log, u32::from(number), ready, &mut moment);
            let settled = started + took + after;
            write_settled(&log, u32::from(number), Outcome::Failed, Some(ran), settled, moment);
            write_settled(&log, u32::from(number) + 100, Outcome::Skipped, None, settled, moment);
            expected.push((u32::from(number), ready, started, started + took, number, settled));
        }
    }
    let (mut found, mut skipped, mut last) = (Vec::new(), Vec::new(), 0);
    read_registered(&log, |number, became| match became {
        Became::Ready { time } => last = time,
        Became::Settled { outcome: Outcome::Failed, run: Some(Run { started, ended, thread }), time } => {
            found.push((number, last, started, ended, thread, time));
        }
        Became::Settled { outcome, run, time } => {
            assert!(outcome == Outcome::Skipped && run.is_none());
            skipped.push((number - 100, time));
        }
    });
    assert_eq!(found, expected);
    assert_eq!(skipped, expected.iter().map(|op| (op.0, op.5)).collect::<Vec<_>>());
}

/// An op that was pushed when what it waits for had run, but was not settled yet: the worker was interrupted between.
#[test]
fn no_op_is_ready_before_it_is_pushed() {
    let recorder = Arc::new(Recorder::new(0, 100, Box::new(|| (None, 1))));
    let push = |number| {
        let (find, access) = (|| Some(Arc::clone(&recorder)), (9, AccessKind::Mutate));
        let see = |&(variable, kind): &_| Seen { variable, kind, is_news: false };
        // SAFETY: the trace lasts as long as the test, and nobody else is in it.
        assert!(unsafe { Recorder::push(recorder.id(), find, &push(number), &[access], see, |_| unreachable!()) });
    };
    push(0);
    let started = ticks();
    let ran = Ran::of(started, ticks() - started, 0);
    while ticks() <= ran.ended() + 1000 {} // some nanoseconds at least
    push(1);
    let (first, log) = recorder.registered();
    let mut registered = Registered::new(log, first);
    registered.settled(0, Outcome::Done, 3, Some(ran), false);
    registered.ready(1, 3);
    let [before, after] = &recorder.recording(&[], &[]).ops[..] else { panic!("two ops were pushed") };
    assert!(before.pushed <= before.started && before.ended < after.pushed, "{before:?} {after:?}");
    assert_eq!(after.ready, after.pushed);
}

/// What describes a push may run Python, which ends the trace and begins another one.
#[test]
fn numbers_of_one_trace_are_not_taken_to_the_next() {
    struct Describing<'a>(&'a dyn Fn());
    impl Describe for Describing<'_> {
        fn place(&self, _: u64) -> String {
            (self.0)();
            "line 1".to_owned()
        }

        fn thread(&self) -> Option<String> {
            (self.0)();
            Some("pusher".to_owned())
        }
    }
    let begin = || Arc::new(Recorder::new(0, 16, Box::new(|| (None, 1))));
    let trace = RefCell::new(begin());
    let old = trace.borrow().id();
    let found = note(
        old,
        &|| Some(Arc::clone(&trace.borrow())),
        Kind::Native,
        "op",
        7,
        &Describing(&|| drop(trace.replace(begin()))),
    );
    let next = trace.borrow().recording(&[], &[]);
    assert_eq!((found.trace, found.name, found.place), (old, 0, 0));
    assert!(next.threads.is_empty() && !next.names.iter().any(|name| name == "op"));
}
