//! Python's notes on recorded calls: op and attributes.

use pyo3::prelude::*;
use std::cell::RefCell;
use weft_array::recording;

/// The number of the first call that it is about, the op, its attributes.
pub(super) type Note = (usize, Py<PyAny>, Py<PyAny>);

thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
}

/// How many calls this thread has recorded, or None if it does not record, or records a part: what that asks for is no op
/// of the recording.
#[pyfunction]
pub(crate) fn recorded_calls() -> Option<usize> {
    if !recording::is_open() {
        return None;
    }
    recording::with(|transcript| if transcript.tag().is_part() { None } else { Some(transcript.calls().len()) })
        .flatten()
}

/// Says of which op, with which attributes, the call is that was recorded after so many: if it is one.
#[pyfunction]
pub(crate) fn note_call(op: &Bound<'_, PyAny>, attributes: &Bound<'_, PyAny>, before: usize) {
    if recorded_calls() != Some(before + 1) {
        return;
    }
    let note = (before, op.clone().unbind(), attributes.clone().unbind());
    let replaced = NOTES.with_borrow_mut(|notes| {
        let replaced = notes.pop_if(|(at, ..)| *at == before);
        notes.push(note);
        replaced
    });
    drop(replaced);
}

/// Takes the notes so far.
pub(super) fn take() -> Vec<Note> {
    NOTES.take()
}

/// Puts taken notes back.
pub(super) fn put_back(notes: Vec<Note>) {
    drop(NOTES.replace(notes));
}
