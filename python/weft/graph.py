"""Graphs: what passes take and make.

A `Graph` is the outputs of a symbol with attributes that passes leave on it. A pass is a function from graph to graph;
`register_pass` adds one's own.

Examples
--------
>>> import weft
>>> x = weft.symbol.Variable("x")
>>> graph = weft.graph.infer_shape(weft.graph.Graph(x + 1), {"x": (2, 3)})
>>> graph.attrs["shape"]
[(2, 3), (2, 3)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from weft._core import (
    GraphCore,
    IndexedGraph,
    Node,
    NodeEntry,
    graph_infer_shape,
    graph_infer_type,
    graph_load_json,
    graph_save_json,
)
from weft._graph.planning import plan_offsets
from weft._symbol.symbols import Symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Graph",
    "IndexedGraph",
    "Node",
    "NodeEntry",
    "infer_shape",
    "infer_type",
    "load_json",
    "plan_offsets",
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
        self._core = GraphCore(found._core)  # noqa: SLF001 - its own

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
