//! oneDNN's C API of version 3, opened at run time: the source of weft's convolutions where it is there.
//!
//! | module | home of |
//! |---|---|
//! | `sys` | functions and constants, as `dnnl.h` has them |
//! | `library` | the library that was opened, or why there is none |
//! | `memory` | descriptions of memory, and memory of a thread |
//! | `primitive` | what the library has compiled, and its execution |
//! | `turn` | from rows to channels-last and back |
//! | `operand` | one operand: as it is given, as a primitive wants it, what is between |
//! | `convolution` | convolutions: primitives for the layouts that they are fast in |
//!
//! Each execution takes one thread, the caller's: a caller with several gives each a part. The crate knows no arrays and
//! no Python.

mod convolution;
mod library;
mod memory;
mod operand;
mod primitive;
mod sys;
mod turn;

pub use convolution::{AsWanted, Compiled, Product, Shape};
pub use library::{Library, Unavailable, library, open};
