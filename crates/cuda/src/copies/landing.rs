//! The second half of a copy from or to the host.
//!
//! A copy is pushed as two ops, one right behind the other, with no push on their variables between:
//!
//! | op | device variable | host variable, copying in / out | ends |
//! |---|---|---|---|
//! | issue | overwrites / reads it | reads / overwrites it | when its work is on a stream |
//! | land | - | reads / mutates it | when the device has done with the host's memory |
//!
//! So the next user of the device's value is not held up by the host, and the next user of the host's memory waits
//! for the device.
//!
//! An issue op that fails tells of it itself, and has left the host's memory alone: then a land op that only reads
//! ends well, and one that mutates fails through the variable. A land op that reads may come before its issue op has
//! run, since both only read.

use crate::devices::Device;
use crate::error::CudaError;
use crate::streams::Fence;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::{Cause, Completion, InOrder, OpContext, Payload};

#[derive(Default)]
enum State {
    /// The copy is being issued, or staged.
    #[default]
    Issuing,
    /// The same, and the land op waits.
    Waited(Completion),
    /// The device has done with the host's memory when this fence is done.
    Behind(Fence),
    /// It has.
    Landed(Result<(), CudaError>),
}

struct Shared {
    state: Mutex<State>,
    /// The land op runs where copies are issued, so that they are looked after in their order.
    queue: InOrder,
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The issue op's half: goes to [`copy_in`](crate::copy_in) or [`copy_out`](crate::copy_out). Dropped before, it lands
/// the copy: the op did not run.
pub struct Landing(Arc<Shared>);

/// The land op's half: its payload.
pub struct Land(Arc<Shared>);

impl Landing {
    /// The two halves for one copy from or to this device.
    #[must_use]
    #[allow(clippy::new_ret_no_self)] // it makes a pair
    pub fn new(device: &Device) -> (Self, Land) {
        Self::with(device, None)
    }

    /// The same, with what keeps the host's memory. It is dropped on any thread, the poller's for one, when the copy
    /// has landed.
    #[must_use]
    pub fn keeping(device: &Device, keeper: Box<dyn Any + Send + Sync>) -> (Self, Land) {
        Self::with(device, Some(keeper))
    }

    fn with(device: &Device, keeper: Option<Box<dyn Any + Send + Sync>>) -> (Self, Land) {
        let shared = Arc::new(Shared { state: Mutex::default(), queue: device.queue(), _keeper: keeper });
        (Self(Arc::clone(&shared)), Land(shared))
    }

    /// It lands when the fence is done.
    pub(crate) fn behind(self, fence: Fence) {
        let mut state = self.0.lock();
        if let State::Waited(token) = &*state {
            let token = token.clone();
            // Landed, as far as the state is to say; the token says the rest.
            *state = State::Landed(Ok(()));
            drop(state);
            self.0.land_behind(fence, token);
        } else {
            *state = State::Behind(fence);
        }
    }

    /// It has landed.
    pub(crate) fn landed(self, outcome: Result<(), CudaError>) {
        self.0.land(outcome);
    }
}

impl Shared {
    fn land(&self, outcome: Result<(), CudaError>) {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Landed(outcome.clone())) {
            State::Issuing => {}
            State::Waited(token) => {
                drop(state);
                complete(&token, outcome);
            }
            done @ (State::Behind(_) | State::Landed(_)) => *state = done,
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.0.land(Ok(()));
    }
}

/// Ends an op. Whoever has a token uses it once, and here is where.
pub(crate) fn complete(token: &Completion, outcome: Result<(), CudaError>) {
    let _ = token.complete(outcome.map_err(Cause::from));
}

impl Shared {
    fn land_behind(self: &Arc<Self>, fence: Fence, token: Completion) {
        let shared = Arc::clone(self);
        fence.when_done(move |outcome| {
            drop(shared);
            complete(&token, outcome);
        });
    }
}

impl Payload for Land {
    fn queue(&self) -> Option<InOrder> {
        Some(self.0.queue)
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let mut state = self.0.lock();
        let fence = match &*state {
            State::Landed(outcome) => return outcome.clone().map_err(Cause::from),
            State::Behind(fence) => fence.clone(),
            State::Issuing | State::Waited(_) => {
                *state = State::Waited(context.defer());
                return Ok(());
            }
        };
        drop(state);
        // The poller finds copies done in the order of their stream. Who asked here would land one before those ahead of
        // it, and what waits for it would be issued before what waits for them.
        self.0.land_behind(fence, context.defer());
        Ok(())
    }
}
