//! The tape: nodes, and the values and writes that they depend on. Ops are heard in `hearing`.
//!
//! A *node* is one op that was heard: its inputs, with the nodes that made them, and the values that its gradient rule will look
//! at. A handle on an array knows its *entry*: the node, and which of its results, that made the value it shows. Nodes hold their
//! inputs' nodes and never handles, so a graph goes away by itself once it cannot be differentiated any more.
//!
//! | module | home of |
//! |---|---|
//! | `listen` | who listens: pauses of this thread, the mode of the task |
//! | `marks` | which buffers have leaves, were written to by heard ops, or were left by a handle: for programs that refer to them |
//! | `outline` | shape, dtype and place of an array whose values were not saved |
//! | `attributes` | what an op was called with, as a dict for those alone who ask |
//! | `node`, `family` | nodes with their saved values; what all views of one memory share: pieces written by heard ops, writes since values were saved. Each knows the other |
//! | `patch` | the value of memory that several heard ops have written |
//! | `walk` | the order in which gradients are computed |
//!
//! Rules, sums of gradients and errors' texts are Python's (`weft._tape`).

pub(crate) mod attributes;
pub(crate) mod family;
pub(crate) mod listen;
pub(crate) mod marks;
pub(crate) mod node;
pub(crate) mod outline;
pub(crate) mod patch;
pub(crate) mod walk;
