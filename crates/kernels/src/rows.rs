//! Softmax and its logarithm along one axis, and their gradients: data are `(outer, length, inner)`.

use crate::buffer::{slice, slice_mut};
use crate::number::Number;
use crate::parts;
use std::marker::PhantomData;
use std::sync::Arc;
use weft_array::{Blocked, DType};
use weft_engine::Cause;

/// What is done along the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// Data to their softmax.
    Softmax,
    /// Gradients and a softmax to gradients.
    SoftmaxGradient,
    /// Data to the logarithm of their softmax.
    LogSoftmax,
    /// Gradients and such a logarithm to gradients.
    LogSoftmaxGradient,
}

/// An op along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// What is done.
    pub along: Along,
    /// The product of the lengths before the axis.
    pub outer: usize,
    /// The axis's length.
    pub length: usize,
    /// The product of the lengths behind.
    pub inner: usize,
}

impl Rows {
    /// The step that computes it, of float32 or float64.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        match dtype {
            DType::Float32 => Some(Arc::new(By::<f32>(self, PhantomData))),
            DType::Float64 => Some(Arc::new(By::<f64>(self, PhantomData))),
            _ => None,
        }
    }

    /// How many inputs it has, each of the size of the result.
    #[must_use]
    pub fn inputs(&self) -> usize {
        if matches!(self.along, Along::Softmax | Along::LogSoftmax) { 1 } else { 2 }
    }

    fn size(&self) -> usize {
        self.outer * self.length * self.inner
    }
}

struct By<T>(Rows, PhantomData<T>);

impl<T: Number> By<T> {
    /// Computes one line along the axis, whose elements are `step` apart.
    fn line(&self, inputs: &[&[T]], out: &mut [T], start: usize, step: usize) {
        let places = (0..self.0.length).map(|at| start + at * step);
        match (self.0.along, inputs) {
            (Along::Softmax, [x]) => {
                let largest = largest(x, places.clone());
                let mut total = 0.0;
                for at in places.clone() {
                    let power = (x[at].wide() - largest).exp();
                    total += power;
                    out[at] = T::of(power);
                }
                let share = T::of(1.0 / total);
                places.for_each(|at| out[at] *= share);
            }
            (Along::LogSoftmax, [x]) => {
                let largest = largest(x, places.clone());
                let total: f64 = places.clone().map(|at| (x[at].wide() - largest).exp()).sum();
                let shift = largest + total.ln();
                places.for_each(|at| out[at] = T::of(x[at].wide() - shift));
            }
            (Along::SoftmaxGradient, [g, y]) => {
                let total = T::of(places.clone().map(|at| g[at].wide() * y[at].wide()).sum());
                places.for_each(|at| out[at] = y[at] * (g[at] - total));
            }
            (Along::LogSoftmaxGradient, [g, y]) => {
                let total: f64 = places.clone().map(|at| g[at].wide()).sum();
                places.for_each(|at| out[at] = T::of(g[at].wide() - y[at].wide().exp() * total));
            }
            _ => {}
        }
    }
}

/// The largest of some elements; NaN where one is.
fn largest<T: Number>(x: &[T], places: impl Iterator<Item = usize>) -> f64 {
    places.map(|at| x[at].wide()).fold(f64::NEG_INFINITY, |a, b| if b.is_nan() || b > a { b } else { a })
}

impl<T: Number> Blocked for By<T> {
    fn blocks(&self) -> usize {
        parts::count(self.0.outer, self.operations())
    }

    fn operations(&self) -> usize {
        self.0.size().saturating_mul(8)
    }

    unsafe fn run_block(&self, arrays: &[*mut u8], _: *mut u8, block: usize) -> Result<(), Cause> {
        let (own, Some((out, inputs))) = (&self.0, arrays.split_last()) else { return Ok(()) };
        let each = own.length * own.inner;
        let part = parts::part(own.outer, self.blocks(), block);
        let (from, count) = (part.start * each, part.len() * each);
        // SAFETY: the caller's promise: operands have these sizes, and blocks are disjoint.
        let (inputs, out): (Vec<&[T]>, &mut [T]) = unsafe {
            let inputs = inputs.iter().map(|start| slice(*start, from, count));
            (inputs.collect(), slice_mut(*out, from, count))
        };
        for row in 0..part.len() {
            for column in 0..own.inner {
                self.line(&inputs, out, row * each + column, own.inner);
            }
        }
        Ok(())
    }
}
