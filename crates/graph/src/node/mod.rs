//! Nodes: one call each, or a variable.

mod call;
mod drop;
mod entry;
mod notes;
mod post_order;
mod rewrite;
mod rule;
mod topological;

pub use call::{Node, NodeRef};
pub use entry::NodeEntry;
pub use notes::{HIDDEN, is_note, noted};
pub use post_order::post_order;
pub use rewrite::Rewriter;
pub use rule::{Differentiated, GradientRule, SetInputAttribute, SharedGradient};
pub use topological::topological_order;
