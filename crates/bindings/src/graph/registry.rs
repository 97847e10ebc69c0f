//! The record of an op in the registry, and its groups.

use super::nodes::PyNode;
use super::py_values::{Held, object, thrown};
use super::rules::{Forward, PyGradient, PyLayout, PyRule};
use super::values::{attributes_from_python, attributes_to_python};
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::any::Any;
use std::sync::Arc;
use weft_graph::node::{SetInputAttribute, SharedGradient};
use weft_graph::registry::{
    Call, Cost, Given, Group, Identity, OpCost, OpWorkspace, RuleError, SharedLayout, SharedShapeRule, SharedTypeRule,
    TextRule, canonical,
};
use weft_graph::value::{DType, Shape};
use weft_graph::{Op, Registry, json, rules};

type Anything = Arc<dyn Any + Send + Sync>;
/// Under this key an op has the object that is its face in Python.
const FACE: &str = "weft.face";

/// The record of an op in the registry.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct OpEntry(pub(crate) Arc<Op>);

pub(crate) fn face<'py>(py: Python<'py>, op: &Arc<Op>) -> PyResult<Bound<'py, PyAny>> {
    match op.get::<Held>(FACE) {
        Some(held) => Ok(held.0.bind(py).clone()),
        None => py.import("weft._graph.unregistered")?.getattr("UnknownOp")?.call1((OpEntry(op.clone()),)),
    }
}

#[pymethods]
impl OpEntry {
    #[new]
    fn new(name: &str) -> Self {
        Self(Op::new(name))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn is_registered(&self) -> bool {
        self.0.is_registered()
    }

    /// Enters the op under its name and aliases, with the object that stands for it.
    fn register(&self, py: Python<'_>, aliases: Vec<String>, level: i32, face: Py<PyAny>) -> PyResult<()> {
        self.0.set(FACE, Held(face), i32::MAX).map_err(|error| errors::graph(py, error))?;
        let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
        Registry::global().register(&self.0, &aliases, level).map_err(|error| errors::graph(py, error))
    }

    /// Gives the op an attribute. Those that passes use are checked and translated here.
    fn set_attribute(&self, py: Python<'_>, key: &str, value: Py<PyAny>, level: i32) -> PyResult<()> {
        let typed = typed(py, self.0.name(), canonical(key), value.bind(py))?;
        let held: Anything = Arc::new(Held(value));
        let (value, origin) = match typed {
            Some(typed) => (typed, Some(held)),
            None => (held, None),
        };
        self.0.set_with_origin(key, value, origin, level).map_err(|error| errors::graph(py, error))
    }

    /// Gives the op an attribute that only Python looks at.
    fn hold(&self, py: Python<'_>, key: &str, value: Py<PyAny>, level: i32) -> PyResult<()> {
        self.0.set(key, Held(value), level).map_err(|error| errors::graph(py, error))
    }

    /// Lets shapes and dtypes follow from `function(attributes, shapes, dtypes)`, where nothing of a higher level says how.
    fn set_forward(&self, py: Python<'_>, function: Py<PyAny>, level: i32) -> PyResult<()> {
        let rule = Arc::new(Forward::new(function.clone_ref(py)));
        let (shapes, types): (SharedShapeRule, SharedTypeRule) = (rule.clone(), rule);
        let origin = || -> Option<Anything> { Some(Arc::new(Held(function.clone_ref(py)))) };
        self.0
            .set_with_origin("infer_shape", Arc::new(shapes), origin(), level)
            .and_then(|()| self.0.set_with_origin("infer_type", Arc::new(types), origin(), level))
            .map_err(|error| errors::graph(py, error))
    }

    /// The attribute as it was given, or `default`.
    fn attribute(&self, py: Python<'_>, key: &str, default: Py<PyAny>) -> Py<PyAny> {
        self.0.origin(key).and_then(|value| object(py, &value)).map_or(default, Bound::unbind)
    }

    fn level(&self, key: &str) -> Option<i32> {
        self.0.level(key)
    }

    fn remove_attribute(&self, key: &str, level: i32) {
        self.0.remove(key, level);
    }

    fn keys(&self) -> Vec<String> {
        let mut keys = self.0.keys();
        keys.retain(|key| key != FACE);
        keys.sort_unstable();
        keys
    }

    fn describe(&self, text: &str) {
        self.0.describe(text);
    }

    fn add_argument(&self, name: &str, kind: &str, text: &str) {
        self.0.add_argument(name, kind, text);
    }

    fn docstring(&self) -> String {
        self.0.docstring()
    }

    fn include(&self, py: Python<'_>, group: &str) -> PyResult<()> {
        Registry::global().group(group).include(&self.0).map_err(|error| errors::graph(py, error))
    }

    fn num_inputs(&self, py: Python<'_>, attributes: &Bound<'_, PyDict>) -> PyResult<Option<usize>> {
        self.0.num_inputs(&attributes_from_python(attributes)?).map_err(|error| errors::graph(py, error))
    }

    fn num_outputs(&self, py: Python<'_>, attributes: &Bound<'_, PyDict>) -> PyResult<usize> {
        self.0.num_outputs(&attributes_from_python(attributes)?).map_err(|error| errors::graph(py, error))
    }

    fn input_names(&self, py: Python<'_>, attributes: &Bound<'_, PyDict>, count: usize) -> PyResult<Vec<String>> {
        let names = self.0.input_names(&attributes_from_python(attributes)?, count);
        Ok(names.map_err(|error| errors::graph(py, error))?.iter().map(ToString::to_string).collect())
    }
}

fn wrong(py: Python<'_>, op: &str, key: &str, wanted: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let class = value.get_type();
    errors::argument_type(py, &format!("attribute '{key}' of op '{op}' is {wanted}, and {value} ({class}) was given"))
}

/// The value of a key that passes use, as they use it; None for any other key.
fn typed(py: Python<'_>, op: &str, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Anything>> {
    let function = value.is_callable().then(|| value.clone().unbind());
    let word = value.cast::<PyString>().ok().map(|name| name.to_string_lossy().into_owned());
    let made: Anything = match (key, function) {
        ("identity", _) => match word.as_deref() {
            Some("like") => Arc::new(Identity::Like),
            Some("real") => Arc::new(Identity::Real),
            _ => return Err(wrong(py, op, key, "'like' or 'real'", value)),
        },
        ("infer_shape", Some(function)) => Arc::new(Arc::new(PyRule::<Shape>::new(function)) as SharedShapeRule),
        ("infer_shape", None) => match word.as_deref().and_then(rules::shape_rule) {
            Some(rule) => Arc::new(rule),
            None => {
                let names: Vec<_> = rules::SHAPE_RULES.iter().map(|rule| rule.name).collect();
                let wanted = format!("a function, or the name of a rule ({})", names.join(", "));
                return Err(wrong(py, op, key, &wanted, value));
            }
        },
        ("infer_type", Some(function)) => Arc::new(Arc::new(PyRule::<Option<DType>>::new(function)) as SharedTypeRule),
        ("infer_type", None) => match word.as_deref().and_then(rules::type_rule) {
            Some(rule) => Arc::new(rule),
            None => {
                let wanted = format!("a function, or the name of a rule ({})", rules::TYPE_RULES.join(", "));
                return Err(wrong(py, op, key, &wanted, value));
            }
        },
        ("gradient", Some(function)) => Arc::new(Arc::new(PyGradient(function)) as SharedGradient),
        ("layout", Some(function)) => Arc::new(Arc::new(PyLayout(function)) as SharedLayout),
        ("layout", None) => match word.as_deref().and_then(rules::layout_rule) {
            Some(rule) => Arc::new(rule),
            None => {
                let wanted = format!("a function, or the name of a rule ({})", rules::LAYOUT_RULES.join(", "));
                return Err(wrong(py, op, key, &wanted, value));
            }
        },
        ("mxnet_name", _) => match &word {
            Some(word) => Arc::new(json::MxnetName(Arc::from(word.as_str()))),
            None => return Err(wrong(py, op, key, "a text", value)),
        },
        ("parse", Some(function)) => Arc::new(text_rule(function)),
        ("cost", Some(function)) => Arc::new(cost(function)),
        ("cost", None) => {
            let wanted = "seconds, a pair (flops, bytes), or a function";
            let cost = cost_of(value).map_err(|_| wrong(py, op, key, wanted, value))?;
            Arc::new(Arc::new(move |_: &Call<'_>| Ok(cost)) as OpCost)
        }
        ("workspace", Some(function)) => Arc::new(workspace(function)),
        ("workspace", None) => {
            let bytes: u64 = value.extract().map_err(|_| wrong(py, op, key, "bytes or a function", value))?;
            Arc::new(Arc::new(move |_: &Call<'_>| Ok(bytes)) as OpWorkspace)
        }
        ("set_input_attribute", Some(function)) => Arc::new(input_attribute(function)),
        ("num_inputs", _) => Arc::new(
            given::<Option<usize>>(value).map_err(|_| wrong(py, op, key, "a number, None or a function", value))?,
        ),
        ("num_outputs" | "visible_outputs", _) => {
            Arc::new(given::<usize>(value).map_err(|_| wrong(py, op, key, "a number or a function", value))?)
        }
        ("input_names" | "output_names" | "attribute_names", _) => {
            let names =
                given::<Vec<String>>(value).map_err(|_| wrong(py, op, key, "a list of names or a function", value))?;
            Arc::new(shared_names(names))
        }
        ("inplace", _) => {
            let wanted = "a list of pairs (input, output) or a function";
            Arc::new(given::<Vec<(usize, usize)>>(value).map_err(|_| wrong(py, op, key, wanted, value))?)
        }
        ("inplace_identity", _) => {
            Arc::new(given::<Vec<bool>>(value).map_err(|_| wrong(py, op, key, "a list of flags or a function", value))?)
        }
        ("mutates" | "ignores" | "places", _) => {
            let wanted = "a list of numbers of inputs or a function";
            Arc::new(given::<Vec<usize>>(value).map_err(|_| wrong(py, op, key, wanted, value))?)
        }
        ("pure" | "elementwise", _) => {
            Arc::new(given::<bool>(value).map_err(|_| wrong(py, op, key, "a flag or a function", value))?)
        }
        ("parse" | "set_input_attribute", None) => return Err(wrong(py, op, key, "a function", value)),
        _ => return Ok(None),
    };
    Ok(Some(made))
}

fn given<T: for<'a> FromPyObjectOwned<'a> + Send + Sync + 'static>(value: &Bound<'_, PyAny>) -> PyResult<Given<T>> {
    if !value.is_callable() {
        return value.extract::<T>().map(Given::Fixed).map_err(Into::into);
    }
    let function = value.clone().unbind();
    Ok(Given::By(Arc::new(move |attributes| {
        Python::attach(|py| -> PyResult<T> {
            let answer = function.call1(py, (attributes_to_python(py, attributes)?,))?;
            answer.bind(py).extract::<T>().map_err(Into::into)
        })
        .map_err(thrown)
    })))
}

fn shared_names(names: Given<Vec<String>>) -> Given<Vec<Arc<str>>> {
    let shared = |names: Vec<String>| names.into_iter().map(Arc::from).collect();
    match names {
        Given::Fixed(names) => Given::Fixed(shared(names)),
        Given::By(function) => Given::By(Arc::new(move |attributes| function(attributes).map(shared))),
    }
}

fn text_rule(function: Py<PyAny>) -> TextRule {
    Arc::new(move |items| {
        Python::attach(|py| -> PyResult<_> {
            let texts = PyDict::new(py);
            for (key, text) in items {
                texts.set_item(&**key, &**text)?;
            }
            let answer = function.call1(py, (texts,))?;
            attributes_from_python(answer.bind(py).cast::<PyDict>()?)
        })
        .map_err(thrown)
    })
}

/// The answer of a function of a call's attributes, shapes and dtypes.
fn of_call<'py>(py: Python<'py>, function: &Py<PyAny>, call: &Call<'_>) -> PyResult<Bound<'py, PyAny>> {
    let shapes = call.shapes.iter().map(|shape| super::values::shape_to_python(py, shape));
    let shapes: Vec<_> = shapes.collect::<PyResult<_>>()?;
    let dtypes = call.dtypes.iter().map(|dtype| dtype.map(|dtype| dtypes::to_python(py, dtype)).transpose());
    let dtypes: Vec<_> = dtypes.collect::<PyResult<_>>()?;
    Ok(function.call1(py, (attributes_to_python(py, call.attributes)?, shapes, dtypes))?.into_bound(py))
}

fn cost_of(value: &Bound<'_, PyAny>) -> PyResult<Cost> {
    match value.extract::<(f64, f64)>() {
        Ok((flops, bytes)) => Ok(Cost::Work { flops, bytes }),
        Err(_) => value.extract().map(Cost::Seconds),
    }
}

fn cost(function: Py<PyAny>) -> OpCost {
    Arc::new(move |call| Python::attach(|py| cost_of(&of_call(py, &function, call)?)).map_err(thrown))
}

fn workspace(function: Py<PyAny>) -> OpWorkspace {
    Arc::new(move |call| {
        Python::attach(|py| -> PyResult<u64> { of_call(py, &function, call)?.extract() }).map_err(thrown)
    })
}

fn input_attribute(function: Py<PyAny>) -> SetInputAttribute {
    Arc::new(move |attributes, variable, index| -> Result<(), RuleError> {
        Python::attach(|py| -> PyResult<_> {
            function.call1(py, (attributes_to_python(py, attributes)?, PyNode(variable.clone()), index)).map(drop)
        })
        .map_err(thrown)
    })
}

/// The face of the op of this name or alias, or None.
#[pyfunction]
pub(crate) fn find_op(py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    Registry::global().find(name).map(|op| face(py, &op).map(Bound::unbind)).transpose()
}

/// The faces of all ops, sorted by name.
#[pyfunction]
pub(crate) fn all_ops(py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
    Registry::global().ops().iter().map(|op| face(py, op).map(Bound::unbind)).collect()
}

/// The key that is meant by a key of NNVM's.
#[pyfunction]
pub(crate) fn canonical_key(key: &str) -> &str {
    canonical(key)
}

/// A group of ops.
#[pyclass(module = "weft._core", frozen)]
pub(crate) struct GroupEntry(Arc<Group>);

#[pymethods]
impl GroupEntry {
    #[new]
    fn new(name: &str) -> Self {
        Self(Registry::global().group(name))
    }

    /// Calls `function(op)` for each member, later ones too.
    fn add_trigger(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<()> {
        let trigger =
            move |op: &Arc<Op>| Python::attach(|py| function.call1(py, (face(py, op)?,)).map(drop)).map_err(thrown);
        self.0.add_trigger(&(Arc::new(trigger) as _)).map_err(|error| errors::graph(py, error))
    }

    fn members(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.0.members().iter().map(|op| face(py, op).map(Bound::unbind)).collect()
    }
}
