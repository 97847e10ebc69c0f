//! Devices: which streams each has, and which of them an op goes to.

mod cuda;
mod device;
mod times;

pub use cuda::Cuda;
pub use device::{Device, Lane};
pub use times::StreamRuns;
