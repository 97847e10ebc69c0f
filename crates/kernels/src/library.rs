//! Convolutions by oneDNN, where it was opened: a part of the batch for each block.

use crate::buffer::{slice, slice_mut};
use crate::convolution::{Convolution, Product};
use crate::parts;
use std::sync::Arc;
use weft_array::Blocked;
use weft_engine::Cause;
use weft_onednn::{Compiled, Shape, library};

/// Fewer multiplications than this are done before a primitive has begun.
const WORTH: usize = 1 << 16;
/// Channels of which gradients are not worth its layouts.
const NARROW: usize = 8;
/// Windows of a block at least.
const WINDOWS: usize = 512;
/// How many multiplications a block is worth here are so many times as many as elsewhere.
const BLOCK: usize = 8;

/// The step that computes a convolution of float32 so; nothing where the library is not there, or refuses.
pub(crate) fn step(own: Convolution) -> Option<Arc<dyn Blocked>> {
    let library = library()?;
    // Data of a few channels are padded to 16 by it, where they are written.
    let narrow = own.product == Product::Data && own.channels / own.groups < NARROW;
    if own.multiplications() < WORTH || narrow {
        return None;
    }
    // Each block lays the weights out anew: it has windows enough for that not to count.
    let least = WINDOWS.div_ceil(own.window.total().max(1)).min(own.batch);
    let chunk = own.batch.div_ceil(parts::count(own.batch, own.multiplications() / BLOCK)).max(least);
    let blocks = own.batch.div_ceil(chunk);
    let compile = |batch: usize| {
        let window = own.window;
        let shape = Shape {
            batch,
            channels: own.channels,
            filters: own.filters,
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
    let rest = own.batch - chunk * (blocks - 1);
    let main = compile(chunk)?;
    let tail = if rest == chunk { None } else { Some(compile(rest)?) };
    Some(Arc::new(ByLibrary { own, main, tail, chunk, blocks }))
}

struct ByLibrary {
    own: Convolution,
    /// Of all blocks but the last.
    main: Compiled,
    /// Of the last, if that is shorter.
    tail: Option<Compiled>,
    /// Images of a block.
    chunk: usize,
    blocks: usize,
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
        self.blocks
    }

    fn operations(&self) -> usize {
        self.own.multiplications()
    }

    fn scratch(&self) -> usize {
        if self.own.product == Product::Weights { (self.blocks - 1) * self.weights() * size_of::<f32>() } else { 0 }
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], scratch: *mut u8, block: usize) -> Result<(), Cause> {
        let (own, first) = (&self.own, block * self.chunk);
        let tail = self.tail.as_ref().filter(|_| block + 1 == self.blocks);
        let compiled = tail.unwrap_or(&self.main);
        let data = first * own.channels * own.window.channel() * size_of::<f32>();
        let results = first * own.filters * own.window.total() * size_of::<f32>();
        let (&[one, two, ..], Some(&out)) = (arrays, arrays.last()) else { return Ok(()) };
        let bias = if own.bias { arrays[2] } else { std::ptr::null_mut() };
        // SAFETY: the caller's promise; blocks have images, or sums, of their own.
        let ran = unsafe {
            match own.product {
                Product::Results => compiled.run(one.wrapping_add(data), two, bias, out.wrapping_add(results)),
                Product::Data => compiled.run(one.wrapping_add(results), two, bias, out.wrapping_add(data)),
                Product::Weights => {
                    let sum = match block.checked_sub(1) {
                        None => out,
                        Some(before) => scratch.wrapping_add(before * self.weights() * size_of::<f32>()),
                    };
                    compiled.run(one.wrapping_add(data), two.wrapping_add(results), bias, sum)
                }
            }
        };
        ran.map_err(refused)
    }

    unsafe fn finish(&self, arrays: &[*mut u8], scratch: *mut u8) -> Result<(), Cause> {
        let (Product::Weights, Some(&out)) = (self.own.product, arrays.last()) else { return Ok(()) };
        let count = self.weights();
        // SAFETY: the caller's promise.
        let out: &mut [f32] = unsafe { slice_mut(out, 0, count) };
        for block in 1..self.blocks {
            // SAFETY: as above; each block has written a sum.
            let sum: &[f32] = unsafe { slice(scratch, (block - 1) * count, count) };
            for (total, more) in out.iter_mut().zip(sum) {
                *total += *more;
            }
        }
        Ok(())
    }
}
