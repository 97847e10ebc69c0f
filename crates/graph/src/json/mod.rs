//! Files: NNVM's format, with the variants of `MXNet` 0.8 to 2.0.

mod build;
mod file;
mod links;
mod load;
mod old;
mod part;
mod save;
mod tree;

pub(crate) use build::attributes_of_texts;
pub use load::{FindOp, LoadOptions, Writer, load};
pub(crate) use save::contains_opaque;
pub use save::{MxnetName, save};
