//! From a request of Python to a push: its accesses, and its loop, kernel or callable.

mod accesses;
mod compute;
mod fresh;
mod granting;
mod here;
mod kernel;
pub(crate) mod kinds;
pub(crate) mod memory;
mod network;
mod numbers;
mod operator;
mod pieces;
mod request;
pub(crate) mod rows;
mod sort;
mod strided;

pub(crate) use compute::push_compute;
pub(crate) use fresh::fresh_filled;
pub(crate) use here::{answered, change_here, compute_here, of_core, values_here};
pub(crate) use kernel::{Kernel, open_onednn, vectors};
pub(crate) use memory::{Lasting, Memory, beside, copy_elements, empty, fresh_copy, memory_stats, memory_trim, wrap};
pub(crate) use network::{
    kernel_cells, kernel_cross_entropy, kernel_layer_norm, kernel_lookup, kernel_mask, kernel_neighbours,
    kernel_sequence,
};
pub(crate) use numbers::{fresh_diagonal, fresh_range, fresh_spaced};
pub(crate) use operator::Operator;
pub(crate) use pieces::{join, roll, search};
pub(crate) use request::Request;
pub(crate) use sort::kernel_sort;
pub(crate) use strided::Loop;
