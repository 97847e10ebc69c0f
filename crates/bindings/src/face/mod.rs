//! What Python calls on engines and arrays, and what it does with a process.

mod engine;
mod ndarray;
mod operand;
mod part;
pub(crate) mod process;
mod values;
