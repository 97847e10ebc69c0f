//! Programs: recordings of this thread, and their compiled forms.

mod compiled;
mod notes;
mod part;
mod recording;

pub(crate) use compiled::Compiled;
pub(crate) use notes::{note_call, recorded_calls};
pub(crate) use part::Part;
pub(crate) use recording::{Recording, open_recording, unrecorded};
