//! Convolutions by oneDNN, where it was opened: a part of the batch for each block.

use super::{Convolution, Product};
use crate::buffer::{slice, slice_mut};
use crate::loops::rectify;
use crate::parts;
use std::sync::Arc;
use weft_array::{Blocked, DType, StridedLoop};
use weft_engine::Cause;
use weft_onednn::{Compiled, Shape, library};

/// Fewer multiplications than this are done before a primitive has begun.
const WORTH: usize = 1 << 16;
/// Channels of which gradients are not worth its layouts.
const NARROW: usize = 8;
/// Windows of a block at least, where each writes weights.
const WINDOWS: usize = 512;
/// Filters of a block are whole numbers of so many: vectors of any processor.
const FILTERS: usize = 16;
/// How many multiplications a block is worth here are so many times as many as elsewhere.
const BLOCK: usize = 8;

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
        let product = match own.product {
            Product::Results => weft_onednn::Product::Results,
            Product::Data => weft_onednn::Product::Data,
            Product::Weights => weft_onednn::Product::Weights,
        };
        Compiled::new(library, product, &shape).ok()
    };
    let rest = split.units - split.chunk * (split.blocks - 1);
    let main = compile(split.chunk)?;
    let tail = if rest == split.chunk { None } else { Some(compile(rest)?) };
    let shares =
        own.product != Product::Weights && !split.filters && tail.as_ref().is_none_or(|tail| tail.agrees(&main));
    Some(Arc::new(ByLibrary { own, main, tail, split, shares }))
}

/// Where blocks end.
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

struct ByLibrary {
    own: Convolution,
    /// Of all blocks but the last.
    main: Compiled,
    /// Of the last, if that is shorter.
    tail: Option<Compiled>,
    split: Split,
    /// Whether weights are laid out once for all blocks.
    shares: bool,
}

fn refused(status: i32) -> Cause {
    Cause::Error(format!("oneDNN answered {status} to the execution of a convolution").into())
}

impl ByLibrary {
    fn weights(&self) -> usize {
        self.own.filters * (self.own.channels / self.own.groups) * self.own.window.size()
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
            Product::Results | Product::Data if self.shares => self.main.prepared(),
            Product::Results | Product::Data => 0,
        }
    }

    fn then(&self, next: &StridedLoop) -> Option<Arc<dyn Blocked>> {
        self.own.then(next, DType::Float32)
    }

    unsafe fn begin(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        if !self.shares {
            return Ok(());
        }
        // SAFETY: the caller's promise: weights are the second operand, and the scratch is as large as was asked for.
        unsafe { self.main.prepare(arrays[1], scratch) }.map_err(refused)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let (own, first) = (&self.own, block * self.split.chunk);
        let tail = self.tail.as_ref().filter(|_| block + 1 == self.split.blocks);
        let compiled = tail.unwrap_or(&self.main);
        let (&[one, two, ..], Some(&out)) = (arrays, arrays.last()) else { return Ok(()) };
        let bias = if own.bias { arrays[2] } else { std::ptr::null_mut() };
        let item = size_of::<f32>();
        let prepared = (self.shares && self.main.prepared() > 0).then_some(scratch);
        let results = own.window.total() * item;
        if self.split.filters {
            let weights = two.wrapping_add(first * own.channels * own.window.size() * item);
            let bias = if own.bias { bias.wrapping_add(first * item) } else { bias };
            let out = out.wrapping_add(first * results);
            // SAFETY: the caller's promise; blocks have filters of their own.
            unsafe { compiled.run(one, weights, None, bias, out) }.map_err(refused)?;
        } else {
            let (data, results) = (first * own.channels * own.window.channel() * item, first * own.filters * results);
            // SAFETY: as above; blocks have images, or sums, of their own.
            let ran = unsafe {
                match own.product {
                    Product::Results => {
                        compiled.run(one.wrapping_add(data), two, prepared, bias, out.wrapping_add(results))
                    }
                    Product::Data => {
                        compiled.run(one.wrapping_add(results), two, prepared, bias, out.wrapping_add(data))
                    }
                    Product::Weights => {
                        let sum = match block.checked_sub(1) {
                            None => out,
                            Some(before) => scratch.wrapping_add(before * self.weights() * item),
                        };
                        compiled.run(one.wrapping_add(data), two.wrapping_add(results), None, bias, sum)
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
