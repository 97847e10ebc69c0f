//! CUDA devices: joins weft-array's arrays and weft-cuda's devices.
//!
//! | module | home of |
//! |---|---|
//! | `runtime` | the process's one handle on CUDA; devices, by number |
//! | `memory` | arrays in the memory of a device |
//! | `fences` | waits for what has been issued and may still run |
//! | `transfers` | copies between the host and devices, and between devices |
//! | `elementwise`, `fusion` | native launches of element-wise kernels; those of a recording, of which several become one |
//! | `kernel`, `parameters` | launches of kernels that users wrote; their arguments |
//! | `floors` | what benchmarks measure launches against |
//! | `interop` | device memory in other libraries' hands, and theirs in ours |
//! | `times` | when ops ran on devices, for traces |
//! | `hosted` | Python callables on the stream of their op |

pub(crate) mod elementwise;
pub(crate) mod fences;
pub(crate) mod floors;
pub(crate) mod fusion;
pub(crate) mod hosted;
pub(crate) mod interop;
pub(crate) mod kernel;
pub(crate) mod memory;
pub(crate) mod parameters;
pub(crate) mod runtime;
pub(crate) mod times;
pub(crate) mod transfers;
