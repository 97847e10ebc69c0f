//! Convolutions, and the choice of their kernel: sums along rows where channels are few (`along`), oneDNN where it was opened
//! (`library`), else products of columns (`columns`).
//!
//! | product | of | gives |
//! |---|---|---|
//! | [`Product::Results`] | data, weights, maybe a bias | results |
//! | [`Product::Data`] | results, weights | data |
//! | [`Product::Weights`] | data, results | weights: a sum for each block, added up in order at the end |

mod along;
mod columns;
mod library;

use crate::loops::activation;
use crate::number::of_dtype;
use crate::window::Window;
use std::sync::Arc;
use weft_array::{Blocked, DType, StridedLoop};

pub use weft_onednn::Product;

/// A convolution of data `(batch, channels, ...)` with weights `(filters, channels / groups, ...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// What is computed.
    pub product: Product,
    /// How many images there are.
    pub batch: usize,
    /// Channels of the data.
    pub channels: usize,
    /// Channels of the results.
    pub filters: usize,
    /// In how many groups both fall.
    pub groups: usize,
    /// The windows.
    pub window: Window,
    /// Whether a number for each filter is added to the results, the last input.
    pub bias: bool,
    /// Whether results below 0 become 0.
    pub rectified: bool,
}

impl Convolution {
    /// The step that computes it, of float32 or float64.
    #[must_use]
    pub fn step(self, dtype: DType) -> Option<Arc<dyn Blocked>> {
        if dtype == DType::Float32
            && let Some(step) = along::step(self).or_else(|| library::step(self))
        {
            return Some(step);
        }
        of_dtype!(dtype, T => Arc::new(columns::By::<T>::new(self)))
    }

    /// The same, followed by a loop over the results, if that is the rectifier.
    fn then(self, next: &StridedLoop, dtype: DType) -> Option<Arc<dyn Blocked>> {
        let rectifier = activation("relu", dtype)?;
        let fits = self.product == Product::Results && !self.rectified && rectifier.is(next);
        if fits { Self { rectified: true, ..self }.step(dtype) } else { None }
    }

    fn each(&self) -> usize {
        self.channels / self.groups
    }

    fn filters_each(&self) -> usize {
        self.filters / self.groups
    }

    /// Rows of the columns of a group: elements of a window in all of its channels.
    fn depth(&self) -> usize {
        self.each() * self.window.size()
    }

    /// How many multiplications it takes.
    #[must_use]
    pub fn multiplications(&self) -> usize {
        [self.batch, self.filters, self.depth(), self.window.total()]
            .iter()
            .fold(1_usize, |all, &each| all.saturating_mul(each))
    }
}
