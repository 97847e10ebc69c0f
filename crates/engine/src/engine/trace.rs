//! Tracing an engine: from its start to its recording.

use super::core::trace_in;
use super::{Core, Engine, PushOptions};
use crate::EngineError;
use crate::op::{DeviceLane, OpFlags, OpPtr, current};
use crate::trace::{
    Describe, Identify, Kind, News, Note, Outcome, Push, Ran, Recorder, Recording, Registered, Seen, Span, note, ticks,
};
use crate::var::{AccessKind, VarNode};
use std::ptr::NonNull;
use std::sync::Arc;

impl Core {
    /// Low half of the number of the op inside which the calling thread is.
    fn parent(&self) -> Option<u32> {
        // SAFETY: this thread runs the op.
        current(self.pool().address()).map(|op: OpPtr| unsafe { (*op.as_ptr()).number })
    }

    /// Records a push and marks the op, if this state says so and there is room for it.
    ///
    /// # Safety
    ///
    /// The caller has a ticket, `number`, which it has not published, and has asked for the state since.
    #[inline(never)] // out of the way of those that are not traced
    #[allow(clippy::too_many_arguments)] // what a push knows
    pub(super) unsafe fn trace_push(
        &self,
        state: u32,
        kind: Kind,
        number: u64,
        accesses: &[(NonNull<VarNode>, AccessKind)],
        options: &PushOptions<'_>,
        lane: u16,
        flags: &mut OpFlags,
    ) {
        let trace = trace_in(state);
        if trace == 0 {
            return;
        }
        let &PushOptions { mut note, name, priority, bytes, device, .. } = options;
        // Ops on a copy lane move data, by any payload.
        if device.lane == DeviceLane::Copy && matches!(note.kind.unwrap_or(kind), Kind::Callable | Kind::Native) {
            note.kind = Some(Kind::Copy);
        }
        let push = Push { number, note, name, kind, lane, priority, bytes, parent: self.parent() };
        // SAFETY: the caller's promise.
        if unsafe { self.record(trace, &push, accesses) } {
            flags.set(OpFlags::TRACED);
        }
    }

    /// # Safety
    ///
    /// As for `Recorder::push`.
    #[inline]
    pub(super) unsafe fn record(
        &self,
        trace: u32,
        push: &Push<'_>,
        accesses: &[(NonNull<VarNode>, AccessKind)],
    ) -> bool {
        // SAFETY: the accesses borrow their variables.
        let node = |access: &(NonNull<VarNode>, AccessKind)| -> &VarNode { unsafe { access.0.as_ref() } };
        let see = |access: &(_, AccessKind)| {
            let node = node(access);
            Seen { variable: node.number, kind: access.1, is_news: node.is_news(trace) }
        };
        let tell = |access: &(_, AccessKind)| {
            let node = node(access);
            node.note(trace);
            News {
                name: node.name.as_deref(),
                bytes: node.bytes,
                version: node.version() - u64::from(access.1.makes_version()),
            }
        };
        // SAFETY: the caller's promise.
        let is_kept = unsafe { Recorder::push(trace, || self.pool().recorder(), push, accesses, see, tell) };
        if !is_kept {
            self.end_sample(trace);
        }
        is_kept
    }

    /// Tells nothing more to a trace that has not kept an op, if it is a sample, which is over then.
    #[cold]
    fn end_sample(&self, trace: u32) {
        if self.pool().recorder().is_some_and(|recorder| recorder.id() == trace && recorder.is_over()) {
            self.leave_trace(trace);
        }
    }
}

impl Core {
    /// Records the beginning of a wait. Answers its number if it is kept.
    ///
    /// # Safety
    ///
    /// The caller has a ticket, `number`, which it has not published.
    pub(super) unsafe fn trace_wait(
        &self,
        number: u64,
        accesses: &[(NonNull<VarNode>, AccessKind)],
        (note, name): (Note, &str),
    ) -> Option<u64> {
        let trace = trace_in(self.state());
        if trace == 0 {
            return None;
        }
        let (kind, parent) = (Kind::Wait, self.parent());
        let push = Push { number, note, name: Some(name), kind, lane: 0, priority: 0, bytes: 0, parent };
        // SAFETY: the caller's promise, and the state was asked for since.
        unsafe { self.record(trace, &push, accesses) }.then_some(number)
    }

    /// Records the end of the wait with this number.
    pub(super) fn trace_waited(&self, number: Option<u64>, outcome: Outcome) {
        if let Some(number) = number
            && let Some(recorder) = self.pool().recorder()
        {
            recorder.waited(number, outcome);
        }
    }
}

impl Engine {
    /// Starts a trace: ops that are pushed from now on are recorded, `limit` of them at most; further ones are counted.
    pub fn start_trace(&self, limit: u64) -> Result<(), EngineError> {
        self.start(|first, identify| Recorder::new(first, limit, identify))
    }

    /// Starts a trace of the next `limit` ops, about. When it is full, further ops are neither recorded nor counted, and
    /// take no longer than without a trace. It lasts until it is [stopped](Self::stop_trace).
    pub fn start_sample(&self, limit: u64) -> Result<(), EngineError> {
        self.start(|first, identify| Recorder::new(first, limit, identify).into_sample())
    }

    fn start(&self, make: impl FnOnce(u64, Box<Identify>) -> Recorder) -> Result<(), EngineError> {
        let pool = self.core.pool();
        let _ = ticks(); // the first look at the clock asks the system what it is worth
        let mut turn = pool.turn();
        if pool.recorder().is_some() {
            return Err(EngineError::Traced { engine: self.name().to_owned() });
        }
        let (owner, host) = (Arc::downgrade(pool), Arc::clone(&pool.host));
        let identify = move || (owner.upgrade().and_then(|pool| pool.lane_of_worker()), host.thread());
        let recorder = Arc::new(make(pool.registrar.ring.claimed(), Box::new(identify)));
        let trace = recorder.id();
        let (first, log) = recorder.registered();
        turn.parts().0.set_trace(Some(Registered::new(log, first)));
        pool.set_recorder(Some(recorder));
        self.core.set_trace(trace);
        Ok(())
    }

    /// The recording so far. The trace goes on.
    pub fn read_trace(&self) -> Result<Recording, EngineError> {
        let pool = self.core.pool();
        let mut turn = pool.turn();
        turn.catch_up();
        let (recorder, running) = (pool.recorder(), pool.running_in_trace());
        let errors = turn.parts().0.trace().map(|trace| trace.errors().to_vec()).unwrap_or_default();
        drop(turn);
        let recorder = recorder.ok_or_else(|| EngineError::NotTraced { engine: self.name().to_owned() })?;
        Ok(Recording { engine: pool.address(), ..recorder.recording(&errors, &running) })
    }

    /// How many more ops a trace of the engine has room for, about: threads take room for several at a time. None without a trace.
    #[must_use]
    pub fn trace_room(&self) -> Option<u64> {
        self.core.pool().recorder().map(|recorder| recorder.room())
    }

    /// Ends the trace and answers the recording. Pending ops have zeros for events that have not happened.
    pub fn stop_trace(&self) -> Result<Recording, EngineError> {
        let pool = self.core.pool();
        let mut turn = pool.turn();
        self.core.set_trace(0);
        // A pusher that saw it otherwise has a ticket: after this it is published, and all writes are over.
        turn.catch_up();
        let running = pool.running_in_trace();
        let trace = turn.parts().0.set_trace(None);
        let recorder = pool.set_recorder(None);
        drop(turn);
        let (Some(recorder), Some(trace)) = (recorder, trace) else {
            return Err(EngineError::NotTraced { engine: self.name().to_owned() });
        };
        Ok(Recording { engine: pool.address(), ..recorder.recording(trace.errors(), &running) })
    }

    /// A number that tells this engine from others that live, as [`CurrentOp::engine`](crate::CurrentOp::engine) has it.
    #[must_use]
    pub fn id(&self) -> usize {
        self.core.pool().address()
    }

    /// Whether ops that are pushed now are recorded.
    #[must_use]
    #[inline]
    pub fn is_traced(&self) -> bool {
        trace_in(self.core.state()) != 0
    }

    /// Whether pushes are observed now: by a trace, or [by checks](Self::is_watched).
    #[must_use]
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.core.is_observed()
    }

    /// Whether pushers are to check their ops now. The engine itself checks nothing.
    #[must_use]
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.core.is_watched()
    }

    /// Says whether ops that are pushed from now on are to be checked. In a forked child they are not.
    pub fn watch(&self, watched: bool) {
        self.core.set_watched(watched);
    }

    /// The record, for a trace, of an op about to be pushed: its kind, its name, and its place, which goes by a key of
    /// the caller's (0 for none). Call it where anything may run, if the engine [is traced](Self::is_traced).
    #[must_use]
    pub fn note(&self, kind: Kind, name: &str, place: u64, describe: &dyn Describe) -> Note {
        match trace_in(self.core.state()) {
            0 => Note::of(kind),
            trace => note(trace, &|| self.core.pool().recorder(), kind, name, place, describe),
        }
    }

    /// Begins a stretch of time on the calling thread; nothing if the engine is not traced.
    #[must_use]
    #[inline]
    pub fn start_span(&self) -> Option<Span> {
        if self.is_traced() { self.start_span_now() } else { None }
    }

    #[cold]
    fn start_span_now(&self) -> Option<Span> {
        let trace = trace_in(self.core.state());
        Some(Span { trace, ran: Ran::begin(self.core.pool().thread_in_trace()?) })
    }

    /// Records a wait for room, which has no place in the order of ops.
    pub(super) fn record_wait_for_room(&self, span: Span) {
        self.record("wait for room", Note::of(Kind::Wait), span);
    }

    /// Records an op that was run at its push, from the beginning of this stretch of time until now.
    pub fn record_run(&self, note: Note, span: Span) {
        self.record("", note, span);
    }

    fn record(&self, name: &str, note: Note, mut span: Span) {
        span.end();
        if let Some(recorder) = self.core.pool().recorder().filter(|recorder| recorder.id() == span.trace) {
            let is_kept = recorder.single(note, name, self.core.parent(), span.ran);
            if !is_kept && recorder.is_over() {
                self.core.leave_trace(span.trace);
            }
        }
    }
}
