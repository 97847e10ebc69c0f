//! Reads the accesses of a push from its arguments.

use crate::array::NDArray;
use crate::engine::variable::Variable;
use crate::interpreter::errors;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use smallvec::SmallVec;
use weft_array::Access;
use weft_engine::{AccessKind, Accesses, Engine};

/// Variables and arrays of a push, kept alive meanwhile. Arrays are the handles as given: the push resolves them by
/// `ask`.
#[derive(Default)]
pub(crate) struct Held<'py> {
    pub(crate) variables: SmallVec<[(Bound<'py, Variable>, AccessKind); 6]>,
    pub(crate) arrays: Vec<(Bound<'py, NDArray>, Access)>,
}

impl<'py> Held<'py> {
    /// Replaces each array by the handle that stands for it.
    #[inline]
    pub(crate) fn ask(&mut self) {
        for (array, _) in &mut self.arrays {
            if let Some(now) = array.get().stand_in(array.py()) {
                *array = now;
            }
        }
    }

    /// Variables and arrays as hooks take them, each with its access as a number.
    pub(crate) fn listed(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let variables = self.variables.iter().map(|(variable, kind)| (variable.as_any(), *kind as u8));
        let arrays = self.arrays.iter().map(|(array, access)| (array.as_any(), access.kind() as u8));
        PyList::new(py, variables.chain(arrays).map(|(item, kind)| (item.clone(), kind)).collect::<Vec<_>>())
    }

    #[inline]
    fn add(&mut self, item: Bound<'py, PyAny>, kind: AccessKind, argument: &str) -> PyResult<()> {
        match item.cast_into::<Variable>() {
            Ok(variable) => self.variables.push((variable, kind)),
            Err(error) => self.add_array(error.into_inner(), kind, argument)?,
        }
        Ok(())
    }

    fn add_array(&mut self, item: Bound<'py, PyAny>, kind: AccessKind, argument: &str) -> PyResult<()> {
        let access = match kind {
            AccessKind::Read => Access::Read,
            AccessKind::Overwrite => Access::Overwrite,
            _ => Access::Mutate,
        };
        let array = item.cast_into::<NDArray>().map_err(|error| {
            let item = error.into_inner();
            let found = item.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            let message = format!(
                "{argument} holds variables and weft arrays only, and one item is {found}: make a variable by \
                 new_variable(), or take that of an object by variable_of()"
            );
            errors::argument_type(item.py(), &message)
        })?;
        self.arrays.push((array, access));
        Ok(())
    }
}

/// Adds the variables and arrays of `list`.
#[inline]
pub(crate) fn hold<'py>(
    held: &mut Held<'py>,
    list: Option<&Bound<'py, PyAny>>,
    kind: AccessKind,
    argument: &str,
) -> PyResult<()> {
    let Some(list) = list else { return Ok(()) };
    if let Ok(list) = list.cast_exact::<PyList>() {
        for item in list {
            held.add(item, kind, argument)?;
        }
    } else if let Ok(tuple) = list.cast_exact::<PyTuple>() {
        for item in tuple {
            held.add(item, kind, argument)?;
        }
    } else {
        hold_iterable(held, list, kind, argument)?;
    }
    Ok(())
}

#[cold]
fn hold_iterable<'py>(
    held: &mut Held<'py>,
    list: &Bound<'py, PyAny>,
    kind: AccessKind,
    argument: &str,
) -> PyResult<()> {
    let py = list.py();
    for (is_one, what) in [(list.is_instance_of::<Variable>(), "variable"), (list.is_instance_of::<NDArray>(), "array")]
    {
        if is_one {
            let message = format!("{argument} is a sequence of {what}s, not one {what}: write [{what}]");
            return Err(errors::argument_type(py, &message));
        }
    }
    // An iterator has no length, and may be empty the second time.
    let is_sequence = !list.is_instance_of::<PyString>() && list.len().is_ok();
    let items = if is_sequence { list.try_iter().ok() } else { None };
    let Some(items) = items else {
        let found = list.get_type().name()?;
        return Err(errors::argument_type(py, &format!("{argument} is a sequence of variables, not {found}")));
    };
    for item in items {
        held.add(item?, kind, argument)?;
    }
    Ok(())
}

/// The accesses of held variables, checked against the engine.
#[inline]
pub(crate) fn accesses<'v>(py: Python<'_>, engine: &'v Engine, held: &'v Held<'_>) -> PyResult<Accesses<'v>> {
    let mut accesses = Accesses::new(engine);
    for (variable, kind) in &held.variables {
        accesses.add(&variable.get().inner, *kind).map_err(|error| errors::raised(py, error))?;
    }
    Ok(accesses)
}
