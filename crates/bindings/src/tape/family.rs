//! The state that all views of one memory share.

use super::marks::Mark;
use super::node::{Entry, TapeNode};
use crate::interpreter::location::Location;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use weft_array::{Array, DType, Layout, recording};

/// Elements that a heard op has written.
pub(crate) struct Piece {
    pub(crate) entry: Entry,
    pub(super) layout: Layout,
    pub(super) dtype: DType,
    range: Range<usize>,
    generation: u64,
    /// For as long as it counts, of memory's own family.
    _mark: Option<Mark>,
}

impl Piece {
    /// Whether it is just what `array` shows.
    pub(crate) fn shows(&self, array: &Array) -> bool {
        self.dtype == array.dtype() && self.layout == *array.layout()
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            entry: self.entry.clone_ref(py),
            layout: self.layout.clone(),
            dtype: self.dtype,
            range: self.range.clone(),
            generation: self.generation,
            _mark: None,
        }
    }
}

struct Write {
    range: Range<usize>,
    place: Location,
}

#[derive(Default)]
struct Log {
    /// Counts pieces.
    generation: u64,
    pieces: Vec<Piece>,
    /// Kept while values are saved.
    writes: Vec<Write>,
    /// Writes that are not kept any more.
    gone: u64,
    saved: u64,
}

/// Memory as the tape sees it: the heard ops that wrote to it, and all writes since values were saved.
#[pyclass(module = "weft._core", frozen, name = "_Family")]
#[derive(Default)]
pub(crate) struct Family {
    log: Mutex<Log>,
    /// Of the same memory, where this one is for handles that are kept apart.
    original: Option<Py<Family>>,
}

/// The fate of saved values.
pub(crate) enum Fate {
    There,
    /// Where, if that is known.
    Overwritten(Option<Location>),
}

fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Family {
    /// One for handles on the memory of `original` whose entries are their own.
    pub(crate) fn apart(original: Py<Self>) -> Self {
        Self { log: Mutex::default(), original: Some(original) }
    }

    fn home(&self) -> &Self {
        self.original.as_ref().map_or(self, |original| original.get().home())
    }

    /// The pieces written after `generation` that meet the elements of `array`, and the generation now; None if that is
    /// the same.
    pub(crate) fn pieces_since(&self, py: Python<'_>, generation: u64, array: &Array) -> Option<(Vec<Piece>, u64)> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.generation == generation {
            return None;
        }
        let range = array.range();
        let later = log.pieces.iter().filter(|piece| piece.generation > generation && meet(&piece.range, &range));
        Some((later.map(|piece| piece.clone_ref(py)).collect(), log.generation))
    }

    /// How many pieces were written.
    pub(crate) fn generation(&self) -> u64 {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).generation
    }

    /// Notes that a heard op has written the elements of `array`; answers the generation.
    pub(crate) fn add(&self, array: &Array, entry: Entry) -> u64 {
        let range = array.range();
        let mark = self.original.is_none().then(|| Mark::new(array.buffer(), entry.node.get().why()));
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.generation += 1;
        let generation = log.generation;
        let whole = array.is_contiguous();
        let hidden =
            |old: &mut Piece| old.shows(array) || whole && range.start <= old.range.start && old.range.end <= range.end;
        let before: Vec<Piece> = log.pieces.extract_if(.., hidden).collect();
        let (layout, dtype) = (array.layout().clone(), array.dtype());
        log.pieces.push(Piece { entry, layout, dtype, range, generation, _mark: mark });
        drop(log);
        drop(before); // which may run Python
        generation
    }

    /// The leaf among the pieces that meet the elements of `array`.
    pub(crate) fn leaf_at(&self, py: Python<'_>, array: &Array) -> Option<Py<TapeNode>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let range = array.range();
        let found = log.pieces.iter().find(|piece| meet(&piece.range, &range) && piece.entry.node.get().is_leaf());
        found.map(|piece| piece.entry.node.clone_ref(py))
    }

    /// Takes the leaf `node` out.
    pub(crate) fn remove(&self, node: &Py<TapeNode>) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.generation += 1;
        let gone: Vec<Piece> = log.pieces.extract_if(.., |piece| piece.entry.node.is(node)).collect();
        drop(log);
        drop(gone);
    }

    /// Notes that the elements of `array` were written, if some are saved.
    pub(crate) fn wrote(&self, py: Python<'_>, array: &Array) {
        let log = || self.home().log.lock().unwrap_or_else(PoisonError::into_inner);
        if log().saved == 0 {
            return;
        }
        // Without the lock: up to CPython 3.11 to make a frame's object may collect garbage, which runs Python.
        let place = Location::here(py);
        let mut log = log();
        if log.saved > 0 {
            log.writes.push(Write { range: array.range(), place });
        }
    }

    /// Notes that values are saved; answers how many writes there have been.
    pub(crate) fn save(&self) -> u64 {
        let mut log = self.home().log.lock().unwrap_or_else(PoisonError::into_inner);
        log.saved += 1;
        log.gone + log.writes.len() as u64
    }

    /// Notes that saved values are given up.
    pub(crate) fn give_up(&self) {
        let mut log = self.home().log.lock().unwrap_or_else(PoisonError::into_inner);
        log.saved -= 1;
        if log.saved == 0 {
            log.gone += log.writes.len() as u64;
            log.writes = Vec::new();
        }
    }

    /// Whether the elements of `array`, saved at version `version` after `written` writes, are still there.
    pub(crate) fn fate(&self, array: &Array, version: u64, written: u64) -> Fate {
        let now = array.version();
        // Nothing of a recording runs, so versions stay: there the writes alone tell, and all are told of.
        if now == version && !recording::is_open() {
            return Fate::There;
        }
        let log = self.home().log.lock().unwrap_or_else(PoisonError::into_inner);
        let later = &log.writes[usize::try_from(written.saturating_sub(log.gone)).unwrap_or(0).min(log.writes.len())..];
        let range = array.range();
        match later.iter().find(|write| meet(&write.range, &range)) {
            Some(write) => Fate::Overwritten(Some(write.place)),
            // Writes that were not told may have been anywhere.
            None if (later.len() as u64) < now.saturating_sub(version) => Fate::Overwritten(None),
            None => Fate::There,
        }
    }
}

#[pymethods]
impl Family {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.original)?;
        // The holder of the lock keeps its contents alive: then nothing is garbage here.
        if let Ok(log) = self.log.try_lock() {
            for piece in &log.pieces {
                visit.call(&piece.entry.node)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let pieces = std::mem::take(&mut log.pieces);
        drop(log);
        drop(pieces);
    }
}
