//! What ops run of a user's: callables and native functions, what traces say of them, and what programs make of them.

pub(crate) mod answering;
pub(crate) mod callable;
pub(crate) mod completion;
pub(crate) mod kept;
pub(crate) mod native;
mod opaque;
pub(crate) mod trace;

pub(crate) use opaque::{announce, refuse_answering};
