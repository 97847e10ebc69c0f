//! Signatures: the equality of a call of a program with a recorded one.
//!
//! | file | home of |
//! |---|---|
//! | `key` | arguments as words and objects: equal keys, one program |
//! | `leaves` | one argument's part of a key: arrays, numbers, containers, objects |
//! | `overlaps` | which arrays of a call share memory, with each other and with a program's states |
//! | `guards` | names that a function reads elsewhere: cells, globals, attributes |
//! | `results` | what a call returns, made of what a replay returned |
//! | `surroundings` | what is part of a signature besides the arguments: whether programs are on, the default engine |
//! | `table` | `Signatures`: from a call to its program, without entering Python |
//!
//! A call that has been seen before is found here and handed to its program; any other goes to `weft._program`, which
//! records it.

mod guards;
mod key;
mod leaves;
mod overlaps;
mod results;
mod surroundings;
mod table;

pub(crate) use surroundings::{Eager, is_eager};
pub(crate) use table::Signatures;
