"""`weft.graph.Graph`: outputs, and the results of passes on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any

from weft._core import GraphCore, IndexedGraph, NodeEntry, graph_draw
from weft._graph.symbols import Symbol
from weft.errors import ArgumentTypeError


class _Attributes(MutableMapping[str, Any]):
    """The attributes of a graph, by name."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getitem__(self, name: str) -> Any:
        if name not in self._graph._core.names():
            raise KeyError(name)
        return self._graph._core.attribute(name)

    def __setitem__(self, name: str, value: Any) -> None:
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
        The results.

    Attributes
    ----------
    outputs : list of NodeEntry
        The results; they never change.
    attrs : mapping of str to object
        The findings of passes. A copy of the graph shares them until one of both is given another.

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
        if not isinstance(symbol, Symbol | Iterable):
            raise ArgumentTypeError(
                f"a graph is made of a symbol, or of entries of nodes, not of {type(symbol).__name__}"
            )
        found = symbol if isinstance(symbol, Symbol) else Symbol.of_entries(list(symbol))
        self._core = GraphCore(found._core)

    @classmethod
    def _of(cls, core: GraphCore) -> Graph:
        graph = cls.__new__(cls)
        graph._core = core
        return graph

    @property
    def outputs(self) -> list[NodeEntry]:
        """The entries to compute."""
        return self._core.symbol().entries()

    @property
    def symbol(self) -> Symbol:
        """The outputs as a symbol."""
        return Symbol(self._core.symbol())

    @property
    def attrs(self) -> MutableMapping[str, Any]:
        """The findings of passes, by name."""
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


def core_of(graph: Any) -> GraphCore:
    """Return the core's graph of a graph, or of a symbol's outputs.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.graphs import core_of
    >>> len(core_of(weft.symbol.Variable("x")).indexed())
    1
    """
    if isinstance(graph, Graph):
        return graph._core
    if isinstance(graph, Symbol):
        return graph.graph
    raise ArgumentTypeError(f"a pass takes a weft.graph.Graph, and {type(graph).__name__} was given")


def entries_of(graph: Graph | None, given: Any, what: str) -> Symbol:
    """Return entries of a graph, in any spelling, as one symbol.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.graphs import entries_of
    >>> entries_of(weft.graph.Graph(weft.symbol.Variable("x") + 1), "x", "xs")
    <Symbol x>
    """
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
            raise ArgumentTypeError(
                f"{what} are symbols, entries of nodes or names, and {type(each).__name__} was given"
            )
    return Symbol.of_entries(found)
