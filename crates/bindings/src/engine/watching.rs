//! Pushes that somebody checks: Python's hook, which is told of each push of a callable or a native function on an engine that
//! is watched.

use super::Engine;
use crate::payloads::trace::Traced;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::{Mutex, PoisonError};
use weft_array::recording;
use weft_engine::CurrentOp;

/// Taken and set while attached alone, and never held while anything of Python's runs: so no fork meets it.
static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

pub(crate) struct Hook {
    pub(crate) object: Py<PyAny>,
    /// The policy of engines that are made meanwhile, whatever they ask for.
    pub(crate) policy: Option<String>,
}

/// Whether there is a hook: engines that are made now are watched.
pub(crate) fn is_on() -> bool {
    HOOK.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// The policy of engines that are made now, if a hook says so.
pub(crate) fn policy() -> Option<String> {
    HOOK.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.policy.clone()
}

/// Sets the hook, or none, and answers the one before.
pub(crate) fn set(hook: Option<Hook>) -> Option<Hook> {
    std::mem::replace(&mut *HOOK.lock().unwrap_or_else(PoisonError::into_inner), hook)
}

/// The hook, if this thread is in no op: it decides how calls of programs run that are switched off once, for it.
pub(crate) fn hook_of_programs(py: Python<'_>) -> Option<Py<PyAny>> {
    let hook = HOOK.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|hook| hook.object.clone_ref(py));
    hook.filter(|_| CurrentOp::get().is_none())
}

/// A push that the hook was told of.
pub(crate) struct Watched<'py> {
    hook: Bound<'py, PyAny>,
    token: Bound<'py, PyAny>,
}

/// Tells the hook of a push before it happens: of its payload, and of the `objects` that it accesses with what it does to them
/// (0 reads, 1 mutates, 2 overwrites). The hook may replace the callable. If it answers None, it is not told how the push ended.
/// Of one that a recording takes it is told as `hook.recording`, and of nothing behind it.
pub(crate) fn before<'py, P: Traced>(
    py: Python<'py>,
    engine: &Engine,
    payload: P,
    name: Option<&str>,
    objects: &Bound<'py, PyList>,
) -> PyResult<(P, Option<Watched<'py>>)> {
    let hook = HOOK.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|hook| hook.object.clone_ref(py));
    let Some(hook) = hook else { return Ok((payload, None)) };
    let hook = hook.into_bound(py);
    let (location, callable) = (payload.location(), payload.callable().map(|callable| callable.clone_ref(py)));
    let told = (callable, name, location.bits(), P::KIND as u8, CurrentOp::get().is_some(), engine.inner.id(), objects);
    let is_recorded = recording::is_open();
    let token = hook.call_method1(if is_recorded { intern!(py, "recording") } else { intern!(py, "pushing") }, told)?;
    if token.is_none() {
        return Ok((payload, None));
    }
    let replaced = token.getattr(intern!(py, "replaced"))?;
    let payload = if replaced.is_none() { payload } else { payload.wrapped(|_| Ok(replaced.unbind()))? };
    Ok((payload, (!is_recorded).then_some(Watched { hook, token })))
}

impl Watched<'_> {
    /// Tells the hook that it was pushed, or refused.
    pub(crate) fn after(self, pushed: bool) -> PyResult<()> {
        self.hook.call_method1(intern!(self.hook.py(), "pushed"), (self.token, pushed)).map(drop)
    }
}
