//! Arrays in the memory of CUDA devices: joins `weft-array` and `weft-cuda`, which do not know each other.
//!
//! | module | home of |
//! |---|---|
//! | `memory` | arrays on a device, and the memory behind them |
//! | `walk`, `elementwise` | how an element-wise launch walks over its operands; which kernel it takes, what is copied before |
//! | `issued` | what steps issue, on the arrays that a replay gives them |
//! | `together` | steps of a recording that are issued together, as one graph of the device where that can be |
//! | `launch` | launches: pushed, or recorded as steps |
//! | `copy` | copies within a device, between two, from and to the host: pushed, or recorded as steps |
//!
//! Each module knows those before it. A recorded step knows no memory: each replay gives it arrays anew, and issues it as if it were pushed then. So
//! order on the device rests on the same fences, whether an op was pushed or is a part of a replay.

mod copy;
mod elementwise;
mod issued;
mod launch;
mod memory;
mod together;
mod walk;

pub use copy::{CopyError, Noted, copy};
pub use elementwise::{ElementwiseError, Loop, Next, Ready, Variant, Wanted, dimensions, is_gathered_first};
pub use launch::{launch, launch_step};
pub use memory::{FIRST_DEVICE, array_on, buffer_of, expect, fresh, home_of, memory_of, not_there};
