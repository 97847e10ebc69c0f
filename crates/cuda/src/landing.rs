//! The second half of a copy from or to the host.
//!
//! A copy is pushed as two ops, one right behind the other, with no push on their variables between:
//!
//! | op | device variable | host variable | ends |
//! |---|---|---|---|
//! | issue | reads or overwrites it | overwrites or reads it | when its work is on a stream |
//! | land | - | mutates or reads it | when the device has done with the host's memory |
//!
//! So whoever uses the device's value next is not held up by the host, and whoever uses the host's waits for the
//! device. If the first one fails, the second does through the variable.

use crate::error::CudaError;
use crate::fence::Fence;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::{Cause, Completion, OpContext, Payload};

enum State {
    /// The copy is being issued, or staged.
    Issuing,
    /// The device has done with the host's memory when this fence is done.
    Behind(Fence),
    /// The land op has come, and waits.
    Waited(Completion),
    /// It is done.
    Landed(Result<(), CudaError>),
}

/// What the two ops of a copy share. Clones are the same landing; the payload of the land op is one.
#[derive(Clone)]
pub struct Landing(Arc<Mutex<State>>);

impl Default for Landing {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State::Issuing)))
    }
}

impl Landing {
    /// A landing for one copy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It lands when the fence is done.
    pub(crate) fn behind(&self, fence: Fence) {
        *self.lock() = State::Behind(fence);
    }

    /// It has landed.
    pub(crate) fn landed(&self, outcome: Result<(), CudaError>) {
        let before = std::mem::replace(&mut *self.lock(), State::Landed(outcome.clone()));
        if let State::Waited(token) = before {
            complete(&token, outcome);
        }
    }
}

/// Ends an op. Whoever has a token uses it once, and here is where.
pub(crate) fn complete(token: &Completion, outcome: Result<(), CudaError>) {
    let _ = token.complete(outcome.map_err(Cause::from));
}

impl Payload for Landing {
    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let mut state = self.lock();
        match &*state {
            State::Landed(outcome) => outcome.clone().map_err(Cause::from),
            State::Issuing => {
                *state = State::Waited(context.defer());
                Ok(())
            }
            State::Behind(fence) => {
                if fence.is_done()? {
                    return Ok(());
                }
                let (fence, token) = (fence.clone(), context.defer());
                drop(state);
                let runtime = Arc::clone(&fence.stream().context().runtime);
                runtime.poller.after(fence, move |outcome| complete(&token, outcome));
                Ok(())
            }
            State::Waited(_) => Err(CudaError::InvalidArgument("a landing is pushed once".to_owned()).into()),
        }
    }
}
