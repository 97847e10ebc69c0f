//! Copies and fills: within a device, between two, from and to the host.

mod copy;
mod landing;
mod staged;

pub use copy::{HostMemory, Region, copy, copy_in, copy_out, fill};
pub(crate) use copy::{check_sizes, put_copy};
pub use landing::{Land, Landing};
