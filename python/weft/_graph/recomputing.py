"""Calls that are made again instead of kept, where the plan of memory gets smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import graph_recompute
from weft._graph.graphs import Graph, core_of, entries_of
from weft._graph.planning import external_of
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Iterable


def recompute(
    graph: Graph, forward: Any, memory_limit: int | None = None, memory: str = "min", external: str | Iterable[str] = ()
) -> Graph:
    """Return the graph with calls made again that `forward` rests on, instead of kept for later calls.

    Calls are copied only where the planned arena gets smaller; with a limit the cheapest set that was found to fit is
    taken. Copies have the names of their originals and ``_mirror``, and come after all that was computed meanwhile.
    Random draws and mutations are never repeated.

    Parameters
    ----------
    graph : Graph
        Forwards and backwards, with shapes and dtypes.
    forward : symbols, entries or names
        The results forwards.
    memory_limit : int, optional
        Bytes of the arena.
    memory, external
        As for `plan_memory`.

    Returns
    -------
    Graph
        With shapes and dtypes, to be planned by `plan_memory`, and as ``planned_order`` the nodes in their cheapest
        order; the same graph where nothing is gained.

    Raises
    ------
    PlanError
        If nothing was found that fits the limit; it names the bound.

    Examples
    --------
    >>> import weft
    >>> from weft import graph as g
    >>> y = weft.symbol.Variable("x", shape=(1000,))
    >>> for _ in range(30):
    ...     y = weft.sin(y)
    >>> both = weft.symbol.Group([y, y.gradient("x")])
    >>> plain = g.infer_type(g.infer_shape(g.Graph(both)))
    >>> small = g.recompute(plain, y)
    >>> sizes = [g.plan_memory(each).attrs["storage_allocated_bytes"] for each in (plain, small)]
    >>> sizes[1] < sizes[0] / 2
    True
    """
    if memory_limit is not None:
        if isinstance(memory_limit, bool) or not isinstance(memory_limit, int):
            raise ArgumentTypeError(f"memory_limit is a number of bytes, not {type(memory_limit).__name__}")
        if memory_limit < 0:
            raise ArgumentValueError(f"memory_limit is {memory_limit}; it is a number of bytes, at least 0")
    outputs, named = external_of(external)
    core = graph_recompute(
        core_of(graph), entries_of(graph, forward, "forward")._core, memory_limit, memory, outputs, named
    )
    return Graph._of(core)
