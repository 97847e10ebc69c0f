//! Kernels, from their sources to ops that launch them.

mod compiler;
mod kernel;
mod launch;

pub use compiler::{CompileError, Compiler};
pub use kernel::{Kernel, LaunchPlan, Module, Parameter};
pub use launch::{BackToBack, CallTimes, Launch, Launcher};
