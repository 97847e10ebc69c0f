//! Convolutions by oneDNN, where it was opened: a part of the batch for each block.

use super::{Convolution, Product};
use crate::buffer::{slice, slice_mut};
use crate::loops::rectify;
use crate::parts;
use std::sync::Arc;
use weft_array::{Blocked, DType, Lanes, StridedLoop};
use weft_engine::Cause;
use weft_onednn::{AsWanted, Compiled, Shape, library};

/// Fewer multiplications than this are done before a primitive has begun.
const WORTH: usize = 1 << 16;
/// Numbers of channels with gradients that are not worth its layouts.
const NARROW: usize = 8;
/// Windows of a block at least, where each writes weights.
const WINDOWS: usize = 512;
/// Filters of a block are whole numbers of so many: vectors of any processor.
const FILTERS: usize = 16;
/// How many multiplications a block is worth here are so many times as many as elsewhere.
const BLOCK: usize = 8;
/// Windows of all images, above which weights are not worth keeping: to lay them out takes as long as some fifty windows.
const KEPT: usize = 1024;
/// The library's layouts begin at a multiple of so many bytes.
const ALIGN: usize = 64;

/// The step that computes a convolution of float32 so; nothing where the library is not there, or refuses.
pub(super) fn step(own: Convolution) -> Option<Arc<dyn Blocked>> {
    let library = library()?;
    // Data of a few channels are padded to 16 by it, where they are written.
    let narrow = own.product == Product::Data && own.channels / own.groups < NARROW;
    if own.multiplications() < WORTH || narrow {
        return None;
    }
    let split = Split::of(&own);
    let compile = |units: usize| {
        let window = own.window;
        let (batch, filters) = if split.filters { (own.batch, units) } else { (units, own.filters) };
        let shape = Shape {
            batch,
            channels: own.channels,
            filters,
            groups: own.groups,
            lengths: window.lengths,
            kernel: window.kernel,
            stride: window.stride,
            before: window.before,
            dilation: window.dilation,
            counts: window.counts,
            bias: own.bias,
        };
        Compiled::new(library, own.product, &shape).ok()
    };
    let rest = split.units - split.chunk * (split.blocks - 1);
    let main = compile(split.chunk)?;
    let tail = if rest == split.chunk { None } else { Some(compile(rest)?) };
    let shares =
        own.product != Product::Weights && !split.filters && tail.as_ref().is_none_or(|tail| tail.agrees(&main));
    let (main, tail) = (Arc::new(main), tail.map(Arc::new));
    Some(Arc::new(ByLibrary { own, main, tail, split, shares, as_wanted: [false; 3], kept: false }))
}

/// Where blocks end.
#[derive(Clone, Copy)]
struct Split {
    /// Whether blocks have filters of one image, rather than images.
    filters: bool,
    /// How many there are.
    units: usize,
    /// How many a block has, but for the last.
    chunk: usize,
    blocks: usize,
}

impl Split {
    fn of(own: &Convolution) -> Self {
        let filters = own.product == Product::Results && own.batch == 1 && own.groups == 1 && own.filters > FILTERS;
        let units = if filters { own.filters } else { own.batch };
        let least = match own.product {
            _ if filters => FILTERS,
            // Each block lays weights out: it has windows enough for that not to count.
            Product::Weights => WINDOWS.div_ceil(own.window.total().max(1)).min(own.batch),
            Product::Results | Product::Data => 1,
        };
        let round = if filters { FILTERS } else { 1 };
        let chunk = units.div_ceil(parts::count(units, own.multiplications() / BLOCK)).max(least);
        let chunk = chunk.next_multiple_of(round).min(units);
        Self { filters, units, chunk, blocks: units.div_ceil(chunk) }
    }
}

#[derive(Clone)]
struct ByLibrary {
    own: Convolution,
    /// Of all blocks but the last.
    main: Arc<Compiled>,
    /// Of the last, if that is shorter.
    tail: Option<Arc<Compiled>>,
    split: Split,
    /// Whether weights are laid out once for all blocks.
    shares: bool,
    /// Which of the data lie in the library's own layout already, or are to.
    as_wanted: AsWanted,
    /// Whether weights are laid out for all blocks before them, even if each has its own.
    kept: bool,
}

fn refused(status: i32) -> Cause {
    Cause::Error(format!("oneDNN answered {status} to the execution of a convolution").into())
}

impl ByLibrary {
    fn weights(&self) -> usize {
        self.own.filters * (self.own.channels / self.own.groups) * self.own.window.size()
    }

    /// That of a block.
    fn compiled(&self, block: usize) -> &Compiled {
        self.tail.as_ref().filter(|_| block + 1 == self.split.blocks).unwrap_or(&self.main)
    }

    /// Where in the scratch memory the weights of a block are, if each has its own.
    fn place(&self, block: usize) -> usize {
        block * self.main.prepared().next_multiple_of(ALIGN)
    }

    /// The weights of a block, if each has its own.
    fn filters(&self, weights: *mut u8, block: usize) -> *mut u8 {
        let each = self.own.channels * self.own.window.size() * size_of::<f32>();
        weights.wrapping_add(block * self.split.chunk * each)
    }

    /// How many operands there are.
    fn count(&self) -> usize {
        3 + usize::from(self.own.bias)
    }

    /// The library's lanes of the first, the second and the last operand.
    fn lanes(&self) -> [Option<Lanes>; 3] {
        let window = &self.own.window;
        let (data, results) = (window.channel(), window.total());
        let inner = match self.own.product {
            Product::Results => [data, 0, results],
            Product::Data => [results, 0, data],
            Product::Weights => [data, results, 0],
        };
        let (main, tail) = (self.main.lanes(), self.tail.as_ref().map(|tail| tail.lanes()));
        std::array::from_fn(|at| {
            let same = tail.is_none_or(|tail| tail[at] == main[at]);
            main[at].filter(|_| same).map(|width| Lanes { width, inner: inner[at] })
        })
    }
}

impl Blocked for ByLibrary {
    fn blocks(&self) -> usize {
        self.split.blocks
    }

    fn operations(&self) -> usize {
        self.own.multiplications()
    }

    fn scratch(&self) -> usize {
        match self.own.product {
            Product::Weights => (self.split.blocks - 1) * self.weights() * size_of::<f32>(),
            Product::Results if self.split.filters && self.kept => {
                let last = self.split.blocks - 1;
                self.place(last) + self.compiled(last).prepared()
            }
            Product::Results | Product::Data if self.shares => self.main.prepared(),
            Product::Results | Product::Data => 0,
        }
    }

    fn then(&self, next: &StridedLoop) -> Option<Arc<dyn Blocked>> {
        self.own.then(next, DType::Float32)
    }

    fn likes(&self, _: &[Option<Lanes>]) -> Vec<Option<Lanes>> {
        let [first, second, out] = self.lanes();
        let mut all = vec![None; self.count()];
        (all[0], all[1], all[self.count() - 1]) = (first, second, out);
        all
    }

    fn in_lanes(&self, operands: &[Option<Lanes>]) -> Option<Arc<dyn Blocked>> {
        let likes = self.likes(operands);
        let fits = |(given, liked): (&Option<Lanes>, &Option<Lanes>)| given.is_none() || given == liked;
        if operands.len() != likes.len() || !operands.iter().zip(&likes).all(fits) {
            return None;
        }
        let as_wanted = [0, 1, self.count() - 1].map(|at| operands[at].is_some());
        Some(Arc::new(Self { as_wanted, ..self.clone() }))
    }

    fn keeping(&self) -> Option<(usize, Arc<dyn Blocked>)> {
        let lays_out = (self.shares || self.split.filters) && self.main.prepared() > 0;
        let windows = self.own.batch * self.own.window.total();
        let step = || -> Arc<dyn Blocked> { Arc::new(Self { kept: true, ..self.clone() }) };
        (lays_out && windows <= KEPT).then(|| (1, step()))
    }

    unsafe fn begin(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        if !self.shares {
            let blocks = 0..if self.kept { self.split.blocks } else { 0 };
            return blocks.into_iter().try_for_each(|block| {
                let (weights, to) = (self.filters(arrays[1], block), scratch.wrapping_add(self.place(block)));
                // SAFETY: as below; blocks have weights of their own.
                unsafe { self.compiled(block).prepare(weights, to) }.map_err(refused)
            });
        }
        // SAFETY: the caller's promise: weights are the second operand, and the scratch is as large as was asked for.
        unsafe { self.main.prepare(arrays[1], scratch) }.map_err(refused)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let (own, first) = (&self.own, block * self.split.chunk);
        let compiled = self.compiled(block);
        let (&[one, two, ..], Some(&out)) = (arrays, arrays.last()) else { return Ok(()) };
        let bias = if own.bias { arrays[2] } else { std::ptr::null_mut() };
        let item = size_of::<f32>();
        let laid_out = compiled.prepared() > 0;
        let prepared = (self.shares && laid_out).then_some(scratch);
        let results = own.window.total() * item;
        if self.split.filters {
            let weights = self.filters(two, block);
            let prepared = (self.kept && laid_out).then(|| scratch.wrapping_add(self.place(block)));
            let bias = if own.bias { bias.wrapping_add(first * item) } else { bias };
            let out = out.wrapping_add(first * results);
            // SAFETY: the caller's promise; blocks have filters of their own.
            unsafe { compiled.run(one, weights, prepared, bias, out, self.as_wanted) }.map_err(refused)?;
        } else {
            let (data, results) = (first * own.channels * own.window.channel() * item, first * own.filters * results);
            // SAFETY: as above; blocks have images, or sums, of their own.
            let ran = unsafe {
                match own.product {
                    Product::Results => {
                        let (one, out) = (one.wrapping_add(data), out.wrapping_add(results));
                        compiled.run(one, two, prepared, bias, out, self.as_wanted)
                    }
                    Product::Data => {
                        let (one, out) = (one.wrapping_add(results), out.wrapping_add(data));
                        compiled.run(one, two, prepared, bias, out, self.as_wanted)
                    }
                    Product::Weights => {
                        let sum = match block.checked_sub(1) {
                            None => out,
                            Some(before) => scratch.wrapping_add(before * self.weights() * item),
                        };
                        let (one, two) = (one.wrapping_add(data), two.wrapping_add(results));
                        compiled.run(one, two, None, bias, sum, self.as_wanted)
                    }
                }
            };
            ran.map_err(refused)?;
        }
        if own.rectified {
            let each = own.window.total() * if self.split.filters { 1 } else { own.filters };
            let count = self.split.chunk.min(self.split.units - first);
            // SAFETY: as above.
            rectify(unsafe { slice_mut::<f32>(out, first * each, count * each) });
        }
        Ok(())
    }

    unsafe fn finish(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        let (Product::Weights, Some(&out)) = (self.own.product, arrays.last()) else { return Ok(()) };
        let count = self.weights();
        // SAFETY: the caller's promise.
        let out: &mut [f32] = unsafe { slice_mut(out, 0, count) };
        for block in 1..self.split.blocks {
            // SAFETY: as above; each block has written a sum.
            let sum: &[f32] = unsafe { slice(scratch, (block - 1) * count, count) };
            for (total, more) in out.iter_mut().zip(sum) {
                *total += *more;
            }
        }
        Ok(())
    }
}
