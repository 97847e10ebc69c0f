//! What was issued on the bytes of a buffer: the fences that an access to some of them has to be behind.
//!
//! A *part* is a range of bytes on which the same was issued: its *writers*, and those who have *read* it since, of each
//! stream the newest. The parts of a buffer lie side by side and are all of it. A buffer that is accessed as a whole
//! has one, with one writer.
//!
//! | access | is behind, in each part that it overlaps |
//! |---|---|
//! | a read | the writers |
//! | a mutation | the readers; the writers where nobody has read, and where the part was merged |
//! | the free | both, in all parts |
//!
//! | when this is issued | parts | fences of those in its range |
//! |---|---|---|
//! | an access to a range | that across an end is *split*: both halves have its fences | |
//! | a mutation | those in its range become one | it is the one writer, and nobody has read |
//! | a read of a range | | it is a reader of each, but of those that its own op writes to |
//! | a read of the whole | all are *merged* into one | writers and readers of all; it is a reader |
//! | one that leaves more than [`MOST`] | neighbours are merged, two into one | writers and readers of both |
//!
//! Whoever reads is behind the writers of the part, so who is behind the readers is behind the writers too. In a merged
//! part a reader of one half is not behind the writers of the other. A part that nobody has written to has no writer,
//! but may have to be behind its memory's allocation: [`Parts::before`] tells.

use crate::fence::Fence;
use smallvec::SmallVec;
use std::ops::Range;
use weft_engine::AccessKind;

/// Parts of one buffer at most: it takes time to go through them, and each holds events.
const MOST: usize = 1024;

#[derive(Clone, Default)]
struct Part {
    /// Behind its last byte. It begins where the part before it ends.
    end: usize,
    writers: SmallVec<[Fence; 2]>,
    readers: SmallVec<[Fence; 2]>,
    merged: bool,
}

/// The parts of a buffer, in order: at least one.
pub(crate) struct Parts(SmallVec<[Part; 1]>);

/// Adds a fence, of each stream the newest. Two of one stream may come here in the other order.
fn add<A: smallvec::Array<Item = Fence>>(fences: &mut SmallVec<A>, fence: &Fence) {
    match fences.iter_mut().find(|known| known.stream().is(fence.stream())) {
        Some(known) if known.cell().number < fence.cell().number => *known = fence.clone(),
        Some(_) => {}
        None => fences.push(fence.clone()),
    }
}

impl Part {
    /// Takes another one in, whose end stays its own.
    fn merge(&mut self, other: &Self) {
        other.writers.iter().for_each(|fence| add(&mut self.writers, fence));
        other.readers.iter().for_each(|fence| add(&mut self.readers, fence));
        self.merged = true;
    }

    fn before(&self, kind: AccessKind) -> impl Iterator<Item = &Fence> {
        let reads = kind == AccessKind::Read;
        let readers = if reads { &[] } else { &*self.readers };
        let writers = if reads || readers.is_empty() || self.merged { &*self.writers } else { &[] };
        writers.iter().chain(readers)
    }

    fn was_read(&mut self, fence: &Fence) {
        if !self.writers.iter().any(|writer| writer.is(fence)) {
            add(&mut self.readers, fence);
        }
    }
}

impl Parts {
    /// One part of so many bytes.
    pub(crate) fn new(bytes: usize, writer: Option<Fence>) -> Self {
        let part = Part { end: bytes, writers: writer.into_iter().collect(), ..Part::default() };
        Self(SmallVec::from_buf([part]))
    }

    fn bytes(&self) -> usize {
        self.0.last().map_or(0, |part| part.end)
    }

    /// Whether these bytes are all.
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start == 0 && range.end >= self.bytes()
    }

    /// The parts that the range overlaps.
    fn over(&self, range: &Range<usize>) -> &[Part] {
        if self.is_whole(range) {
            return &self.0;
        }
        if range.is_empty() {
            return &[];
        }
        let first = self.0.partition_point(|part| part.end <= range.start);
        let count = self.0[first..].partition_point(|part| part.end < range.end);
        &self.0[first..self.0.len().min(first + count + 1)]
    }

    /// Tells the fences that an access has to be behind, and answers whether there is a part of which none tells that
    /// its memory has been allocated.
    #[inline]
    pub(crate) fn before(&self, range: &Range<usize>, kind: AccessKind, mut tell: impl FnMut(&Fence)) -> bool {
        let (mut all, mut bare) = (SmallVec::<[Fence; 8]>::new(), false);
        let parts = self.over(range);
        for part in parts {
            bare |= part.before(kind).next().is_none();
            match parts {
                [_] => part.before(kind).for_each(&mut tell),
                _ => part.before(kind).for_each(|fence| add(&mut all, fence)),
            }
        }
        all.iter().for_each(tell);
        bare
    }

    /// The fences of all ops, in their order on each stream.
    pub(crate) fn all(&self) -> SmallVec<[Fence; 4]> {
        let mut all = SmallVec::new();
        self.0.iter().flat_map(|part| &part.writers).for_each(|fence| add(&mut all, fence));
        self.0.iter().flat_map(|part| &part.readers).for_each(|fence| add(&mut all, fence));
        all
    }

    /// The fence of the op that has written to the whole, if nobody has written to parts of it since.
    pub(crate) fn writer(&self) -> Option<&Fence> {
        match &*self.0 {
            [part] if part.writers.len() == 1 => part.writers.first(),
            _ => None,
        }
    }

    /// The fence of the op that alone has to do with these bytes: it wrote to them all, and nobody has read since.
    pub(crate) fn sole(&self, range: &Range<usize>) -> Option<&Fence> {
        match self.over(range) {
            [part] if part.readers.is_empty() && part.writers.len() == 1 => part.writers.first(),
            _ => None,
        }
    }

    /// Notes a mutation of these bytes.
    #[inline]
    pub(crate) fn written(&mut self, range: &Range<usize>, fence: &Fence) {
        let (mut first, mut last) = (0, self.0.len());
        if !self.is_whole(range) {
            if range.is_empty() {
                return;
            }
            (first, last) = (self.split(range.start), self.split(range.end));
        }
        let end = self.0[last - 1].end;
        if last > first + 1 {
            self.0.drain(first + 1..last);
        }
        let part = &mut self.0[first];
        (part.end, part.merged) = (end, false);
        part.readers.clear();
        part.writers.clear();
        part.writers.push(fence.clone());
        self.bound();
    }

    /// Notes a read of these bytes.
    #[inline]
    pub(crate) fn read(&mut self, range: &Range<usize>, fence: &Fence) {
        if self.is_whole(range) {
            self.merge_all();
            return self.0[0].was_read(fence);
        }
        if range.is_empty() {
            return;
        }
        let (first, last) = (self.split(range.start), self.split(range.end));
        self.0[first..last].iter_mut().for_each(|part| part.was_read(fence));
        self.bound();
    }

    /// Splits the part in which this byte is not the first. Answers which part begins with it.
    fn split(&mut self, at: usize) -> usize {
        let index = self.0.partition_point(|part| part.end <= at);
        let start = if index == 0 { 0 } else { self.0[index - 1].end };
        if index == self.0.len() || start == at {
            return index;
        }
        let head = Part { end: at, ..self.0[index].clone() };
        self.0.insert(index, head);
        index + 1
    }

    fn merge_all(&mut self) {
        if self.0.len() > 1 {
            let end = self.bytes();
            let rest: SmallVec<[Part; 1]> = self.0.drain(1..).collect();
            rest.iter().for_each(|part| self.0[0].merge(part));
            self.0[0].end = end;
            self.0.shrink_to_fit();
        }
    }

    /// Merges neighbours, if there are too many.
    fn bound(&mut self) {
        if self.0.len() > MOST {
            let halved = self.0.chunks(2).map(|pair| {
                let mut merged = pair[0].clone();
                pair[1..].iter().for_each(|other| merged.merge(other));
                Part { end: pair[pair.len() - 1].end, ..merged }
            });
            self.0 = halved.collect();
        }
    }
}
