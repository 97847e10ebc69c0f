"""A user's operator over symbols: the nodes that `forward` composes, behind one with `backward` as its gradient."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from weft._core import tape_hears
from weft._graph.composite import Composite, make_node, register
from weft._graph.naming import next_name
from weft._graph.symbols import Symbol
from weft._registry.symbol_hook import is_symbol
from weft._tape.pytree import several
from weft.errors import GradientError, GraphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray
    from weft._registry.avals import Aval
    from weft._tape.user_operators import Operator


class Applied:
    """An operator of the user's as an attribute of a node: equal to nothing but itself."""

    __slots__ = ("fresh", "kept", "operands", "operator", "results")

    def __init__(self, operator: Operator, fresh: Operator, operands: tuple[Any, ...], results: int) -> None:
        self.operator = operator
        self.fresh = fresh
        self.operands = operands
        self.kept = len(operator._kept)
        self.results = results

    @property
    def name(self) -> str:
        """The name of the operator's class."""
        return type(self.operator).__name__

    @property
    def places(self) -> tuple[int, ...]:
        """Which operands are symbols."""
        return tuple(at for at, x in enumerate(self.operands) if x is None)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def applied(operator: Operator, arrays: tuple[Any, ...]) -> Any:
    """Return the symbols of an operator's results.

    Examples
    --------
    >>> import weft
    >>> class Straight(weft.autograd.Operator):
    ...     def forward(self, x):
    ...         return weft.sign(x)
    ...
    ...     def backward(self, dy):
    ...         return dy
    >>> y = Straight()(weft.symbol.Variable("x"))
    >>> y.eval(x=weft.full(2, 3.0)), y.gradient(["x"]).eval(x=weft.full(2, 3.0))
    ([NDArray([1., 1.])], [NDArray([1., 1.])])
    """
    for x in arrays:
        if not is_symbol(x) and not isinstance(x, bool | int | float | complex):
            raise GraphError(
                f"{type(operator).__name__}() has a symbol and {type(x).__name__} among its operands: let a variable stand "
                "for the array, and give the array to eval() or bind()"
            )
    fresh = copy.copy(operator)
    answer = operator.forward(*arrays)
    results = several(answer)
    for result in results:
        if not isinstance(result, Symbol):
            raise GradientError(
                f"{type(operator).__name__}.forward() of symbols returned {type(result).__name__}, not a symbol"
            )
    call = Applied(operator, fresh, tuple(None if is_symbol(x) else x for x in arrays), len(results))
    name, texts = next_name(call.name.lower())
    inputs = [x for x in arrays if is_symbol(x)]
    made = make_node(_op, name, {"call": call}, [*inputs, *operator._kept, *results], texts)
    return made[0] if isinstance(answer, Symbol) else tuple(made)


def _run(*arrays: NDArray, call: Applied) -> tuple[NDArray, ...]:
    given = arrays[: len(call.places)]
    if tape_hears(given):
        rest = iter(given)
        return several(copy.copy(call.fresh)(*[next(rest) if x is None else x for x in call.operands]))
    # Inputs, and views of inputs, are values of their own here.
    return tuple(x.copy() for x in arrays[-call.results :])


def _infer(*avals: Aval, call: Applied) -> tuple[Aval, ...]:
    return avals[-call.results :]


def _infer_both(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    count = attributes["call"].results
    known = [each if each is not None else other for each, other in zip(ins[-count:], outs, strict=True)]
    return [*ins[:-count], *known], known


class _Saved:
    """The values behind `Operator.saved`: of a node on the tape, or here."""

    __slots__ = ("inputs",)

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        self.inputs = inputs


def _gradient(node: Any, grads: Sequence[Any]) -> list[Any]:
    """Ask `backward`; the nodes of `forward` have no part in it."""
    call: Applied = node.attributes["call"]
    places = call.places
    call.operator._node = _Saved(tuple(node.inputs[len(places) : len(places) + call.kept]))
    found = several(call.operator.backward(*grads))
    if len(found) != len(call.operands):
        raise GradientError(f"{call.name}.backward() returned {len(found)} gradients for {len(call.operands)} inputs")
    return [*(found[at] for at in places), *[None] * (call.kept + call.results)]


def _count(given: dict[str, Any]) -> int:
    call: Applied = given["call"]
    return len(call.places) + call.kept + call.results


def _count_results(given: dict[str, Any]) -> int:
    call: Applied = given["call"]
    return call.results


_op: Composite = register(
    "operator",
    _run,
    _infer,
    num_inputs=_count,
    num_outputs=_count_results,
    infer_shape=_infer_both,
    infer_type=_infer_both,
    gradient=_gradient,
)
