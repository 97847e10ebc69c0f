//! Values of attributes, shapes and dtypes: plain data, compared and hashed by value.

mod attributes;
mod layout;
mod literal;
mod mxnet;
mod shape;
mod variant;

pub use attributes::Attributes;
pub use layout::{LayoutAxis, layout_axes, layout_fits};
pub use literal::{parse, unquoted};
pub(crate) use mxnet::{dtype_in_mxnet, number_in_mxnet};
pub use shape::{Shape, UNKNOWN};
pub use variant::{Opaque, Value};
pub use weft_shape::DType;
