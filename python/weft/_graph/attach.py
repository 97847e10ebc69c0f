"""Hooks of earlier rooms, and the functions behind methods of symbols, which this room gives. Done once, with `weft.symbol`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import set_composer
from weft._graph import later, pullback as _pullback  # noqa: F401 # pyright: ignore[reportUnusedImport] # it registers an op
from weft._graph.composing import compose
from weft._graph.control import branched, scanned
from weft._graph.deferred import defer
from weft._graph.differentiating import gradient_symbol
from weft._graph.evaluation import evaluate
from weft._graph.indexing import indexed
from weft._graph.own_operators import applied
from weft._graph.training import NEVER_AGAIN, Again
from weft._registry import hooks
from weft._registry.symbol_hook import Symbolic

if TYPE_CHECKING:
    from weft._graph.executor import Executor
    from weft._graph.graphs import Graph
    from weft._graph.symbols import Symbol


def attach() -> None:
    """Give the functions."""
    hooks.compose.set(compose)
    set_composer(Symbolic, compose)
    hooks.defer.set(defer)
    hooks.index.set(indexed)
    hooks.scan_symbols.set(scanned)
    hooks.cond_symbols.set(branched)
    hooks.apply_operator.set(applied)
    hooks.graph_of_program.set(_graph_of_program)
    later.gradient_symbol.set(gradient_symbol)
    later.evaluate.set(evaluate)
    later.indexed.set(_indexed)
    later.bind.set(_bind)
    later.simple_bind.set(_simple_bind)
    later.summarize.set(_summarize)
    later.described.set(_described)


def _graph_of_program(*program: Any) -> Graph:
    from weft._graph.programs import graph_of  # noqa: PLC0415 - only graphs of programs need it

    return graph_of(*program)


def _indexed(x: Symbol, key: Any) -> Symbol:
    from weft._graph.indexing import indexed  # noqa: PLC0415 - only indexed symbols need it

    return indexed(x, key)


def _bind(x: Symbol, given: Any, device: Any, arrays: Any, groups: Any, mirror: Any, limit: int | None) -> Executor:
    from weft._graph.binding import bind, by_position  # noqa: PLC0415 - only executors need it

    again = Again(mirror, limit) if mirror or limit is not None else NEVER_AGAIN
    device, (args, args_grad, grad_req, aux_states) = by_position(given, device, *arrays)
    return bind(x, args, args_grad, grad_req, aux_states, device, groups, again)


def _simple_bind(
    x: Symbol, device: Any, grad_req: Any, dtypes: Any, groups: Any, shapes: Any, how: tuple[bool, int | None]
) -> Executor:
    from weft._graph.binding import simple_bind  # noqa: PLC0415 - only executors need it

    return simple_bind(x, device, grad_req, dtypes, groups, shapes, Again(*how))


def _summarize(x: Symbol, known: Any) -> str:
    from weft._graph.symbol_summary import summarize  # noqa: PLC0415 - only graphs of programs need it

    return summarize(x, known)


def _described(x: Symbol) -> str:
    from weft._graph.symbol_summary import described  # noqa: PLC0415 - for debugging alone

    return described(x)
