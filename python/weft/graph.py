"""Graphs: the input and output of passes.

A `Graph` is the outputs of a symbol with attributes that passes leave on it. A pass is a function from graph to graph;
`register_pass` adds one's own.

>>> import weft
>>> x = weft.symbol.Variable("x")
>>> graph = weft.graph.infer_shape(weft.graph.Graph(x + 1), {"x": (2, 3)})
>>> graph.attrs["shape"]
[(2, 3), (2, 3)]
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._core import (
    GraphCore,
    IndexedGraph,
    Node,
    NodeEntry,
    graph_apply_pass,
    graph_correct_layout,
    graph_draw,
    graph_fold_constants,
    graph_infer_shape,
    graph_infer_type,
    graph_load_json,
    graph_place_device,
    graph_plan_memory,
    graph_print_ir,
    graph_save_json,
)
from weft._graph.constants import evaluate_constant
from weft._graph.differentiating import gradient
from weft._graph.graphs import Graph, core_of
from weft._graph.placing import device_names
from weft._graph.planning import external_of, plan_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "Graph",
    "IndexedGraph",
    "Node",
    "NodeEntry",
    "Pass",
    "apply_pass",
    "apply_passes",
    "correct_layout",
    "draw",
    "eliminate_common",
    "eliminate_dead",
    "eliminate_identity",
    "fold_constants",
    "functionalise",
    "fuse",
    "get_pass",
    "gradient",
    "infer_shape",
    "infer_type",
    "list_passes",
    "load_json",
    "order_mutation",
    "place_device",
    "plan_memory",
    "plan_offsets",
    "print_ir",
    "recompute",
    "register_pass",
    "save_json",
]


def load_json(text: str) -> Graph:
    """Return the graph that a text in NNVM's format describes (LoadJSON).

    Raises
    ------
    GraphError
        If the text is damaged; the message names the node.
    """
    return Graph._of(graph_load_json(text))


def save_json(graph: Graph) -> str:
    """Return the graph as a text in NNVM's format (SaveJSON)."""
    return graph_save_json(core_of(graph))


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


def infer_type(graph: Graph, dtypes: Mapping[str, Any] | None = None, attr_key: str = "__dtype__") -> Graph:
    """Return the graph with the dtype of each entry (InferType): float32 where nothing says otherwise.

    Raises
    ------
    ShapeError
        If dtypes contradict each other.
    """
    return Graph._of(graph_infer_type(core_of(graph), dict(dtypes or {}), attr_key))


def order_mutation(graph: Graph) -> Graph:
    """Return the graph with control dependencies that keep reads and mutations of a variable in order (OrderMutation).

    What reads a version comes before the call that mutates it, and after the one that made it.
    """
    return Graph._of(graph_apply_pass(core_of(graph), "order_mutation"))


def place_device(
    graph: Graph,
    group_key: str = "ctx_group",
    assign: Mapping[str, Any] | None = None,
    copy_op: str = "copy_to",
    default: Any = None,
) -> Graph:
    """Return the graph with nodes on the devices of their groups, and copies between (PlaceDevice).

    Parameters
    ----------
    graph : Graph
        The graph.
    group_key : str, default: "ctx_group"
        The note on nodes that has their group, with or without underscores.
    assign : dict of str to Device or str
        The device of each group.
    copy_op : str, default: "copy_to"
        The op that copies: it has an attribute `device`.
    default : Device or str, optional
        Where nodes go that belong to no group and take nothing that does.

    Returns
    -------
    Graph
        With `device`, a name or None for each node. Each value is copied once to each device that takes it.

    Raises
    ------
    GraphError
        If a group has no device.

    Examples
    --------
    >>> import weft
    >>> with weft.symbol.AttrScope(ctx_group="first"):
    ...     y = weft.symbol.exp(weft.symbol.Variable("x"), name="e")
    >>> with weft.symbol.AttrScope(ctx_group="second"):
    ...     z = weft.symbol.log(y, name="l")
    >>> graph = weft.graph.place_device(weft.graph.Graph(z), assign={"first": "cpu:0", "second": "cpu:1"})
    >>> [node.name for node in graph.indexed_graph().nodes], graph.attrs["device"]
    (['x', 'e', 'e_copy_0_cpu:1', 'l'], ['cpu:0', 'cpu:0', 'cpu:1', 'cpu:1'])
    """
    from weft._registry.op import get_op  # noqa: PLC0415 - which imports what this module imports
    from weft.errors import GraphError  # noqa: PLC0415 - for the mistaken

    names, where = device_names(assign or {}, default)
    try:
        copy = get_op(copy_op)._entry
    except KeyError:
        raise GraphError(f"no op is named {copy_op!r}, which is to copy: weft.ops.list_ops() names them all") from None
    return Graph._of(graph_place_device(core_of(graph), group_key, names, copy, where))


def place_groups(graph: GraphCore, device: Any, groups: Mapping[str, Any]) -> GraphCore:
    """Return what an executor runs where groups of nodes have devices of their own."""
    from weft._engine.labels import cpu  # noqa: PLC0415 - for executors

    return place_device(Graph._of(graph), assign=groups, default=cpu(0) if device is None else device)._core


def plan_memory(graph: Graph, memory: str = "min", external: str | Iterable[str] = ()) -> Graph:
    """Return the graph with a place in one arena for each intermediate and each output (PlanMemory).

    Parameters
    ----------
    graph : Graph
        A graph whose shapes and dtypes were inferred.
    memory : {"min", "balanced", "speed"}
        How much longer the critical path may become because values share memory: as it likes, a twentieth, not at all.
    external : "outputs" or list of str, optional
        Values that lie outside, besides arguments.

    Returns
    -------
    Graph
        With, for each entry, `storage_id` (-2 outside), `storage_offset` and `storage_inplace_index`; and with
        `storage_allocated_bytes`, the size of the arena, and `storage_peak_live_bytes`.

    Raises
    ------
    GraphError
        If shapes or dtypes are not known.

    Examples
    --------
    >>> import weft
    >>> y = weft.exp(weft.exp(weft.symbol.Variable("x", shape=(16,))))
    >>> graph = weft.graph.infer_type(weft.graph.infer_shape(weft.graph.Graph(y)))
    >>> weft.graph.plan_memory(graph).attrs["storage_allocated_bytes"]
    64
    """
    outputs, named = external_of(external)
    return Graph._of(graph_plan_memory(core_of(graph), memory, outputs, named))


def correct_layout(graph: Graph, layouts: Mapping[str, str] | None = None) -> Graph:
    """Return the graph with each op's inputs in the layout that it takes (CorrectLayout).

    Parameters
    ----------
    graph : Graph
        The graph.
    layouts : dict of str to str
        Layouts of variables, such as "NCHW".

    Returns
    -------
    Graph
        With `layout`, a text or None for each entry. Transforms are inserted, and taken out where two meet.
    """
    return Graph._of(graph_correct_layout(core_of(graph), dict(layouts or {})))


def eliminate_common(graph: Graph) -> Graph:
    """Return the graph with one call in the place of equal ones.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> len(weft.graph.eliminate_common(weft.graph.Graph(weft.exp(x) + weft.exp(x))).indexed_graph())
    3
    """
    return Graph._of(graph_apply_pass(core_of(graph), "eliminate_common"))


def eliminate_dead(graph: Graph) -> Graph:
    """Return the graph without calls of which nothing is used: those that only come before others."""
    return Graph._of(graph_apply_pass(core_of(graph), "eliminate_dead"))


def fold_constants(graph: Graph) -> Graph:
    """Return the graph with calls computed that rest on no variable, where results are small."""
    return Graph._of(graph_fold_constants(core_of(graph), evaluate_constant))


def print_ir(graph: Graph, entry_attrs: str | Sequence[str] = (), node_attrs: str | Sequence[str] = ()) -> str:
    """Return the graph as text, a line for each node, with these attributes of entries and of nodes (PrintGraphIR).

    A text is the name of one attribute.

    Examples
    --------
    >>> import weft
    >>> e = weft.symbol.exp(weft.symbol.Variable("x"), name="e")
    >>> print(weft.graph.print_ir(weft.graph.infer_shape(weft.graph.Graph(e), {"x": (2,)}), ["shape"]))
    Graph(%x) {
      %x, shape=(2,)
      %1 = exp(%x), shape=(2,)  # e
      ret %1
    }
    <BLANKLINE>
    """
    entries, nodes = ([names] if isinstance(names, str) else list(names) for names in (entry_attrs, node_attrs))
    return graph_print_ir(core_of(graph), entries, nodes)


def draw(graph: Graph, path: str | Path) -> None:
    """Write a picture of the graph: Graphviz' text to a file ``.dot``, SVG to ``.svg``.

    Raises
    ------
    ArgumentValueError
        If the file's name ends otherwise.
    """
    from weft.errors import ArgumentValueError  # noqa: PLC0415 - for the mistaken

    kind = Path(path).suffix
    if kind not in {".dot", ".svg"}:
        raise ArgumentValueError(f"a graph is drawn to a file .dot or .svg, not {str(path)!r}")
    Path(path).write_text(graph_draw(core_of(graph), kind == ".svg"), encoding="utf-8")


from weft._graph.own_passes import register_own as _register_own  # noqa: E402 - as above
from weft._graph.passes import (  # noqa: E402 - which makes graphs
    Pass,
    apply_pass,
    apply_passes,
    get_pass,
    list_passes,
    register_pass,
)
from weft._graph.recomputing import recompute  # noqa: E402 - as below
from weft._graph.rewriting import eliminate_identity, functionalise, fuse  # noqa: E402 - as above

_register_own()
