//! Replays: ops with dependencies that are resolved once, entered by one push each time.
//!
//! A [`Plan`] is made once: steps, their edges, and *ports*, the way of steps to variables outside. A push of it is a
//! [`Call`]: one ticket, one op cell, one set of bindings. The changing state of a running call (countdowns, ready
//! steps) lies in an [`Instance`], of which a plan has a few; so a push allocates nothing once the plan has run.
//!
//! # Nodes
//!
//! | node | stands for | it is done when | then |
//! |---|---|---|---|
//! | step | an inner op | it has run, or was skipped | its successors are counted down |
//! | port | the accesses behind a port | they are granted | its users are counted down, and its own end |
//! | end of a port | the same | its last user is done | the accesses leave, one by one |
//! | start | the push | an instance was given | steps that wait for nothing else |
//!
//! A step may have *members*: inner ops that it does the work of. A member waits and ends with its step, and counts for
//! failures alone: its predecessors may leave it out, and its dependents are skipped when it fails.
//!
//! A count that reaches 0 is set back in the same step: the next countdown is that of the next call.
//!
//! # Who writes what
//!
//! | party | writes | with |
//! |---|---|---|
//! | the engine's registrar | grants; which call has which instance | the engine's role |
//! | whoever has the instance's *role* | countdowns, what is ready, failures | plain loads and stores |
//! | whoever has finished a step, or granted a port | one *event* | one compare-exchange |
//! | a worker with a *place* | the steps that it was given there, once they have run | one store |
//! | the role's holder | ports to be left, into the call | one compare-exchange, then the engine's inbox |
//!
//! No thread waits for an instance's role: a thread that does not get it has left an event, and the holder looks for events
//! after it has given the role back (the handshake of `sched`, in small). No step runs under it. A worker without steps may wait
//! under it for the events of others, for some microseconds: `instance` has the protocol.
//!
//! # Who runs what
//!
//! *Plain* steps have no cell. The thread that pulls the instance's *token* runs them. A token is an op cell that stands for
//! "there may be something here": it is in one queue at most, and a stale one does no harm, as its puller looks under the role.
//! A worker that has come, and finds no steps, waits for some for a moment: from then on steps go to it from hand to hand, while
//! each is long enough and there are others, and back to be counted (`handoff`).
//! Steps that are hosted, issue on a device, wait or finish later have a cell each, which goes through the queues of the lanes
//! as any op's does.
//!
//! | flag | set by | cleared by |
//! |---|---|---|
//! | `announced` | who puts the token into the engine's inbox, or into a queue | who has pulled it, before looking for events |
//!
//! # One by one
//!
//! Steps may follow each other in their recorded order, which takes no counting: 5 ns a step instead of 15 or more. A call is run so
//! if its push says so; or if all steps are plain, and no steps that may be ready together are worth a second worker, as the times of
//! earlier runs show; where these do not tell, calls are tried both ways (`trial`). A call can go so if all its ports are granted
//! before a step is taken: else a step that waits for its port would hold up others, for which the port may be granted. A worker goes
//! on from step to step as long as nothing has failed; behind a failure each step is taken by itself, and asked for what it needs.
//!
//! # Which memory may die when
//!
//! A call and its bindings live until all its nodes are done: then the bindings are dropped, the end is left in the call, and
//! the registrar hands the call back to its plan. A step that runs is not done, and neither is one that lies in a batch. An
//! instance lives as long as its plan; a token that is out holds the plan, and so does every taker of the role.
//!
//! A variable may be gone as soon as its port is left: the access is marked, and its variable is not looked at any more.
//!
//! # Order
//!
//! Instances are given to calls by the registrar: to those that lack nothing else first, and of these to the more
//! urgent ones; then to those that wait for accesses, in the order of their tickets. A call pushed inside an op, for
//! which that op may wait, gets an instance beyond the usual ones, and so does one that would wait for ever for those
//! that have one. So all that ends when its accesses are granted to ops one by one ends as a replay, too; `slots` has
//! the protocol.

mod ahead;
mod batch;
mod binding;
mod builder;
mod call;
mod calls;
mod clock;
mod failures;
mod handoff;
mod inline;
mod instance;
mod once;
mod plan;
mod ready;
mod shape;
mod slots;
mod state;
mod step;
mod trial;

pub(crate) use batch::{BATCH, Batch, Wanted};
pub(crate) use binding::{Bound, Clash};
pub use builder::{PortId, ReplayBuilder, StepId, StepOptions};
pub(crate) use call::{Call, Ended, Outcome, label};
pub(crate) use calls::Calls;
pub(crate) use failures::{Failed, Failures};
pub use inline::{InlineFailures, PortFailure};
pub(crate) use instance::{Instance, Part};
pub(crate) use plan::Plan;
pub(crate) use state::Todo;
pub use step::{Step, StepContext, StepKind};

/// No node, no place in a list.
pub(crate) const NONE: u32 = u32::MAX;

#[cfg(all(test, not(loom)))]
mod tests;
