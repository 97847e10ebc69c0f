"""The training graph of an executor: forwards and backwards as one graph, as small as shapes allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft._graph.graphs import Graph
from weft._graph.inferring import infer_shape, infer_type
from weft._graph.recomputing import recompute
from weft._graph.rewriting import eliminate_identity
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft._core import GraphCore, NDArray
    from weft._graph.symbols import Symbol


@dataclass(frozen=True, slots=True)
class Again:
    """The results that may be computed again instead of kept.

    Parameters
    ----------
    mirror : bool
        All that make the plan smaller.
    limit : int or None
        As few as make it fit so many bytes.
    """

    mirror: bool
    limit: int | None

    @property
    def wanted(self) -> bool:
        """Whether anything is asked for."""
        return self.mirror or self.limit is not None


NEVER_AGAIN = Again(mirror=False, limit=None)


@dataclass(frozen=True, slots=True)
class Trained:
    """A graph of forwards and backwards; with shapes and dtypes of its entries where they are known."""

    graph: GraphCore
    sizes: tuple[list[Any], list[Any]] | None


def trained_graph(
    symbol: Symbol, both: Symbol, arrays: Mapping[str, NDArray], heads: Sequence[str], again: Again
) -> Trained:
    """Return forwards and backwards without calls that shapes make needless, some of it computed again.

    Parameters
    ----------
    symbol, both : Symbol
        Forwards; and forwards and backwards.
    arrays : dict of str to NDArray
        Arguments and states.
    heads : sequence of str
        The variables that stand for the gradients of the outputs.
    again : Again
        The results that may be computed again.

    Raises
    ------
    ShapeError
        If something is to be computed again, and shapes do not follow from the arrays.
    PlanError
        If nothing was found that fits the limit.
    """
    shapes = {name: x.shape for name, x in arrays.items()}
    dtypes = {name: x.dtype for name, x in arrays.items()}
    own = set(symbol.list_inputs())
    made = (
        symbol._shapes(**{name: each for name, each in shapes.items() if name in own})[1],
        symbol.infer_type(**{name: each for name, each in dtypes.items() if name in own})[1],
    )
    shapes.update(zip(heads, made[0], strict=True))
    dtypes.update(zip(heads, made[1], strict=True))
    there = set(both.list_inputs())
    graph = infer_shape(Graph(both), {name: each for name, each in shapes.items() if name in there})
    graph = infer_type(graph, {name: each for name, each in dtypes.items() if name in there})
    if graph.attrs["shape_num_unknown_nodes"]:
        if again.wanted:
            raise ShapeError("calls to compute again are chosen by size, and shapes do not follow from the arguments")
        return Trained(graph._core, None)
    graph = eliminate_identity(graph)
    if again.wanted:
        outside = both.list_outputs()[len(symbol) :]
        graph = recompute(graph, symbol, memory_limit=again.limit, external=outside)
    return Trained(graph._core, (graph.attrs["shape"], graph.attrs["dtype"]))
