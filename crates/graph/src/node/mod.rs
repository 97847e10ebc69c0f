//! Nodes: one call each, or a variable.

mod call;
mod drop;
mod entry;
mod notes;
mod order;
mod rewrite;
mod walk;

pub use call::{Node, NodeRef};
pub use entry::NodeEntry;
pub use notes::{HIDDEN, is_note, noted};
pub use order::ordered;
pub use rewrite::Rewriter;
pub use walk::post_order;
