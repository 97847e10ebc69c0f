"""Graphs: what passes take and make.

A `Graph` is the outputs of a symbol with attributes that passes leave on it. A pass is a function from graph to graph;
`register_pass` adds one's own.

>>> import weft
>>> x = weft.symbol.Variable("x")
>>> graph = weft.graph.infer_shape(weft.graph.Graph(x + 1), {"x": (2, 3)})
>>> graph.attrs["shape"]
[(2, 3), (2, 3)]
"""

# ruff: noqa: SLF001 - graphs look into graphs and symbols

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from weft._core import (
    GraphCore,
    IndexedGraph,
    Node,
    NodeEntry,
    SymbolCore,
    graph_correct_layout,
    graph_draw,
    graph_eliminate_common,
    graph_eliminate_dead,
    graph_fold_constants,
    graph_gradient,
    graph_infer_shape,
    graph_infer_type,
    graph_load_json,
    graph_order_mutation,
    graph_place_device,
    graph_plan_memory,
    graph_print_ir,
    graph_save_json,
)
from weft._graph.constants import evaluate_constant
from weft._graph.placing import device_names
from weft._graph.planning import plan_offsets
from weft._symbol.symbols import Symbol

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


class _Attributes(MutableMapping[str, Any]):
    """The attributes of a graph, by name."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pass left
        if name not in self._graph._core.names():
            raise KeyError(name)
        return self._graph._core.attribute(name)

    def __setitem__(self, name: str, value: Any) -> None:  # noqa: ANN401 - as above
        self._graph._core = self._graph._core.with_attribute(name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self._graph._core.names():
            raise KeyError(name)
        self._graph._core = self._graph._core.with_attribute(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph._core.names())

    def __len__(self) -> int:
        return len(self._graph._core.names())

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: ...' for name in self)}}}"


class Graph:
    """The outputs of a symbol, with attributes.

    Parameters
    ----------
    symbol : Symbol or sequence of NodeEntry
        What is to be computed.

    Attributes
    ----------
    outputs : list of NodeEntry
        What is to be computed; it never changes.
    attrs : mapping of str to object
        What passes have found out. A copy of the graph shares them until one of both is given another.

    Examples
    --------
    >>> import weft
    >>> graph = weft.graph.Graph(weft.symbol.Variable("x") + 1)
    >>> graph.attrs["answer"] = 42
    >>> graph.copy().attrs["answer"]
    42
    """

    __slots__ = ("_core",)

    def __init__(self, symbol: Symbol | Sequence[NodeEntry]) -> None:
        found = symbol if isinstance(symbol, Symbol) else Symbol.of_entries(list(symbol))
        self._core = GraphCore(found._core)

    @classmethod
    def _of(cls, core: GraphCore) -> Graph:
        graph = cls.__new__(cls)
        graph._core = core
        return graph

    @property
    def outputs(self) -> list[NodeEntry]:
        """What is to be computed."""
        return self._core.symbol().entries()

    @property
    def symbol(self) -> Symbol:
        """The outputs as a symbol."""
        return Symbol(self._core.symbol())

    @property
    def attrs(self) -> MutableMapping[str, Any]:
        """What passes have found out, by name."""
        return _Attributes(self)

    def indexed_graph(self) -> IndexedGraph:
        """Return the graph in numbers."""
        return self._core.indexed()

    def copy(self) -> Graph:
        """Return a graph of the same outputs and attributes."""
        return Graph._of(self._core)

    __copy__ = copy

    def _repr_html_(self) -> str:
        """Return the graph's drawing, for a notebook."""
        from weft._trace.markup import pictured  # noqa: PLC0415 - for notebooks

        return pictured("", graph_draw(self._core, True))

    def __repr__(self) -> str:
        """Return the names of outputs and attributes."""
        return f"<Graph of {', '.join(self.symbol.list_outputs())} with {', '.join(self.attrs) or 'no attributes'}>"


def _core_of(graph: Any) -> GraphCore:  # noqa: ANN401 - a graph or a symbol
    if isinstance(graph, Graph):
        return graph._core
    if isinstance(graph, Symbol):
        return graph.graph
    raise TypeError(f"a pass takes a weft.graph.Graph, and {type(graph).__name__} was given")


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
    return graph_save_json(_core_of(graph))


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
    return Graph._of(graph_infer_shape(_core_of(graph), dict(shapes or {}), attr_key))


def infer_type(graph: Graph, dtypes: Mapping[str, Any] | None = None, attr_key: str = "__dtype__") -> Graph:
    """Return the graph with the dtype of each entry (InferType): float32 where nothing says otherwise.

    Raises
    ------
    ShapeError
        If dtypes contradict each other.
    """
    return Graph._of(graph_infer_type(_core_of(graph), dict(dtypes or {}), attr_key))


def order_mutation(graph: Graph) -> Graph:
    """Return the graph with control dependencies that keep reads and mutations of a variable in order (OrderMutation).

    What reads a version comes before the call that mutates it, and after the one that made it.
    """
    return Graph._of(graph_order_mutation(_core_of(graph)))


def place_device(
    graph: Graph,
    group_key: str = "ctx_group",
    assign: Mapping[str, Any] | None = None,
    copy_op: str = "copy_to",
    default: Any = None,  # noqa: ANN401 - a device
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
    from weft.ops import get_op  # noqa: PLC0415 - which imports what this module imports

    names, where = device_names(assign or {}, default)
    return Graph._of(graph_place_device(_core_of(graph), group_key, names, get_op(copy_op)._entry, where))


def place_groups(graph: GraphCore, device: Any, groups: Mapping[str, Any]) -> GraphCore:  # noqa: ANN401 - a device
    """Return what an executor runs where groups of nodes have devices of their own."""
    from weft._device import cpu  # noqa: PLC0415 - for executors

    return place_device(Graph._of(graph), assign=groups, default=cpu(0) if device is None else device)._core


def _entries(graph: Graph | None, given: Any, what: str) -> Symbol:  # noqa: ANN401 - names, symbols or entries
    """Return what stands for entries of a graph as one symbol."""
    if isinstance(given, Symbol):
        return given
    if isinstance(given, (NodeEntry, str)):
        given = [given]
    found: list[NodeEntry] = []
    for each in given:
        if isinstance(each, NodeEntry):
            found.append(each)
        elif isinstance(each, Symbol):
            found.extend(each.entries)
        elif isinstance(each, str) and graph is not None:
            found.extend(graph.symbol.get_internals()[each].entries)
        else:
            raise TypeError(f"{what} are symbols, entries of nodes or names, and {type(each).__name__} was given")
    return Symbol.of_entries(found)


def gradient(
    graph: Graph | None,
    ys: Any,  # noqa: ANN401 - symbols, entries or names
    xs: Any,  # noqa: ANN401 - as above
    ys_out_grad: Any = None,  # noqa: ANN401 - as above
    aggregate: Callable[[list[Symbol]], Symbol] | None = None,
    mirror: Callable[[Node], bool] | bool | None = None,  # noqa: FBT001 - True is one of its values
    hint: Callable[[Symbol, Symbol], Symbol] | None = None,
    memory_limit: int | None = None,
) -> Graph:
    """Return a graph of the gradients of `ys`, one output for each of `xs` (Gradient).

    Parameters
    ----------
    graph : Graph
        The graph in which names are looked up.
    ys, xs : symbols, entries or names
        What is differentiated, and with respect to what. What comes twice among `ys` counts twice.
    ys_out_grad : list of Symbol or None, optional
        The gradients of `ys`; None stands for ones.
    aggregate : callable, optional
        ``(symbols) -> symbol`` adds the gradients of a value up that several calls take.
    mirror : callable or bool, optional
        ``(node) -> bool`` says which calls are made again for their gradient, instead of kept. True lets the planner
        choose, as `recompute` does: for that shapes must be known, from `graph` or from the variables.
    hint : callable, optional
        ``(gradient, of) -> gradient`` may put something around each gradient.
    memory_limit : int, optional
        Bytes that the plan of the graph may have, without its outputs: the cheapest calls that were found are made again
        for it to fit.

    Raises
    ------
    GradientError
        If an op on the way has no gradient.
    PlanError
        If nothing was found that fits the limit; it names the bound.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> y = weft.symbol.copy_to(x, device="cpu:0")
    >>> weft.graph.gradient(None, weft.symbol.Group([y, y]), x).symbol.eval(x=[2.0])
    [NDArray([2.])]
    """
    symbol_ys, symbol_xs = _entries(graph, ys, "ys"), _entries(graph, xs, "xs")
    heads: list[Any] = []
    if ys_out_grad is not None:
        given = [ys_out_grad] if isinstance(ys_out_grad, (Symbol, NodeEntry)) else list(ys_out_grad)
        heads = [None if each is None else _entries(graph, each, "gradients")._core for each in given]
    add: Callable[[list[SymbolCore]], SymbolCore] | None = (
        None if aggregate is None else lambda cores: aggregate([Symbol(core) for core in cores])._core
    )
    note: Callable[[SymbolCore, SymbolCore], SymbolCore] | None = (
        None if hint is None else lambda grad, of: hint(Symbol(grad), Symbol(of))._core
    )
    chosen = mirror if callable(mirror) else None
    found = Graph._of(graph_gradient(symbol_ys._core, symbol_xs._core, heads, add, chosen, note))
    if mirror is not True and memory_limit is None:
        return found
    return recompute(with_known(graph, found), symbol_ys, memory_limit=memory_limit, external="outputs")


def with_known(known: Graph | None, graph: Graph) -> Graph:
    """Return a graph with shapes and dtypes, without calls that they make needless: from those that `known` has of variables, and from what variables note."""
    found: dict[str, dict[str, Any]] = {"shape": {}, "dtype": {}}
    if known is not None:
        indexed = known.indexed_graph()
        there = {node.name for node in graph._core.symbol().inputs("all")}
        for key, values in found.items():
            for at in indexed.input_nodes if key in known.attrs else ():
                name = indexed.nodes[at].name
                if name in there:
                    values[name] = known.attrs[key][indexed.entry_id(at)]
    return eliminate_identity(infer_type(infer_shape(graph, found["shape"]), found["dtype"]))


def gradient_symbol(symbol: Symbol, names: Sequence[str], heads: Sequence[Symbol] | None) -> Symbol:
    """Return the gradients of a symbol's outputs with respect to variables of these names."""
    from weft.errors import GraphError  # noqa: PLC0415 - for the mistaken

    known = {node.name: node.outputs[0] for node in symbol._core.inputs("all")}
    missing = [name for name in names if name not in known]
    if missing:
        raise GraphError(f"no variable is named {', '.join(missing)}: there are {', '.join(known)}")
    return gradient(None, symbol, [known[name] for name in names], heads).symbol


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
    outputs, named = _external(external)
    return Graph._of(graph_plan_memory(_core_of(graph), memory, outputs, named))


def _external(given: str | Iterable[str]) -> tuple[bool, list[str]]:
    """Return whether outputs are outside, and the names of what is besides."""
    outputs = isinstance(given, str) and given == "outputs"
    return outputs, [] if outputs else [given] if isinstance(given, str) else list(given)


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
    return Graph._of(graph_correct_layout(_core_of(graph), dict(layouts or {})))


def eliminate_common(graph: Graph) -> Graph:
    """Return the graph with one call in the place of equal ones.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> len(weft.graph.eliminate_common(weft.graph.Graph(weft.exp(x) + weft.exp(x))).indexed_graph())
    3
    """
    return Graph._of(graph_eliminate_common(_core_of(graph)))


def eliminate_dead(graph: Graph) -> Graph:
    """Return the graph without calls of which nothing is used: those that only come before others."""
    return Graph._of(graph_eliminate_dead(_core_of(graph)))


def fold_constants(graph: Graph) -> Graph:
    """Return the graph with calls computed that rest on no variable, where results are small."""
    return Graph._of(graph_fold_constants(_core_of(graph), evaluate_constant))


def print_ir(graph: Graph, entry_attrs: Sequence[str] = (), node_attrs: Sequence[str] = ()) -> str:
    """Return the graph as text, a line for each node, with these attributes of entries and of nodes (PrintGraphIR).

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
    return graph_print_ir(_core_of(graph), list(entry_attrs), list(node_attrs))


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
    Path(path).write_text(graph_draw(_core_of(graph), kind == ".svg"), encoding="utf-8")


from weft._graph.own_passes import register_own as _register_own  # noqa: E402 - as above
from weft._graph.recomputing import recompute  # noqa: E402 - as below
from weft._graph.registered import (  # noqa: E402 - which makes graphs
    Pass,
    apply_pass,
    apply_passes,
    get_pass,
    list_passes,
    register_pass,
)
from weft._graph.rewriting import eliminate_identity, functionalise, fuse  # noqa: E402 - as above

_register_own()
