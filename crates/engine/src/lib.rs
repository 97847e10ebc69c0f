//! A dependency engine.
//!
//! A program stays serial to read; each operation says which variables it reads and which it
//! mutates; the engine runs side by side all that may, and in order all that must.
//!
//! ```
//! use weft_engine::{Engine, Settings};
//! use std::sync::{Arc, Mutex};
//!
//! let engine = Engine::new(Settings { workers: Some(2), ..Settings::default() })?;
//! let total = engine.new_variable(Some("total"));
//! let value = Arc::new(Mutex::new(0));
//! for term in 1..=10 {
//!     let value = Arc::clone(&value);
//!     let add = move |_: &mut weft_engine::OpContext<'_>| {
//!         *value.lock().unwrap() += term;
//!         Ok(())
//!     };
//!     engine.op(add).mutate(&total).push()?;
//! }
//! engine.wait_for_var(&total)?;
//! assert_eq!(*value.lock().unwrap(), 55);
//! assert_eq!(total.completed_version(), 10);
//! # Ok::<(), weft_engine::EngineError>(())
//! ```
//!
//! The layers, each knowing only those before it: `sync` (atomics, cells, parking); `failure`, `error`, `waiter`, `quiet` and
//! `random` (failed ops, refusals, a thread that waits for one event, stretches without user code, drawn numbers); `var`
//! (queues and grants), [`trace`] (what ops did), `op` (payloads and cells), `replay` (ops that are pushed again and again),
//! `sched` (from pushes to ready ops), `pool` (the threads that run them), and [`Engine`] on top.

mod engine;
mod error;
mod failure;
#[cfg(all(test, loom))]
mod loom_tests;
mod op;
mod pool;
mod quiet;
mod random;
mod replay;
mod sched;
mod sync;
pub mod trace;
mod var;
mod waiter;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use engine::fork;
pub use engine::{
    Accesses, CloseOptions, Engine, Mutate, OnLimit, OpBuilder, Operator, PushOptions, Read, Recoverable, Replay,
    ReplayOptions, RunningOp, Settings, StallReport, StandIn, Stats, TaskValues, Tick, Var, Variable, Wait, Waiting,
    WeakEngine,
};
pub use error::{EngineError, in_words};
pub use failure::{Cause, Failure};
pub use op::{Completion, CurrentOp, Device, DeviceLane, InOrder, NativeFunction, OpContext, Payload, PlaceOffset};
pub use pool::{Host, Policy, aside, is_called_away, is_worker};
pub use quiet::{Quiet, caught, drop_later};
pub use replay::{
    InlineFailures, PortFailure, PortId, ReplayBuilder, Step, StepContext, StepId, StepKind, StepOptions,
};
pub use sync::handles;
pub use var::AccessKind;
