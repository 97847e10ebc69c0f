//! A thread's part of the trace that it last took part in.

use super::Log;
use super::names::QuickMap;
use super::recorder::Recorder;
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Traces with a part that a thread knows: as many engines may be traced at the same time without asking anew at each
/// turn.
const TRACES: usize = 4;

/// Where it knows that of this trace.
const fn slot(trace: u32) -> usize {
    trace as usize % TRACES
}

/// The calling thread in one trace.
pub(super) struct Local {
    /// The trace; 0 is none. Numbers of traces are never used again.
    trace: Cell<u32>,
    /// Its number among the threads of the trace.
    pub(super) number: Cell<u16>,
    /// Whether its name was asked for.
    pub(super) named: Cell<bool>,
    /// The last moment in its log.
    pub(super) moment: Cell<u64>,
    /// Ops that it may still record before it asks for more.
    pub(super) room: Cell<u32>,
    /// Its log, which the recorder keeps. Valid as long as the trace lasts.
    pub(super) log: Cell<*const Log>,
    pub(super) recorder: Cell<*const Recorder>,
}

/// Numbers of the names and places that the thread has used, of one trace.
#[derive(Default)]
pub(super) struct Known {
    trace: u32,
    pub(super) names: QuickMap<Box<str>, u32>,
    pub(super) places: QuickMap<u64, u32>,
}

/// Names a thread remembers at most: a name for every single op is not to be paid for twice.
const KNOWN: usize = 4096;

// On the heap: memory in place for each thread is taken from a small reserve that all libraries share.
thread_local! {
    static LOCALS: Box<[Local; TRACES]> = Box::new(std::array::from_fn(|_| Local::new()));
    static KNOWN_NAMES: RefCell<Box<[Known; TRACES]>> = RefCell::default();
}

impl Local {
    fn new() -> Self {
        Self {
            trace: Cell::new(0),
            number: Cell::new(0),
            named: Cell::new(false),
            moment: Cell::new(0),
            room: Cell::new(0),
            log: Cell::new(ptr::null()),
            recorder: Cell::new(ptr::null()),
        }
    }

    /// The calling thread's part in a trace, which `recorder` finds if the thread is new to it. It lasts until the thread
    /// ends; there is none at the end of the thread.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as Recorder::push()
    pub(super) fn of(trace: u32, recorder: impl FnOnce() -> Option<Arc<Recorder>>) -> Option<NonNull<Self>> {
        let local = LOCALS.try_with(|locals| NonNull::from(&locals[slot(trace)])).ok()?;
        // SAFETY: it is the thread's own and lasts; only shared references to it are made.
        let known = unsafe { local.as_ref() };
        (known.trace.get() == trace || known.join(trace, recorder)).then_some(local)
    }

    /// Calls `f` with it.
    #[inline]
    pub(super) fn with<R>(
        trace: u32,
        recorder: impl FnOnce() -> Option<Arc<Recorder>>,
        f: impl FnOnce(&Self) -> R,
    ) -> Option<R> {
        // SAFETY: the thread does not end meanwhile.
        Self::of(trace, recorder).map(|local| f(unsafe { local.as_ref() }))
    }

    /// Takes part in a trace from now on, if this is the one.
    #[cold]
    fn join(&self, trace: u32, recorder: impl FnOnce() -> Option<Arc<Recorder>>) -> bool {
        let Some(recorder) = recorder().filter(|recorder| recorder.id() == trace) else { return false };
        let Some((number, log, is_new)) = recorder.admit() else { return false };
        self.trace.set(trace);
        self.number.set(number);
        self.named.set(!is_new);
        self.moment.set(0);
        self.room.set(0);
        self.log.set(log);
        self.recorder.set(Arc::as_ptr(&recorder));
        true
    }
}

impl Known {
    /// Calls `f` with the calling thread's part of the trace; not at the end of the thread.
    #[inline]
    pub(super) fn with<R>(trace: u32, f: impl FnOnce(&mut Self) -> R) -> Option<R> {
        let known = KNOWN_NAMES.try_with(|known| {
            let known = &mut known.try_borrow_mut().ok()?[slot(trace)];
            if known.trace != trace || known.names.len() > KNOWN || known.places.len() > KNOWN {
                *known = Self { trace, ..Self::default() };
            }
            Some(f(known))
        });
        known.ok().flatten()
    }

    #[inline]
    pub(super) fn name(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    #[inline]
    pub(super) fn place(&self, key: u64) -> Option<u32> {
        self.places.get(&key).copied()
    }
}

/// The number of the calling thread among those of a trace.
#[inline]
pub(crate) fn thread_in(trace: u32, recorder: impl FnOnce() -> Option<Arc<Recorder>>) -> Option<u16> {
    Local::with(trace, recorder, |local| local.number.get())
}
