//! The work issued on the bytes of a buffer: the fences that an access to some of them has to be behind.
//!
//! A *part* is a range of bytes with the same history: its *writers*, and its later *readers*, of each stream the
//! newest. The parts of a buffer lie side by side and are all of it. A buffer that is accessed as a whole has one, with
//! one writer.
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
//! A reader is behind the writers of the part, so an op behind the readers is behind the writers too. In a merged part a
//! reader of one half is not behind the writers of the other. A part without a writer may have to be behind its memory's
//! allocation: [`Parts::before`] tells.

use crate::streams::Fence;
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
    list: SmallVec<[Part; 1]>,
    bytes: usize,
    most: usize,
}

/// Adds a fence, of each stream the newest. Two of one stream may come here in the other order.
#[inline]
fn add<A: smallvec::Array<Item = Fence>>(fences: &mut SmallVec<A>, fence: &Fence) {
    match fences.iter_mut().find(|known| known.stream().is(fence.stream())) {
        Some(known) if known.number() < fence.number() => *known = fence.clone(),
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

    /// Tells the fences that an access has to be behind, and answers whether there is none.
    #[inline]
    fn before(&self, kind: AccessKind, tell: &mut impl FnMut(&Fence)) -> bool {
        let readers = if kind == AccessKind::Read { &[] } else { &*self.readers };
        for fence in readers {
            tell(fence);
        }
        if !readers.is_empty() && !self.merged {
            return false;
        }
        for fence in &self.writers {
            tell(fence);
        }
        readers.is_empty() && self.writers.is_empty()
    }

    #[inline]
    fn was_written(&mut self, fence: &Fence) {
        self.merged = false;
        if !self.readers.is_empty() {
            self.readers.clear();
        }
        if let [writer] = &mut *self.writers {
            *writer = fence.clone();
        } else {
            self.writers.clear();
            self.writers.push(fence.clone());
        }
    }

    #[inline]
    fn was_read(&mut self, fence: &Fence) {
        if self.writers.iter().any(|writer| writer.is(fence)) {
            return;
        }
        match &mut *self.readers {
            [] => self.readers.push(fence.clone()),
            _ => add(&mut self.readers, fence),
        }
    }
}

impl Parts {
    /// One part of so many bytes, and so many parts at most.
    pub(crate) fn new(bytes: usize, writer: Option<Fence>, most: usize) -> Self {
        let part = Part { end: bytes, writers: writer.into_iter().collect(), ..Part::default() };
        Self { list: SmallVec::from_buf([part]), bytes, most: most.max(2) }
    }

    /// Whether these bytes are all.
    #[inline]
    pub(crate) fn is_whole(&self, range: &Range<usize>) -> bool {
        range.start == 0 && range.end >= self.bytes
    }

    /// Where a part begins.
    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.list[index - 1].end }
    }

    /// The parts that the range overlaps.
    #[inline]
    fn over(&self, range: &Range<usize>) -> Range<usize> {
        if self.is_whole(range) {
            return 0..self.list.len();
        }
        if range.is_empty() {
            return 0..0;
        }
        let first = self.list.partition_point(|part| part.end <= range.start);
        let count = self.list[first..].partition_point(|part| part.end < range.end);
        first..self.list.len().min(first + count + 1)
    }

    /// Tells the fences that an access has to be behind, and answers whether there is a part of which none tells that
    /// its memory has been allocated.
    #[inline]
    pub(crate) fn before(&self, range: &Range<usize>, kind: AccessKind, mut tell: impl FnMut(&Fence)) -> bool {
        match &self.list[self.over(range)] {
            [] => false,
            [part] => part.before(kind, &mut tell),
            parts => Self::before_each(parts, kind, &mut tell),
        }
    }

    #[cold]
    fn before_each(parts: &[Part], kind: AccessKind, tell: &mut impl FnMut(&Fence)) -> bool {
        let (mut all, mut bare) = (SmallVec::<[Fence; 8]>::new(), false);
        for part in parts {
            bare |= part.before(kind, &mut |fence| add(&mut all, fence));
        }
        all.iter().for_each(tell);
        bare
    }

    /// Tells the fences that nobody finds here any more once such an access has left its own, if they are of its stream.
    pub(crate) fn replaced(&self, range: &Range<usize>, kind: AccessKind, mut tell: impl FnMut(&Fence)) {
        for index in self.over(range) {
            let part = &self.list[index];
            if self.start(index) < range.start || part.end > range.end {
                continue; // the other half keeps them
            }
            part.readers.iter().for_each(&mut tell);
            if kind != AccessKind::Read {
                part.writers.iter().for_each(&mut tell);
            }
        }
    }

    /// The fences that a mutation of the whole has to be behind, and so the free.
    pub(crate) fn all(&self) -> SmallVec<[Fence; 4]> {
        let mut all = SmallVec::new();
        self.before(&(0..self.bytes), AccessKind::Mutate, |fence| all.push(fence.clone()));
        all
    }

    /// The fence of the op that has written to the whole, if nobody has written to parts of it since.
    pub(crate) fn writer(&self) -> Option<&Fence> {
        match &*self.list {
            [part] if part.writers.len() == 1 => part.writers.first(),
            _ => None,
        }
    }

    /// The number of the stream on which all is that has to do with these bytes: they were written to there, nobody has
    /// read them since, and whoever wrote to them wrote to nothing else that others may want.
    #[inline]
    pub(crate) fn sole_stream(&self, range: &Range<usize>) -> Option<usize> {
        if let [part] = &*self.list {
            let sole = part.readers.is_empty() && self.is_whole(range);
            return if let ([writer], true) = (&*part.writers, sole) { Some(writer.stream().number()) } else { None };
        }
        let over = self.over(range);
        if over.is_empty() || self.start(over.start) < range.start || self.list[over.end - 1].end > range.end {
            return None;
        }
        let mut found = None;
        for part in &self.list[over] {
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
        let whole = self.is_whole(range);
        if whole && let [part] = &mut *self.list {
            return part.was_written(fence);
        }
        if range.is_empty() {
            return;
        }
        let (first, last) = (self.split(range.start), self.split(range.end));
        if first == last {
            return;
        }
        let end = self.list[last - 1].end;
        if last > first + 1 {
            self.list.drain(first + 1..last);
        }
        self.list[first].end = end;
        self.list[first].was_written(fence);
        self.bound();
    }

    /// Notes a read of these bytes.
    #[inline]
    pub(crate) fn read(&mut self, range: &Range<usize>, fence: &Fence) {
        if self.is_whole(range) {
            if self.list.len() > 1 {
                self.merge_all();
            }
            return self.list[0].was_read(fence);
        }
        if range.is_empty() {
            return;
        }
        let (first, last) = (self.split(range.start), self.split(range.end));
        for part in self.list.iter_mut().take(last).skip(first) {
            part.was_read(fence);
        }
        self.bound();
    }

    /// Splits the part in which this byte is not the first. Answers which part begins with it.
    fn split(&mut self, at: usize) -> usize {
        let index = self.list.partition_point(|part| part.end <= at);
        if index == self.list.len() || self.start(index) == at {
            return index;
        }
        let head = Part { end: at, ..self.list[index].clone() };
        self.list.insert(index, head);
        index + 1
    }

    fn merge_all(&mut self) {
        let rest: SmallVec<[Part; 1]> = self.list.drain(1..).collect();
        rest.iter().for_each(|part| self.list[0].merge(part));
        self.list[0].end = self.bytes;
        self.list.shrink_to_fit();
    }

    /// Merges neighbours, if there are too many.
    fn bound(&mut self) {
        if self.list.len() > self.most {
            let halved = self.list.chunks(2).map(|pair| {
                let mut merged = pair[0].clone();
                pair[1..].iter().for_each(|other| merged.merge(other));
                Part { end: pair[pair.len() - 1].end, ..merged }
            });
            self.list = halved.collect();
        }
    }
}
