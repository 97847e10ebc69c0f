//! Strided loops that run one after the other over each block of their elements, so that each finds its inputs in the
//! cache. Intermediate values without another reader are never longer than a block.

use super::strided::Strided;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// Where an operand of one of the loops lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// In the array of this number, of those that the whole is bound to.
    Array(usize),
    /// In this slot of a block's own memory.
    Slot(usize),
}

/// Alignment of slots: a cache line.
const ALIGNMENT: usize = 64;

/// Some strided loops over the same number of elements, each in rows.
pub struct Fused {
    size: usize,
    block: usize,
    loops: Vec<(Arc<Strided>, Range<usize>)>,
    /// Where the operands that are arrays lie, and bytes of their elements.
    operands: Vec<(Part, usize)>,
    slots: usize,
    /// Bytes of a slot.
    slot: usize,
}

/// A block's own memory. Its length is 0: it is what was reserved, and not initialised.
pub struct Slots(Vec<[u64; 8]>);

impl Fused {
    /// The loops with where their operands lie, inputs first, scalars left out; blocks of so many elements.
    ///
    /// Nothing if a loop is not in rows, or has another size.
    #[must_use]
    pub fn new(parts: Vec<(Arc<Strided>, Vec<Part>)>, block: usize) -> Option<Self> {
        let size = parts.first()?.0.size();
        let (mut loops, mut operands, mut slots, mut widest) = (Vec::new(), Vec::new(), 0, 1);
        for (strided, places) in parts {
            if strided.size() != size || !strided.is_in_rows() {
                return None;
            }
            let items: SmallVec<[usize; 4]> = strided.items().collect();
            if items.len() != places.len() {
                return None;
            }
            let from = operands.len();
            for (place, item) in places.into_iter().zip(items) {
                if let Part::Slot(slot) = place {
                    slots = slots.max(slot + 1);
                    widest = widest.max(item);
                }
                operands.push((place, item));
            }
            loops.push((strided, from..operands.len()));
        }
        let slot = (block * widest).next_multiple_of(ALIGNMENT);
        Some(Self { size, block, loops, operands, slots, slot })
    }

    /// Number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many blocks there are.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.size.div_ceil(self.block)
    }

    /// Memory for one block after the other.
    #[must_use]
    pub fn slots(&self) -> Slots {
        Slots(Vec::with_capacity(self.slots * self.slot / ALIGNMENT + 1))
    }

    /// Runs one block, where the arrays are.
    ///
    /// # Safety
    ///
    /// As for [`Step::run`](super::Step::run).
    pub unsafe fn run_block(&self, arrays: &[*mut u8], number: usize, slots: &mut Slots) {
        let part = number * self.block..((number + 1) * self.block).min(self.size);
        let own = slots.0.as_mut_ptr().cast::<u8>();
        let own = own.wrapping_add(own.align_offset(ALIGNMENT));
        for (strided, range) in &self.loops {
            let mut operands = self.operands[range.clone()].iter();
            let next = || match operands.next() {
                Some((Part::Array(array), item)) => arrays[*array].wrapping_add(part.start * item),
                Some((Part::Slot(slot), _)) => own.wrapping_add(slot * self.slot),
                None => unreachable!("the loop has as many operands as it was fused with"),
            };
            // SAFETY: the caller's promise; slots hold as many elements as a block has, of any type.
            unsafe { strided.run_row(next, part.len()) };
        }
    }

    /// Whether no loop looks at the array of the number `one` after a loop has written to that of the number `other`.
    #[must_use]
    pub fn reads_before(&self, one: usize, other: usize) -> bool {
        let uses = |loops: &(Arc<Strided>, Range<usize>), array| {
            self.operands[loops.1.clone()].iter().any(|(part, _)| *part == Part::Array(array))
        };
        let last = self.loops.iter().rposition(|loops| uses(loops, one));
        let first = self.loops.iter().position(|loops| uses(loops, other));
        last.zip(first).is_none_or(|(last, first)| last <= first)
    }

    /// Of each loop what it reads, and what it overwrites.
    pub fn parts(&self) -> impl Iterator<Item = (Vec<Part>, Vec<Part>)> + '_ {
        self.loops.iter().map(|(strided, range)| {
            let mut reads: Vec<Part> = self.operands[range.clone()].iter().map(|(part, _)| *part).collect();
            let writes = reads.split_off(reads.len() - strided.outputs());
            (reads, writes)
        })
    }

    /// The same without the loops, by number, that do not stay: who reads what one of them writes does not either.
    #[must_use]
    pub fn only(&self, stays: impl Fn(usize) -> bool) -> Self {
        let loops = self.loops.iter().enumerate().filter(|(number, _)| stays(*number));
        let loops = loops.map(|(_, (strided, range))| (Arc::clone(strided), range.clone())).collect();
        Self { loops, operands: self.operands.clone(), ..*self }
    }

    /// How many loops there are.
    #[must_use]
    pub fn loops(&self) -> usize {
        self.loops.len()
    }

    /// The elements of some blocks.
    #[must_use]
    pub fn rows(&self, blocks: &Range<usize>) -> Range<usize> {
        (blocks.start * self.block).min(self.size)..(blocks.end * self.block).min(self.size)
    }

    /// Runs some blocks, in memory that the thread keeps for the next ones.
    ///
    /// # Safety
    ///
    /// As for [`Step::run`](super::Step::run).
    pub unsafe fn run_blocks(&self, arrays: &[*mut u8], blocks: Range<usize>) {
        thread_local! {
            static SLOTS: RefCell<Vec<[u64; 8]>> = const { RefCell::new(Vec::new()) };
        }
        // A loop that ran fused loops itself would find nothing kept.
        let mut slots = Slots(SLOTS.take());
        slots.0.reserve(self.slots * self.slot / ALIGNMENT + 1);
        for number in blocks {
            // SAFETY: the caller's promise.
            unsafe { self.run_block(arrays, number, &mut slots) };
        }
        SLOTS.set(slots.0);
    }

    /// Runs all blocks.
    ///
    /// # Safety
    ///
    /// As for [`Step::run`](super::Step::run).
    pub unsafe fn run(&self, arrays: &[*mut u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.run_blocks(arrays, 0..self.blocks()) };
    }
}
