//! What Python says of the calls that it records: op and attributes.

use pyo3::prelude::*;
use std::cell::RefCell;
use weft_array::recording;

/// The number of the first call that it is about, the op, its attributes.
pub(super) type Note = (usize, Py<PyAny>, Py<PyAny>);

thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
}

/// Says of which op the next recorded call is, and with which attributes. Does nothing while this thread does not record.
#[pyfunction]
pub(crate) fn note_call(op: &Bound<'_, PyAny>, attributes: &Bound<'_, PyAny>) {
    let Some(next) = recording::with(|tape| tape.calls().len()) else { return };
    let note = (next, op.clone().unbind(), attributes.clone().unbind());
    let replaced = NOTES.with_borrow_mut(|notes| {
        // An op that pushes another one is known by the latter.
        let replaced = notes.pop_if(|(at, ..)| *at == next);
        notes.push(note);
        replaced
    });
    drop(replaced);
}

/// Takes what was said so far.
pub(super) fn take() -> Vec<Note> {
    NOTES.take()
}
