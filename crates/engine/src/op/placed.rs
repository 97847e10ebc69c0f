//! Places of pushes by Rust code: the line that the compiler knows.

use super::{InOrder, OpContext, Payload, PlaceOffset};
use crate::failure::Cause;
use std::panic::Location;

/// A payload and the line of its push.
pub(crate) struct Placed<P> {
    place: u64,
    payload: P,
}

impl<P> Placed<P> {
    pub(crate) fn new(payload: P, location: &'static Location<'static>) -> Self {
        Self { place: std::ptr::from_ref(location).expose_provenance() as u64, payload }
    }
}

impl<P: Payload> Payload for Placed<P> {
    const HOSTED: bool = P::HOSTED;
    // SAFETY: new() alone writes the eight bytes: the address of a location.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::line(std::mem::offset_of!(Self, place)) });

    #[inline]
    fn queue(&self) -> Option<InOrder> {
        self.payload.queue()
    }

    #[inline]
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.payload.run(context)
    }

    fn discard(self) {
        self.payload.discard();
    }
}
