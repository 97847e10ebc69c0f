//! Programs: recordings of this thread, what they become, and what Python's callables are in them.

mod compiled;
mod notes;
mod opaque;
mod part;
mod recording;

pub(crate) use compiled::Compiled;
pub(crate) use notes::note_call;
pub(crate) use opaque::{announce, calling, native, record, refuse_answering, starting};
pub(crate) use part::Part;
pub(crate) use recording::{Recording, check_look, open_recording};
