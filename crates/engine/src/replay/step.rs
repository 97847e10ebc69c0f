//! The payload of an inner op: run by reference, many times, each time with other bindings.

use crate::failure::Cause;
use crate::op::{InOrder, OpContext};
use crate::trace::Note;
use std::marker::PhantomData;

/// The kind of a step for the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StepKind {
    /// Native work that is done when [`Step::run`] returns, and does not wait: the cheapest.
    #[default]
    Plain,
    /// Native work that may wait, or hand out a completion token.
    Native,
    /// Runs inside the engine's [`Host`](crate::Host), as Python callables must; it may hand out a completion token.
    Hosted,
    /// Waits for its turn in a queue that is the order of work elsewhere: it puts work on a device and does not wait
    /// for it, say.
    InOrder(InOrder),
}

/// The work of an inner op of a replay.
///
/// Any `Fn(&B, &mut StepContext) -> Result<(), Cause>` is one.
pub trait Step<B>: Send + Sync + 'static {
    /// Does the work, on the objects of the bindings.
    fn run(&self, bindings: &B, context: &mut StepContext<'_, '_>) -> Result<(), Cause>;

    /// It does not run this time, as its needs have failed, or the engine is being cancelled. Called on any thread,
    /// outside of the host.
    fn skipped(&self, _bindings: &B) {}

    /// One of its [members](crate::ReplayBuilder::member), by its place, is not to run this time, as its needs have
    /// failed. Called before it runs, on any thread, and while nothing else of the replay can go on.
    fn left_out(&self, _bindings: &B, _member: usize) {}

    /// Its record in a trace of this run, if the replay was pushed while there was one.
    fn note(&self, _bindings: &B) -> Note {
        Note::default()
    }
}

impl<B, F> Step<B> for F
where
    F: Fn(&B, &mut StepContext<'_, '_>) -> Result<(), Cause> + Send + Sync + 'static,
{
    fn run(&self, bindings: &B, context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        self(bindings, context)
    }
}

/// Handed to a running step.
pub struct StepContext<'a, 'o> {
    instance: Option<u32>,
    op: Option<&'a mut OpContext<'o>>,
    fails: Option<&'a Fails<'a>>,
}

/// Notes that a member failed. Answers those that fail with it.
pub(crate) type Fails<'a> = dyn Fn(usize, Cause) -> Vec<usize> + 'a;

impl<'a, 'o> StepContext<'a, 'o> {
    #[inline]
    pub(crate) fn new(instance: Option<u32>, op: Option<&'a mut OpContext<'o>>) -> Self {
        Self { instance, op, fails: None }
    }

    /// The same of a step that may have members.
    pub(crate) fn failing(self, fails: &'a Fails<'a>) -> Self {
        Self { fails: Some(fails), ..self }
    }

    /// Says that a [member](crate::ReplayBuilder::member) of this step, by its place, has failed. Answers further ones
    /// that need its result, and so have failed with it: they are not to run.
    pub fn fail(&mut self, member: usize, cause: Cause) -> Vec<usize> {
        self.fails.map_or_else(Vec::new, |fails| fails(member, cause))
    }

    /// Which instance of the replay this is: two that are in flight have different numbers, and those of one number
    /// come one after the other. A run's own needs, as memory, go by it. None if the replay [runs
    /// inline](crate::Replay::run_inline).
    #[must_use]
    pub fn instance(&self) -> Option<usize> {
        self.instance.map(|instance| instance as usize)
    }

    /// The context of a running op, for it to [finish later](OpContext::defer). None for [`StepKind::Plain`].
    pub fn op(&mut self) -> Option<&mut OpContext<'o>> {
        self.op.as_deref_mut()
    }
}

/// A step without the type of its bindings.
pub(crate) trait ErasedStep: Send + Sync {
    /// # Safety
    ///
    /// `bindings` points to the type that the step was made with.
    unsafe fn run(&self, bindings: *const (), context: &mut StepContext<'_, '_>) -> Result<(), Cause>;

    /// # Safety
    ///
    /// As for [`run`](Self::run).
    unsafe fn skipped(&self, bindings: *const ());

    /// # Safety
    ///
    /// As for [`run`](Self::run).
    unsafe fn left_out(&self, bindings: *const (), member: usize);

    /// # Safety
    ///
    /// As for [`run`](Self::run).
    unsafe fn note(&self, bindings: *const ()) -> Note;
}

pub(super) struct Erased<S, B>(pub(super) S, pub(super) PhantomData<fn(&B)>);

impl<B: 'static, S: Step<B>> ErasedStep for Erased<S, B> {
    #[inline]
    unsafe fn run(&self, bindings: *const (), context: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        // SAFETY: the caller's promise.
        self.0.run(unsafe { &*bindings.cast::<B>() }, context)
    }

    unsafe fn skipped(&self, bindings: *const ()) {
        // SAFETY: the caller's promise.
        self.0.skipped(unsafe { &*bindings.cast::<B>() });
    }

    unsafe fn left_out(&self, bindings: *const (), member: usize) {
        // SAFETY: the caller's promise.
        self.0.left_out(unsafe { &*bindings.cast::<B>() }, member);
    }

    unsafe fn note(&self, bindings: *const ()) -> Note {
        // SAFETY: the caller's promise.
        self.0.note(unsafe { &*bindings.cast::<B>() })
    }
}
