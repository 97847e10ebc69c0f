"""Gradients of calls, for rules that need facts that symbols lack: one node, the tape's own gradient, computed later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import Input
from weft._graph.composite import Composite, make_node, register
from weft._graph.evaluation import prepared
from weft._graph.naming import next_name
from weft._ops.unbroadcast import zeros_of
from weft._registry.avals import Aval
from weft._registry.op import Op, get_op
from weft._registry.symbol_hook import UnknownFactError
from weft._tape.transforms import vjp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray
    from weft._graph.symbols import Symbol
    from weft._registry.avals import Aval

_INPUT = Input()


def pull_later(
    op: Op, attributes: dict[str, Any], inputs: Sequence[Symbol], grads: Sequence[Symbol | None]
) -> list[Symbol]:
    """Return the gradients of the inputs of a call, given those of its results; None stands for zeros.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> gradient = weft.swapaxes(x, 0, 1).gradient("x")
    >>> gradient.get_node().op.name, gradient.eval(x=[[1.0, 2.0]])
    ('pullback', [NDArray([[1., 1.]])])
    """
    heads = tuple(None if each is None else _INPUT for each in grads)
    said = {"op": op.name, "attributes": tuple(attributes.items()), "heads": heads, "count": len(inputs)}
    name, texts = next_name("pullback")
    return make_node(_op, name, said, [*inputs, *(each for each in grads if each is not None)], texts)


def _run(*arrays: NDArray, op: str, attributes: Any, heads: Any, count: int) -> tuple[Any, ...]:
    kind = prepared(get_op(op), dict(attributes), is_mutated=False)
    wanted = [at for at, each in enumerate(heads) if each is not None]
    moving = [at for at in range(count) if arrays[at].dtype.kind in "fc"]

    def call(*moved: NDArray) -> tuple[Any, ...]:
        values: list[Any] = list(arrays[:count])
        for at, array in zip(moving, moved, strict=True):
            values[at] = array
        found = kind.make(tuple(range(count)), values)
        several: tuple[Any, ...] = found  # if it is several
        return tuple(several[at] for at in wanted) if isinstance(found, tuple) else (found,)

    result: list[Any] = [None] * count
    if moving:
        _, back = vjp(call, *(arrays[at] for at in moving))
        for at, grad in zip(moving, back(tuple(arrays[count:])), strict=True):
            result[at] = grad
    return tuple(zeros_of(array) if grad is None else grad for grad, array in zip(result, arrays, strict=False))


def _like_inputs(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Gradients have the shapes, and the dtypes, of their values."""
    count = attributes["count"]
    both = [ours if ours is not None else theirs for ours, theirs in zip(ins[:count], outs, strict=True)]
    return [*both, *ins[count:]], list(both)


def _infer(*avals: Aval, op: str, attributes: Any, heads: Any, count: int) -> tuple[Aval, ...]:
    del op, attributes, heads
    return avals[:count]


def _count_inputs(attributes: dict[str, Any]) -> int:
    count: int = attributes["count"]
    return count + sum(each is not None for each in attributes["heads"])


def _count_results(attributes: dict[str, Any]) -> int:
    count: int = attributes["count"]
    return count


def _later(node: Any, grads: Any) -> Any:
    del grads
    raise UnknownFactError(f"a gradient of {node.attributes['op']!r} is differentiated where arrays are there")


_op: Composite = register(
    "pullback",
    _run,
    _infer,
    num_inputs=_count_inputs,
    num_outputs=_count_results,
    infer_shape=_like_inputs,
    infer_type=_like_inputs,
    gradient=_later,
    attribute_names=("op", "attributes", "heads", "count"),
)
