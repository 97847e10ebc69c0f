//! The methods of engines and arrays, the events of a process: fork and exit; checks of what is pushed.

mod engine;
mod ndarray;
pub(crate) mod nested;
mod operand;
pub(crate) mod process;
pub(crate) mod recover;
pub(crate) mod scope;
pub(crate) mod status;
mod values;
pub(crate) mod watch;
