//! The user's part of an op: callables and native functions, their descriptions for traces, and their steps in
//! programs.

pub(crate) mod answering;
pub(crate) mod callable;
pub(crate) mod completion;
pub(crate) mod kept;
pub(crate) mod native;
mod opaque;
pub(crate) mod trace;

pub(crate) use opaque::{announce, refuse_answering};
