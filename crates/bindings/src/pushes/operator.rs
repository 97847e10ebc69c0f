//! `weft.Operator`.

use super::accesses::Held;
use super::granting;
use super::request::submit;
use crate::array::NDArray;
use crate::engine::variable::Variable as PyVariable;
use crate::engine::{Engine, watching};
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use crate::payloads::callable::Callable;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;
use weft_array::Access;
use weft_engine::{AccessKind, PushOptions, Variable};

/// An op to be pushed again and again: its accesses were checked once.
///
/// Made by `Engine.new_operator`.
#[pyclass(module = "weft", frozen, weakref)]
pub(crate) struct Operator {
    pub(crate) engine: Py<Engine>,
    pub(crate) callable: Callable,
    pub(crate) variables: Vec<(Variable, AccessKind)>,
    /// The handles as given: a tensor may have moved by the next push.
    pub(crate) arrays: Vec<(Py<NDArray>, Access)>,
    pub(crate) priority: i32,
    pub(crate) name: Option<String>,
    pub(crate) device: weft_engine::Device,
    /// Whether the caller named the device.
    pub(crate) placed: bool,
    pub(crate) always_run: bool,
}

#[pymethods]
impl Operator {
    /// Pushes the op once more.
    ///
    /// Raises
    /// ------
    /// VariableDeletedError, EngineClosedError, PendingLimitError
    fn push(&self, py: Python<'_>) -> PyResult<()> {
        let callable = self.callable.clone_ref(py);
        if !self.engine.get().inner.is_watched() {
            return self.enter(py, callable);
        }
        let (engine, name) = (self.engine.get(), self.name.as_deref());
        let callable = Callable { location: Location::here(py), ..callable };
        let (callable, watched) = watching::before(py, engine, callable, name, &self.listed(py)?)?;
        let pushed = self.enter(py, callable);
        let told = watched.map_or(Ok(()), |watched| watched.after(pushed.is_ok()));
        pushed.and(told)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.engine)?;
        self.arrays.iter().try_for_each(|(array, _)| visit.call(array))?;
        self.callable.traverse(&visit)
    }

    fn __repr__(&self) -> String {
        let name = self.name.as_deref().map(|name| format!(" '{name}'")).unwrap_or_default();
        format!("<weft.Operator{name} of {}>", self.engine.get().inner.name())
    }
}

impl Operator {
    fn listed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let listed = PyList::empty(py);
        for (variable, kind) in &self.variables {
            listed.append((PyVariable::new(variable.clone(), self.engine.clone_ref(py)), *kind as u8))?;
        }
        for (array, access) in &self.arrays {
            listed.append((array.clone_ref(py), access.kind() as u8))?;
        }
        Ok(listed)
    }

    fn enter(&self, py: Python<'_>, callable: Callable) -> PyResult<()> {
        let engine = self.engine.get();
        let options = PushOptions {
            priority: self.priority,
            name: self.name.as_deref(),
            device: self.device,
            always_run: self.always_run,
            ..PushOptions::default()
        };
        if !self.arrays.is_empty() {
            let variables: Vec<_> = self.variables.iter().map(|(variable, kind)| (variable, *kind)).collect();
            let arrays = self.arrays.iter().map(|(array, access)| (array.bind(py).clone(), *access)).collect();
            let mut held = Held { arrays, ..Held::default() };
            held.ask();
            let arrays: Vec<_> = held.arrays.iter().map(|(array, access)| (&array.get().inner, *access)).collect();
            return granting::push(py, engine, callable, &arrays, &variables, options, !self.placed);
        }
        let mut accesses = weft_engine::Accesses::new(&engine.inner);
        for (variable, kind) in &self.variables {
            accesses.add(variable, *kind).map_err(|error| errors::raised(py, error))?;
        }
        let variables = || self.variables.iter().map(|(variable, kind)| (variable, *kind)).collect();
        submit(py, engine, callable, (&mut accesses, variables), &options)
    }
}
