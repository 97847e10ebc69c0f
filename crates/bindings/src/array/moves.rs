//! Tensors that go to other memory.
//!
//! A handle is on one array for life: its *home*. A moved array gets another handle as its stand-in, a plain one that
//! itself never moves. Every door of the core asks for this stand-in **once** (`now`): after that the call works on one
//! handle, whose layout, dtype and memory cannot change under it. So a call sees a tensor either before a move or after
//! it, never half of each. A call through several doors (a function that looks at the dtype and then pushes a loop of
//! that dtype) is refused if another thread moves the tensor between two of them; a door that forgot to ask would see
//! old values, and no wrong memory. A running op sees a tensor at its place at the time of the push: it has been
//! granted that memory and no other. The asker holds a reference to the stand-in; ops hold memory, as ever.
//! A tensor keeps its home for life, and its last few stand-ins (`moving`): when it comes back, it finds its memory,
//! and the programs recorded there. Older stand-ins go with their last user. Memory that a tensor has left is marked,
//! so that programs that refer to it are recorded anew; the mark goes when the tensor is back. Only instances of
//! subclasses move (`NDArray._become`).

use super::NDArray;
use crate::tape::marks::{Mark, Standings};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_array::{Array, granted};

/// The stand-in of a tensor away from home, and its earlier places.
#[derive(Default)]
pub(crate) struct Moves(Mutex<Places>);

#[derive(Default)]
pub(super) struct Places {
    pub(super) now: Option<Py<NDArray>>,
    /// In order of use, the last one at the end.
    pub(super) kept: Vec<Py<NDArray>>,
    /// Marks on earlier memory.
    pub(super) left: Vec<Mark>,
}

impl Moves {
    pub(super) fn places(&self) -> MutexGuard<'_, Places> {
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
        // The holder of the lock keeps its contents alive: nothing is garbage then.
        let Ok(places) = self.0.try_lock() else { return Ok(()) };
        visit.call(&places.now)?;
        places.kept.iter().try_for_each(|kept| visit.call(kept))
    }

    pub(super) fn clear(&self) {
        let gone = std::mem::take(&mut *self.places());
        drop(gone); // may run Python
    }
}

impl NDArray {
    /// The stand-in of this handle, if it is not at home.
    #[inline]
    pub(crate) fn stand_in<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Self>> {
        self.tape.moves()?.stand_in(py, &self.inner)
    }

    /// Calls `look` with this handle or its stand-in.
    #[inline]
    pub(crate) fn at<R>(&self, py: Python<'_>, look: impl FnOnce(&Self) -> R) -> R {
        let now = self.stand_in(py);
        look(now.as_ref().map_or(self, |now| now.get()))
    }
}

/// The result of `act` on an array's stand-in, if there is one. Kept out of the way of calls on arrays that never move.
#[inline]
pub(crate) fn instead<'py, R>(array: &Bound<'py, NDArray>, act: impl FnOnce(&Bound<'py, NDArray>) -> R) -> Option<R> {
    if array.get().tape.is_moved() { instead_cold(array, act) } else { None }
}

/// The same, or with the array itself. `act` is called in two places here and not by itself, and so is inlined.
#[inline(always)]
#[allow(clippy::inline_always)] // on the way of every view
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

/// An array's handle, or its stand-in.
#[inline]
pub(crate) fn now<'py>(array: &Bound<'py, NDArray>) -> Bound<'py, NDArray> {
    array.get().stand_in(array.py()).unwrap_or_else(|| array.clone())
}

/// The same for several.
pub(crate) fn all_now(arrays: Vec<Bound<'_, NDArray>>) -> Vec<Bound<'_, NDArray>> {
    arrays.into_iter().map(|array| now(&array)).collect()
}

/// The same for an object that should be an array.
#[inline]
pub(crate) fn taken(item: Bound<'_, PyAny>) -> Result<Bound<'_, NDArray>, pyo3::CastIntoError<'_>> {
    let array = item.cast_into::<NDArray>()?;
    Ok(array.get().stand_in(array.py()).unwrap_or(array))
}

/// The stand-in of an object, if it is an array that is not at home.
#[inline]
pub(crate) fn elsewhere<'py>(item: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    item.cast::<NDArray>().ok()?.get().stand_in(item.py()).map(Bound::into_any)
}

/// How the tape knows the memory of arrays; for each: 0 not by itself, 1 as a leaf, 2 by writes of heard ops.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // extracted from a sequence
pub(crate) fn tape_standings(arrays: Vec<Bound<'_, NDArray>>) -> Vec<u64> {
    let arrays: Vec<_> = arrays.iter().map(now).collect();
    Standings::of(arrays.iter().map(|array| array.get().inner.buffer())).each().map(|standing| standing % 4).collect()
}
