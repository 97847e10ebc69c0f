//! A device's context, its streams, and the fences behind their work.
//!
//! When a device fails, its context names the op that may have caused it, and for that looks at its streams. Streams hold the
//! context. So the files of this room know each other.

mod ahead;
mod backoff;
mod clock;
mod context;
mod fence;
mod foreign;
pub mod fork;
mod ledger;
mod order;
mod poller;
mod retired;
mod runtime;
mod spans;
mod stream;
mod timer_slack;

pub(crate) use context::{Context, Entered};
pub use fence::Fence;
pub(crate) use fence::Mark;
pub(crate) use order::{Marking, Ties};
pub(crate) use runtime::Runtime;
pub use runtime::Settings;
pub(crate) use spans::Span;
pub use stream::Stream;
pub(crate) use stream::Turn;
