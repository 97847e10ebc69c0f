//! The tape: the listener to pushes over arrays that need a gradient.
//!
//! A *node* is one op that was heard: its inputs, with the nodes that made them, and the values that its gradient rule will look
//! at. A handle on an array knows its *entry*: the node, and which of its results, that made the value it shows. Nodes hold their
//! inputs' nodes and never handles, so a graph goes away by itself once it cannot be differentiated any more.
//!
//! | module | home of |
//! |---|---|
//! | `attributes` | what an op was called with, as a dict for those alone who ask |
//! | `handle` | what an array's handle knows: its entry, the handle that it is a view of |
//! | `family` | what all views of one memory share: pieces written by heard ops, writes since values were saved |
//! | `marks` | which buffers have leaves, were written to by heard ops, or were left by a handle: for programs that refer to them |
//! | `moves` | which handle stands for a tensor that was moved |
//! | `moving` | how a tensor gets there |
//! | `outline` | shape, dtype and place of an array whose values were not saved |
//! | `node` | nodes, saved values, what rules see of them |
//! | `listen` | who listens: pauses of this thread, the mode of the task |
//! | `record` | from a push to a node |
//! | `short` | the same where the one result is new and nothing has to be found out: for the short ways of small calls |
//! | `walk` | the order in which gradients are computed |
//!
//! Untracked arrays pay one look at two words per operand. Rules, sums of gradients and errors' texts are Python's
//! (`weft._tape`).

pub(crate) mod attributes;
pub(crate) mod family;
pub(crate) mod handle;
pub(crate) mod listen;
pub(crate) mod marks;
pub(crate) mod moves;
pub(crate) mod moving;
pub(crate) mod node;
pub(crate) mod outline;
pub(crate) mod record;
pub(crate) mod short;
pub(crate) mod walk;

pub(crate) use family::Family;
pub(crate) use handle::Handle;
pub(crate) use node::TapeNode;
pub(crate) use outline::Outline;
