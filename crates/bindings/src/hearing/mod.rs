//! The tape as the listener to pushes over arrays that need a gradient.
//!
//! | module | home of |
//! |---|---|
//! | `record` | from a push to a node |
//! | `short` | the same where the one result is new and nothing has to be found out: for the short ways of small calls |
//! | `shown` | a node as rules and Python see it |
//!
//! Untracked arrays pay one look at two words per operand.

pub(crate) mod record;
pub(crate) mod short;
mod shown;

pub(crate) use shown::tape_alike;
