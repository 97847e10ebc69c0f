//! What an op does with each of the buffers that its arrays lie on.

use super::{Access, Array};
use crate::memory::{Buffer, RANGES};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Arrays of an op at most of which each is compared with all.
const FEW: usize = 8;

/// The access of an op to one buffer, all its arrays on it taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use {
    /// It looks at, or writes to, all of it.
    pub(super) whole: bool,
    /// It writes to a part of it.
    pub(super) writes_part: bool,
    /// One of its arrays that are still to be entered, which it looks at, has bytes in common with the one in question.
    pub(super) is_seen: bool,
    /// How many of its arrays come before the one in question, how many there are, and to how many it writes.
    pub(super) before: usize,
    pub(super) count: usize,
    pub(super) written: usize,
}

impl Use {
    /// For each array of an op.
    #[inline]
    pub(super) fn of_all(arrays: &[(&Array, Access)]) -> SmallVec<[Self; 4]> {
        if arrays.len() > FEW {
            return Self::of_each(arrays).into();
        }
        (0..arrays.len()).map(|index| Self::of(arrays, index)).collect()
    }

    #[inline]
    fn of(arrays: &[(&Array, Access)], index: usize) -> Self {
        let (buffer, own) = (arrays[index].0.buffer(), arrays[index].0.range());
        let mut all = Self { whole: false, writes_part: false, is_seen: false, before: 0, count: 0, written: 0 };
        for (other, (array, access)) in arrays.iter().enumerate() {
            if Arc::ptr_eq(array.buffer(), buffer) {
                let range = array.range();
                let whole = buffer.is_whole(&range);
                all.whole |= whole;
                all.written += usize::from(*access != Access::Read);
                let overlaps = range.start < own.end && own.start < range.end;
                all.is_seen |= other > index && *access != Access::Overwrite && overlaps;
                all.writes_part |= !whole && !range.is_empty() && *access != Access::Read;
                all.before += usize::from(other < index);
                all.count += 1;
            }
        }
        all.at_most_all()
    }

    /// For each array, in a time that grows as their number does, but for its logarithm.
    #[cold]
    fn of_each(arrays: &[(&Array, Access)]) -> Vec<Self> {
        let mut buffers: HashMap<*const Buffer, (Self, Spans)> = HashMap::new();
        let none = Self { whole: false, writes_part: false, is_seen: false, before: 0, count: 0, written: 0 };
        let mut before = Vec::with_capacity(arrays.len());
        for (array, access) in arrays {
            let (all, _) = buffers.entry(Arc::as_ptr(array.buffer())).or_insert_with(|| (none, Spans::default()));
            let range = array.range();
            let whole = array.buffer().is_whole(&range);
            before.push(all.count);
            all.whole |= whole;
            all.written += usize::from(*access != Access::Read);
            all.writes_part |= !whole && !range.is_empty() && *access != Access::Read;
            all.count += 1;
        }
        let mut each = Vec::with_capacity(arrays.len());
        for ((array, access), before) in arrays.iter().zip(before).rev() {
            let Some((all, seen)) = buffers.get_mut(&Arc::as_ptr(array.buffer())) else { continue };
            let range = array.range();
            each.push(Self { before, is_seen: seen.overlap(&range), ..all.at_most_all() });
            if *access != Access::Overwrite {
                seen.add(range);
            }
        }
        each.reverse();
        each
    }

    /// The same of an op that names more ranges of the buffer than are kept apart: it takes all of it.
    #[inline]
    fn at_most_all(self) -> Self {
        Self { whole: self.whole || self.count > RANGES, ..self }
    }
}

/// Bytes that are looked at: spans that do not touch, from their starts to their ends.
#[derive(Default)]
struct Spans(BTreeMap<usize, usize>);

impl Spans {
    fn add(&mut self, range: Range<usize>) {
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&known, &until)) = self.0.range(..=end).next_back().filter(|(_, until)| **until >= start) {
            self.0.remove(&known);
            (start, end) = (start.min(known), end.max(until));
        }
        self.0.insert(start, end);
    }

    fn overlap(&self, range: &Range<usize>) -> bool {
        self.0.range(..range.end).next_back().is_some_and(|(_, end)| *end > range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::Use;
    use crate::memory::RANGES;
    use crate::{Access, Array, DType, Layout};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::sync::Arc;
    use weft_engine::{Engine, Settings};

    const LENGTH: usize = 24;

    fn arrays(engine: &Engine, named: &[(bool, usize, usize, usize)]) -> Vec<(Array, Access)> {
        let whole = [(); 2].map(|()| Array::empty(engine, &[LENGTH], DType::UInt8).expect("a small array"));
        let of = |&(second, start, length, access): &(bool, usize, usize, usize)| {
            let contiguous = Layout::contiguous(&[length.min(LENGTH - start)], 1).expect("small");
            let buffer = Arc::clone(whole[usize::from(second)].buffer());
            let slice = Array::on(buffer, Layout { offset: start, ..contiguous }, DType::UInt8).expect("inside");
            (slice, [Access::Read, Access::Mutate, Access::Overwrite][access])
        };
        named.iter().map(of).collect()
    }

    proptest! {
        #[test]
        fn many_arrays_are_used_as_few_are(
            named in vec((any::<bool>(), 0..LENGTH, 1..=LENGTH, 0..3_usize), 0..40),
        ) {
            let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings");
            let held = arrays(&engine, &named);
            let arrays: Vec<(&Array, Access)> = held.iter().map(|(array, access)| (array, *access)).collect();
            let one_by_one: Vec<Use> = (0..arrays.len()).map(|index| Use::of(&arrays, index)).collect();
            prop_assert_eq!(Use::of_each(&arrays), one_by_one);
        }
    }

    #[test]
    fn more_ranges_than_are_kept_apart_are_all_of_the_buffer() {
        let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() }).expect("valid settings");
        for (count, whole) in [(RANGES, false), (RANGES + 1, true)] {
            let held = arrays(&engine, &vec![(false, 1, 2, 1); count]);
            let arrays: Vec<(&Array, Access)> = held.iter().map(|(array, access)| (array, *access)).collect();
            assert!(Use::of_all(&arrays).iter().all(|of_op| of_op.whole == whole));
        }
    }
}
