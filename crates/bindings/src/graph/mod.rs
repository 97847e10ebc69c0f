//! `weft.ops`, `weft.symbol` and `weft.graph`: what `weft-graph` knows, as Python's objects.

pub(crate) mod graphs;
pub(crate) mod held;
pub(crate) mod nodes;
pub(crate) mod passes;
pub(crate) mod plan;
pub(crate) mod registry;
mod rules;
pub(crate) mod symbols;
pub(crate) mod values;
