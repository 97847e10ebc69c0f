//! Tensors that go to other memory.
//!
//! A handle is on one array for as long as it lives: its *home*. A moved array gets another handle to stand for it, a plain one that
//! itself never moves. Every door of the core asks for this stand-in **once** (`now`): after that the call works on one handle,
//! whose layout, dtype and memory cannot change under it. So a call sees a tensor either before a move or after it, never half of
//! each. A call through several doors (a function that looks at the dtype and then pushes a loop of that dtype) is refused if
//! another thread moves the tensor between two of them; a door that forgot to ask would see old values, and no wrong memory. A
//! running op sees a tensor where it was when the op was pushed: it has been granted that memory and no other. The asker holds a
//! reference to the stand-in; ops hold memory, as ever. A tensor keeps its home for life, and the last `KEPT` handles that stood for
//! it: one that comes back finds its memory, and programs that were recorded there. Older ones go with their last user. Memory that
//! a tensor has left is marked, so that programs that refer to it are recorded anew; the mark goes when the tensor is back.
//! Instances of subclasses alone are moved (`NDArray._become`).

use super::handle::{self, entry_of};
use super::marks::{Mark, Why};
use crate::array::NDArray;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_array::{Array, granted};

/// Handles that a tensor keeps beside its home.
const KEPT: usize = 8;

/// Where a tensor is, if that is not its home, and where it was.
#[derive(Default)]
pub(crate) struct Moves(Mutex<Places>);

#[derive(Default)]
struct Places {
    now: Option<Py<NDArray>>,
    /// The one used last at the end.
    kept: Vec<Py<NDArray>>,
    /// Memory where it was.
    left: Vec<Mark>,
}

impl Moves {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn stand_in<'py>(&self, py: Python<'py>, home: &Array) -> Option<Bound<'py, NDArray>> {
        let places = self.places();
        let of_running_op = places.kept.iter().find(|kept| granted(&kept.get().inner).is_some());
        if of_running_op.is_none() && granted(home).is_some() {
            return None;
        }
        of_running_op.or(places.now.as_ref()).map(|now| now.bind(py).clone())
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the lock keeps what is in it: then nothing is garbage here.
        let Ok(places) = self.0.try_lock() else { return Ok(()) };
        visit.call(&places.now)?;
        places.kept.iter().try_for_each(|kept| visit.call(kept))
    }

    pub(super) fn clear(&self) {
        let gone = std::mem::take(&mut *self.places());
        drop(gone); // which may run Python
    }
}

impl NDArray {
    /// The handle that stands for this one, if it is not at home.
    #[inline]
    pub(crate) fn stand_in<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Self>> {
        self.tape.moves()?.stand_in(py, &self.inner)
    }

    /// Calls `look` with this handle or the one that stands for it.
    #[inline]
    pub(crate) fn at<R>(&self, py: Python<'_>, look: impl FnOnce(&Self) -> R) -> R {
        let now = self.stand_in(py);
        look(now.as_ref().map_or(self, |now| now.get()))
    }
}

/// What `act` does with the handle that stands for an array, if there is one: off the way of calls on arrays that never move.
#[inline]
pub(crate) fn instead<'py, R>(array: &Bound<'py, NDArray>, act: impl FnOnce(&Bound<'py, NDArray>) -> R) -> Option<R> {
    if array.get().tape.is_moved() { instead_cold(array, act) } else { None }
}

/// The same, or with the array itself: what is called twice here does not call itself, and so is inlined.
#[inline(always)]
#[allow(clippy::inline_always)] // in the way of every view
pub(crate) fn there<'py, R>(array: &Bound<'py, NDArray>, act: impl Fn(&Bound<'py, NDArray>) -> R) -> R {
    match instead(array, &act) {
        Some(done) => done,
        None => act(array),
    }
}

#[cold]
#[inline(never)]
fn instead_cold<'py, R>(array: &Bound<'py, NDArray>, act: impl FnOnce(&Bound<'py, NDArray>) -> R) -> Option<R> {
    array.get().stand_in(array.py()).map(|now| act(&now))
}

/// An array's handle, or the one that stands for it.
#[inline]
pub(crate) fn now<'py>(array: &Bound<'py, NDArray>) -> Bound<'py, NDArray> {
    array.get().stand_in(array.py()).unwrap_or_else(|| array.clone())
}

/// The same of what should be an array.
#[inline]
pub(crate) fn taken(item: Bound<'_, PyAny>) -> Result<Bound<'_, NDArray>, pyo3::CastIntoError<'_>> {
    let array = item.cast_into::<NDArray>()?;
    Ok(array.get().stand_in(array.py()).unwrap_or(array))
}

/// The handle that stands for what is perhaps an array, if it is one that is not at home.
#[inline]
pub(crate) fn elsewhere<'py>(item: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    item.cast::<NDArray>().ok()?.get().stand_in(item.py()).map(Bound::into_any)
}

fn plain(py: Python<'_>, array: &NDArray) -> NDArray {
    NDArray::new(array.inner.clone(), array.owner().clone_ref(py))
}

fn is_same(one: &Array, other: &Array) -> bool {
    Arc::ptr_eq(one.buffer(), other.buffer()) && one.layout() == other.layout() && one.dtype() == other.dtype()
}

/// A handle on memory where a tensor was and of which `is_it` says so, of which the tape knows nothing.
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

/// Lets what `other` shows stand for a tensor, or that again which showed the same, with what the tape knows of `other`.
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
        None => Some(Py::new(py, plain(py, shown.get()))?), // what moves itself stands for nothing
    };
    handle::renew(stand_in.as_ref().map_or(own, |stand_in| stand_in.get()), entry);
    let next = stand_in.as_ref().map_or(own, |stand_in| stand_in.get()).inner.buffer();
    let mut places = moves.places();
    let before = Arc::clone(places.now.as_ref().map_or(own, |now| now.get()).inner.buffer());
    let mut gone = Vec::new(); // which may run Python as it goes
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
