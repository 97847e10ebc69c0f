//! Strided loops that run one after the other over each block of their elements, so that each finds its inputs in the
//! cache. Intermediate values without another reader are never longer than a block.
//!
//! Exact neighbours among them are one *chain*, with its values in registers (see `chain`).

use super::chain::{Chain, Input, Line, SHORT, Vectors};
use super::strided::Strided;
use crate::DType;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// The place of an operand of one of the loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The array of this number, among those of the whole.
    Array(usize),
    /// This slot of a block's own memory.
    Slot(usize),
}

/// Alignment of slots: a cache line.
const ALIGNMENT: usize = 64;

/// Several strided loops over the same number of elements, each in rows.
pub struct Fused {
    size: usize,
    block: usize,
    loops: Vec<(Arc<Strided>, Range<usize>)>,
    /// The chains among the loops, each with the numbers of its loops, in order.
    chains: Vec<(Range<usize>, Chain)>,
    /// The places of the operands that are arrays, and the bytes from element to element: 0 if there is one for all.
    operands: Vec<(Part, usize)>,
    slots: usize,
    /// Bytes of a slot.
    slot: usize,
}

/// A block's own memory. Its length is 0: the memory is reserved and uninitialised.
struct Slots(Vec<[u64; 8]>);

impl Fused {
    /// Makes it from the loops with the places of their operands, inputs first, without scalars; and the elements of a
    /// block.
    ///
    /// None if a loop is not [in blocks](Strided::is_in_blocks), or has another size.
    #[must_use]
    pub fn new(parts: Vec<(Arc<Strided>, Vec<Part>)>, block: usize) -> Option<Self> {
        let size = parts.first()?.0.size();
        let (mut loops, mut operands, mut slots, mut widest) = (Vec::new(), Vec::new(), 0, 1);
        for (strided, places) in parts {
            if strided.size() != size || !strided.is_in_blocks() {
                return None;
            }
            let steps: SmallVec<[usize; 4]> = strided.item_steps().collect();
            if steps.len() != places.len() {
                return None;
            }
            let from = operands.len();
            for (place, item) in places.into_iter().zip(steps) {
                if let Part::Slot(slot) = place {
                    slots = slots.max(slot + 1);
                    widest = widest.max(item);
                }
                operands.push((place, item));
            }
            loops.push((strided, from..operands.len()));
        }
        let slot = ((block + SHORT) * widest).next_multiple_of(ALIGNMENT);
        let chains = chains(&loops, &operands, Vectors::chosen());
        Some(Self { size, block, loops, chains, operands, slots, slot })
    }

    /// Number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its duration in nanoseconds, about.
    pub(crate) fn nanoseconds(&self) -> usize {
        self.loops.iter().fold(0, |sum: usize, (strided, _)| sum.saturating_add(strided.nanoseconds()))
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        // A few elements at the end belong to the block before.
        self.size.saturating_sub(SHORT - 1).div_ceil(self.block).max(usize::from(self.size > 0))
    }

    /// The start of a block, or the end of the last one.
    fn edge(&self, number: usize) -> usize {
        if number < self.blocks() { number * self.block } else { self.size }
    }

    /// Runs one block on these arrays.
    ///
    /// # Safety
    ///
    /// As for [`Step::run`](super::Step::run); there is memory for the slots of a block.
    unsafe fn run_block(&self, arrays: &[*mut u8], number: usize, slots: &mut Slots) {
        let part = self.edge(number)..self.edge(number + 1);
        let own = slots.0.as_mut_ptr().cast::<u8>();
        let own = own.wrapping_add(own.align_offset(ALIGNMENT));
        let start = |place: Part, item: usize| match place {
            Part::Array(array) => arrays[array].wrapping_add(part.start * item),
            Part::Slot(slot) => own.wrapping_add(slot * self.slot),
        };
        let run_loop = |number: usize, done: usize| {
            let (strided, range) = &self.loops[number];
            let mut operands = self.operands[range.clone()].iter();
            let next = || match operands.next() {
                Some((place, item)) => start(*place, *item).wrapping_add(done * item),
                None => unreachable!("the loop has as many operands as it was fused with"),
            };
            // SAFETY: the caller's promise; a slot holds all elements of a block, of any type.
            unsafe { strided.run_row(next, part.len() - done) };
        };
        let mut next = 0;
        for (loops, chain) in &self.chains {
            (next..loops.start).for_each(|number| run_loop(number, 0));
            // SAFETY: as above; all operands have elements of this size.
            let done = unsafe { chain.run(start, part.len()) };
            if done < part.len() {
                loops.clone().for_each(|number| run_loop(number, done));
            }
            next = loops.end;
        }
        (next..self.loops.len()).for_each(|number| run_loop(number, 0));
    }

    /// Whether no loop reads the array of the number `one` after a loop has written to that of the number `other`.
    #[must_use]
    pub fn reads_before(&self, one: usize, other: usize) -> bool {
        let uses = |loops: &(Arc<Strided>, Range<usize>), array| {
            self.operands[loops.1.clone()].iter().any(|(part, _)| *part == Part::Array(array))
        };
        let last = self.loops.iter().rposition(|loops| uses(loops, one));
        let first = self.loops.iter().position(|loops| uses(loops, other));
        last.zip(first).is_none_or(|(last, first)| last <= first)
    }

    /// For each loop the parts that it reads, and those that it overwrites.
    pub fn parts(&self) -> impl Iterator<Item = (Vec<Part>, Vec<Part>)> + '_ {
        self.loops.iter().map(|(strided, range)| {
            let mut reads: Vec<Part> = self.operands[range.clone()].iter().map(|(part, _)| *part).collect();
            let writes = reads.split_off(reads.len() - strided.outputs());
            (reads, writes)
        })
    }

    /// The same without some loops, given by number, and without the loops that read their results.
    #[must_use]
    pub fn only(&self, stays: impl Fn(usize) -> bool) -> Self {
        let loops = self.loops.iter().enumerate().filter(|(number, _)| stays(*number));
        let loops: Vec<_> = loops.map(|(_, (strided, range))| (Arc::clone(strided), range.clone())).collect();
        let chains = chains(&loops, &self.operands, Vectors::chosen());
        Self { loops, chains, operands: self.operands.clone(), ..*self }
    }

    /// The number of loops for estimates of time. Those of a chain take a quarter of the usual time.
    #[must_use]
    pub fn weight(&self) -> usize {
        let chained: usize = self.chains.iter().map(|(loops, _)| loops.len()).sum();
        self.loops.len() - chained + chained.div_ceil(4)
    }

    /// The elements of some blocks.
    #[must_use]
    pub fn rows(&self, blocks: &Range<usize>) -> Range<usize> {
        self.edge(blocks.start)..self.edge(blocks.end)
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
        // A loop that itself runs fused loops finds nothing kept.
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

type Loops = [(Arc<Strided>, Range<usize>)];

/// The chains among loops: exact neighbours on elements of one type.
fn chains(loops: &Loops, operands: &[(Part, usize)], vectors: Vectors) -> Vec<(Range<usize>, Chain)> {
    let of = |(strided, range): &(Arc<Strided>, Range<usize>)| -> Option<(DType, Line)> {
        let kernel = strided.kernel();
        let exact = kernel.exact()?;
        let mut places = operands[range.clone()].iter();
        let inputs = strided.scalars().map(|number| match number {
            Some(number) => Some(Input::Number(number)),
            None => places.next().map(|(part, step)| if *step == 0 { Input::One(*part) } else { Input::At(*part) }),
        });
        let inputs = inputs.collect::<Option<SmallVec<[Input; 2]>>>()?;
        // How a loop takes two operands that are one element each, or one alone, was not tried.
        if !inputs.iter().any(|input| matches!(input, Input::At(_))) {
            return None;
        }
        Some((kernel.dtypes()[0], Line { exact, inputs, output: places.next()?.0 }))
    };
    let lines: Vec<Option<(DType, Line)>> = loops.iter().map(of).collect();
    let (mut made, mut from) = (Vec::new(), 0);
    let alike = |run: &[Option<(DType, Line)>]| match run {
        [Some((dtype, _)), ..] => {
            run.iter().take_while(|line| line.as_ref().is_some_and(|(of, _)| of == dtype)).count()
        }
        _ => 0,
    };
    while from < lines.len() {
        let count = alike(&lines[from..]);
        let range = from..from + count.max(1);
        from = range.end;
        let of_chain = || lines[range.clone()].iter().flatten();
        let Some((dtype, _)) = of_chain().next() else { continue };
        if count < 2 {
            continue; // NumPy runs a single loop
        }
        let all: Vec<Line> = of_chain().map(|(_, line)| line.clone()).collect();
        let is_read_after = |slot: usize| reads_first(&loops[range.end..], operands, Part::Slot(slot));
        if let Some(chain) = Chain::new(&all, *dtype, vectors, &is_read_after) {
            made.push((range, chain.with_code(vectors)));
        }
    }
    made
}

/// Whether some of these loops read a part before one of them writes to it.
fn reads_first(loops: &Loops, operands: &[(Part, usize)], part: Part) -> bool {
    let look = |(strided, range): &(Arc<Strided>, Range<usize>)| {
        let at = operands[range.clone()].iter().position(|(other, _)| *other == part)?;
        Some(at < range.len() - strided.outputs())
    };
    loops.iter().find_map(look).unwrap_or(false)
}
