//! Passes: functions from a graph to a graph, or to knowledge of it. One file each, named as the pass.
//!
//! # Why there are two pipelines
//!
//! Graphs have passes here, and recorded programs have passes in `weft-program`; some are twins. They work on different
//! things. A graph is made of *values*: calls of ops by name, on results that may have no shape yet, with attributes, rules and
//! gradients. Nothing in it has an address, and an op may run anywhere. A recording is made of *bytes*: steps that were
//! already checked, on layouts of buffers, where views overlap, writes go to a part of an array, and an array lies in the
//! memory of one device. Which instruction waits for which follows from bytes alone, and its kernels are chosen. So a graph's
//! pass may ask what an op means, and a recording's pass may ask what overlaps; neither can ask the other's question.
//!
//! | on values, here | on bytes, in `weft-program` | differ in |
//! |---|---|---|
//! | `eliminate_common` | `common` | equal ops and attributes on the same entries; equal loops on bytes that nobody has written since |
//! | `eliminate_dead` | `dead` | calls that nothing is used of; native instructions whose bytes nobody sees |
//! | `fuse` | `fuse` | one call of a subgraph, computed later; loops of chosen kernels, block by block, with the strides that they have |
//! | `correct_layout` | `layout` | transforms inserted between ops that state layouts; kernels that take values in lanes, nothing inserted |
//! | `order_mutation` | (dependencies by bytes) | versions of variables; ranges of memory |
//! | `plan_memory` | `memory`, `early` | a plan that an executor may follow; offsets in the arena that runs, and an order that needs less of it |
//!
//! Both ask `weft-plan` where values lie, and in which order ops need the least memory.

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
mod own;
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
pub use infer_type::{DTYPE, DTypes, NUM_UNKNOWN_TYPES, infer_type, infer_type_partial};
pub use order_mutation::order_mutation;
pub use place_device::{DEVICE, Devices, place_device};
pub use plan_memory::{
    External, OUTSIDE, STORAGE_ALLOCATED_BYTES, STORAGE_ID, STORAGE_INPLACE_INDEX, STORAGE_OFFSET,
    STORAGE_PEAK_LIVE_BYTES, plan_memory,
};
pub use print_ir::{Item, item, print_ir};
pub use recompute::recompute;
pub use registered::{Body, Pass, Passes};
