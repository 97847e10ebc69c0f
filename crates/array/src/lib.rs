//! N-dimensional arrays whose operations are pushed to a `weft-engine`.
//!
//! An [`Array`] is a handle: a [`Layout`] on a shared [`Buffer`]. Operations on arrays push ops that read and
//! mutate the variables of their buffers and return at once; storage is allocated when the op that fills it runs.
//!
//! | room | home of |
//! |---|---|
//! | `layout` | element types and scalars; shapes, strides, broadcasting, the bytes they reach |
//! | `memory` | blocks and their reuse; storage that is filled later, buffers that views share, what was pushed on them |
//! | `access` | handles on arrays; which variables an access to some bytes of a buffer touches; waits; grants |
//! | `step` | what ops compute, apart from where their operands lie: strided loops, reductions, products, opaque ones |
//! | `door` | calls on their way to the engine, or into a recording |
//! | `ops` | native ops: small ones run where they are pushed, large ones block by block |
//!
//! Each room knows those before it; `error` and `tuple` (numbers in messages) lie beside them. The crate knows neither Python nor NumPy; their inner loops come in as [`StridedLoop`]s.

mod access;
mod door;
mod error;
mod layout;
mod memory;
mod ops;
mod step;
mod tuple;

pub use access::{
    Access, Array, Origin, Origins, Touch, Touched, announce, are_finite, granted, granting, keep_elements,
    known_devices, restore_elements, set_known_devices, standing, stands_for, take_origins,
};
pub use door::{
    Call, Repeatable, ReplayCall, Versions, push, push_pair, push_replay, record, recording, submit, submit_overwriting,
};
pub use error::ArrayError;
pub use layout::{DType, Layout, Scalar, Shape, Strides, broadcast_shapes};
pub use memory::recorded::{self, Tag};
pub use memory::{
    Arena, Block, Buffer, Elsewhere, Home, MemoryStats, OutOfMemory, Ownership, Pinned, Storage, Within, fork,
    keeps_memory, memory_stats, release_memory, trim_memory,
};
pub use ops::{
    Copied, Piece, RowReduction, copy_if_there, copy_to_change, is_short, lay_out, multiply_here, note_computed,
    pick_rows, places_of_copies, push_blocked, push_elementwise, push_extreme, push_matmul, push_pieces, push_reduce,
    put_back, run_alone, run_blocked, run_idle,
};
pub use step::{
    Blocked, Fused, Given, Issued, Lanes, Matmul, Members, Neighbour, Opaque, Operand, Operands, Part, Portion, Reduce,
    SortLoop, Step, Strided, StridedLoop, Together, Which, cast_loop, choose_loop, copy_loop, half_loop, is_cast_apart,
    sort_step,
};
pub use tuple::Tuple;
