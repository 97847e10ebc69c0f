//! What steps keep of Python's, so that the collector finds it.
//!
//! A step is the core's, and many hold it: a recording, a program, what is pushed of it. The collector sees none of these.
//! So a program that is the only one to have a step *claims* what that keeps: it shows the collector that one reference, while
//! no call of it is pending, as if it were its own. What nobody has claimed, or others may use, is not shown, and lives.

use crate::interpreter::loose::Loose;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use weft_program::Recorded;

/// An object that a step keeps. Clones are the same.
#[derive(Clone)]
pub(crate) struct Kept(Arc<Inner>);

struct Inner {
    object: Loose<PyAny>,
    claimed: Mutex<bool>,
}

impl Kept {
    pub(crate) fn new(object: Loose<PyAny>) -> Self {
        Self(Arc::new(Inner { object, claimed: Mutex::new(false) }))
    }

    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.0.object
    }

    /// The unclaimed objects that the steps of a recording keep; the caller claims them. Before a program is made of it.
    pub(crate) fn claim(recorded: &Recorded) -> Vec<Self> {
        let mut found = Vec::new();
        recorded.kept(&mut |kept: &dyn Any| {
            if let Some(kept) = kept.downcast_ref::<Self>()
                && !std::mem::replace(&mut *kept.0.claimed.lock().unwrap_or_else(PoisonError::into_inner), true)
            {
                found.push(kept.clone());
            }
        });
        found
    }

    /// Shows it to the collector; by whom has claimed it.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.0.object)
    }
}
