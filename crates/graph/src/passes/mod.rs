//! Passes: what makes a graph, or knowledge of it, of a graph. One file each.

mod fixed_point;
mod infer_shape;
mod infer_type;

pub use infer_shape::{NUM_UNKNOWN_SHAPES, SHAPE, Shapes, infer_shape};
pub use infer_type::{DTYPE, DTypes, infer_type};
