//! Which arrays of a call share memory.

use super::key::Key;
use crate::array::NDArray;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Memory that an array reaches.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Span {
    buffer: usize,
    bytes: Range<usize>,
}

impl Span {
    pub(super) fn of(array: &NDArray) -> Self {
        Self { buffer: Arc::as_ptr(array.inner.buffer()) as usize, bytes: array.inner.range() }
    }
}

/// Adds to a key, for each array that shares a buffer with an earlier one, which and how far from it.
#[inline]
pub(super) fn among(key: &mut Key<'_>) {
    for (first, at, distance) in pairs(&key.leaves) {
        key.words.extend([u64::MAX, first as u64, at as u64, distance.cast_unsigned() as u64]);
    }
}

/// The pairs of arrays that share a buffer: the first one on it, another one, and the bytes between them.
#[inline]
pub(super) fn pairs(leaves: &[Bound<'_, PyAny>]) -> SmallVec<[(usize, usize, isize); 2]> {
    let mut seen: SmallVec<[(usize, usize, usize); 16]> = SmallVec::new();
    let mut found = SmallVec::new();
    for (at, leaf) in leaves.iter().enumerate() {
        if let Ok(array) = leaf.cast::<NDArray>() {
            let place = |own: &NDArray| (Arc::as_ptr(own.inner.buffer()) as usize, at, own.inner.layout().offset);
            seen.push(array.get().at(array.py(), place));
        }
    }
    seen.sort_unstable();
    let Some(&(mut first)) = seen.first() else { return found };
    for &(buffer, at, offset) in &seen[1..] {
        if buffer == first.0 {
            found.push((first.1, at, offset.wrapping_sub(first.2).cast_signed()));
        } else {
            first = (buffer, at, offset);
        }
    }
    found
}

/// Which arrays of a call share memory with a program's states.
pub(super) struct Shared {
    /// Their buffers, sorted.
    states: Vec<usize>,
    /// The arrays that lay in a state when the program was recorded, and where.
    recorded: Vec<(usize, Span)>,
}

impl Shared {
    pub(super) fn new(states: &[Bound<'_, NDArray>], key: &Key<'_>) -> Self {
        let mut states: Vec<usize> = states.iter().map(|state| Span::of(state.get()).buffer).collect();
        states.sort_unstable();
        let mut shared = Self { states, recorded: Vec::new() };
        if !shared.states.is_empty() {
            shared.recorded = shared.found(key).collect();
        }
        shared
    }

    /// Whether the arrays of a call lie in the states as those recorded did.
    #[inline]
    pub(super) fn is(&self, key: &Key<'_>) -> bool {
        self.states.is_empty() || self.found(key).eq(self.recorded.iter().cloned())
    }

    fn found<'key>(&'key self, key: &'key Key<'_>) -> impl Iterator<Item = (usize, Span)> + 'key {
        key.leaves.iter().enumerate().filter_map(|(at, leaf)| {
            let span = leaf.cast::<NDArray>().ok()?.get().at(leaf.py(), Span::of);
            self.touches(&span).then_some((at, span))
        })
    }

    /// Whether it is in the memory of a state: in the same buffer, as a program binds buffers.
    fn touches(&self, span: &Span) -> bool {
        self.states.binary_search(&span.buffer).is_ok()
    }
}
