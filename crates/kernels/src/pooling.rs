//! Pooling: the largest element of each window, or the mean of its elements, and gradients of both.

use crate::buffer::{slice, slice_mut};
use crate::number::Number;
use crate::parts;
use crate::window::Window;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// What is done with windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Data to the largest element of each window, the first of equals; NaN is the largest.
    Largest,
    /// Gradients and data to gradients: to where the largest element is.
    ToLargest,
    /// Another array and data to elements: from where the largest element is.
    OfLargest,
    /// Data to means.
    Mean,
    /// Gradients to gradients: to all elements of each window.
    ToMean,
}

/// Pooling of so many channels of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pooling {
    /// What is done.
    pub pool: Pool,
    /// Images times channels.
    pub planes: usize,
    /// The windows.
    pub window: Window,
    /// How far data and padding reach together, where that counts for a mean.
    pub reach: Option<[usize; 3]>,
}

impl Pooling {
    /// The step that computes it, of float32 or float64.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        match dtype {
            DType::Float32 => Some(Arc::new(By::<f32>(self, PhantomData))),
            DType::Float64 => Some(Arc::new(By::<f64>(self, PhantomData))),
            _ => None,
        }
    }

    fn work(&self) -> usize {
        self.planes * self.window.total() * self.window.size()
    }
}

struct By<T>(Pooling, PhantomData<T>);

/// The part of a window that lies in the data, along each axis: where it begins, and how many elements it has.
fn inside(window: &Window, at: [usize; 3]) -> [(usize, usize); 3] {
    std::array::from_fn(|axis| {
        let start = at[axis] * window.stride[axis];
        let first = start.max(window.before[axis]);
        let last = (start + window.kernel[axis]).min(window.before[axis] + window.lengths[axis]);
        (first.saturating_sub(window.before[axis]), last.saturating_sub(first))
    })
}

impl<T: Number> By<T> {
    /// Calls with each window: its number, and its part that lies in the data.
    fn each_window(&self, mut body: impl FnMut(usize, [(usize, usize); 3])) {
        let window = &self.0.window;
        let mut number = 0;
        for first in 0..window.counts[0] {
            for second in 0..window.counts[1] {
                for third in 0..window.counts[2] {
                    body(number, inside(window, [first, second, third]));
                    number += 1;
                }
            }
        }
    }

    /// Calls with each row of elements of a window: where it begins.
    #[inline]
    fn each_row(&self, part: [(usize, usize); 3], mut body: impl FnMut(usize)) {
        let [_, height, width] = self.0.window.lengths;
        for first in part[0].0..part[0].0 + part[0].1 {
            for second in part[1].0..part[1].0 + part[1].1 {
                body((first * height + second) * width + part[2].0);
            }
        }
    }

    /// Where the largest element of a window is: the first of equals, and NaN before all numbers.
    #[inline]
    fn largest(&self, data: &[T], part: [(usize, usize); 3]) -> usize {
        let (mut best, mut found) = (T::LOWEST, usize::MAX);
        self.each_row(part, |start| {
            for (at, &value) in data[start..start + part[2].1].iter().enumerate() {
                if found == usize::MAX || value > best || (value.is_nan() && !best.is_nan()) {
                    (best, found) = (value, start + at);
                }
            }
        });
        found
    }

    /// The reciprocal of how many elements of a window count.
    fn share(&self, number: usize, part: [(usize, usize); 3]) -> T {
        let window = &self.0.window;
        let size: usize = match self.0.reach {
            None => part.iter().map(|(_, count)| *count).product(),
            Some(reach) => {
                let [_, height, width] = window.counts;
                let at = [number / (height * width), number / width % height, number % width];
                (0..3)
                    .map(|axis| {
                        let start = at[axis] * window.stride[axis];
                        (start + window.kernel[axis]).min(reach[axis]).saturating_sub(start)
                    })
                    .product()
            }
        };
        T::ONE / T::of(u32::try_from(size.max(1)).map_or(f64::INFINITY, f64::from))
    }

    fn plane(&self, inputs: &[&[T]], out: &mut [T]) {
        match (self.0.pool, inputs) {
            (Pool::Largest, [data]) => self.each_window(|number, part| out[number] = data[self.largest(data, part)]),
            (Pool::ToLargest, [grads, data]) => {
                out.fill(T::ZERO);
                self.each_window(|number, part| out[self.largest(data, part)] += grads[number]);
            }
            (Pool::OfLargest, [other, data]) => {
                self.each_window(|number, part| out[number] = other[self.largest(data, part)]);
            }
            (Pool::Mean, [data]) => self.each_window(|number, part| {
                let mut sum = T::ZERO;
                self.each_row(part, |start| data[start..start + part[2].1].iter().for_each(|&value| sum += value));
                out[number] = sum * self.share(number, part);
            }),
            (Pool::ToMean, [grads]) => {
                out.fill(T::ZERO);
                self.each_window(|number, part| {
                    let share = grads[number] * self.share(number, part);
                    self.each_row(part, |start| out[start..start + part[2].1].iter_mut().for_each(|to| *to += share));
                });
            }
            _ => {}
        }
    }
}

impl<T: Number> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.planes, self.0.work())
    }

    fn operations(&self) -> usize {
        self.0.work()
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let (wide, narrow) = (self.0.window.channel(), self.0.window.total());
        let sizes: &[usize] = match self.0.pool {
            Pool::Largest | Pool::Mean => &[wide, narrow],
            Pool::ToLargest => &[narrow, wide, wide],
            Pool::OfLargest => &[wide, wide, narrow],
            Pool::ToMean => &[narrow, wide],
        };
        let (Some((out, inputs)), Some((&size, lengths))) = (arrays.split_last(), sizes.split_last()) else {
            return Ok(());
        };
        for plane in parts::part(self.0.planes, self.blocks(), block) {
            // SAFETY: the caller's promise: operands have these sizes, and planes are disjoint.
            let (given, out): (Vec<&[T]>, &mut [T]) = unsafe {
                let given = inputs.iter().zip(lengths).map(|(start, &length)| slice(*start, plane * length, length));
                (given.collect(), slice_mut(*out, plane * size, size))
            };
            self.plane(&given, out);
        }
        Ok(())
    }
}
