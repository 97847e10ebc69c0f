//! Kernels of networks on dense arrays, as steps that fall into blocks.
//!
//! | module | home of |
//! |---|---|
//! | `number` | float32 and float64, and products of matrices of them |
//! | `window` | windows over the spatial axes of data |
//! | `buffer` | memory of a thread, and slices of what arrays point to |
//! | `parts` | where blocks end |
//! | `convolution` | products of data, weights and results, by columns that fit into the cache |
//! | `library` | the same by oneDNN, where it was opened |
//! | `pooling` | largest elements and means of windows, and their gradients |
//! | `rows` | softmax and its logarithm, along one axis |
//! | `channels` | batch normalisation, sums over all axes but one |
//! | `loops` | activations, element by element |
//!
//! Where blocks end depends on shapes alone, and so do the bits of the results. The crate knows no Python.

mod buffer;
mod channels;
mod convolution;
mod library;
mod loops;
mod number;
mod parts;
mod pooling;
mod rows;
mod window;

pub use channels::{Channels, Channelwise};
pub use convolution::{Convolution, Product};
pub use loops::activation;
pub use pooling::{Pool, Pooling};
pub use rows::{Along, Rows};
pub use weft_onednn as onednn;
pub use window::Window;
