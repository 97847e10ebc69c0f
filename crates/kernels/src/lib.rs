//! Kernels of networks on dense arrays, as steps that fall into blocks.
//!
//! | module | home of |
//! |---|---|
//! | `number` | float32 and float64, and products of matrices of them |
//! | `window` | windows over the spatial axes of data |
//! | `buffer` | memory of a thread, and slices of what arrays point to |
//! | `parts` | where blocks end |
//! | `convolution` | products of data, weights and results: sums along rows, by oneDNN, or by columns that fit into the cache |
//! | `pooling` | largest elements and means of windows, and their gradients |
//! | `tiles` | the same of windows of two by two, side by side |
//! | `lanes` | widths of channels that lie side by side, as types |
//! | `rows` | softmax and its logarithm, along one axis |
//! | `labels` | cross entropy with labels, and its gradient |
//! | `sums` | sums of float64 |
//! | `channels` | batch normalisation, sums over all axes but one |
//! | `layer` | normalisation of rows, and its gradients |
//! | `neighbours` | sums over neighbouring channels, and normalisation by them |
//! | `lookup` | rows of a table that numbers name, and the table's gradient |
//! | `draws` | masks of dropout: numbers of a generator, as NumPy draws them |
//! | `gates` | what recurrent cells do element by element |
//! | `sequences` | recurrent layers over whole sequences |
//! | `real` | exponentials, roots and the like of both types |
//! | `loops` | activations, element by element |
//! | `vectors` | loops compiled for the vectors of this processor |
//! | `integers` | integers that choose among classes or rows |
//!
//! Where blocks end depends on shapes alone, and so do the bits of the results. The crate knows no Python.

mod buffer;
mod channels;
mod convolution;
mod draws;
mod gates;
mod integers;
mod labels;
mod lanes;
mod layer;
mod lookup;
mod loops;
mod neighbours;
mod number;
mod parts;
mod pooling;
mod real;
mod rows;
mod sequences;
mod sums;
mod tiles;
mod vectors;
mod window;

pub use channels::{Channels, Channelwise};
pub use convolution::{Convolution, Product};
pub use draws::{Generator, Mask};
pub use gates::{Cells, Gates};
pub use integers::OutOfRange;
pub use labels::CrossEntropy;
pub use layer::LayerNorm;
pub use lookup::Lookup;
pub use loops::activation;
pub use neighbours::{Across, Neighbours};
pub use pooling::{Pool, Pooling};
pub use rows::{Along, Rows};
pub use sequences::{Mode, Sequence};
pub use vectors::vectors;
pub use weft_onednn as onednn;
pub use window::Window;
