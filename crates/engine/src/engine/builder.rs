//! A push, written as a sentence.

use super::{Accesses, Engine, PushOptions, Variable};
use crate::op::{Device, OpContext, Payload, Placed};
use crate::var::AccessKind;
use crate::{Cause, EngineError};
use std::panic::Location;

/// An op about to be pushed; made by [`Engine::op`].
#[must_use = "an op does nothing until it is pushed"]
pub struct OpBuilder<'a, P> {
    engine: &'a Engine,
    payload: P,
    accesses: Accesses<'a>,
    options: PushOptions<'a>,
    mistake: Option<EngineError>,
}

impl Engine {
    /// An op that runs a function: name its accesses, then push it. Errors go out by `?`: see [`Cause`]. If it fails,
    /// its failure names the line of this call.
    #[track_caller]
    pub fn op<F>(&self, function: F) -> OpBuilder<'_, impl Payload + use<F>>
    where
        F: FnOnce(&mut OpContext<'_>) -> Result<(), Cause> + Send + 'static,
    {
        self.op_of(Placed::new(function, Location::caller()))
    }

    /// An op that runs a payload of a type of its own, as [`op`](Self::op) does a function.
    pub fn op_of<P: Payload>(&self, payload: P) -> OpBuilder<'_, P> {
        OpBuilder {
            engine: self,
            payload,
            accesses: Accesses::new(self),
            options: PushOptions::default(),
            mistake: None,
        }
    }
}

impl<'a, P: Payload> OpBuilder<'a, P> {
    pub(super) fn access(mut self, variable: &'a Variable, kind: AccessKind) -> Self {
        if let Err(mistake) = self.accesses.add(variable, kind) {
            self.mistake.get_or_insert(mistake);
        }
        self
    }

    /// A mistake of the caller's, which the push answers.
    pub(super) fn refused(mut self, mistake: EngineError) -> Self {
        self.mistake.get_or_insert(mistake);
        self
    }

    /// It reads this variable.
    pub fn read(self, variable: &'a Variable) -> Self {
        self.access(variable, AccessKind::Read)
    }

    /// It mutates this variable.
    pub fn mutate(self, variable: &'a Variable) -> Self {
        self.access(variable, AccessKind::Mutate)
    }

    /// It overwrites this variable without looking at its value.
    pub fn overwrite(self, variable: &'a Variable) -> Self {
        self.access(variable, AccessKind::Overwrite)
    }

    /// Its name in messages.
    pub fn name(mut self, name: &'a str) -> Self {
        self.options.name = Some(name);
        self
    }

    /// Its priority; 0 by default.
    pub fn priority(mut self, priority: i32) -> Self {
        self.options.priority = priority;
        self
    }

    /// Where it runs, under a policy that tells devices apart.
    pub fn device(mut self, device: Device) -> Self {
        self.options.device = device;
        self
    }

    /// It runs even if its inputs have failed.
    pub fn always_run(mut self) -> Self {
        self.options.always_run = true;
        self
    }

    /// Bytes it holds while it is pending.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.options.bytes = bytes;
        self
    }

    /// Pushes it.
    pub fn push(mut self) -> Result<(), EngineError> {
        match self.mistake {
            Some(mistake) => Err(mistake),
            None => self.engine.push(self.payload, &mut self.accesses, &self.options),
        }
    }
}
