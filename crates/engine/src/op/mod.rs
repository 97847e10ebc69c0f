//! An op: a payload, the accesses it needs, and how far it has come.
//!
//! # Life of an op cell
//!
//! | state | who may touch the cell | next |
//! |---|---|---|
//! | supplied | nobody; it lies in a ring slot | a pusher takes the slot's ticket |
//! | filled | that pusher, until it publishes the slot | published |
//! | registered, waiting | the registrar | its countdown reaches 0 |
//! | ready | the lane it was handed to | a worker takes it |
//! | running | that worker; with a completion token, the token's holder | finished |
//! | finished | whoever delivers it to the registrar (the inbox, or itself) | settled |
//! | settled | the registrar | free, then supplied again |
//!
//! The cell is owned by exactly one party at every moment, so none of its fields is atomic; the
//! hand-overs (ring slot, lane queue, inbox, role) carry the ordering.

mod cell;
mod context;
mod current;
mod deferred;
mod device;
mod in_order;
mod payload;
mod placed;
mod pushed;
mod slab;

pub(crate) use cell::{Extra, Last, Op, OpFlags, OpKind, OpPtr};
pub use context::{Completion, OpContext};
pub(crate) use context::{Deliver, clear_current, current, is_inside_any, set_current};
pub use current::CurrentOp;
pub(crate) use deferred::Deferred;
#[cfg(all(test, loom))]
pub(crate) use deferred::Listing;
pub use device::{Device, DeviceLane};
pub use in_order::InOrder;
pub(crate) use in_order::names as queue_names;
pub(crate) use payload::RawPayload;
pub use payload::{NativeFunction, Payload, PlaceOffset};
pub(crate) use placed::Placed;
pub(crate) use pushed::Pushed;
pub(crate) use slab::{Chunk, Slab};

#[cfg(all(test, not(loom)))]
mod tests;
