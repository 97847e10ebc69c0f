//! Arrays that others stand for while an op of a replay runs.
//!
//! A recorded callable refers to the arrays of its recording: arrays without memory, or constants that each replay
//! copies.

use super::{Access, Array};
use crate::Layout;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// For the ops that run on this thread, the innermost last: an array of a recording, and the one in its place.
    static STANDING: RefCell<Vec<(Array, Array)>> = const { RefCell::new(Vec::new()) };
}

/// Takes the arrays back, however the op ends.
struct Until(usize);

impl Drop for Until {
    fn drop(&mut self) {
        let gone = STANDING.with_borrow_mut(|standing| standing.split_off(self.0));
        drop(gone);
    }
}

/// Runs `body` with each of `arrays` in the place of the one of `recorded`.
pub fn standing<T>(recorded: &[Array], arrays: &[(Array, Access)], body: impl FnOnce() -> T) -> T {
    let _until = STANDING.with_borrow_mut(|standing| {
        let until = Until(standing.len());
        let others =
            |(recorded, (array, _)): &(&Array, &(Array, Access))| !Arc::ptr_eq(recorded.buffer(), array.buffer());
        let pairs = recorded.iter().zip(arrays).filter(others);
        standing.extend(pairs.map(|(recorded, (array, _))| (recorded.clone(), array.clone())));
        until
    });
    body()
}

/// The array that stands for one of a recording in the op that this thread runs.
#[must_use]
pub fn stands_for(array: &Array) -> Option<Array> {
    STANDING.with_borrow(|standing| {
        let same = |(recorded, _): &&(Array, Array)| Arc::ptr_eq(recorded.buffer(), array.buffer());
        let (recorded, actual) = standing.iter().rev().find(same)?;
        let then = array.layout();
        let offset = (then.offset + actual.layout().offset).checked_sub(recorded.layout().offset)?;
        let layout = Layout { shape: then.shape.clone(), strides: then.strides.clone(), offset };
        Array::on(Arc::clone(actual.buffer()), layout, array.dtype()).ok()
    })
}
