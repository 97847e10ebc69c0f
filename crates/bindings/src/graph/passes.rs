//! Passes as functions.

use super::graphs::GraphCore;
use super::values::{dtype_from_python, shape_from_python};
use crate::errors;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use weft_graph::{GraphError, json, passes};

fn done(py: Python<'_>, result: Result<weft_graph::Graph, GraphError>) -> PyResult<GraphCore> {
    result.map(GraphCore).map_err(|error| errors::graph(py, error))
}

/// Reads a graph from JSON.
#[pyfunction]
pub(crate) fn graph_load_json(py: Python<'_>, text: &str) -> PyResult<GraphCore> {
    done(py, json::load(text, json::LoadOptions::default()))
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
        shapes.insert(name.extract::<String>()?.into(), shape_from_python(&shape)?);
    }
    done(py, passes::infer_shape(&graph.0, &shapes, key))
}

/// Finds dtypes from those of variables.
#[pyfunction]
pub(crate) fn graph_infer_type(
    py: Python<'_>,
    graph: &GraphCore,
    known: &Bound<'_, PyDict>,
    key: &str,
) -> PyResult<GraphCore> {
    let mut dtypes = HashMap::new();
    for (name, dtype) in known {
        dtypes.insert(name.extract::<String>()?.into(), dtype_from_python(&dtype)?);
    }
    done(py, passes::infer_type(&graph.0, &dtypes, key))
}
