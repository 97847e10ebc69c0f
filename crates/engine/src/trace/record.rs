//! Records as words, as short as may be: each goes to untouched memory.
//!
//! | record | first word, from the top | further words |
//! |---|---|---|
//! | push | 2 bits tag, 3 what there is, 3 kind, 8 lane, 1 what there is, 15 accesses, 32 number | since the last moment, and name; what there is; a word for each access |
//! | variable | 2 bits tag, 62 number | bytes; name; version |
//! | ready | 2 bits tag, 30 since the last moment, 32 number | |
//! | settled | 2 bits tag, 2 what there is, 3 outcome, 1 whether late, 16 thread, 32 number | begin, since the last moment, and duration; what came after if it is late; or the time alone |
//! | moment | 2 bits tag | time |
//!
//! Numbers of ops are the low halves of tickets. A number too large for its bits has a word of its own.

use super::log::Log;
use super::recorder::Push;
use super::recording::Outcome;
use super::{Kind, Ran};
use crate::var::AccessKind;
use std::cell::Cell;

const TAG: u32 = 62;
const VARIABLE: u64 = 1;
const READY: u64 = 0;
const SETTLED: u64 = 1;
const MOMENT: u64 = 2;

const HAS_PARENT: u64 = 1 << 61;
const HAS_PRIORITY: u64 = 1 << 60;
const HAS_BYTES: u64 = 1 << 59;
const KIND: u32 = 56;
const LANE: u32 = 48;
const HAS_PLACE: u64 = 1 << 47;
const COUNT: u32 = 32;
/// Accesses so many that their number has a word of its own.
const MANY: u64 = 0x7fff;
/// Words of a push that most do without.
const OPTIONAL: usize = 5;

const HAS_RUN: u64 = 1 << 61;
const IS_LONG: u64 = 1 << 60;
const OUTCOME: u32 = 57;
const IS_LATE: u64 = 1 << 56;
const THREAD: u32 = 32;
const FAR: u64 = 1 << 30;

#[allow(clippy::cast_possible_truncation)] // the half of a word
const fn low(word: u64) -> u32 {
    word as u32
}

#[allow(clippy::cast_possible_truncation)] // as above
const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Records a push, now. `moment` is that of the log's last moment; `seen` tells an access's variable and kind.
///
/// # Safety
///
/// The log is the caller's.
#[inline(always)]
#[allow(clippy::inline_always)] // as Recorder::push()
pub(super) unsafe fn write_push<T>(
    log: &Log,
    moment: &Cell<u64>,
    push: &Push<'_>,
    (kind, name, place): (Kind, u32, u32),
    accesses: &[T],
    seen: impl Fn(&T) -> (u64, AccessKind),
) {
    let now = super::ticks();
    if high(now.wrapping_sub(moment.get())) != 0 {
        moment.set(now);
        // SAFETY: the caller's promise.
        unsafe { write_moment(log, now) };
    }
    let count = accesses.len() as u64;
    let mut head = u64::from(low(push.number))
        | count.min(MANY) << COUNT
        | u64::from(push.lane & 0xff) << LANE
        | (kind as u64) << KIND;
    // SAFETY: the caller's promise.
    let mut slots = unsafe { log.begin(2 + OPTIONAL + accesses.len()) };
    slots.put(head);
    slots.put((now - moment.get()) << 32 | u64::from(name));
    if push.parent.is_some() || push.priority != 0 || push.bytes != 0 || place != 0 || count >= MANY {
        if let Some(parent) = push.parent {
            head |= HAS_PARENT;
            slots.put(u64::from(parent));
        }
        if push.priority != 0 {
            head |= HAS_PRIORITY;
            slots.put(u64::from(push.priority.cast_unsigned()));
        }
        if push.bytes != 0 {
            head |= HAS_BYTES;
            slots.put(push.bytes);
        }
        if place != 0 {
            head |= HAS_PLACE;
            slots.put(u64::from(place));
        }
        if count >= MANY {
            slots.put(count);
        }
        slots.put_first(head);
    }
    for access in accesses {
        let (variable, kind) = seen(access);
        slots.put((kind as u64) << TAG | variable);
    }
    slots.publish();
}

/// Records a moment, from which times are counted.
///
/// # Safety
///
/// The log is the caller's.
#[cold]
unsafe fn write_moment(log: &Log, now: u64) {
    // SAFETY: the caller's promise.
    unsafe { log.append([MOMENT << TAG, now]) };
}

/// Records a variable's facts. Its version is the one before the op that is recorded next.
///
/// # Safety
///
/// The log is the caller's.
pub(super) unsafe fn write_variable(log: &Log, number: u64, variable: &Variable) {
    // SAFETY: the caller's promise.
    unsafe { log.append([VARIABLE << TAG | number, variable.bytes, u64::from(variable.name), variable.version]) };
}

/// A variable's facts, when it is first seen.
#[derive(Clone, Copy)]
pub(super) struct Variable {
    pub(super) bytes: u64,
    pub(super) name: u32,
    pub(super) version: u64,
}

/// A push, read back.
pub(super) struct Pushed {
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) name: u32,
    pub(super) place: u32,
    pub(super) lane: u16,
    pub(super) time: u64,
    pub(super) parent: Option<u32>,
    pub(super) priority: i32,
    pub(super) bytes: u64,
}

/// Reads a log of pushes: each push with its accesses, each variable with its number.
#[allow(clippy::cast_possible_truncation)] // parts of words
pub(super) fn read_pushes(
    log: &Log,
    mut push: impl FnMut(Pushed, &mut dyn Iterator<Item = (u64, AccessKind)>),
    mut variable: impl FnMut(u64, Variable),
) {
    let mut moment = 0;
    log.each(|words| {
        while let Some(head) = words.next() {
            let mut next = || words.next().unwrap_or_default();
            if head >> TAG == MOMENT {
                moment = next();
                continue;
            }
            if head >> TAG == VARIABLE {
                let (bytes, name, version) = (next(), low(next()), next());
                variable(head & !(VARIABLE << TAG), Variable { bytes, name, version });
                continue;
            }
            let both = next();
            let pushed = Pushed {
                number: low(head),
                kind: Kind::from_bits((head >> KIND) as u8 & 7),
                name: low(both),
                lane: (head >> LANE) as u16 & 0xff,
                time: moment + (both >> 32),
                parent: (head & HAS_PARENT != 0).then(|| low(next())),
                priority: if head & HAS_PRIORITY == 0 { 0 } else { low(next()).cast_signed() },
                bytes: if head & HAS_BYTES == 0 { 0 } else { next() },
                place: if head & HAS_PLACE == 0 { 0 } else { low(next()) },
            };
            let count = match head >> COUNT & MANY {
                MANY => next(),
                count => count,
            };
            let accesses = words.take(count as usize);
            let read = |word: u64| (word & !(3 << TAG), AccessKind::from_bits((word >> TAG) as usize));
            push(pushed, &mut accesses.map(read));
        }
    });
}

/// Records that an op is ready. `moment` is that of the log's last moment.
///
/// # Safety
///
/// The log is the caller's.
#[inline]
pub(super) unsafe fn write_ready(log: &Log, number: u32, now: u64, moment: &mut u64) {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        if now.wrapping_sub(*moment) >= FAR {
            *moment = now;
            write_moment(log, now);
        }
        log.append([READY << TAG | (now - *moment) << 32 | u64::from(number)]);
    }
}

/// Records that an op is settled now, and when it ran if it did. `moment` is that of the log's last moment.
///
/// # Safety
///
/// The log is the caller's.
#[inline]
pub(super) unsafe fn write_settled(log: &Log, number: u32, outcome: Outcome, ran: Option<Ran>, now: u64, moment: u64) {
    let head = SETTLED << TAG | (outcome as u64) << OUTCOME | u64::from(number);
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let Some(ran) = ran else { return log.append([head, now]) };
        let head = head | HAS_RUN | u64::from(ran.thread()) << THREAD;
        // One that began before that moment makes this large.
        let (since, took) = (ran.started.wrapping_sub(moment), ran.duration());
        let after = now.saturating_sub(ran.ended());
        if high(since) | high(took) != 0 {
            log.append([head | IS_LONG, ran.started, took, after]);
        } else if after == 0 {
            log.append([head, since << 32 | took]);
        } else {
            log.append([head | IS_LATE, since << 32 | took, after]);
        }
    }
}

/// The outcome of an op.
pub(super) enum Became {
    Ready { time: u64 },
    Settled { outcome: Outcome, run: Option<Run>, time: u64 },
}

/// When and where it ran.
pub(super) struct Run {
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) thread: u16,
}

/// Reads the registrar's notes on each op.
#[allow(clippy::cast_possible_truncation)] // parts of words
pub(super) fn read_registered(log: &Log, mut became: impl FnMut(u32, Became)) {
    let mut moment = 0;
    log.each(|words| {
        while let Some(head) = words.next() {
            let mut next = || words.next().unwrap_or_default();
            match head >> TAG {
                MOMENT => moment = next(),
                READY => became(low(head), Became::Ready { time: moment + (head >> 32 & (FAR - 1)) }),
                _ => {
                    let outcome = Outcome::from_bits((head >> OUTCOME) as u8 & 7);
                    let (mut run, mut time) = (None, next());
                    if head & HAS_RUN != 0 {
                        let (started, took) = if head & IS_LONG == 0 {
                            (moment + (time >> 32), u64::from(low(time)))
                        } else {
                            (time, next())
                        };
                        let ended = started + took;
                        run = Some(Run { started, ended, thread: (head >> THREAD) as u16 });
                        time = if head & (IS_LONG | IS_LATE) == 0 { ended } else { ended + next() };
                    }
                    became(low(head), Became::Settled { outcome, run, time });
                }
            }
        }
    });
}
