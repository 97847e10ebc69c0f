//! The methods of engines and arrays, the events of a process: fork and exit; checks of what is pushed.

mod engine;
mod ndarray;
mod operand;
mod part;
pub(crate) mod process;
pub(crate) mod scope;
mod values;
pub(crate) mod watch;
