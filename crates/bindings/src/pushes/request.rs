//! Pushes on a `weft.Engine`.

use super::accesses::{self, Held};
use super::{Operator, granting};
use crate::array::raised;
use crate::engine::{Engine, watching};
use crate::interpreter::arguments;
use crate::interpreter::errors;
use crate::payloads::announce;
use crate::payloads::callable::Callable;
use crate::payloads::trace::Traced;
use pyo3::prelude::*;
use weft_array::{Step, recording};
use weft_engine::{AccessKind, Accesses, PushOptions, Variable};

/// The arguments that every kind of push takes besides its payload.
pub(crate) struct Request<'a, 'py> {
    reads: Option<&'a Bound<'py, PyAny>>,
    mutates: Option<&'a Bound<'py, PyAny>>,
    overwrites: Option<&'a Bound<'py, PyAny>>,
    options: PushOptions<'a>,
    /// Whether the options name a device.
    placed: bool,
}

impl<'a, 'py> Request<'a, 'py> {
    #[inline]
    pub(crate) fn new(
        reads: Option<&'a Bound<'py, PyAny>>,
        mutates: Option<&'a Bound<'py, PyAny>>,
        overwrites: Option<&'a Bound<'py, PyAny>>,
        device: Option<&Bound<'py, PyAny>>,
        options: PushOptions<'a>,
    ) -> PyResult<Self> {
        let options = PushOptions { device: arguments::device(device)?, ..options };
        Ok(Self { reads, mutates, overwrites, options, placed: device.is_some() })
    }

    #[inline]
    fn held(&self) -> PyResult<Held<'py>> {
        let mut held = Held::default();
        accesses::hold(&mut held, self.reads, AccessKind::Read, "read_vars")?;
        accesses::hold(&mut held, self.mutates, AccessKind::Mutate, "mutate_vars")?;
        accesses::hold(&mut held, self.overwrites, AccessKind::Overwrite, "overwrite_vars")?;
        Ok(held)
    }

    #[inline]
    pub(crate) fn push<P: Traced>(self, py: Python<'py>, engine: &Engine, payload: P) -> PyResult<()> {
        let mut held = self.held()?;
        held.ask();
        if engine.inner.is_watched() {
            return self.push_watched(py, engine, payload, &held);
        }
        self.enter(py, engine, payload, &held)
    }

    /// The same push, with calls of a hook before and after it.
    #[cold]
    fn push_watched<P: Traced>(self, py: Python<'py>, engine: &Engine, payload: P, held: &Held<'py>) -> PyResult<()> {
        let (payload, watched) = watching::before(py, engine, payload, self.options.name, &held.listed(py)?)?;
        let pushed = self.enter(py, engine, payload, held);
        let told = watched.map_or(Ok(()), |watched| watched.after(pushed.is_ok()));
        pushed.and(told)
    }

    #[inline]
    fn enter<P: Traced>(self, py: Python<'py>, engine: &Engine, payload: P, held: &Held<'py>) -> PyResult<()> {
        if !held.arrays.is_empty() {
            return granting::push_held(py, engine, payload, held, self.options, !self.placed);
        }
        let mut accesses = accesses::accesses(py, &engine.inner, held)?;
        let variables = || held.variables.iter().map(|(variable, kind)| (&variable.get().inner, *kind)).collect();
        submit(py, engine, payload, (&mut accesses, variables), &self.options)
    }

    /// Makes an operator of the request. Its accesses are checked now.
    pub(crate) fn operator(self, engine: &Bound<'py, Engine>, callable: Callable) -> PyResult<Operator> {
        let (py, inner, options) = (engine.py(), &engine.get().inner, &self.options);
        let held = self.held()?;
        accesses::accesses(py, inner, &held)?;
        if inner.is_closed() {
            let engine = inner.name().to_owned();
            return Err(errors::raised(py, weft_engine::EngineError::Closed { engine }));
        }
        Ok(Operator {
            engine: engine.clone().unbind(),
            callable,
            variables: held.variables.iter().map(|(variable, kind)| (variable.get().inner.clone(), *kind)).collect(),
            arrays: held.arrays.into_iter().map(|(array, access)| (array.unbind(), access)).collect(),
            priority: options.priority,
            name: options.name.map(ToOwned::to_owned),
            device: options.device,
            placed: self.placed,
            always_run: options.always_run,
        })
    }
}

/// Pushes an op on variables alone, with their accesses, or appends it to the recording of this thread.
#[inline]
pub(crate) fn submit<'v, P: Traced>(
    py: Python<'_>,
    engine: &Engine,
    payload: P,
    (accesses, variables): (&mut Accesses<'_>, impl FnOnce() -> Vec<(&'v Variable, AccessKind)>),
    options: &PushOptions<'_>,
) -> PyResult<()> {
    if !recording::is_open() {
        return engine.push_payload(py, payload, accesses, options);
    }
    announce(py, &payload, options.name);
    payload
        .into_step()
        // SAFETY: a callable on variables alone takes no arrays.
        .and_then(|step| unsafe {
            recording::append_on_variables(Step::Opaque(step), &engine.inner, &variables(), options)
        })
        .map_err(|error| raised(py, error))
}
