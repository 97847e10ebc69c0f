//! Pushes on a `weft.Engine`.

use super::Engine;
use crate::arguments::{self, Held};
use crate::array::granting;
use crate::callable::Callable;
use crate::errors;
use crate::operator::Operator;
use crate::program;
use crate::trace::Traced;
use crate::wait;
use pyo3::prelude::*;
use std::time::Duration;
use weft_array::recording;
use weft_engine::{AccessKind, Accesses, OnLimit, PushOptions};

/// How long ready callables may wait for the GIL before a push lets them have it.
const HAND_OVER: Duration = Duration::from_millis(1);

impl Engine {
    /// Waits, without the GIL, until there is room for an op that holds so many bytes; raises where asked to.
    #[inline]
    pub(crate) fn wait_for_room(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        wait_for_room(py, &self.inner, bytes)
    }

    /// Pushes, waiting without the GIL if there is no room.
    #[inline]
    pub(crate) fn push_payload<P: Traced>(
        &self,
        py: Python<'_>,
        mut payload: P,
        accesses: &mut Accesses<'_>,
        options: &PushOptions<'_>,
    ) -> PyResult<()> {
        self.wait_for_room(py, options.bytes)?;
        let noted;
        let mut options = options;
        if self.inner.is_traced() {
            let note;
            (payload, note) = self.traced(py, payload, options.name)?;
            noted = PushOptions { note, ..*options };
            options = &noted;
        }
        self.inner.push_unlimited(payload, accesses, options).map_err(|error| errors::raised(py, error))?;
        self.hand_over(py);
        Ok(())
    }

    /// Lets ready callables have the GIL, if they have waited for long.
    #[inline]
    pub(crate) fn hand_over(&self, py: Python<'_>) {
        if self.inner.is_host_overdue(HAND_OVER) {
            py.detach(|| self.inner.let_hosted_in(HAND_OVER));
        }
    }
}

/// The same for an engine without its handle.
#[inline]
pub(crate) fn wait_for_room(py: Python<'_>, engine: &weft_engine::Engine, bytes: u64) -> PyResult<()> {
    while !engine.has_room(bytes) {
        if engine.on_limit() == OnLimit::Raise {
            return engine.wait_for_room(bytes, None).map_err(|error| errors::raised(py, error));
        }
        wait::detached(py, engine, None, |wait| engine.wait_for_room(bytes, wait.tick.take()))?;
    }
    Ok(())
}

/// What every kind of push takes besides its payload.
pub(super) struct Common<'a, 'py> {
    reads: Option<&'a Bound<'py, PyAny>>,
    mutates: Option<&'a Bound<'py, PyAny>>,
    overwrites: Option<&'a Bound<'py, PyAny>>,
    options: PushOptions<'a>,
    /// Whether the options name a device.
    placed: bool,
}

impl<'a, 'py> Common<'a, 'py> {
    #[inline]
    pub(super) fn new(
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
        arguments::hold(&mut held, self.reads, AccessKind::Read, "read_vars")?;
        arguments::hold(&mut held, self.mutates, AccessKind::Mutate, "mutate_vars")?;
        arguments::hold(&mut held, self.overwrites, AccessKind::Overwrite, "overwrite_vars")?;
        Ok(held)
    }

    #[inline]
    pub(super) fn push<P: Traced>(self, py: Python<'py>, engine: &Engine, payload: P) -> PyResult<()> {
        let held = self.held()?;
        if !held.arrays.is_empty() {
            return granting::push_held(py, engine, payload, &held, self.options, !self.placed);
        }
        let mut accesses = arguments::accesses(py, &engine.inner, &held)?;
        if recording::is_open() {
            let variables: Vec<_> =
                held.variables.iter().map(|(variable, kind)| (&variable.get().inner, *kind)).collect();
            return program::record(py, engine, payload, &variables, &self.options);
        }
        engine.push_payload(py, payload, &mut accesses, &self.options)
    }

    /// Makes an operator of it, whose accesses are checked now.
    pub(super) fn operator(self, engine: &Bound<'py, Engine>, callable: Callable) -> PyResult<Operator> {
        let (py, inner, options) = (engine.py(), &engine.get().inner, &self.options);
        let held = self.held()?;
        arguments::accesses(py, inner, &held)?;
        if inner.is_closed() {
            let engine = inner.name().to_owned();
            return Err(errors::raised(py, weft_engine::EngineError::Closed { engine }));
        }
        Ok(Operator {
            engine: engine.clone().unbind(),
            callable,
            variables: held.variables.iter().map(|(variable, kind)| (variable.get().inner.clone(), *kind)).collect(),
            arrays: granting::arrays_of(&held.arrays),
            priority: options.priority,
            name: options.name.map(ToOwned::to_owned),
            device: options.device,
            placed: self.placed,
            always_run: options.always_run,
        })
    }
}
