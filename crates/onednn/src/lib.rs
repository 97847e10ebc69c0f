//! oneDNN's C API of version 3, opened at run time: what weft computes convolutions by where it is there.
//!
//! | module | home of |
//! |---|---|
//! | `sys` | functions and constants, as `dnnl.h` has them |
//! | `library` | the library that was opened, or why there is none |
//! | `memory` | descriptions of memory, and memory of a thread |
//! | `primitive` | what the library has compiled, and its execution |
//! | `convolution` | convolutions: primitives for the layouts that the library likes, and reorders between these and plain ones |
//!
//! Each execution takes one thread, the caller's: whoever has several gives each a part. The crate knows no arrays and no
//! Python.

mod convolution;
mod library;
mod memory;
mod primitive;
mod sys;

pub use convolution::{AsWanted, Compiled, Product, Shape};
pub use library::{Library, Unavailable, library, open};
