//! What a running payload is told, and how it may finish later.

use super::{Op, OpPtr};
use crate::error::EngineError;
use crate::failure::Cause;
use crate::sync::{AtomicBool, Ordering};
use std::cell::Cell;
use std::sync::Arc;

/// Where finished ops go. The engine's core is one.
pub(crate) trait Deliver: Send + Sync {
    /// Takes an op whose work has ended.
    fn deliver(&self, op: OpPtr, result: Result<(), Cause>);

    /// Takes an error for which no op is left that could carry it.
    fn stray(&self, op: &str, cause: Cause);
}

thread_local! {
    /// Engine (by address) and op that this thread runs.
    static CURRENT: Cell<(usize, Option<OpPtr>)> = const { Cell::new((0, None)) };
}

/// The op of `engine` that this thread runs.
#[inline]
pub(crate) fn current(engine: usize) -> Option<OpPtr> {
    let (owner, op) = CURRENT.get();
    op.filter(|_| owner == engine)
}

/// Notes what this thread runs from now on, and answers what it ran before.
#[inline]
pub(crate) fn set_current(engine: usize, op: OpPtr) -> (usize, Option<OpPtr>) {
    CURRENT.replace((engine, Some(op)))
}

/// Goes back to what this thread ran before.
#[inline]
pub(crate) fn clear_current(before: (usize, Option<OpPtr>)) {
    CURRENT.set(before);
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

    /// Makes the op complete later: when the answered token is used, from any thread.
    ///
    /// If the payload then answers an error and the token is unused, the op fails with it.
    pub fn defer(&mut self) -> Completion {
        if self.token.is_none() {
            let label = self.label();
            let deliver = Arc::clone(self.deliver);
            self.token = Some(Arc::new(Token { op: self.op, deliver, used: AtomicBool::new(false), label }));
        }
        match &self.token {
            Some(token) => Completion(Arc::clone(token)),
            None => unreachable!("made above"),
        }
    }

    /// Ends the run. Answers what to deliver, or nothing if a token does.
    #[inline]
    pub(crate) fn conclude(self, result: Result<(), Cause>) -> Option<Result<(), Cause>> {
        let Some(token) = self.token else { return Some(result) };
        if result.is_err()
            && let Err(Err(cause)) = token.finish(result)
        {
            token.deliver.stray(&token.label, cause);
        }
        None
    }
}

struct Token {
    op: OpPtr,
    deliver: Arc<dyn Deliver>,
    used: AtomicBool,
    label: String,
}

impl Token {
    /// Delivers the op, once. Answers the result that came too late.
    fn finish(&self, result: Result<(), Cause>) -> Result<(), Result<(), Cause>> {
        // ORDERING: AcqRel, so that the one who delivers has seen what others wrote before they
        // lost; the op itself is published by its delivery.
        if self.used.swap(true, Ordering::AcqRel) {
            return Err(result);
        }
        self.deliver.deliver(self.op, result);
        Ok(())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // Nobody is left who could use it twice, so the answer says nothing new.
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
