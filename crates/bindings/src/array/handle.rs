//! The tape's part of a handle on an array.

use super::NDArray;
use super::moves::Moves;
use crate::tape::family::{Family, Piece};
use crate::tape::node::{Entry, Saved};
use crate::tape::outline::Outline;
use crate::tape::patch::patched;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Mutex, OnceLock, PoisonError};
use weft_array::DType;

/// The tape's part of an array's handle.
#[derive(Default)]
pub(crate) struct Handle {
    /// Made at the first thing to know.
    state: OnceLock<Box<State>>,
    /// The handle that this one is a view of; a root is not a view itself.
    root: Option<Py<NDArray>>,
}

#[derive(Default)]
struct State {
    /// The entry, with the last generation of the family for which it holds.
    entry: Mutex<Option<(Entry, u64)>>,
    /// Only in roots.
    family: OnceLock<Py<Family>>,
    /// Only in moved tensors.
    moves: OnceLock<Box<Moves>>,
}

impl Handle {
    /// The part of a view of `array`.
    pub(crate) fn view_of(array: &Bound<'_, NDArray>) -> Self {
        let root =
            array.get().tape.root.as_ref().map_or_else(|| array.clone().unbind(), |root| root.clone_ref(array.py()));
        Self { state: OnceLock::new(), root: Some(root) }
    }

    fn root(&self) -> &Self {
        self.root.as_ref().map_or(self, |root| &root.get().tape)
    }

    /// Whether the tape may know the value. If not, it does not.
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.state.get().is_some() || self.root.as_ref().is_some_and(|root| root.get().tape.state.get().is_some())
    }

    /// The places of a moved tensor.
    #[inline]
    pub(super) fn moves(&self) -> Option<&Moves> {
        self.state.get()?.moves.get().map(|moves| &**moves)
    }

    /// Whether the tensor was moved.
    #[inline]
    pub(crate) fn is_moved(&self) -> bool {
        self.moves().is_some()
    }

    pub(super) fn moves_or_new(&self) -> &Moves {
        self.state().moves.get_or_init(Box::default)
    }

    fn state(&self) -> &State {
        self.state.get_or_init(Box::default)
    }

    /// The family of all views of its memory, if there is one.
    pub(crate) fn known_family(&self) -> Option<&Py<Family>> {
        self.root().state.get()?.family.get()
    }

    /// The family of all views of its memory.
    pub(crate) fn family(&self, py: Python<'_>) -> PyResult<&Py<Family>> {
        let state = self.root().state();
        if let Some(known) = state.family.get() {
            return Ok(known);
        }
        let made = Py::new(py, Family::default())?;
        Ok(state.family.get_or_init(|| made))
    }

    /// Lets the views of this memory share `family` from the start.
    pub(crate) fn of_family(family: Py<Family>) -> Self {
        let handle = Self::default();
        let _ = handle.state().family.set(family); // it is new
        handle
    }

    pub(crate) fn set(&self, entry: Option<(Entry, u64)>) {
        let mut held = self.state().entry.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *held, entry);
        drop(held);
        drop(before); // may run Python
    }

    fn entry(&self, py: Python<'_>) -> Option<(Entry, u64)> {
        let held = self.state.get()?.entry.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|(entry, generation)| (entry.clone_ref(py), *generation))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.root)?;
        let Some(state) = self.state.get() else { return Ok(()) };
        visit.call(state.family.get())?;
        if let Some(moves) = state.moves.get() {
            moves.traverse(visit)?;
        }
        // The holder of the lock keeps its contents alive: nothing is garbage then.
        match state.entry.try_lock() {
            Ok(held) => visit.call(held.as_ref().map(|(entry, _)| &entry.node)),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn clear(&self) {
        if let Some(state) = self.state.get() {
            self.set(None);
            if let Some(moves) = state.moves.get() {
                moves.clear();
            }
        }
    }
}

/// How the tape knows the value that a handle shows: 0 not at all, 1 as a leaf by `requires_grad`, 3 as
/// one whose gradient nobody stores, 2 as anything else.
#[inline]
pub(crate) fn standing(py: Python<'_>, array: &NDArray) -> PyResult<u64> {
    if !array.tape.is_known() {
        return Ok(0);
    }
    Ok(entry_of(py, array)?.map_or(0, |entry| match entry.node.get() {
        node if !node.is_own_leaf() => 2,
        node if node.stores => 1,
        _ => 3,
    }))
}

/// Gives a handle the entry for the values that its memory may have been given.
pub(super) fn renew(array: &NDArray, entry: Option<Entry>) {
    if entry.is_some() || array.tape.is_known() {
        let generation = array.tape.known_family().map_or(0, |family| family.get().generation());
        array.tape.set(entry.map(|entry| (entry, generation)));
    }
}

/// The entry of a handle's present value, if the tape knows it.
pub(crate) fn entry_of(py: Python<'_>, array: &NDArray) -> PyResult<Option<Entry>> {
    if !array.tape.is_known() {
        return Ok(None);
    }
    if let Some(now) = array.stand_in(py) {
        return entry_of(py, now.get());
    }
    let own = array.tape.entry(py);
    let Some(family) = array.tape.known_family() else { return Ok(own.map(|(entry, _)| entry)) };
    let seen = own.as_ref().map_or(0, |(_, generation)| *generation);
    let Some((pieces, generation)) = family.get().pieces_since(py, seen, &array.inner) else {
        return Ok(own.map(|(entry, _)| entry));
    };
    let entry = match pieces.last() {
        None => match own {
            None => return Ok(None),
            Some((entry, _)) => entry,
        },
        Some(last) if last.shows(&array.inner) => last.entry.clone_ref(py),
        Some(_) => patched(py, &array.inner, &array.engine, own.map(|(entry, _)| entry), &pieces)?,
    };
    array.tape.set(Some((entry.clone_ref(py), generation)));
    drop::<Vec<Piece>>(pieces);
    Ok(Some(entry))
}

/// The outline of an array of this shape and dtype beside `like`.
#[inline]
pub(crate) fn outline(py: Python<'_>, like: &NDArray, shape: &[usize], dtype: DType) -> Outline {
    Outline::beside(py, &like.inner, like.owner(), shape, dtype)
}

/// Saves the value of an array.
#[inline]
pub(crate) fn save(py: Python<'_>, array: &NDArray) -> PyResult<Saved> {
    let family = array.tape.family(py)?.clone_ref(py);
    let written = family.get().save();
    let version = array.inner.version();
    Ok(Saved { array: array.inner.clone(), engine: array.owner().clone_ref(py), family, version, written })
}
