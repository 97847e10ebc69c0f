//! Passes as functions.

use super::graphs::{GraphCore, items};
use super::nodes::{PyNode, PyNodeEntry};
use super::py_values::thrown;
use super::registry::OpEntry;
use super::symbols::SymbolCore;
use super::values::{dtype_from_python, shape_from_python, shape_to_python};
use crate::interpreter::dtypes;
use crate::interpreter::errors;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::collections::HashMap;
use std::sync::Arc;
use weft_graph::passes::{self, DTYPE, DTypes, External, GradientOptions, Pass, Passes, SHAPE, Shapes};
use weft_graph::registry::RuleError;
use weft_graph::{GraphError, NodeEntry, NodeRef, Registry, json};
use weft_plan::Memory;

fn done(py: Python<'_>, result: Result<weft_graph::Graph, GraphError>) -> PyResult<GraphCore> {
    result.map(GraphCore).map_err(|error| errors::graph(py, error))
}

/// Reads a graph from JSON. `weft._mxnet.names` translates names of ops in files of `MXNet`, and names that are not
/// registered.
#[pyfunction]
pub(crate) fn graph_load_json(py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<GraphCore> {
    let Ok(text) = text.to_str() else {
        return done(
            py,
            Err(GraphError::new("this is no graph: half a surrogate pair is in it, which no file can hold")),
        );
    };
    let find = |name: &str, writer: json::Writer| {
        let known = Registry::global().find(name);
        let by_mxnet = matches!(writer, json::Writer::Mxnet(_));
        if known.is_some() && !by_mxnet {
            return Ok(known);
        }
        let ask = || -> PyResult<Option<String>> {
            py.import("weft._mxnet.names")?.getattr("registered_name")?.call1((name, by_mxnet))?.extract()
        };
        let found = ask().map_err(|error| GraphError::Rule {
            context: format!("op '{name}'"),
            source: thrown(error),
            place: 0,
            of_shapes: false,
        })?;
        Ok(found.and_then(|found| Registry::global().find(&found)).or(known))
    };
    done(py, json::load(text, json::LoadOptions { find: &find }))
}

/// Writes a graph as JSON.
#[pyfunction]
pub(crate) fn graph_save_json(py: Python<'_>, graph: &GraphCore) -> PyResult<String> {
    json::save(&graph.0).map_err(|error| errors::graph(py, error))
}

/// Finds shapes from those of variables.
#[pyfunction]
pub(crate) fn graph_infer_shape(
    py: Python<'_>,
    graph: &GraphCore,
    known: &Bound<'_, PyDict>,
    key: &str,
) -> PyResult<GraphCore> {
    let mut shapes = HashMap::new();
    for (name, shape) in known {
        let name = name.extract::<String>()?;
        let lengths = shape_from_python(&shape).map_err(|error| no_shape(py, &name, &shape, &error))?;
        shapes.insert(name.into(), lengths);
    }
    done(py, passes::infer_shape(&graph.0, &shapes, key))
}

/// The error for a value that is no shape of a variable.
fn no_shape(py: Python<'_>, name: &str, given: &Bound<'_, PyAny>, error: &PyErr) -> PyErr {
    let shown = given.repr().map_or_else(|_| String::from("something else"), |text| text.to_string());
    let message =
        format!("the shape of '{name}' is a tuple of lengths, with None for an unknown one, and {shown} was given");
    if error.is_instance_of::<PyValueError>(py) {
        errors::argument_value(py, &message)
    } else {
        errors::argument_type(py, &message)
    }
}

/// Finds dtypes from those of variables; others are assumed, or stay unknown.
#[pyfunction]
#[pyo3(signature = (graph, known, key, *, assume = true))]
pub(crate) fn graph_infer_type(
    py: Python<'_>,
    graph: &GraphCore,
    known: &Bound<'_, PyDict>,
    key: &str,
    assume: bool,
) -> PyResult<GraphCore> {
    let mut dtypes = HashMap::new();
    for (name, dtype) in known {
        let name = name.extract::<String>()?;
        let found = dtype_from_python(&dtype)
            .map_err(|error| errors::argument_type(py, &format!("the dtype of '{name}': {}", error.value(py))))?;
        dtypes.insert(name.into(), found);
    }
    let infer = if assume { passes::infer_type } else { passes::infer_type_partial };
    done(py, infer(&graph.0, &dtypes, key))
}

/// The shapes, or dtypes, of arguments, outputs and auxiliary states.
#[pyfunction]
pub(crate) fn graph_inferred<'py>(py: Python<'py>, graph: &GraphCore, key: &str) -> PyResult<Vec<Bound<'py, PyList>>> {
    let raise = |error| errors::graph(py, error);
    let indexed = graph.0.indexed().map_err(raise)?;
    let variables = |mutable: bool| -> Vec<usize> {
        let found =
            indexed.input_nodes().iter().filter(|number| indexed.mutable_input_nodes().contains(number) == mutable);
        found.map(|&number| indexed.entries_of(number).start).collect()
    };
    let parts = [variables(false), indexed.outputs().iter().map(|&id| indexed.entry_id(id)).collect(), variables(true)];
    if key == SHAPE {
        let shapes = graph.0.wanted::<Shapes>(SHAPE, "infer_shape").map_err(raise)?;
        let list = |part: &Vec<usize>| {
            let found: PyResult<Vec<_>> = part.iter().map(|&at| shape_to_python(py, &shapes[at])).collect();
            PyList::new(py, found?)
        };
        return parts.iter().map(list).collect();
    }
    let dtypes = graph.0.wanted::<DTypes>(DTYPE, "infer_type").map_err(raise)?;
    let list = |part: &Vec<usize>| {
        let found: PyResult<Vec<_>> =
            part.iter().map(|&at| dtypes[at].map(|dtype| dtypes::to_python(py, dtype)).transpose()).collect();
        PyList::new(py, found?)
    };
    parts.iter().map(list).collect()
}

/// Places nodes on devices.
#[pyfunction]
pub(crate) fn graph_place_device(
    py: Python<'_>,
    graph: &GraphCore,
    key: &str,
    assign: HashMap<String, String>,
    copy: &OpEntry,
    default: Option<&str>,
) -> PyResult<GraphCore> {
    done(py, passes::place_device(&graph.0, key, &assign, &copy.0, default))
}

/// Plans memory.
#[pyfunction]
pub(crate) fn graph_plan_memory(
    py: Python<'_>,
    graph: &GraphCore,
    memory: &str,
    outputs: bool,
    named: Vec<String>,
) -> PyResult<GraphCore> {
    done(py, passes::plan_memory(&graph.0, memory_of(py, memory)?, &external_of(outputs, named)))
}

fn memory_of(py: Python<'_>, memory: &str) -> PyResult<Memory> {
    match memory {
        "min" => Ok(Memory::Min),
        "balanced" => Ok(Memory::Balanced),
        "speed" => Ok(Memory::Speed),
        other => {
            let message = format!("memory is one of 'min', 'balanced' and 'speed', and '{other}' was given");
            Err(errors::argument_value(py, &message))
        }
    }
}

fn external_of(outputs: bool, named: Vec<String>) -> External {
    match (outputs, named.is_empty()) {
        (true, _) => External::Outputs,
        (false, true) => External::None,
        (false, false) => External::Named(named.into_iter().collect()),
    }
}

/// Makes calls that `forward` rests on again, where the plan gets smaller, or until it fits a limit.
#[pyfunction]
pub(crate) fn graph_recompute(
    py: Python<'_>,
    graph: &GraphCore,
    forward: &SymbolCore,
    limit: Option<u64>,
    memory: &str,
    outputs: bool,
    named: Vec<String>,
) -> PyResult<GraphCore> {
    let (memory, external) = (memory_of(py, memory)?, external_of(outputs, named));
    done(py, passes::recompute(&graph.0, forward.0.outputs(), limit, memory, &external))
}

/// Brings layouts together.
#[pyfunction]
pub(crate) fn graph_correct_layout(
    py: Python<'_>,
    graph: &GraphCore,
    layouts: HashMap<String, String>,
) -> PyResult<GraphCore> {
    done(py, passes::correct_layout(&graph.0, &layouts))
}

/// Makes mutations values; with `states` the last ones of variables are outputs, too.
#[pyfunction]
pub(crate) fn graph_functionalise(py: Python<'_>, graph: &GraphCore, states: bool) -> PyResult<GraphCore> {
    done(py, passes::functionalise(&graph.0, states))
}

/// Gives an op that passes make of others the attributes that follow from those.
#[pyfunction]
pub(crate) fn graph_describe_derived(py: Python<'_>, op: &OpEntry) -> PyResult<()> {
    passes::describe_derived(&op.0).map_err(|error| errors::graph(py, error))
}

/// Computes calls that depend on constants alone; `evaluate(node)` answers with entries, or None.
#[pyfunction]
pub(crate) fn graph_fold_constants(
    py: Python<'_>,
    graph: &GraphCore,
    evaluate: &Bound<'_, PyAny>,
) -> PyResult<GraphCore> {
    let mut ask = |node: &NodeRef| {
        let answer = evaluate.call1((PyNode(node.clone()),)).map_err(thrown)?;
        let entries: Option<Vec<PyRef<'_, PyNodeEntry>>> = answer.extract().map_err(thrown)?;
        Ok(entries.map(|entries| entries.iter().map(|entry| entry.0.clone()).collect()))
    };
    done(py, passes::fold_constants(&graph.0, &mut ask))
}

/// The graph as text.
#[pyfunction]
pub(crate) fn graph_print_ir(
    py: Python<'_>,
    graph: &GraphCore,
    entries: Vec<String>,
    nodes: Vec<String>,
) -> PyResult<String> {
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    passes::print_ir(&graph.0, &entries, &nodes, &|value, at| items(py, value, at))
        .map_err(|error| errors::graph(py, error))
}

/// The graph in Graphviz' language, or as SVG.
#[pyfunction]
pub(crate) fn graph_draw(py: Python<'_>, graph: &GraphCore, svg: bool) -> PyResult<String> {
    let drawn = if svg { passes::svg(&graph.0) } else { passes::dot(&graph.0) };
    drawn.map_err(|error| errors::graph(py, error))
}

/// Composes gradients.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // as many as the pass has
pub(crate) fn graph_gradient(
    py: Python<'_>,
    ys: &SymbolCore,
    xs: &SymbolCore,
    heads: Vec<Option<PyRef<'_, SymbolCore>>>,
    aggregate: Option<Bound<'_, PyAny>>,
    mirror: Option<Bound<'_, PyAny>>,
    hint: Option<Bound<'_, PyAny>>,
) -> PyResult<GraphCore> {
    let heads: Vec<Option<NodeEntry>> =
        heads.iter().map(|head| head.as_ref().map(|head| head.single()).transpose()).collect::<PyResult<_>>()?;
    let single = |answer: Bound<'_, PyAny>| -> PyResult<NodeEntry> {
        answer.cast::<SymbolCore>().map_err(PyErr::from)?.get().single()
    };
    let symbol = |entry: NodeEntry| SymbolCore::of(vec![entry]);
    let add = aggregate.map(|function| {
        move |entries: Vec<NodeEntry>| -> Result<NodeEntry, RuleError> {
            let symbols: Vec<SymbolCore> = entries.into_iter().map(symbol).collect();
            function.call1((symbols,)).and_then(single).map_err(thrown)
        }
    });
    let again = mirror.map(|function| {
        move |node: &NodeRef| -> Result<bool, RuleError> {
            function.call1((PyNode(node.clone()),)).and_then(|answer| answer.is_truthy()).map_err(thrown)
        }
    });
    let note = hint.map(|function| {
        move |grad: NodeEntry, like: &NodeEntry| -> Result<NodeEntry, RuleError> {
            function.call1((symbol(grad), symbol(like.clone()))).and_then(single).map_err(thrown)
        }
    });
    let options = GradientOptions {
        aggregate: add.as_ref().map(|function| function as _),
        mirror: again.as_ref().map(|function| function as _),
        hint: note.as_ref().map(|function| function as _),
    };
    done(py, passes::gradient(ys.0.outputs(), xs.0.outputs(), &heads, &options))
}

/// Adds a pass: `body(graph) -> graph`.
#[pyfunction]
pub(crate) fn graph_register_pass(
    py: Python<'_>,
    name: &str,
    body: Py<PyAny>,
    change_graph: bool,
    requires: Vec<String>,
    provides: Vec<String>,
    op_attributes: Vec<String>,
) -> PyResult<()> {
    let body = move |graph: &weft_graph::Graph| {
        Python::attach(|py| -> PyResult<_> {
            let answer = body.call1(py, (GraphCore(graph.clone()),))?;
            Ok(answer.bind(py).cast::<GraphCore>().map_err(PyErr::from)?.get().0.clone())
        })
        .map_err(thrown)
    };
    let pass = Pass { name: name.into(), body: Arc::new(body), change_graph, requires, provides, op_attributes };
    Passes::global().register(pass).map_err(|error| errors::graph(py, error))
}

/// The names of all passes.
#[pyfunction]
pub(crate) fn graph_list_passes() -> Vec<String> {
    Passes::global().names().iter().map(ToString::to_string).collect()
}

/// Requirements and results of a pass, and the attributes that it wants of ops; whether it changes graphs.
#[pyfunction]
#[allow(clippy::type_complexity)] // the columns of a table
pub(crate) fn graph_find_pass(py: Python<'_>, name: &str) -> PyResult<(bool, Vec<String>, Vec<String>, Vec<String>)> {
    let pass = Passes::global().find(name).map_err(|error| errors::graph(py, error))?;
    Ok((pass.change_graph, pass.requires, pass.provides, pass.op_attributes))
}

/// Applies the pass of this name.
#[pyfunction]
pub(crate) fn graph_apply_pass(py: Python<'_>, graph: &GraphCore, name: &str) -> PyResult<GraphCore> {
    done(py, Passes::global().apply(&graph.0, name))
}
