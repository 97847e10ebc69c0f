//! Steps known only by their accesses.

use super::{Operands, Part};
use crate::access::granting;
use crate::memory::Buffer;
use std::any::Any;
use std::sync::Arc;
use weft_engine::{Cause, InOrder, OpContext, Payload, PlaceOffset};

/// A callable or a native function. It runs by reference, each time on the arrays that it is bound to.
pub trait Opaque: Send + Sync {
    /// Whether it needs the engine's host.
    fn is_hosted(&self) -> bool;

    /// The queue in which it runs in order, if it is native and has one, as for the engine's payloads.
    fn queue(&self) -> Option<InOrder> {
        None
    }

    /// Runs once.
    ///
    /// # Safety
    ///
    /// The running op was granted the arrays. Their number, dtypes, layouts and accesses are those with which the step
    /// was recorded.
    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause>;

    /// Whether no code of a user's sees its arrays: then their memory is free again after the run.
    fn is_private(&self) -> bool {
        false
    }

    /// Whether it does more than fill its arrays: then it runs even if these are unused.
    fn has_effects(&self) -> bool {
        !self.is_private()
    }

    /// Whether it may fail although it only fills its arrays: then it always runs.
    fn may_fail(&self) -> bool {
        false
    }

    /// The number of elements of each of its arrays, if it is element-wise on contiguous arrays: then it may be
    /// [`fused`](Self::fused).
    fn elements(&self) -> Option<usize> {
        None
    }

    /// One step for several such steps of one device, this one first, in order, each with the places of its operands.
    /// Values in slots have no later reader. None if the steps stay apart.
    fn fused(&self, steps: &[Neighbour]) -> Option<Arc<dyn Opaque>> {
        let _ = steps;
        None
    }

    /// The number of its device, if it only issues work there: then it may be [issued together](Self::together) with
    /// others of this kind.
    fn issues_on(&self) -> Option<u16> {
        None
    }

    /// The step that issues several such steps of one device, this one first, many times. It has this name and this
    /// place of a push, in the form of [`place`](Self::place).
    fn together(&self, name: &str, place: u64) -> Option<Arc<dyn Together>> {
        let _ = (name, place);
        None
    }

    /// The work that it issues, for a caller that issues it together with others.
    fn issued(&self) -> Option<&dyn Any> {
        None
    }

    /// The step, for callers that know its type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Shows `each` the objects of its maker that it keeps, for a search for references back to a program.
    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        let _ = each;
    }

    /// Whether nobody notices that it runs once more on arrays that are as they were, as it only computes what it writes. Of an
    /// object that it calls `is_pure` knows that. Of steps that say nothing it is not known.
    fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        let _ = is_pure;
        false
    }

    /// Whether its work may only have begun when `run` returns: then the op completes later.
    fn completes_later(&self) -> bool {
        false
    }

    /// Called if an op of it was skipped or cancelled.
    fn discard(&self) {}

    /// The place of its push, in the form of the engine's payloads.
    fn place(&self) -> u64 {
        0
    }
}

/// A step and the places of its operands: in arrays common to all, or in slots.
pub type Neighbour = (Arc<dyn Opaque>, Vec<Part>);

/// Steps that are issued together, in one call.
pub trait Members {
    /// Their number.
    fn count(&self) -> usize;

    /// One of them.
    fn step(&self, at: usize) -> &dyn Opaque;

    /// The arrays of one of them.
    fn operands(&self, at: usize) -> Result<Operands, Cause>;
}

/// The progress of steps that are issued together.
#[derive(Debug)]
pub struct Issued {
    /// The number of issued steps, counted from the first.
    pub count: usize,
    /// The reason why the next step was refused. Without one it was not tried, and has to be issued on its own.
    pub refused: Option<Cause>,
}

/// Several steps of a device that are issued together.
pub trait Together: Send + Sync {
    /// Issues all steps in order, or the first ones. All their arrays lie in these buffers, each moved by this many
    /// bytes since the recording. After an error the number of issued steps is unknown.
    ///
    /// # Safety
    ///
    /// The op was granted these buffers, and the members are the steps that this was made of.
    unsafe fn run(&self, buffers: &[(&Buffer, isize)], members: &dyn Members) -> Result<Issued, Cause>;
}

/// An opaque step with its arrays, as the payload of an op, with or without the host.
pub(crate) struct Once<const HOSTED: bool> {
    place: u64,
    step: Arc<dyn Opaque>,
    arrays: Operands,
}

/// The payload of an op that needs the host.
pub(crate) type Hosted = Once<true>;
/// The payload of an op that does not.
pub(crate) type Native = Once<false>;

impl<const HOSTED: bool> Once<HOSTED> {
    /// It runs on these arrays.
    ///
    /// # Safety
    ///
    /// Their number, dtypes and layouts are those that [`Opaque::run`] demands, and they are the op's arrays.
    #[must_use]
    pub(crate) unsafe fn new(step: Arc<dyn Opaque>, arrays: Operands) -> Self {
        Self { place: step.place(), step, arrays }
    }
}

impl<const HOSTED: bool> Payload for Once<HOSTED> {
    const HOSTED: bool = HOSTED;
    // SAFETY: the field is the place of a push.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Self, place)) });

    fn queue(&self) -> Option<InOrder> {
        if HOSTED { None } else { self.step.queue() }
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: they are the arrays of the op and of its step, by the promise to `new`.
        granting(&self.arrays, || unsafe { self.step.run(&self.arrays, context) })
    }

    fn discard(self) {
        self.step.discard();
    }
}
