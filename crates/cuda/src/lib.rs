//! CUDA devices for a weft engine: launches and copies that native workers issue, and that wait for each other on the
//! device.
//!
//! # Two clocks
//!
//! An op on a device is *issued* (its work is on a stream), and later *completed* (the work has ended). To the engine it ends when it is issued: the
//! engine orders the issuing, and this crate makes the device run in that order. Host threads never wait for a device but where the host needs a
//! value.
//!
//! ```
//! # #[cfg(feature = "simulated")] {
//! use std::sync::Arc;
//! use weft_cuda::driver::Pattern;
//! use weft_cuda::simulated::{Settings, SimulatedDriver};
//! use weft_cuda::{BufferAccess, Cuda, DeviceBuffer, Label, Region, fill};
//! use weft_engine::{Engine, Wait};
//!
//! let driver = SimulatedDriver::new(Settings::default()); // `Cuda::open()?` finds the real one
//! let cuda = Cuda::with_driver(Arc::new(driver));
//! let engine = Engine::new(weft_engine::Settings::default())?;
//! let (x, buffer) = (engine.new_variable(Some("x")), DeviceBuffer::new(&cuda.device(0)?, 4096));
//!
//! let region = Region::whole(&buffer);
//! let zero = move |_: &mut weft_engine::OpContext<'_>| {
//!     fill(&Label::from("zero"), &region, Pattern::Byte(0)).map(drop).map_err(Into::into)
//! };
//! engine.op_of(zero).overwrite(&x).push()?;
//! engine.wait_for_var(&x)?; // issued
//! buffer.writer().expect("it was issued").wait(&mut Wait::default())?; // completed
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The protocol
//!
//! Variables of the engine order the ops that use a [`DeviceBuffer`], or the same bytes of one. The buffer keeps, for each range of bytes with the
//! same history (a *part*), its *writer's* [`Fence`] and, for each stream, that of the newest *reader* since. A buffer that is used as a whole has
//! one part; `parts` tells when they are split and merged. An op that was granted its variables is issued like this:
//!
//! | step | what | under |
//! |---|---|---|
//! | choose | the stream: that of the producer which the op alone follows, else the next one that gets on; copies have their own | - |
//! | prepare | memory for what lies nowhere yet; the fences that the accesses ask for, in each part that they overlap: a read the writer's, a mutation the readers', and that of the allocation where there is neither | the buffer's lock |
//! | ask | events of those that are not recorded yet are recorded, each on its own stream | each one's turn |
//! | wait | the stream waits for each of those that it is not behind already | the stream's turn |
//! | part | the event of the ops before is recorded, if this one lasts and is not to be waited for by who asks for them | the stream's turn |
//! | announce | the op is numbered, and has an event, so that what is issued cannot end up without one | the stream's turn |
//! | issue | the driver's calls | the stream's turn |
//! | record | the event behind the work, unless that can wait until somebody asks: its fence | the stream's turn |
//! | leave | the fence with the buffers, as their writer's or one of their readers' | the buffer's lock |
//!
//! A buffer's lock comes before a stream's turn, never after it, and a thread has one turn at a time.
//!
//! The first op on a stream holds up those behind it, though they could run. So ops are issued in the order of their pushes, which does not put a
//! chunk's second round before another one's first; the poller lands copies in the order of their stream, so that their waiters are issued in that
//! order too; and kernels without a predecessor go to the compute streams in turn, but for one with much more unfinished work than others.
//!
//! A stream *is behind* a fence that is its own, or that it has waited for, or any older fence of a stream of which it
//! has waited for a newer one. Work is ordered by that alone: never by what some thread happened to see.
//!
//! ## Events that ops have in common
//!
//! To record an event takes the driver a fourth of the time of a launch, and most are never asked for: a chain on one stream
//! is in order without them. So ops in a row have an event in common: a *block*. Its event is recorded behind all of its ops that
//! are issued by then, and the next op begins another block,
//!
//! | when | by | because |
//! |---|---|---|
//! | another stream has to come behind one of them | who issues there, before it takes its own turn | it waits for an event |
//! | the host asks for one of them | who asks, if it gets the turn at once; else it has the answer "not yet" | it looks at an event |
//! | an op comes that may not join | who issues it, before it | who waits for the block does not wait for that op |
//! | the stream is about to wait, or foreign code is to have it | who has the turn | who waits for the block waits for nothing else |
//! | there are 16 of them | who issued the last one | that is all that anybody waits for in vain |
//!
//! | op | may join |
//! |---|---|
//! | a *brief* one, which takes the device some microseconds at most | always: who waits for a block may as well wait for a few more |
//! | a *lasting* one, a user's kernel or one over many bytes, whose fence takes the place of all that the block's event has: a chain in place | always: there is nobody left to ask for those before it alone |
//! | another lasting one, which follows an op of the block | if nobody has lately asked for one before a lasting one of its block. A stream keeps such ops apart at first, and for longer after each wait in vain |
//! | any other lasting one | never |
//! | a copy from or to other memory, an op on a stream that was named, foreign code | its event is recorded right behind it: it will be asked for |
//!
//! A recording thread has the stream's turn and is inside of its context, so no op comes in between, and a thread still has one turn at a time. A
//! query never waits for the turn: a launch may hold it for as long as the device's queue is full. Streams of other libraries have no blocks: their
//! maker may capture on them at any time.
//!
//! ## States of an event
//!
//! | state | event | who may touch what | next |
//! |---|---|---|---|
//! | spare | happened, or never recorded | its stream's ledger owns the mark | announced, by an op about to be issued |
//! | announced | not recorded yet | that op alone | open or recorded, in the same turn |
//! | open | not recorded yet | further ops of the stream join it; whoever asks has it recorded, in the stream's turn | recorded; given back, by the last holder |
//! | recorded | recorded once | whoever holds a [`Fence`] of it queries it, or lets streams wait for it; nobody records it | known, by a query; given back, by the last holder |
//! | known | happened, or the device has failed | as before; the outcome never changes | given back, by the last holder |
//! | given back | recorded, and may not have happened; or not recorded | its stream's ledger | spare, when it has happened |
//!
//! So an event is recorded anew only when it has happened and no fence of it is held: no waiter, on the host or on a stream, can miss its event.
//!
//! ## Which memory may die when
//!
//! | memory | is held by | dies |
//! |---|---|---|
//! | a device block | its buffer, until an overwrite takes another one or the buffer goes, then the stream of its last op, which keeps some for what comes next on it | when the buffer's last handle goes, all its ops are issued; the stream comes behind their fences, and then the block may be used again there, or its free is issued; was it lent to other libraries, it is freed behind the default stream too |
//! | memory of other libraries | what the buffer on it was given | when the fences are done of all that used the buffer |
//! | a graph, and the kernels that it calls | its bundle | when its last launch has ended |
//! | the buffers of a graph | the ops that are issued as its members, each time | as with any op: the graph keeps none, and is launched only where they lie as they did |
//! | a pinned block for staging | the poller's job of its chunk | given back when the chunk's fence is done |
//! | host memory of a copy | the copy's *land* op (see [`Landing`]) | free to be used when that op has ended |
//! | parameters of a launch | the call | the driver has copied them when the call returns |
//! | a stream, its events | its handles and fences | when what was on it has ended, seen when the next stream is made or the device goes |
//! | modules, the primary context | the device and all that came from it | when the last of them goes, and its streams have ended |
//! | anything, in a forked child | nobody | never: CUDA does not live on there |
//!
//! ## Threads
//!
//! | thread | may |
//! |---|---|
//! | a worker in an op: one for each device, in the order of the pushes (see [`weft_engine::Payload::queue`]) | issue; begin a staged copy, [aside](weft_engine::aside) |
//! | a worker that runs foreign code | the same |
//! | the poller (one, native, started on first use) | look at fences, and have their events recorded; complete land ops, copy staged chunks and issue more of them, issue frees that had to wait for a turn |
//! | whoever drops the last handle on a buffer | issue its free if the turn is to be had at once |
//! | one that pins (native, for a while) | pin blocks for the chunks of copies to come |
//! | whoever waits | look at its fence, and have its event recorded if the turn is to be had; sleep in between |
//!
//! No callback of the driver is used, and none of these threads enters Python. None blocks in the driver, but a launch
//! may when the device's queue is full, and an allocation while it waits for memory to be freed.
//!
//! ## Failures
//!
//! A call that the driver refuses fails its op; the work issued before it is still followed by a fence. A fault of the device is found by a query: it
//! is put down to the first op of that stream which is not known to have ended (others that may be to blame are named beside it, for the driver does
//! not tell), and all fences not known to have happened fail with it, as does all that is issued from then on.
//!
//! An error carries the [`Label`]s of the ops that it names, and these the keys of the places of their pushes. The reader of the keys turns them into
//! lines when the error is shown ([`CudaError::located`]): this crate cannot, and some of these errors are made under locks.
//!
//! # Times
//!
//! While a trace is on, ops that it has recorded are timed by two more events each: see [`Cuda::begin_times`].
//!
//! `SAFETY.md` lists the conditions of every `unsafe` here.

mod buffers;
mod copies;
mod devices;
pub mod driver;
mod error;
mod graphs;
mod issue;
mod label;
mod launches;
mod memory;
mod streams;

#[cfg(feature = "simulated")]
pub use driver::simulated;

pub use buffers::{BufferAccess, DeviceBuffer, PinnedBlock, PinnedBuffer};
pub use copies::{HostMemory, Land, Landing, Region, copy, copy_in, copy_out, fill};
pub use devices::{Cuda, Device, Lane, StreamRuns};
pub use driver::DEFAULT_STREAM;
pub use error::{CudaError, DriverError};
pub use graphs::{Bundle, CopyWithin, Issued, Member, Shifted};
pub use issue::{BRIEF, Begun, Request};
pub use label::Label;
pub use launches::{
    BackToBack, CallTimes, CompileError, Compiler, Kernel, Launch, LaunchPlan, Launcher, Module, Parameter,
};
pub use memory::MemoryStats;
pub use streams::{Fence, Settings, Stream, fork};
