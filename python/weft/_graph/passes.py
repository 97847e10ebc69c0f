"""Passes by name: registered, found, applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from weft._core import graph_apply_pass, graph_find_pass, graph_list_passes, graph_register_pass
from weft._graph.graphs import Graph, core_of
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weft._core import GraphCore

Function = TypeVar("Function", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Pass:
    """A pass of the registry: its needs and its answers.

    Attributes
    ----------
    name : str
        Its name.
    change_graph : bool
        Whether it returns another graph, rather than the same one with more attributes.
    requires, provides : tuple of str
        Attributes of the graph.
    op_attributes : tuple of str
        Attributes that each op of the graph must have.
    """

    name: str
    change_graph: bool
    requires: tuple[str, ...]
    provides: tuple[str, ...]
    op_attributes: tuple[str, ...]

    def __call__(self, graph: Graph) -> Graph:
        """Apply the pass."""
        return apply_pass(graph, self.name)


def register_pass(
    name: str,
    *,
    change_graph: bool = False,
    requires: str | Sequence[str] = (),
    provides: str | Sequence[str] = (),
    op_attributes: str | Sequence[str] = (),
) -> Callable[[Callable[[Graph], Graph]], Callable[[Graph], Graph]]:
    """Register the decorated function, from graph to graph, as a pass.

    Parameters
    ----------
    name : str
        The pass's name.
    change_graph : bool, default: False
        Whether it returns another graph, rather than the same one with more attributes.
    requires, provides : str or sequence of str
        Attributes of the graph that must be there and of the right kind, and that it leaves.
    op_attributes : str or sequence of str
        Attributes that each op of the graph must have.

    Raises
    ------
    GraphError
        If the name is taken.

    Examples
    --------
    >>> import weft
    >>> @weft.graph.register_pass("doctest_count", provides=["calls"])
    ... def count(graph):
    ...     graph.attrs["calls"] = sum(not node.is_variable for node in graph.indexed_graph().nodes)
    ...     return graph
    >>> weft.graph.apply_pass(weft.graph.Graph(weft.symbol.Variable("x") + 1), "doctest_count").attrs["calls"]
    1
    """

    def register(function: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
        def body(core: GraphCore) -> GraphCore:
            result = function(Graph._of(core))
            if not isinstance(result, Graph):
                raise ArgumentTypeError(f"a pass returns a graph, and {name!r} has returned {type(result).__name__}")
            return result._core

        graph_register_pass(name, body, change_graph, _texts(requires), _texts(provides), _texts(op_attributes))
        return function

    return register


def own_pass(
    *names: str,
    change_graph: bool = False,
    requires: Sequence[str] = (),
    provides: Sequence[str] = (),
    **parameters: str,
) -> Callable[[Function], Function]:
    """Register a function of a graph with parameters as a pass of weft's, under its names here and in NNVM.

    The pass reads each of `parameters` from the attribute of the graph that is given for it, as NNVM's do, where it is there.
    These are Python's objects: so such a pass is registered here, and one that takes nothing but a graph in the core.

    Examples
    --------
    >>> import weft
    >>> weft.graph.get_pass("Gradient").requires
    ('grad_ys', 'grad_xs')
    """

    def register(function: Function) -> Function:
        call: Callable[..., Graph] = function

        def read(graph: Graph) -> Graph:
            known = graph.attrs
            return call(graph, **{name: known[key] for name, key in parameters.items() if key in known})

        for name in names:
            if name not in graph_list_passes():  # the core keeps them where a module is imported again
                register_pass(name, change_graph=change_graph, requires=requires, provides=provides)(read)
        return function

    return register


def _texts(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def get_pass(name: str) -> Pass:
    """Return the pass of a name.

    Raises
    ------
    GraphError
        If there is none.

    Examples
    --------
    >>> import weft
    >>> weft.graph.get_pass("PlanMemory").requires
    ('shape', 'dtype')
    """
    change, requires, provides, keys = graph_find_pass(name)
    return Pass(name, change, tuple(requires), tuple(provides), tuple(keys))


def list_passes() -> tuple[str, ...]:
    """Return the names of all passes, sorted.

    Examples
    --------
    >>> import weft
    >>> "infer_shape" in weft.graph.list_passes()
    True
    """
    return tuple(graph_list_passes())


def apply_pass(graph: Graph, name: str) -> Graph:
    """Apply the pass of a name.

    Raises
    ------
    GraphError
        If the graph lacks an attribute that the pass requires, or has one of another kind; the message names the pass that provides it.

    Examples
    --------
    >>> import weft
    >>> weft.graph.apply_pass(weft.graph.Graph(weft.symbol.Variable("x") + 1), "plan_memory")
    Traceback (most recent call last):
    ...
    weft.errors.GraphError: pass 'plan_memory' requires the attribute 'shape' of the graph, which is not there: ...
    """
    return Graph._of(graph_apply_pass(core_of(graph), name))


def apply_passes(graph: Graph, names: str | Iterable[str]) -> Graph:
    """Apply passes one after the other; a text is the name of one.

    Examples
    --------
    >>> import weft
    >>> graph = weft.graph.Graph(weft.exp(weft.symbol.Variable("x", shape=(4,))))
    >>> weft.graph.apply_passes(graph, ["InferShape", "InferType", "PlanMemory"]).attrs["storage_allocated_bytes"]
    16
    """
    for name in _texts(names):
        graph = apply_pass(graph, name)
    return graph
