//! Rules that are Python's functions.

use super::nodes::PyNode;
use super::py_values::thrown;
use super::symbols::SymbolCore;
use super::values::{attributes_from_python, attributes_to_python, optional_dtype, shape_from_python, shape_to_python};
use crate::interpreter::dtypes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use weft_graph::NodeEntry;
use weft_graph::node::{Differentiated, GradientRule};
use weft_graph::registry::{Call, Corrected, LayoutRule, Layouts, RuleError, ShapeRule, TypeRule};
use weft_graph::value::{Attributes, DType, Shape};

/// Answers that are remembered for an op: then they are forgotten all.
const REMEMBERED: usize = 1 << 14;

/// Answers of a function of Python, by the question.
struct Memo<K, V>(Mutex<HashMap<K, V>>);

impl<K: Hash + Eq, V: Clone> Memo<K, V> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn get(&self, key: &K) -> Option<V> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: K, value: V) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = if known.len() >= REMEMBERED { std::mem::take(&mut *known) } else { HashMap::new() };
        let replaced = known.insert(key, value);
        drop(known); // a dropped object may be Python's
        drop((forgotten, replaced));
    }
}

/// The subject of a rule: shapes or dtypes.
pub(super) trait Known: Clone + Hash + Eq {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
    fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl Known for Shape {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shape_to_python(py, self)
    }

    fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        shape_from_python(object)
    }
}

impl Known for Option<DType> {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Some(dtype) => Ok(dtypes::to_python(py, *dtype)?.into_bound(py)),
            None => Ok(py.None().into_bound(py)),
        }
    }

    fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        optional_dtype(object)
    }
}

/// A question to a rule: attributes, and the known facts of inputs and of outputs.
type Question<T> = (Attributes, Vec<T>, Vec<T>);

/// `(attributes, ins, outs) -> (ins, outs)`.
pub(super) struct PyRule<T> {
    function: Py<PyAny>,
    memo: Memo<Question<T>, (Vec<T>, Vec<T>)>,
}

impl<T: Known> PyRule<T> {
    pub(super) fn new(function: Py<PyAny>) -> Self {
        Self { function, memo: Memo::new() }
    }

    fn ask(&self, (attributes, ins, outs): &Question<T>) -> PyResult<(Vec<T>, Vec<T>)> {
        Python::attach(|py| {
            let list = |known: &[T]| -> PyResult<_> {
                let objects: PyResult<Vec<_>> = known.iter().map(|each| each.to_python(py)).collect();
                PyList::new(py, objects?)
            };
            let answer = self.function.call1(py, (attributes_to_python(py, attributes)?, list(ins)?, list(outs)?))?;
            let (ins, outs): (Vec<Bound<'_, PyAny>>, Vec<Bound<'_, PyAny>>) = pair(answer.bind(py))?;
            let read = |objects: &[Bound<'_, PyAny>]| objects.iter().map(T::from_python).collect::<PyResult<Vec<T>>>();
            Ok((read(&ins)?, read(&outs)?))
        })
    }

    fn answer(&self, call: &Call<'_>, ins: &mut [T], outs: &mut [T]) -> Result<(), RuleError> {
        let question = (call.attributes.clone(), ins.to_vec(), outs.to_vec());
        let found = match self.memo.get(&question) {
            Some(found) => found,
            None => {
                let found = self.ask(&question).map_err(thrown)?;
                self.memo.put(question, found.clone());
                found
            }
        };
        copy_to(found.0, ins, "inputs")?;
        copy_to(found.1, outs, "outputs")
    }
}

impl ShapeRule for PyRule<Shape> {
    fn infer(&self, call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
        self.answer(call, ins, outs)
    }
}

impl TypeRule for PyRule<Option<DType>> {
    fn infer(&self, call: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
        self.answer(call, ins, outs)
    }
}

/// The answer of a rule that goes both ways.
fn pair<'py, T: FromPyObjectOwned<'py>>(answer: &Bound<'py, PyAny>) -> PyResult<(Vec<T>, Vec<T>)> {
    answer.extract().map_err(|_| {
        let shown = answer.repr().map_or_else(|_| String::from("something else"), |text| text.to_string());
        let message =
            format!("the rule returns a pair of lists, one for the inputs and one for the outputs, not {shown}");
        PyTypeError::new_err(message)
    })
}

fn copy_to<T>(from: Vec<T>, to: &mut [T], which: &str) -> Result<(), RuleError> {
    if from.len() != to.len() {
        return Err(format!("the rule answers for {} {which}, and there are {}", from.len(), to.len()).into());
    }
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from);
    Ok(())
}

fn dtype_list<'py>(py: Python<'py>, dtypes: &[Option<DType>]) -> PyResult<Bound<'py, PyList>> {
    let dtypes: PyResult<Vec<_>> =
        dtypes.iter().map(|dtype| dtype.map(|dtype| dtypes::to_python(py, dtype)).transpose()).collect();
    PyList::new(py, dtypes?)
}

type ForwardKey = (Attributes, Vec<Shape>, Vec<Option<DType>>);

/// `(attributes, shapes, dtypes) -> [(shape, dtype), ...]`: only forwards. Either of the lists may be None.
pub(super) struct Forward {
    function: Py<PyAny>,
    memo: Memo<ForwardKey, Vec<(Shape, Option<DType>)>>,
}

impl Forward {
    pub(super) fn new(function: Py<PyAny>) -> Self {
        Self { function, memo: Memo::new() }
    }

    fn answer(&self, key: ForwardKey, with_shapes: bool) -> Result<Vec<(Shape, Option<DType>)>, RuleError> {
        if let Some(found) = self.memo.get(&key) {
            return Ok(found);
        }
        let found = Python::attach(|py| -> PyResult<Vec<(Shape, Option<DType>)>> {
            let shapes = if with_shapes {
                let shapes: PyResult<Vec<_>> = key.1.iter().map(|shape| shape_to_python(py, shape)).collect();
                Some(PyList::new(py, shapes?)?)
            } else {
                None
            };
            let answer =
                self.function.call1(py, (attributes_to_python(py, &key.0)?, shapes, dtype_list(py, &key.2)?))?;
            let found: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = answer.extract(py)?;
            found.iter().map(|(shape, dtype)| Ok((shape_from_python(shape)?, optional_dtype(dtype)?))).collect()
        })
        .map_err(thrown)?;
        self.memo.put(key, found.clone());
        Ok(found)
    }
}

impl ShapeRule for Forward {
    fn infer(&self, call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
        if !ins.iter().all(Shape::is_known) {
            return Ok(());
        }
        let dtypes = if call.dtypes.is_empty() { vec![None; ins.len()] } else { call.dtypes.to_vec() };
        let found = self.answer((call.attributes.clone(), ins.to_vec(), dtypes), true)?;
        copy_to(found.into_iter().map(|(shape, _)| shape).collect(), outs, "outputs")
    }
}

impl TypeRule for Forward {
    fn infer(&self, call: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
        if !ins.iter().all(Option::is_some) {
            return Ok(());
        }
        let known = call.shapes.len() == ins.len() && call.shapes.iter().all(Shape::is_known);
        let shapes = if known { call.shapes.to_vec() } else { Vec::new() };
        let found = self.answer((call.attributes.clone(), shapes, ins.to_vec()), known)?;
        let found: Vec<_> = found.into_iter().map(|(_, dtype)| dtype).collect();
        if found.len() == outs.len() {
            outs.iter_mut().zip(found).filter(|(_, new)| new.is_some()).for_each(|(out, new)| *out = new);
        }
        Ok(())
    }
}

/// `(node, out_grads) -> input grads`, called by `weft._graph.gradients`, which makes symbols of both.
pub(super) struct PyGradient(pub(super) Py<PyAny>);

impl GradientRule for PyGradient {
    fn gradient(
        &self,
        of: &Differentiated<'_>,
        outs: &[Option<NodeEntry>],
    ) -> Result<Vec<Option<NodeEntry>>, RuleError> {
        Python::attach(|py| -> PyResult<_> {
            let call = py.import("weft._graph.gradients")?.getattr("call_rule")?;
            let symbols = |entries: &[NodeEntry]| -> Vec<SymbolCore> {
                entries.iter().map(|entry| SymbolCore::of(vec![entry.clone()])).collect()
            };
            let grads = outs.iter().map(|grad| grad.clone().map(|entry| SymbolCore::of(vec![entry])));
            let grads = PyList::new(
                py,
                grads.map(|grad| grad.map(|grad| Py::new(py, grad)).transpose()).collect::<PyResult<Vec<_>>>()?,
            )?;
            let found: Vec<Option<PyRef<'_, SymbolCore>>> = call
                .call1((
                    self.0.bind(py),
                    PyNode(of.node.clone()),
                    symbols(of.inputs),
                    symbols(of.outputs),
                    grads,
                    of.needs.to_vec(),
                ))?
                .extract()?;
            found.iter().map(|grad| grad.as_ref().map(|grad| grad.single()).transpose()).collect()
        })
        .map_err(thrown)
    }
}

/// `(attributes, ins, last_ins, outs) -> (ins, outs)`, or `(ins, outs, attributes)` with those of a call that does so.
pub(super) struct PyLayout(pub(super) Py<PyAny>);

impl LayoutRule for PyLayout {
    fn correct(
        &self,
        call: &Call<'_>,
        ins: &Layouts,
        last_ins: &Layouts,
        outs: &Layouts,
    ) -> Result<Corrected, RuleError> {
        Python::attach(|py| -> PyResult<_> {
            let list = |layouts: &Layouts| PyList::new(py, layouts.iter().map(|layout| layout.as_deref()));
            let arguments = (attributes_to_python(py, call.attributes)?, list(ins)?, list(last_ins)?, list(outs)?);
            let answer = self.0.call1(py, arguments)?.into_bound(py);
            let (layouts, attributes) = match answer.cast::<PyTuple>() {
                Ok(answer) if answer.len() == 3 => {
                    let given = answer.get_item(2)?;
                    let attributes = given.cast::<PyDict>().ok().map(attributes_from_python).transpose()?;
                    if attributes.is_none() && !given.is_none() {
                        return Err(PyTypeError::new_err(format!(
                            "the rule returns attributes as a dict, not {}",
                            given.repr()?
                        )));
                    }
                    (answer.get_slice(0, 2).into_any(), attributes)
                }
                _ => (answer, None),
            };
            let (ins, outs): (Vec<Option<String>>, Vec<Option<String>>) = pair(&layouts)?;
            let shared = |layouts: Vec<Option<String>>| layouts.into_iter().map(|each| each.map(Into::into)).collect();
            Ok((shared(ins), shared(outs), attributes))
        })
        .map_err(thrown)
    }
}
