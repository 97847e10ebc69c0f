"""How ops are computed that passes make of others: ``functional``, and ``fused``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, cast

from weft._core import graph_describe_derived, graph_load_json
from weft._graph.evaluation import Schedule
from weft._registry.op import get_op, register_op
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft._core import NDArray


@lru_cache(maxsize=256)
def schedule_of(subgraph: str) -> Schedule:
    """Return the calls of a subgraph in turn.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.composite_ops import schedule_of
    >>> schedule_of(weft.exp(weft.symbol.Variable("x0")).tojson()).variables
    {'x0': 0}
    """
    return Schedule(graph_load_json(subgraph))


def _show_fused(*operands: NDArray, subgraph: str) -> NDArray:
    """Make the calls of the subgraph one by one, as they were made before."""
    schedule = schedule_of(subgraph)
    values = schedule.values({f"x{at}": each for at, each in enumerate(operands)})
    schedule.run(values)
    found: NDArray = values[schedule.outputs[0]]
    return found


def _refuse(*_operands: object, **attributes: object) -> NoReturn:
    made_of = attributes.get("functional_of")
    instead = "eval() or bind() runs them" if made_of is None else f"call {made_of!r} itself"
    raise GraphError(f"'fused' and 'functional' stand in graphs that passes of weft.graph have made: {instead}")


def _show_functional(*operands: Any, functional_of: str, **attributes: Any) -> tuple[NDArray, ...]:
    """Call the op on copies of the inputs that it mutates, and return these, too."""
    op: Any = get_op(functional_of)
    mutates = op.attribute("mutates", op.mutates)
    changed = tuple(cast("Iterable[int]", mutates(attributes) if callable(mutates) else mutates))
    # An array that is given twice is one inside the op: where it is mutated in one place the other sees it.
    copies = {id(operands[at]): operands[at].copy() for at in changed}
    given = [copies.get(id(each), each) for each in operands]
    results: NDArray | tuple[NDArray, ...] = op(*given, **attributes)
    return (*(results if isinstance(results, tuple) else (results,)), *(given[at] for at in changed))


for _name, _show in (("fused", _show_fused), ("functional", _show_functional)):
    _op = register_op(_name, infer=_refuse)(_refuse)
    graph_describe_derived(_op._entry)
    _op.set_attribute("view", _show)
