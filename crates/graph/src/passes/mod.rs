//! Passes: functions from a graph to a graph, or to knowledge of it. One file each.

mod correct_layout;
mod derived;
mod draw;
mod eliminate_common;
mod eliminate_dead;
mod eliminate_identity;
mod fixed_point;
mod fold_constants;
mod functional;
mod functionalise;
mod fuse;
mod gradient;
mod infer_shape;
mod infer_type;
mod order_mutation;
mod place_device;
mod plan_memory;
mod print_ir;
mod recompute;
mod registered;
mod subgraph;

pub use correct_layout::{LAYOUT, LayoutMap, correct_layout};
pub use derived::{FUNCTIONAL, FUNCTIONAL_OF, FUSED, SUBGRAPH, describe_derived};
pub use draw::{dot, svg};
pub use eliminate_common::eliminate_common;
pub use eliminate_dead::eliminate_dead;
pub use eliminate_identity::eliminate_identity;
pub use fold_constants::{Evaluate, fold_constants};
pub use functionalise::{MUTATED_INPUTS, functionalise};
pub use fuse::fuse;
pub use gradient::{Aggregate, GradientOptions, Like, Mirror, gradient};
pub use infer_shape::{NUM_UNKNOWN_SHAPES, SHAPE, Shapes, infer_shape};
pub use infer_type::{DTYPE, DTypes, infer_type, infer_type_partial};
pub use order_mutation::order_mutation;
pub use place_device::{DEVICE, Devices, place_device};
pub use plan_memory::{
    External, OUTSIDE, STORAGE_ALLOCATED_BYTES, STORAGE_ID, STORAGE_INPLACE_INDEX, STORAGE_OFFSET,
    STORAGE_PEAK_LIVE_BYTES, plan_memory,
};
pub use print_ir::{Item, item, print_ir};
pub use recompute::recompute;
pub use registered::{Body, Pass, Passes, is_of_kind};
