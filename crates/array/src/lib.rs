//! N-dimensional arrays whose operations are pushed to a `weft-engine`.
//!
//! An [`Array`] is a handle: a [`Layout`] on a shared [`Buffer`]. Operations on arrays push ops that read and
//! mutate the variables of their buffers and return at once; storage is allocated when the op that fills it runs.
//!
//! | module | home of |
//! |---|---|
//! | `dtype` | element types and scalars |
//! | `layout` | shapes, strides, broadcasting, the bytes they reach |
//! | `memory` | blocks of memory and their reuse |
//! | `fork` | the crate's locks, over a fork |
//! | `buffer` | storage that is filled later, shared by views |
//! | `elsewhere` | memory that the host does not reach |
//! | `granted` | what the op that this thread runs may touch |
//! | `order` | which variables an access to some bytes of a buffer touches |
//! | `request`, `pushing` | pushes of ops on arrays, and the one lock under which they are entered |
//! | `kernel` | strided loops and how they walk over operands |
//! | `step` | one strided loop and its operands |
//! | `lifetimes` | memory that steps which run together hand on to each other |
//! | `elementwise` | ops made of one step: split over workers, run block by block |
//! | `at_once` | small ones, run where they are pushed |
//! | `reduce`, `matmul` | the other native ops |
//!
//! It knows neither Python nor NumPy; their inner loops come in as [`StridedLoop`]s.

mod array;
mod at_once;
mod buffer;
mod dtype;
mod elementwise;
mod elsewhere;
mod error;
pub mod fork;
mod granted;
mod kernel;
mod layout;
mod lifetimes;
mod matmul;
mod memory;
mod order;
mod prepared;
mod pushing;
mod reduce;
mod request;
mod step;

pub use array::Array;
pub use buffer::{Buffer, Storage};
pub use dtype::{DType, Scalar};
pub use elementwise::push_elementwise;
pub use elsewhere::Elsewhere;
pub use error::ArrayError;
pub use granted::{granted, granting};
pub use kernel::{StridedLoop, copy_loop};
pub use layout::{Layout, Shape, Strides};
pub use matmul::push_matmul;
pub use memory::{MemoryStats, OutOfMemory, memory_stats, trim_memory};
pub use order::Access;
pub use prepared::Prepared;
pub use reduce::push_reduce;
pub use request::{PushRequest, push, push_pair};
pub use step::Operand;
