//! Computations that are known before they run.
//!
//! | room | home of |
//! |---|---|
//! | `value` | attributes, dtypes, shapes of which a part is unknown |
//! | `registry` | ops by name, what they say of themselves, groups |
//! | `node` | calls and variables, entries, walks and rewriting |
//! | `symbol` | composition, and what a symbol is made of |
//! | `graph` | graphs with attributes, and graphs in numbers |
//! | `rules` | rules for shapes and dtypes that many ops share |
//! | `json` | files: NNVM's format |
//! | `passes` | what makes a graph, or knowledge of it, of a graph |
//!
//! Each room knows only those above it. Memory is planned by `weft_plan`. The crate knows no engine, no arrays and no Python.

mod error;
pub mod graph;
pub mod json;
pub mod node;
pub mod passes;
pub mod registry;
pub mod rules;
pub mod symbol;
pub mod value;

pub use error::{GraphError, Refusal, Result};
pub use graph::{Graph, IndexedGraph};
pub use node::{Node, NodeEntry, NodeRef};
pub use registry::{Op, Registry};
pub use symbol::Symbol;
