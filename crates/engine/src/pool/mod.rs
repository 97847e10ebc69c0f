//! The threads that run ready ops: lanes of workers, and the policies that shape them.
//!
//! The pool knows jobs (ready ops) and where to get them; it knows no variables. A *lane* is a set
//! of workers with a queue of native and one of hosted ops. A policy says which lane an op goes to,
//! how many workers a lane has, and in which order it hands out ready ops; the rest is the same for all.
//!
//! A worker looks for its next op in this order: the one it just made ready, its own deque, the
//! registrar (settling, registering, pulling a batch), the deques of its lane's other workers,
//! hosted ops. Then it spins, then it sleeps; `sleep.md` proves that it misses nothing.

mod aside;
mod blocked;
mod crowd;
mod delivery;
mod gate;
mod guest;
mod host;
mod inline;
mod lane;
mod pace;
mod policy;
mod replays;
mod run;
mod seat;
mod state;
mod timer;
mod traced;
mod turn;
mod vigil;
mod waking;
mod worker;

pub use aside::{aside, is_worker};
pub(crate) use blocked::BlockedWorker;
pub(crate) use crowd::Crowd;
pub(crate) use guest::Guest;
pub use guest::is_called_away;
pub(crate) use host::DirectHost;
pub use host::Host;
pub use policy::Policy;
pub(crate) use state::Pool;
pub(crate) use vigil::{Sleeping, Vigil};
