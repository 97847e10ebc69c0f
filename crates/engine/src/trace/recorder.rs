//! The recorder of a traced engine.

use super::clock::{Moment, epoch};
use super::local::{Known, Local};
use super::log::Reserve;
use super::names::Names;
use super::record::{Variable, write_push, write_variable};
use super::recording::{Outcome, RecordedThread};
use super::registered::is_since;
use super::{Kind, Log, Note, Ran};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::var::AccessKind;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

/// Chunks of logs that a trace has at hand when it starts: 12 MiB, or 100,000 ops of many accesses. The system supplies
/// them in some 3 ms; while ops run it would take tens of nanoseconds from each.
const CHUNKS: u64 = 192;
/// Ops at least that fit in two chunks, that of their pushes and that of their outcomes.
const OPS_IN_TWO: u64 = 1024;

/// Ops that a thread may record before it asks for more room.
const BLOCK: u64 = 64;

/// Numbers traces, so that the memory of one is not taken for that of another.
static TRACES: OnceLock<AtomicU32> = OnceLock::new();

/// Tells the calling thread: its lane, if it is a worker, and the host's number of it.
pub(crate) type Identify = dyn Fn() -> (Option<u16>, u64) + Send + Sync;

/// See the module.
pub(crate) struct Recorder {
    id: u32,
    /// The first ticket of the trace.
    pub(super) first: u64,
    pub(super) start: Moment,
    pub(super) epoch: f64,
    /// Ops for which no thread has asked for room yet.
    left: AtomicU64,
    /// Whether it is over when that is used up.
    is_sample: bool,
    pub(super) dropped: AtomicU64,
    /// The registrar's notes.
    pub(super) registered: Arc<Log>,
    /// Where logs take their memory from.
    reserve: Reserve,
    identify: Box<Identify>,
    shared: Mutex<Shared>,
}

/// The shared state, under a lock.
pub(super) struct Shared {
    pub(super) threads: Vec<RecordedThread>,
    /// By thread.
    pub(super) logs: Vec<Arc<Log>>,
    numbers: HashMap<ThreadId, u16>,
    pub(super) names: Names,
    pub(super) places: Names,
    pub(super) singles: Vec<Single>,
    pub(super) waits: Vec<(u64, u64, Outcome)>,
    pub(super) errors: Vec<(u32, String)>,
}

/// Something that did not go through the engine: an op that was run at its push, or a wait for room.
pub(super) struct Single {
    pub(super) note: Note,
    pub(super) thread: u16,
    pub(super) parent: Option<u32>,
    pub(super) ran: Ran,
}

/// An op that is being pushed.
pub(crate) struct Push<'a> {
    pub(crate) number: u64,
    pub(crate) note: Note,
    pub(crate) name: Option<&'a str>,
    pub(crate) kind: Kind,
    pub(crate) lane: u16,
    pub(crate) priority: i32,
    pub(crate) bytes: u64,
    /// Low half of the number of the op inside which it is pushed.
    pub(crate) parent: Option<u32>,
}

/// One of its accesses.
pub(crate) struct Seen {
    pub(crate) variable: u64,
    pub(crate) kind: AccessKind,
    /// Whether the variable is new to this trace.
    pub(crate) is_news: bool,
}

/// A variable's facts.
pub(crate) struct News<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) bytes: u64,
    /// The version before the op that is pushed.
    pub(crate) version: u64,
}

impl Recorder {
    /// A trace of at most `limit` ops, from this ticket on.
    pub(crate) fn new(first: u64, limit: u64, identify: Box<Identify>) -> Self {
        let chunks = CHUNKS.min(limit.div_ceil(OPS_IN_TWO).saturating_mul(2));
        let reserve = Reserve::new(usize::try_from(chunks).unwrap_or(0));
        Self {
            // ORDERING: a number of its own for each trace.
            id: TRACES.get_or_init(|| AtomicU32::new(1)).fetch_add(1, Ordering::Relaxed),
            first,
            start: Moment::now(),
            epoch: epoch(),
            left: AtomicU64::new(limit),
            is_sample: false,
            dropped: AtomicU64::new(0),
            registered: Arc::new(Log::new(reserve.clone())),
            reserve,
            identify,
            shared: Mutex::new(Shared {
                threads: Vec::new(),
                logs: Vec::new(),
                numbers: HashMap::new(),
                names: Names::new(),
                places: Names::new(),
                singles: Vec::new(),
                waits: Vec::new(),
                errors: Vec::new(),
            }),
        }
    }

    /// A trace that is over when it is full.
    pub(crate) fn into_sample(self) -> Self {
        Self { is_sample: true, ..self }
    }

    /// Whether it is full, and ops need not be told to it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_sample && self.room() == 0
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Ops for which no thread has asked for room yet.
    pub(crate) fn room(&self) -> u64 {
        // ORDERING: a count alone.
        self.left.load(Ordering::Relaxed)
    }

    /// Whether the op with this low half of its number was pushed since the start.
    pub(crate) fn has(&self, number: u32) -> bool {
        is_since(self.registered().0, number)
    }

    /// The low half of the first ticket, and the log of the registrar's notes.
    pub(crate) fn registered(&self) -> (u32, Arc<Log>) {
        #[allow(clippy::cast_possible_truncation)] // the low half
        (self.first as u32, Arc::clone(&self.registered))
    }

    /// Nothing that a user wrote runs under it.
    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the calling thread in, unless there are too many. Answers its number, its log, and whether it is new here.
    pub(super) fn admit(&self) -> Option<(u16, *const Log, bool)> {
        let thread = std::thread::current();
        {
            let shared = self.shared();
            if let Some(&number) = shared.numbers.get(&thread.id()) {
                return Some((number, Arc::as_ptr(&shared.logs[usize::from(number)]), false));
            }
        }
        let (lane, ident) = (self.identify)();
        let name = thread.name().map_or_else(|| format!("thread {ident}"), ToOwned::to_owned);
        let mut shared = self.shared();
        let number = u16::try_from(shared.threads.len()).ok().filter(|&number| number < u16::MAX)?;
        let log = Arc::new(Log::new(self.reserve.clone()));
        let address = Arc::as_ptr(&log);
        shared.threads.push(RecordedThread { name, lane, ident });
        shared.logs.push(log);
        shared.numbers.insert(thread.id(), number);
        Some((number, address, true))
    }

    pub(super) fn name_thread(&self, number: u16, name: String) {
        let thread = &mut self.shared().threads[usize::from(number)];
        if thread.lane.is_none() {
            thread.name = name;
        }
    }

    /// Takes room for one op. Where there is none, the op is counted and not kept.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as push()
    fn take_room(&self, local: &Local) -> bool {
        let room = local.room.get();
        if room > 0 {
            local.room.set(room - 1);
            return true;
        }
        self.ask_for_room(local)
    }

    #[cold]
    #[inline(never)]
    fn ask_for_room(&self, local: &Local) -> bool {
        // ORDERING: a count alone, here and below.
        let mut left = self.left.load(Ordering::Relaxed);
        while left > 0 {
            let taken = left.min(BLOCK);
            match self.left.compare_exchange(left, left - taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    local.room.set(u32::try_from(taken).unwrap_or(1) - 1);
                    return true;
                }
                Err(now) => left = now,
            }
        }
        // ORDERING: a count alone.
        self.dropped.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Records a push; `see` and `tell` state an access's kind, and its variable if that is new. Answers whether it is
    /// kept.
    ///
    /// # Safety
    ///
    /// The caller has a ticket, which it has not published, and has found since that this trace lasts.
    #[inline(always)]
    #[allow(clippy::inline_always)] // once for the pushes of ops: its parts are small where they know each other
    pub(crate) unsafe fn push<'a, T>(
        trace: u32,
        find: impl FnOnce() -> Option<Arc<Self>>,
        push: &Push<'_>,
        accesses: &[T],
        see: impl Fn(&T) -> Seen,
        tell: impl Fn(&T) -> News<'a>,
    ) -> bool {
        let Some(local) = Local::of(trace, find) else { return false };
        // SAFETY: the thread does not end meanwhile, and a trace that stops waits for the caller to publish before it frees
        // recorder and log.
        let (local, recorder, log) = unsafe {
            let local = local.as_ref();
            (local, &*local.recorder.get(), &*local.log.get())
        };
        if !recorder.take_room(local) {
            return false;
        }
        for access in accesses {
            let Seen { variable, is_news, .. } = see(access);
            if is_news {
                // SAFETY: the log is this thread's alone.
                unsafe { recorder.write_news(log, variable, &tell(access)) };
            }
        }
        let note = if push.note.trace == trace { push.note } else { Note::default() };
        let name = match push.name {
            Some(name) if note.name == 0 => recorder.name_number(name),
            _ => note.name,
        };
        let shown = (push.note.kind.unwrap_or(push.kind), name, note.place);
        let seen = |access: &T| {
            let Seen { variable, kind, .. } = see(access);
            (variable, kind)
        };
        // SAFETY: as above.
        unsafe { write_push(log, &local.moment, push, shown, accesses, seen) };
        true
    }

    /// # Safety
    ///
    /// The log is the caller's.
    #[cold]
    unsafe fn write_news(&self, log: &Log, variable: u64, &News { name, bytes, version }: &News<'_>) {
        let name = name.map_or(0, |name| self.name_number(name));
        // SAFETY: the caller's promise.
        unsafe { write_variable(log, variable, &Variable { bytes, name, version }) };
    }

    /// The number of a name.
    pub(super) fn name_number(&self, name: &str) -> u32 {
        if let Some(number) = Known::with(self.id, |known| known.name(name)).flatten() {
            return number;
        }
        let number = self.shared().names.number(name);
        Known::with(self.id, |known| known.names.insert(name.into(), number));
        number
    }

    /// The number of a place, which goes by `key` from now on.
    pub(super) fn place_number(&self, key: u64, text: &str) -> u32 {
        let number = self.shared().places.number(text);
        Known::with(self.id, |known| known.places.insert(key, number));
        number
    }

    /// Records an op that was run at its push, or a wait for room. Answers whether it is kept.
    pub(crate) fn single(self: &Arc<Self>, note: Note, name: &str, parent: Option<u32>, ran: Ran) -> bool {
        let mut note =
            if note.trace == self.id { note } else { Note { trace: self.id, kind: note.kind, ..Note::default() } };
        if note.name == 0 {
            note.name = self.name_number(name);
        }
        Local::with(
            self.id,
            || Some(Arc::clone(self)),
            |local| {
                let has_room = self.take_room(local);
                if has_room {
                    let thread = local.number.get();
                    self.shared().singles.push(Single { note, thread, parent, ran });
                }
                has_room
            },
        )
        .unwrap_or(false)
    }

    /// Records the end of a wait.
    pub(crate) fn waited(&self, number: u64, outcome: Outcome) {
        let now = super::ticks();
        self.shared().waits.push((number, now, outcome));
    }

    /// Records why an op failed.
    pub(crate) fn failed(&self, number: u32, reason: String) {
        self.shared().errors.push((number, reason));
    }
}
