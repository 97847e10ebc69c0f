//! Ops that passes make of others: `functional`, which returns the mutated inputs of another op, too, and `fused`,
//! which is a graph of its own. Their attributes follow from those of their parts.

use super::functional;
use super::fuse;
use crate::error::Result;
use crate::registry::{Op, Registry};
use std::sync::Arc;

/// The op of calls that mutate nothing any more: their mutated inputs are further results.
pub const FUNCTIONAL: &str = "functional";
/// Its attribute that names the op it was made of.
pub const FUNCTIONAL_OF: &str = "functional_of";
/// The op of calls that were fused.
pub const FUSED: &str = "fused";
/// Its attribute: the graph that it computes, as JSON. Its variables are `x0`, `x1`, ...: the inputs in turn.
pub const SUBGRAPH: &str = "subgraph";

/// The level at which such an op describes itself: below all that is set.
const LEVEL: i32 = -500;

/// Lets an op of one of these names describe itself by its attributes.
pub fn describe_derived(op: &Arc<Op>) -> Result<()> {
    if **op.name() == *FUNCTIONAL { functional::describe(op, LEVEL) } else { fuse::describe(op, LEVEL) }
}

/// The op of this name. Where none is registered, there is one with rules alone.
pub(super) fn derived_op(name: &str) -> Result<Arc<Op>> {
    if let Some(known) = Registry::global().find(name) {
        return Ok(known);
    }
    let op = Op::new(name);
    describe_derived(&op)?;
    Registry::global().register(&op, &[], LEVEL)?;
    Ok(op)
}
