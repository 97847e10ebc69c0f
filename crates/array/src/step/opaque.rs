//! Steps of which nothing is known but what they access.

use super::Operands;
use crate::access::granting;
use std::sync::Arc;
use weft_engine::{Cause, InOrder, OpContext, Payload, PlaceOffset};

/// What somebody else wrote: a callable, a native function. It runs by reference, each time on the arrays that it is
/// bound to.
pub trait Opaque: Send + Sync {
    /// Whether it needs the engine's host.
    fn is_hosted(&self) -> bool;

    /// The queue in which it waits for its turn, if it is native and has one, as the engine's payloads do.
    fn queue(&self) -> Option<InOrder> {
        None
    }

    /// Runs once, on arrays that were granted.
    fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause>;

    /// Whether it shows its arrays to nobody's code: then their memory is free again when it has run.
    fn is_private(&self) -> bool {
        false
    }

    /// Whether it does more than to fill its arrays: then it runs though nobody looks at these.
    fn has_effects(&self) -> bool {
        !self.is_private()
    }

    /// Whether it may only have begun when `run` returns: the op completes later.
    fn completes_later(&self) -> bool {
        false
    }

    /// Hears that an op of it was skipped or cancelled.
    fn discard(&self) {}

    /// Where it was pushed, in the way of the engine's payloads.
    fn place(&self) -> u64 {
        0
    }
}

/// An opaque step with its arrays, as the payload of an op that needs the host.
pub(crate) struct Hosted {
    place: u64,
    step: Arc<dyn Opaque>,
    arrays: Operands,
}

impl Hosted {
    /// It runs on these arrays.
    #[must_use]
    pub(crate) fn new(step: Arc<dyn Opaque>, arrays: Operands) -> Self {
        Self { place: step.place(), step, arrays }
    }
}

impl Payload for Hosted {
    const HOSTED: bool = true;
    // SAFETY: the field is a place of a push.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Hosted, place)) });

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        granting(&self.arrays, || self.step.run(&self.arrays, context))
    }

    fn discard(self) {
        self.step.discard();
    }
}

/// The same for an op that does not.
pub(crate) struct Native {
    place: u64,
    step: Arc<dyn Opaque>,
    arrays: Operands,
}

impl Native {
    /// It runs on these arrays.
    #[must_use]
    pub(crate) fn new(step: Arc<dyn Opaque>, arrays: Operands) -> Self {
        Self { place: step.place(), step, arrays }
    }
}

impl Payload for Native {
    // SAFETY: the field is a place of a push.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Native, place)) });

    fn queue(&self) -> Option<InOrder> {
        self.step.queue()
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        granting(&self.arrays, || self.step.run(&self.arrays, context))
    }

    fn discard(self) {
        self.step.discard();
    }
}
