//! The context of a running payload, and the ways to finish later.

use super::deferred::{Deferred, Listing};
use super::{Last, Op, OpPtr};
use crate::error::EngineError;
use crate::failure::Cause;
use crate::sync::{AtomicBool, AtomicU32, Ordering, UnsafeCell, thread_cell};
use crate::trace::Span;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// Where finished ops go. The engine's core is one.
pub(crate) trait Deliver: Send + Sync {
    /// Takes an op after its work.
    fn deliver(&self, op: OpPtr, result: Result<(), Cause>);

    /// The list of ops with their tokens out; none if it is not looked at any more.
    fn deferred(&self) -> Option<&Deferred>;

    /// Takes an error for which no op is left that could carry it.
    fn stray(&self, op: &str, cause: Cause);

    /// The host, of whichever type it is.
    fn host(&self) -> &dyn Any;
}

thread_cell! {
    /// Engine (by address) and op that this thread runs.
    static CURRENT: (usize, Option<OpPtr>) = (0, None);
}

/// The op of `engine` that this thread runs.
#[inline]
pub(crate) fn current(engine: usize) -> Option<OpPtr> {
    let (owner, op) = CURRENT.with(Cell::get);
    op.filter(|_| owner == engine)
}

/// Engine (by address) and op that this thread runs, whichever engine it is.
#[inline]
pub(super) fn running() -> Option<(usize, OpPtr)> {
    let (engine, op) = CURRENT.with(Cell::get);
    Some((engine, op?))
}

/// Whether this thread runs an op, of whichever engine.
#[inline]
pub(crate) fn is_inside_any() -> bool {
    running().is_some()
}

/// Notes the op that this thread runs from now on, and answers the one before.
#[inline]
pub(crate) fn set_current(engine: usize, op: OpPtr) -> (usize, Option<OpPtr>) {
    CURRENT.with(|current| current.replace((engine, Some(op))))
}

/// Goes back to the op before.
#[inline]
pub(crate) fn clear_current(before: (usize, Option<OpPtr>)) {
    CURRENT.with(|current| current.set(before));
}

/// Handed to a running payload.
pub struct OpContext<'a> {
    op: OpPtr,
    deliver: &'a Arc<dyn Deliver>,
    token: Option<Arc<Token>>,
}

impl<'a> OpContext<'a> {
    #[inline]
    pub(crate) fn new(op: OpPtr, deliver: &'a Arc<dyn Deliver>) -> Self {
        Self { op, deliver, token: None }
    }

    /// The op's label: its name, or its number.
    #[must_use]
    pub fn label(&self) -> String {
        if let Some(token) = &self.token {
            return token.label.clone();
        }
        // SAFETY: until a token exists the running thread owns the op.
        unsafe { Op::label(self.op) }
    }

    /// The engine's [`Host`](crate::Host), a place for objects that outlive the op, if the payload knows its type.
    #[must_use]
    pub fn host(&self) -> &dyn Any {
        self.deliver.host()
    }

    /// Makes the op complete later: when the answered token was used, from any thread, and the
    /// payload has returned, whichever comes last.
    ///
    /// If the payload then answers an error and the token is unused, the op fails with it.
    pub fn defer(&mut self) -> Completion {
        if self.token.is_none() {
            let label = self.label();
            let token = self.token.insert(Arc::new(Token::new(self.op, Arc::clone(self.deliver), label)));
            if let Some(deferred) = self.deliver.deferred() {
                // SAFETY: a token is made for one op and lies on the heap; it leaves with its second end, which comes at
                // the latest when it is dropped.
                unsafe { deferred.enter(&token.place) };
            }
        }
        match &self.token {
            Some(token) => Completion(Arc::clone(token)),
            None => unreachable!("made above"),
        }
    }

    /// Tells a trace that the op's work was done at another time: by an op that has taken it along.
    pub fn was_done_in(&mut self, span: Span) {
        // SAFETY: until the run ends, or a token is used after, the running thread owns the op; it is in no list.
        unsafe { (*self.op.as_ptr()).last = Last { ran: span.ran } };
    }

    /// Whether the op ends with the run: it has no token.
    #[must_use]
    #[inline]
    pub fn ends_with_run(&self) -> bool {
        self.token.is_none()
    }

    /// Ends the run. Answers the op to deliver, or nothing if a token will.
    #[inline]
    pub(crate) fn conclude(self, result: Result<(), Cause>) -> Option<Result<(), Cause>> {
        let Some(token) = self.token else { return Some(result) };
        if result.is_err()
            && let Err(Err(cause)) = token.finish(result)
        {
            self.deliver.stray(&token.label, cause);
        }
        token.end().map(|(_, result)| result)
    }
}

/// The shared state of a completion's clones.
///
/// An op with a token has two ends: the payload returns, and the token is used. Until both have
/// come the op is running, so that a payload may use its token and go on; the later one delivers.
struct Token {
    /// The op's entry, among those with their tokens out.
    place: Listing,
    /// Where to, until both ends have come: a token that was used keeps nothing of the engine.
    deliver: UnsafeCell<Option<Arc<dyn Deliver>>>,
    /// Whether the right to answer is taken.
    used: AtomicBool,
    result: UnsafeCell<Result<(), Cause>>,
    /// Ends that have come: 0, 1 or 2.
    ends: AtomicU32,
    label: String,
}

// SAFETY: `result` is written by the one who set `used` and read by the one who brings the second
// end; `ends` orders the two. `deliver` is taken by the latter.
unsafe impl Sync for Token {}
// SAFETY: as above.
unsafe impl Send for Token {}

impl Token {
    fn new(op: OpPtr, deliver: Arc<dyn Deliver>, label: String) -> Self {
        let (used, result, ends) = (AtomicBool::new(false), UnsafeCell::new(Ok(())), AtomicU32::new(0));
        Self { place: Listing::new(op), deliver: UnsafeCell::new(Some(deliver)), used, result, ends, label }
    }

    /// Answers for the op, once. Gives back the result that came too late.
    fn finish(&self, result: Result<(), Cause>) -> Result<(), Result<(), Cause>> {
        // ORDERING: AcqRel pairs with the Acquire in is_used() and with those who lose.
        if self.used.swap(true, Ordering::AcqRel) {
            return Err(result);
        }
        // SAFETY: only the first one gets here, and it is not read before the second end.
        self.result.with_mut(|place| unsafe { *place = result });
        if let Some((deliver, result)) = self.end() {
            deliver.deliver(self.place.op, result);
        }
        Ok(())
    }

    /// Counts an end. The second one answers the result, and where its caller delivers it.
    fn end(&self) -> Option<(Arc<dyn Deliver>, Result<(), Cause>)> {
        // ORDERING: AcqRel: the second end sees the result, and all that came before the first.
        if self.ends.fetch_add(1, Ordering::AcqRel) == 0 {
            return None;
        }
        // SAFETY: both ends have come, so it is not looked at any more.
        let deliver = self.deliver.with_mut(|deliver| unsafe { (*deliver).take() })?;
        if let Some(deferred) = deliver.deferred() {
            // SAFETY: it entered when it was made; a list that is there at the end was there at the beginning.
            unsafe { deferred.leave(&self.place) };
        }
        // SAFETY: both ends have come, so the result was written, and it is read once.
        Some((deliver, self.result.with_mut(|place| unsafe { std::mem::replace(&mut *place, Ok(())) })))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // It cannot be used twice any more, so the answer says nothing new.
        let _ = self.finish(Err(Cause::TokenDropped));
    }
}

/// The right to complete one op, once, from any thread.
///
/// When the last clone is dropped unused, the op fails with [`Cause::TokenDropped`].
#[derive(Clone)]
pub struct Completion(Arc<Token>);

impl Completion {
    /// Ends the op.
    pub fn complete(&self, result: Result<(), Cause>) -> Result<(), EngineError> {
        self.0.finish(result).map_err(|_| EngineError::TokenUsed { op: self.0.label.clone() })
    }

    /// Whether it was used.
    #[must_use]
    pub fn is_used(&self) -> bool {
        // ORDERING: pairs with the AcqRel in finish().
        self.0.used.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completion").field("op", &self.0.label).field("used", &self.is_used()).finish()
    }
}
