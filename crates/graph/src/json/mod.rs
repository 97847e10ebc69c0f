//! Files: NNVM's format, with the variants of `MXNet` 0.8 to 2.0.

mod load;
mod old;
mod save;

pub use load::{FindOp, LoadOptions, Writer, load};
pub use save::save;
