//! `weft.ops`, `weft.symbol` and `weft.graph`: the contents of `weft-graph` as Python's objects.

#![allow(clippy::needless_pass_by_value)] // arguments are extracted into values
#![allow(clippy::single_match_else)] // found, or made: two cases of one weight

pub(crate) mod calls;
pub(crate) mod graphs;
pub(crate) mod nodes;
pub(crate) mod passes;
pub(crate) mod plan;
pub(crate) mod py_values;
pub(crate) mod registry;
mod rules;
pub(crate) mod shape_rule;
pub(crate) mod symbols;
pub(crate) mod values;
