//! Moves of a tensor to other memory and back, and its earlier places. The head of `moves` tells the meaning of its
//! handle.

use super::NDArray;
use super::handle::{self, entry_of};
use super::moves::now;
use crate::tape::marks::{Mark, Why};
use pyo3::prelude::*;
use std::sync::Arc;
use weft_array::Array;

/// Handles that a tensor keeps besides its home.
const KEPT: usize = 8;

fn plain(py: Python<'_>, array: &NDArray) -> NDArray {
    NDArray::new(array.inner.clone(), array.owner().clone_ref(py))
}

fn is_same(one: &Array, other: &Array) -> bool {
    Arc::ptr_eq(one.buffer(), other.buffer()) && one.layout() == other.layout() && one.dtype() == other.dtype()
}

/// A handle on earlier memory of a tensor, chosen by `is_it`, that the tape does not know.
pub(crate) fn was(tensor: &Bound<'_, NDArray>, is_it: impl Fn(&Array) -> bool) -> Option<NDArray> {
    let (py, own) = (tensor.py(), tensor.get());
    let kept = own.tape.moves().and_then(|moves| {
        let places = moves.places();
        places.kept.iter().rev().find(|kept| is_it(&kept.get().inner)).map(|kept| kept.clone_ref(py))
    });
    match kept {
        Some(kept) => Some(plain(py, kept.get())),
        None => is_it(&own.inner).then(|| plain(py, own)),
    }
}

/// Makes `other`, or an earlier stand-in on the same memory, the stand-in of a tensor, with the entry of `other`.
pub(crate) fn become_same(tensor: &Bound<'_, NDArray>, other: &Bound<'_, NDArray>) -> PyResult<()> {
    let (py, own, shown) = (tensor.py(), tensor.get(), now(other));
    let entry = entry_of(py, shown.get())?;
    let moves = own.tape.moves_or_new();
    let home = is_same(&own.inner, &shown.get().inner);
    let known = (!home).then(|| {
        let places = moves.places();
        places.kept.iter().find(|kept| is_same(&kept.get().inner, &shown.get().inner)).map(|kept| kept.clone_ref(py))
    });
    let stand_in = match known.flatten() {
        _ if home => None,
        Some(kept) => Some(kept),
        None if shown.is_exact_instance_of::<NDArray>() => Some(shown.clone().unbind()),
        None => Some(Py::new(py, plain(py, shown.get()))?), // an array that moves cannot be a stand-in
    };
    handle::renew(stand_in.as_ref().map_or(own, |stand_in| stand_in.get()), entry);
    let next = stand_in.as_ref().map_or(own, |stand_in| stand_in.get()).inner.buffer();
    let mut places = moves.places();
    let before = Arc::clone(places.now.as_ref().map_or(own, |now| now.get()).inner.buffer());
    let mut gone = Vec::new(); // may run Python when dropped
    if let Some(stand_in) = &stand_in {
        gone.extend(places.kept.extract_if(.., |kept| kept.is(stand_in)));
        places.kept.push(stand_in.clone_ref(py));
        if places.kept.len() > KEPT {
            gone.push(places.kept.remove(0));
        }
    }
    gone.extend(std::mem::replace(&mut places.now, stand_in.as_ref().map(|stand_in| stand_in.clone_ref(py))));
    places.left.retain(|mark| !mark.is_of(next) && mark.counts());
    if !Arc::ptr_eq(&before, next) {
        places.left.push(Mark::new(&before, Why::Left));
    }
    drop(places);
    drop(gone);
    Ok(())
}
