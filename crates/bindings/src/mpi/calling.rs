//! A call of MPI's as the payload of an op: begun by the worker of its queue, or by a waiter in its place.

use crate::interpreter::failures::CommunicatorFailure;
use crate::interpreter::location::Location;
use std::mem::offset_of;
use std::sync::Arc;
use weft_array::{ArrayError, Opaque, Operands, Repeatable};
use weft_engine::{
    Accesses, Cause, Completion, InOrder, OpContext, Payload, PlaceOffset, PushOptions, WeakEngine, is_called_away,
};
use weft_mpi::{Carried, Communicator, Flight, Job, MpiError};

/// A call apart from its arrays: they come each time in the same order, that which is written to first.
pub(super) struct Calling {
    pub(super) communicator: Arc<Communicator>,
    pub(super) engine: WeakEngine,
    pub(super) job: Job,
    pub(super) queue: InOrder,
    pub(super) location: Location,
}

/// The first bytes of a call's arrays: the written one, the read one.
type Places = (*mut u8, *const u8);

impl Calling {
    /// Begins the call, and carries it on for as long as this thread may stay. The rest is left to the worker.
    fn carry_out(self: &Arc<Self>, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let places = places(arrays).inspect_err(|cause| {
            let (rank, what) = (self.communicator.settings().rank, self.job.describe());
            self.communicator.fail(&format!("rank {rank} had no memory for {what}: {cause}"));
        })?;
        let mut flight = self.communicator.begin(&self.job).map_err(|error| self.failure(error))?;
        match (self.carry_on(arrays, places, &mut flight)?, self.engine.upgrade()) {
            (Carried::Out, _) => {}
            (Carried::On, Some(engine)) => {
                let (calling, arrays, end) = (Arc::clone(self), arrays.clone(), context.defer());
                Rest { location: self.location, calling, arrays, flight, end }.push(&engine);
            }
            // A waiter of an engine has a handle.
            (Carried::On, None) => while self.carry_on(arrays, places, &mut flight)? == Carried::On {},
        }
        Ok(())
    }

    /// Carries the call on until it is out, or this thread has to do something else.
    fn carry_on(&self, arrays: &Operands, (target, source): Places, flight: &mut Flight) -> Result<Carried, Cause> {
        // SAFETY: the op was granted these arrays, which are contiguous and of as many elements as the job has, until it
        // ends.
        let outcome = unsafe { self.communicator.carry_on(flight, &self.job, source, target, &mut is_called_away) };
        outcome.map_err(|error| {
            if error.is_abandoned() {
                keep(arrays.clone());
            }
            self.failure(error)
        })
    }

    fn failure(&self, error: MpiError) -> Cause {
        Cause::Error(Box::new(CommunicatorFailure { error, location: self.location }))
    }

    /// The other ranks wait for the call that this one has skipped.
    fn skipped(&self) {
        let (rank, what) = (self.communicator.settings().rank, self.job.describe());
        let reason = format!("rank {rank} did not take part in {what}: an op that it depends on has failed there");
        self.communicator.fail(&reason);
    }
}

/// Where these arrays begin. Allocates.
fn places(arrays: &Operands) -> Result<Places, Cause> {
    let mut starts = Vec::with_capacity(2);
    for (array, _) in arrays {
        starts.push(array.buffer().start()?.wrapping_add(array.layout().offset));
    }
    let nothing = std::ptr::null_mut();
    Ok(match starts[..] {
        [target, source] => (target, source.cast_const()),
        [both] => (both, both.cast_const()),
        _ => (nothing, nothing.cast_const()),
    })
}

/// A call as a step of a program.
pub(super) struct CallingStep(pub(super) Arc<Calling>);

impl Opaque for CallingStep {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        Some(self.0.queue)
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.0.carry_out(arrays, context)
    }

    fn discard(&self) {
        self.0.skipped();
    }

    fn place(&self) -> u64 {
        self.0.location.bits()
    }
}

/// A call as the payload of one op.
pub(super) struct Carry {
    pub(super) location: Location,
    pub(super) calling: Arc<Calling>,
    pub(super) arrays: Operands,
}

impl Payload for Carry {
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Carry, location)) });

    fn queue(&self) -> Option<InOrder> {
        Some(self.calling.queue)
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.calling.carry_out(&self.arrays, context)
    }

    fn discard(self) {
        self.calling.skipped();
    }
}

impl Repeatable for Carry {
    fn into_step(self) -> Result<Arc<dyn Opaque>, ArrayError> {
        Ok(Arc::new(CallingStep(self.calling)))
    }
}

/// The rest of a call whose first thread was called away.
struct Rest {
    location: Location,
    calling: Arc<Calling>,
    arrays: Operands,
    flight: Flight,
    end: Completion,
}

impl Payload for Rest {
    // SAFETY: a `Location` is eight bytes without padding.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Rest, location)) });

    fn queue(&self) -> Option<InOrder> {
        Some(self.calling.queue)
    }

    fn run(mut self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        let carried =
            places(&self.arrays).and_then(|places| self.calling.carry_on(&self.arrays, places, &mut self.flight));
        match (carried, self.calling.engine.upgrade()) {
            (Ok(Carried::On), Some(engine)) => self.push(&engine),
            (Ok(Carried::On), None) => self.discard(),
            (outcome, _) => {
                // No other place has the other end.
                let _ = self.end.complete(outcome.map(drop));
            }
        }
        Ok(())
    }

    fn discard(self) {
        let rank = self.calling.communicator.settings().rank;
        self.calling.communicator.fail(&format!("rank {rank} has given up on {}", self.calling.job.describe()));
        keep(self.arrays);
    }
}

/// Leaves memory to MPI for ever, which may still write there: it goes neither to the pool nor, by a renaming, to others.
fn keep(arrays: Operands) {
    for (array, _) in &*arrays {
        array.buffer().pin_for_good();
    }
    std::mem::forget(arrays);
}

impl Rest {
    /// It is let through even where the engine was closed, as it comes from inside of an op; it goes next in its queue, as
    /// those behind it wait for the op whose rest it is.
    fn push(self, engine: &weft_engine::Engine) {
        let options = PushOptions { always_run: true, ..PushOptions::default() };
        let _ = engine.push_unlimited(self, &mut Accesses::new(engine), &options);
    }
}
