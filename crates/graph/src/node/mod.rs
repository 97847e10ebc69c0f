//! Nodes: one call each, or a variable.

mod call;
mod drop;
mod entry;
mod order;
mod rewrite;
mod rule;
mod walk;

pub use call::{Node, NodeRef};
pub use entry::NodeEntry;
pub use order::ordered;
pub use rewrite::Rewriter;
pub use rule::{Differentiated, GradientRule, SetInputAttribute, SharedGradient};
pub use walk::post_order;
