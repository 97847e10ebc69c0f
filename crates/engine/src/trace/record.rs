//! Records as words, as short as may be: what is written for each op goes to memory that nobody has touched before.
//!
//! | record | first word, from the top | further words |
//! |---|---|---|
//! | push | 2 bits tag, 3 what there is, 3 kind, 8 lane, 16 accesses, 32 number | time; name and place; what there is; a word for each access |
//! | variable | 2 bits tag, 62 number | bytes; name; version |
//! | ready | 2 bits tag, 30 since the last moment, 32 number | |
//! | settled | 2 bits tag, 2 what there is, 3 outcome, 16 thread, 32 number | begin; duration and what came after; or the time alone |
//! | moment | 2 bits tag | time |
//!
//! Numbers of ops are the low halves of tickets. What does not fit its bits has a word of its own.

use super::log::{Log, Slots};
use super::recorder::Push;
use super::recording::Outcome;
use super::{Kind, Ran};
use crate::var::AccessKind;

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
const COUNT: u32 = 32;
/// Accesses so many that their number has a word of its own.
const MANY: u64 = 0xffff;

const HAS_RUN: u64 = 1 << 61;
const IS_LONG: u64 = 1 << 60;
const OUTCOME: u32 = 57;
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

/// Records a push, now.
///
/// # Safety
///
/// The log is the caller's.
#[inline]
pub(super) unsafe fn write_push(
    log: &Log,
    push: &Push<'_>,
    (kind, name, place): (Kind, u32, u32),
    accesses: impl ExactSizeIterator<Item = (u64, AccessKind)>,
) {
    let (words, count) = (accesses.len(), accesses.len() as u64);
    let flag = |is: bool, flag| if is { flag } else { 0 };
    let is_many = count >= MANY;
    let (has_priority, has_bytes) = (push.priority != 0, push.bytes != 0);
    let head = u64::from(low(push.number))
        | count.min(MANY) << COUNT
        | u64::from(push.lane & 0xff) << LANE
        | (kind as u64) << KIND
        | flag(push.parent.is_some(), HAS_PARENT)
        | flag(has_priority, HAS_PRIORITY)
        | flag(has_bytes, HAS_BYTES);
    let optional =
        usize::from(push.parent.is_some()) + usize::from(has_priority) + usize::from(has_bytes) + usize::from(is_many);
    let words = 3 + optional + words;
    let write = |slots: &mut Slots<'_>| {
        slots.put(head);
        slots.put(super::ticks());
        slots.put(u64::from(name) << 32 | u64::from(place));
        if optional > 0 {
            if let Some(parent) = push.parent {
                slots.put(u64::from(parent));
            }
            if has_priority {
                slots.put(u64::from(push.priority.cast_unsigned()));
            }
            if has_bytes {
                slots.put(push.bytes);
            }
            if is_many {
                slots.put(count);
            }
        }
        accesses.for_each(|(variable, kind)| slots.put((kind as u64) << TAG | variable));
    };
    // SAFETY: the caller's promise.
    unsafe { log.append(words, write) };
}

/// Records what a variable is. Its version is the one before the op that is recorded next.
///
/// # Safety
///
/// The log is the caller's.
pub(super) unsafe fn write_variable(log: &Log, number: u64, variable: &Variable) {
    // SAFETY: the caller's promise.
    unsafe {
        log.append(4, |slots| {
            slots.put(VARIABLE << TAG | number);
            slots.put(variable.bytes);
            slots.put(u64::from(variable.name));
            slots.put(variable.version);
        });
    }
}

/// What a variable is, when it is first seen.
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
    log.each(|words| {
        while let Some(head) = words.next() {
            let mut next = || words.next().unwrap_or_default();
            if head >> TAG == VARIABLE {
                let (bytes, name, version) = (next(), low(next()), next());
                variable(head & !(VARIABLE << TAG), Variable { bytes, name, version });
                continue;
            }
            let (time, texts) = (next(), next());
            let pushed = Pushed {
                number: low(head),
                kind: Kind::from_bits((head >> KIND) as u8 & 7),
                name: high(texts),
                place: low(texts),
                lane: (head >> LANE) as u16 & 0xff,
                time,
                parent: (head & HAS_PARENT != 0).then(|| low(next())),
                priority: if head & HAS_PRIORITY == 0 { 0 } else { low(next()).cast_signed() },
                bytes: if head & HAS_BYTES == 0 { 0 } else { next() },
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
            log.append(2, |slots| {
                slots.put(MOMENT << TAG);
                slots.put(now);
            });
        }
        log.append(1, |slots| slots.put(READY << TAG | (now - *moment) << 32 | u64::from(number)));
    }
}

/// Records that an op is settled, and when it ran if it did.
///
/// # Safety
///
/// The log is the caller's.
#[inline]
pub(super) unsafe fn write_settled(log: &Log, number: u32, outcome: Outcome, ran: Option<Ran>, now: u64) {
    let head = SETTLED << TAG | (outcome as u64) << OUTCOME | u64::from(number);
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let Some(ran) = ran else {
            return log.append(2, |slots| {
                slots.put(head);
                slots.put(now);
            });
        };
        let head = head | HAS_RUN | u64::from(ran.thread()) << THREAD;
        let (took, after) = (ran.duration(), now.saturating_sub(ran.ended()));
        if high(took) == 0 && high(after) == 0 {
            log.append(3, |slots| {
                slots.put(head);
                slots.put(ran.started);
                slots.put(took << 32 | after);
            });
        } else {
            log.append(4, |slots| {
                slots.put(head | IS_LONG);
                slots.put(ran.started);
                slots.put(took);
                slots.put(after);
            });
        }
    }
}

/// What became of an op.
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

/// Reads what the registrar has noted of each op.
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
                        let started = time;
                        let both = next();
                        let (took, after) =
                            if head & IS_LONG == 0 { (both >> 32, both & 0xffff_ffff) } else { (both, next()) };
                        run = Some(Run { started, ended: started + took, thread: (head >> THREAD) as u16 });
                        time = started + took + after;
                    }
                    became(low(head), Became::Settled { outcome, run, time });
                }
            }
        }
    });
}
