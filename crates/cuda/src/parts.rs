//! What was issued on the bytes of a buffer: the fences that an access to some of them has to be behind.
//!
//! A *part* is a range of bytes on which the same was issued: its *writers*, and those who have *read* it since, of each
//! stream the newest. The parts of a buffer lie side by side and are all of it. A buffer that is accessed as a whole
//! has one, with one writer.
//!
//! | access | is behind, in each part that it overlaps |
//! |---|---|
//! | a read | the writers |
//! | a mutation, the free | the readers; the writers where nobody has read, and where the part was merged |
//!
//! | when this is issued | parts | fences of those in its range |
//! |---|---|---|
//! | an access to a range | that across an end is *split*: both halves have its fences | |
//! | a mutation | those in its range become one | it is the one writer, and nobody has read |
//! | a read of a range | | it is a reader of each, but of those that its own op writes to |
//! | a read of the whole | all are *merged* into one | writers and readers of all; it is a reader |
//! | one that leaves too many | neighbours are merged, two into one | writers and readers of both |
//!
//! Whoever reads is behind the writers of the part, so who is behind the readers is behind the writers too. In a merged
//! part a reader of one half is not behind the writers of the other. A part that nobody has written to has no writer,
//! but may have to be behind its memory's allocation: [`Parts::before`] tells.

use crate::fence::Fence;
use smallvec::SmallVec;
use std::ops::Range;
use weft_engine::AccessKind;

#[derive(Clone, Default)]
struct Part {
    /// Behind its last byte. It begins where the part before it ends.
    end: usize,
    writers: SmallVec<[Fence; 2]>,
    readers: SmallVec<[Fence; 2]>,
    merged: bool,
}

/// The parts of a buffer.
pub(crate) struct Parts {
    /// In order, and at least one.
    parts: SmallVec<[Part; 1]>,
    most: usize,
}

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
    /// One part of so many bytes, and so many parts at most.
    pub(crate) fn new(bytes: usize, writer: Option<Fence>, most: usize) -> Self {
        let part = Part { end: bytes, writers: writer.into_iter().collect(), ..Part::default() };
        Self { parts: SmallVec::from_buf([part]), most: most.max(2) }
    }

    fn bytes(&self) -> usize {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// Whether these bytes are all.
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start == 0 && range.end >= self.bytes()
    }

    /// Where a part begins.
    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.parts[index - 1].end }
    }

    /// The parts that the range overlaps.
    #[inline]
    fn over(&self, range: &Range<usize>) -> Range<usize> {
        if self.is_whole(range) {
            return 0..self.parts.len();
        }
        if range.is_empty() {
            return 0..0;
        }
        let first = self.parts.partition_point(|part| part.end <= range.start);
        let count = self.parts[first..].partition_point(|part| part.end < range.end);
        first..self.parts.len().min(first + count + 1)
    }

    /// Tells the fences that an access has to be behind, and answers whether there is a part of which none tells that
    /// its memory has been allocated.
    #[inline]
    pub(crate) fn before(&self, range: &Range<usize>, kind: AccessKind, mut tell: impl FnMut(&Fence)) -> bool {
        let (mut all, mut bare) = (SmallVec::<[Fence; 8]>::new(), false);
        let parts = &self.parts[self.over(range)];
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

    /// The fences that a mutation of the whole has to be behind, and so the free.
    pub(crate) fn all(&self) -> SmallVec<[Fence; 4]> {
        let mut all = SmallVec::new();
        self.before(&(0..self.bytes()), AccessKind::Mutate, |fence| all.push(fence.clone()));
        all
    }

    /// The fence of the op that has written to the whole, if nobody has written to parts of it since.
    pub(crate) fn writer(&self) -> Option<&Fence> {
        match &*self.parts {
            [part] if part.writers.len() == 1 => part.writers.first(),
            _ => None,
        }
    }

    /// The number of the stream on which all is that has to do with these bytes: they were written to there, nobody has
    /// read them since, and whoever wrote to them wrote to nothing else that others may want.
    pub(crate) fn sole_stream(&self, range: &Range<usize>) -> Option<usize> {
        let over = self.over(range);
        if over.is_empty() || self.start(over.start) < range.start || self.parts[over.end - 1].end > range.end {
            return None;
        }
        let mut found = None;
        for part in &self.parts[over] {
            let [writer] = &*part.writers else { return None };
            let number = writer.stream().number();
            if !part.readers.is_empty() || found.is_some_and(|found| found != number) {
                return None;
            }
            found = Some(number);
        }
        found
    }

    /// Notes a mutation of these bytes.
    #[inline]
    pub(crate) fn written(&mut self, range: &Range<usize>, fence: &Fence) {
        let (mut first, mut last) = (0, self.parts.len());
        if !self.is_whole(range) {
            (first, last) = (self.split(range.start), self.split(range.end));
            if first >= last {
                return;
            }
        }
        let end = self.parts[last - 1].end;
        if last > first + 1 {
            self.parts.drain(first + 1..last);
        }
        let part = &mut self.parts[first];
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
            return self.parts[0].was_read(fence);
        }
        let (first, last) = (self.split(range.start), self.split(range.end));
        for part in self.parts.iter_mut().take(last).skip(first) {
            part.was_read(fence);
        }
        self.bound();
    }

    /// Splits the part in which this byte is not the first. Answers which part begins with it.
    fn split(&mut self, at: usize) -> usize {
        let index = self.parts.partition_point(|part| part.end <= at);
        if index == self.parts.len() || self.start(index) == at {
            return index;
        }
        let head = Part { end: at, ..self.parts[index].clone() };
        self.parts.insert(index, head);
        index + 1
    }

    fn merge_all(&mut self) {
        if self.parts.len() > 1 {
            let end = self.bytes();
            let rest: SmallVec<[Part; 1]> = self.parts.drain(1..).collect();
            rest.iter().for_each(|part| self.parts[0].merge(part));
            self.parts[0].end = end;
            self.parts.shrink_to_fit();
        }
    }

    /// Merges neighbours, if there are too many.
    fn bound(&mut self) {
        if self.parts.len() > self.most {
            let halved = self.parts.chunks(2).map(|pair| {
                let mut merged = pair[0].clone();
                pair[1..].iter().for_each(|other| merged.merge(other));
                Part { end: pair[pair.len() - 1].end, ..merged }
            });
            self.parts = halved.collect();
        }
    }
}
