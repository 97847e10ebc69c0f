//! Graphs: what is known before it runs.

pub(crate) mod plan;
