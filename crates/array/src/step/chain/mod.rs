//! Chains: neighbours among fused loops that run as one, tile by tile, with intermediate values in registers.
//!
//! | file | home of |
//! |---|---|
//! | `code` | instructions |
//! | `machine` | the loop over tiles and instructions, written once |
//! | `floats`, `integers`, `plain` | the machines: that loop for kinds of vectors and types of elements |
//! | `vectors` | the choice of machines for this processor |
//! | `compile` | the program of a chain: allocation of registers, stores |
//! | `native` | the program as code of the processor's own, where the platform allows it |
//! | `encode`, `executable` | instructions as bytes; the memory of such code |
//!
//! The machines run few elements, and all elements where there is no such code.
//!
//! Of two NaNs either may come out of an op, and NumPy's loops choose differently at the end of an array. So the loops
//! themselves run the elements after the last tile if one of the results there is NaN.

mod code;
mod compile;
#[cfg(target_arch = "x86_64")]
mod encode;
#[cfg(target_arch = "x86_64")]
mod executable;
#[cfg(target_arch = "x86_64")]
mod floats;
#[cfg(target_arch = "x86_64")]
mod integers;
mod machine;
#[cfg(target_arch = "x86_64")]
mod native;
mod plain;
mod vectors;

use super::exact::{Exact, Function, Numbers};
use super::{Part, StridedLoop};
use crate::DType;
use code::Instruction;
use compile::Compiler;
use machine::{Address, SPLAT};
use smallvec::SmallVec;
use std::cell::RefCell;
use vectors::Machine;
pub(super) use vectors::Vectors;

/// One loop of a chain.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) exact: Exact,
    pub(super) inputs: SmallVec<[Input; 2]>,
    pub(super) output: Part,
}

/// An operand of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    At(Part),
    /// The first element of a part, for every element.
    One(Part),
    /// The same number for every element.
    Number([u8; 16]),
}

/// The tiles of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Home {
    part: Part,
    /// The number of the chain's own tile in its place, if there is one, and what is in it.
    own: Option<(usize, Own)>,
    /// Whether each tile overwrites the one before it.
    is_kept: bool,
    /// Whether the content before the chain is read.
    is_read: bool,
    is_written: bool,
}

/// The content of a tile of the chain's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    /// A copy of the part's tile.
    Copy,
    /// The part's first element, again and again.
    One,
}

/// Chains run a multiple of this many elements: whole tiles of any machine, and whole vectors of NumPy's loops of any
/// width. So NumPy's loops treat the rest as they treat the end of the array.
pub(super) const ROUND: usize = 192;

/// Fewer elements than these are not left to loops, which may treat few elements unlike the end of many.
pub(super) const SHORT: usize = 64;

/// Elements that are worth code of their own, at least: of fewer, its way into the caches takes longer than it saves.
#[cfg(target_arch = "x86_64")]
const LEAST_NATIVE: usize = 4 * ROUND;

/// A number as a vector of any width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
struct Splat([u8; SPLAT]);

impl Splat {
    fn new(number: &[u8; 16], item: usize) -> Self {
        let mut bytes = [0; SPLAT];
        bytes.chunks_exact_mut(item).for_each(|to| to.copy_from_slice(&number[..item]));
        Self(bytes)
    }
}

type Addresses = SmallVec<[Address; 16]>;

/// Several loops as one program.
pub(super) struct Chain {
    program: Vec<Instruction>,
    homes: Vec<Home>,
    splats: Vec<Splat>,
    /// The number of its own tiles.
    tiles: usize,
    machine: Machine,
    #[cfg(target_arch = "x86_64")]
    native: Option<native::Native>,
    dtype: DType,
    item: usize,
}

impl Chain {
    /// The program of these loops on elements of a type, for vectors that this processor has. `is_read_after` tells the
    /// slots that are read afterwards. Slots that it reads before it writes them hold values of earlier loops.
    ///
    /// None if no machine takes them, or one of them writes where another reads the one element for all.
    pub(super) fn new(
        lines: &[Line],
        dtype: DType,
        vectors: Vectors,
        is_read_after: &dyn Fn(usize) -> bool,
    ) -> Option<Self> {
        let machine = vectors.machine(dtype)?;
        if !lines.iter().all(|line| line.exact.function.op().is_for(dtype)) {
            return None;
        }
        let is_one = |input: &Input, part| *input == Input::One(part);
        let reads_one = |part| lines.iter().flat_map(|line| &line.inputs).any(|input| is_one(input, part));
        if lines.iter().any(|line| reads_one(line.output)) {
            return None;
        }
        let compiled = Compiler::new(lines, dtype, is_read_after).compile()?;
        let tiles = compiled.tiles();
        let Compiler { program, homes, splats, .. } = compiled;
        if homes.is_empty() {
            return None; // it writes nothing
        }
        let item = dtype.size();
        #[cfg(target_arch = "x86_64")]
        return Some(Self { program, homes, splats, tiles, machine, native: None, dtype, item });
        #[cfg(not(target_arch = "x86_64"))]
        Some(Self { program, homes, splats, tiles, machine, dtype, item })
    }

    /// The same, with code for vectors that this processor has, if there may be some. It is worth making for chains that run
    /// often.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, unused_mut))]
    pub(super) fn with_code(mut self, vectors: Vectors) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            self.native = native::Native::new(&self.program, &self.homes, self.dtype, vectors);
        }
        self
    }

    /// Runs all of `count` elements, or most of them, and returns their number. `start` gives the first element of a part,
    /// given the bytes from each to the next, which are 0 if one is for all.
    ///
    /// # Safety
    ///
    /// The parts have this many elements of the chain's type, and this call has exclusive access to them.
    pub(super) unsafe fn run(&self, start: impl Fn(Part, usize) -> *mut u8, count: usize) -> usize {
        thread_local! {
            static OWN: RefCell<Vec<Splat>> = const { RefCell::new(Vec::new()) };
        }
        let mut done = count / ROUND * ROUND;
        if (1..SHORT).contains(&(count - done)) {
            done = done.saturating_sub(ROUND);
        }
        let mut own = OWN.take();
        let room = (self.tiles + 2 * self.homes.len()) * self.round();
        own.resize(own.len().max(room), Splat([0; SPLAT]));
        let first = own.as_mut_ptr();
        let tile = |number: usize| first.wrapping_add(number * self.round()).cast::<u8>();
        let kept = |home: &Home| home.own.map_or_else(|| start(home.part, self.item), |(number, _)| tile(number));
        for home in self.homes.iter().filter(|home| matches!(home.own, Some((_, Own::One)))) {
            // SAFETY: the caller's promise for the element; the tile is the chain's own, and has room for a round.
            unsafe { self.fill(kept(home), start(home.part, 0)) };
        }
        if done > 0 {
            let address = |home: &Home| Address { start: kept(home), mask: if home.is_kept { 0 } else { usize::MAX } };
            let addresses: Addresses = self.homes.iter().map(address).collect();
            // SAFETY: the caller's promise; a whole number of rounds is inside.
            unsafe { self.run_rounds(&addresses, done) };
        }
        let from = |part| start(part, self.item).wrapping_add(done * self.item);
        let copy = |number: usize| tile(self.tiles + 2 * number);
        // SAFETY: the caller's promise for the elements that are left.
        let all = unsafe { self.run_rest(from, kept, copy, count - done) };
        OWN.set(own);
        if all { count } else { done }
    }

    /// Fills a round with an element.
    ///
    /// # Safety
    ///
    /// There are an element of the chain's type and aligned room for a round.
    unsafe fn fill(&self, round: *mut u8, element: *const u8) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.item == 4 {
                std::slice::from_raw_parts_mut(round.cast::<[u8; 4]>(), ROUND).fill(element.cast::<[u8; 4]>().read());
            } else {
                std::slice::from_raw_parts_mut(round.cast::<[u8; 8]>(), ROUND).fill(element.cast::<[u8; 8]>().read());
            }
        }
    }

    /// The splats in a round of elements.
    fn round(&self) -> usize {
        (ROUND * self.item).div_ceil(SPLAT)
    }

    /// # Safety
    ///
    /// The addresses are those of the homes, each of so many elements, which fill rounds, or of one round if its mask is 0.
    unsafe fn run_rounds(&self, addresses: &[Address], count: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(native) = &self.native
            && count >= LEAST_NATIVE
        {
            // SAFETY: the caller's promise; the code was made of this program and for these homes.
            return unsafe { native.run(addresses, self.splats.as_ptr().cast(), count / native.tile()) };
        }
        // SAFETY: the caller's promise; tiles divide a round.
        unsafe { self.run_tiles(addresses, count / self.machine.tile) };
    }

    /// # Safety
    ///
    /// The addresses are those of the homes, each of `tiles` tiles, or of one if its mask is 0.
    unsafe fn run_tiles(&self, addresses: &[Address], tiles: usize) {
        // SAFETY: the caller's promise; the program was made for these homes and splats, and the processor has the vectors.
        unsafe { (self.machine.run)(&self.program, addresses, self.splats.as_ptr().cast(), tiles) };
    }

    /// Runs the elements after the last tile, on copies. Returns false, without a change, if a result is NaN.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run); `from` gives the places of these elements, `kept` that of a kept tile, and `copy`
    /// room for two rounds of a home's elements.
    unsafe fn run_rest(
        &self,
        from: impl Fn(Part) -> *mut u8,
        kept: impl Fn(&Home) -> *mut u8,
        copy: impl Fn(usize) -> *mut u8,
        count: usize,
    ) -> bool {
        if count == 0 {
            return true;
        }
        let bytes = count * self.item;
        let address = |(number, home): (usize, &Home)| {
            if home.is_kept {
                return Address { start: kept(home), mask: 0 };
            }
            if home.is_read {
                // SAFETY: the part has this many elements, and the copy has room for them.
                unsafe { from(home.part).copy_to_nonoverlapping(copy(number), bytes) };
            }
            Address { start: copy(number), mask: usize::MAX }
        };
        let addresses: Addresses = self.homes.iter().enumerate().map(address).collect();
        // SAFETY: fewer elements than two rounds are left, and tiles divide a round.
        unsafe { self.run_tiles(&addresses, count.div_ceil(self.machine.tile)) };
        let written = || self.homes.iter().enumerate().filter(|(_, home)| home.is_written && !home.is_kept);
        // SAFETY: copies have this many elements of the chain's type.
        let are_numbers = written().all(|(number, _)| unsafe { self.are_numbers(copy(number), count) });
        if are_numbers {
            for (number, home) in written() {
                // SAFETY: the part has this many elements, and this call has exclusive access to them.
                unsafe { from(home.part).copy_from_nonoverlapping(copy(number), bytes) };
            }
        }
        are_numbers
    }

    /// # Safety
    ///
    /// There are this many elements of the chain's type.
    unsafe fn are_numbers(&self, start: *const u8, count: usize) -> bool {
        let mut elements = 0..count;
        // SAFETY: the caller's promise.
        unsafe {
            match self.dtype {
                DType::Float32 => {
                    !elements.any(|at| start.cast::<[u8; 4]>().add(at).cast::<f32>().read_unaligned().is_nan())
                }
                DType::Float64 => {
                    !elements.any(|at| start.cast::<[u8; 8]>().add(at).cast::<f64>().read_unaligned().is_nan())
                }
                _ => true,
            }
        }
    }

    /// The number of its instructions for a tile.
    #[cfg(test)]
    fn instructions(&self) -> usize {
        self.program.len()
    }
}

/// Whether a machine produced the same bits as a loop.
///
/// # Safety
///
/// The pointers are to the loop's operands. Each has `count` elements of its type, whole tiles of any machine, or one
/// if `form` says that it is a number for all.
pub(super) unsafe fn stands_in(
    exact: Exact,
    kernel: &StridedLoop,
    form: Numbers,
    pointers: &[*mut u8],
    count: usize,
) -> bool {
    let dtype = kernel.dtypes()[0];
    let item = dtype.size();
    let inputs = (0..kernel.inputs()).map(|at| {
        let is_number = (form == Numbers::Left && at == 0) || (form == Numbers::Right && at == 1);
        if !is_number {
            return Input::At(Part::Array(at));
        }
        let mut number = [0; 16];
        // SAFETY: the caller's promise: there is one element.
        unsafe { number.as_mut_ptr().copy_from_nonoverlapping(pointers[at], item) };
        Input::Number(number)
    });
    let line = Line { exact, inputs: inputs.collect(), output: Part::Array(2) };
    let Some(chain) = Chain::new(&[line], dtype, Vectors::chosen(), &|_| false) else { return false };
    let bytes = count * item;
    let mut own = vec![0_u8; bytes];
    let own_start = own.as_mut_ptr();
    let start = |part: Part, _| if let Part::Array(at @ 0..2) = part { pointers[at] } else { own_start };
    // SAFETY: the caller's promise; the output belongs to this function.
    let done = unsafe { chain.run(start, count) };
    // SAFETY: the last operand is the output, with as many elements.
    done == count && unsafe { std::slice::from_raw_parts(pointers[kernel.inputs()], bytes) } == own
}

impl Function {
    /// The op of a machine that computes it.
    fn op(self) -> code::Op {
        match self {
            Self::Add => code::Op::Add,
            Self::Subtract => code::Op::Subtract,
            Self::Multiply | Self::Square => code::Op::Multiply,
            Self::Divide | Self::Reciprocal => code::Op::Divide,
            Self::Minimum => code::Op::Minimum,
            Self::Maximum | Self::Rectify => code::Op::Maximum,
            Self::Copy => code::Op::Copy,
            Self::Negative => code::Op::Negative,
            Self::Absolute => code::Op::Absolute,
            Self::Sqrt => code::Op::Sqrt,
            Self::And => code::Op::And,
            Self::Or => code::Op::Or,
            Self::Xor => code::Op::Xor,
            Self::Not => code::Op::Not,
        }
    }
}

#[cfg(test)]
mod tests;
