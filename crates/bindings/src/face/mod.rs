//! What Python calls on engines and arrays, and what it does with a process.

mod engine;
mod ndarray;
mod part;
pub(crate) mod process;
pub(crate) mod scope;
mod taken;
mod values;
