//! Steps known by their accesses alone.

use super::{Operands, Part};
use crate::access::granting;
use crate::memory::Buffer;
use std::any::Any;
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

    /// Runs once.
    ///
    /// # Safety
    ///
    /// The running op was granted the arrays. They are as many, and have the dtypes, the layouts and the accesses, as those with which
    /// the step was recorded.
    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause>;

    /// Whether it shows its arrays to nobody's code: then their memory is free again when it has run.
    fn is_private(&self) -> bool {
        false
    }

    /// Whether it does more than to fill its arrays: then it runs though nobody looks at these.
    fn has_effects(&self) -> bool {
        !self.is_private()
    }

    /// Whether it may fail although it does no more than to fill its arrays: then it runs all the same.
    fn may_fail(&self) -> bool {
        false
    }

    /// How many elements each of its arrays has, if it computes those of one from those at the same place of the others, all row
    /// after row: then it may be [`fused`](Self::fused).
    fn elements(&self) -> Option<usize> {
        None
    }

    /// One step for several such ones of one device, of which this is the first: in their order, each with where its operands
    /// lie. What lies in a slot nobody looks at afterwards. Nothing if they stay apart.
    fn fused(&self, steps: &[Neighbour]) -> Option<Arc<dyn Opaque>> {
        let _ = steps;
        None
    }

    /// The number of the device on which it does nothing but to issue, and so may be [issued together](Self::together) with
    /// others that do.
    fn issues_on(&self) -> Option<u16> {
        None
    }

    /// What issues several such steps of one device, of which this is the first, again and again: under this name, and pushed
    /// at this place, in the way of [`place`](Self::place).
    fn together(&self, name: &str, place: u64) -> Option<Arc<dyn Together>> {
        let _ = (name, place);
        None
    }

    /// What it issues, for those who issue it together with others.
    fn issued(&self) -> Option<&dyn Any> {
        None
    }

    /// The step, for those who know its type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Shows `each` what it keeps of its maker's: for one who looks for references that lead back to a program.
    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        let _ = each;
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

/// A step and where its operands lie: in arrays that all have in common, or in slots.
pub type Neighbour = (Arc<dyn Opaque>, Vec<Part>);

/// The steps that are issued together, in one call.
pub trait Members {
    /// How many they are.
    fn count(&self) -> usize;

    /// One of them.
    fn step(&self, at: usize) -> &dyn Opaque;

    /// The arrays of one of them.
    fn operands(&self, at: usize) -> Result<Operands, Cause>;
}

/// How far steps that are issued together have come.
#[derive(Debug)]
pub struct Issued {
    /// The first ones, so many, are issued.
    pub count: usize,
    /// Why the one behind them was refused. Without a reason it was not tried, and is to be issued on its own.
    pub refused: Option<Cause>,
}

/// Several steps of a device, which are issued together.
pub trait Together: Send + Sync {
    /// Issues all in their order, or the first ones of them. All their arrays lie in these buffers, each so many bytes from where it lay
    /// when they were recorded. After an error nobody knows what has been issued.
    ///
    /// # Safety
    ///
    /// The op was granted these buffers, and the members are those of which this was made.
    unsafe fn run(&self, buffers: &[(&Buffer, isize)], members: &dyn Members) -> Result<Issued, Cause>;
}

/// An opaque step with its arrays, as the payload of an op, which needs the host or does not.
pub(crate) struct Once<const HOSTED: bool> {
    place: u64,
    step: Arc<dyn Opaque>,
    arrays: Operands,
}

/// That of an op that needs the host.
pub(crate) type Hosted = Once<true>;
/// That of one that does not.
pub(crate) type Native = Once<false>;

impl<const HOSTED: bool> Once<HOSTED> {
    /// It runs on these arrays.
    ///
    /// # Safety
    ///
    /// They are as many, and of the dtypes and layouts, as [`Opaque::run`] asks for, and those of the op.
    #[must_use]
    pub(crate) unsafe fn new(step: Arc<dyn Opaque>, arrays: Operands) -> Self {
        Self { place: step.place(), step, arrays }
    }
}

impl<const HOSTED: bool> Payload for Once<HOSTED> {
    const HOSTED: bool = HOSTED;
    // SAFETY: the field is a place of a push.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(std::mem::offset_of!(Self, place)) });

    fn queue(&self) -> Option<InOrder> {
        if HOSTED { None } else { self.step.queue() }
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: they are the arrays of the op, and of its step, which is known by whoever has made it of both.
        granting(&self.arrays, || unsafe { self.step.run(&self.arrays, context) })
    }

    fn discard(self) {
        self.step.discard();
    }
}
