//! Graphs: computations, with attributes that passes leave, and the same in numbers.

mod attributed;
mod indexed;

pub use attributed::{AnyAttribute, Graph};
pub use indexed::{EntryId, IndexedGraph};
