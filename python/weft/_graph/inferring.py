"""Shapes and dtypes of a graph's entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import graph_infer_shape, graph_infer_type
from weft._graph.graphs import Graph, core_of
from weft._graph.passes import own_pass

if TYPE_CHECKING:
    from collections.abc import Mapping


@own_pass(
    "infer_shape",
    "InferShape",
    provides=["shape", "shape_num_unknown_nodes"],
    shapes="shape_inputs",
    attr_key="shape_attr_key",
)
def infer_shape(graph: Graph, shapes: Mapping[str, Any] | None = None, attr_key: str = "__shape__") -> Graph:
    """Return the graph with the shape of each entry (InferShape).

    Parameters
    ----------
    graph : Graph
        The graph.
    shapes : dict of str to tuple, optional
        Shapes of variables; None stands for a length that is not known.
    attr_key : str, default: "__shape__"
        The note on variables that has their shapes.

    Returns
    -------
    Graph
        With `shape`, a tuple or None for each entry, and `shape_num_unknown_nodes`.

    Raises
    ------
    ShapeError
        If shapes contradict each other; it names the node, the input and both shapes.
    """
    return Graph._of(graph_infer_shape(core_of(graph), dict(shapes or {}), attr_key))


@own_pass(
    "infer_type",
    "InferType",
    provides=["dtype", "dtype_num_unknown_nodes"],
    dtypes="dtype_inputs",
    attr_key="dtype_attr_key",
)
def infer_type(graph: Graph, dtypes: Mapping[str, Any] | None = None, attr_key: str = "__dtype__") -> Graph:
    """Return the graph with the dtype of each entry (InferType): float32 where nothing says otherwise.

    `dtype_num_unknown_nodes` counts the entries without one.

    Raises
    ------
    ShapeError
        If dtypes contradict each other.
    """
    return Graph._of(graph_infer_type(core_of(graph), dict(dtypes or {}), attr_key))
