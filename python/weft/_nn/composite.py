"""Gradients of ops that are said by other functions: of arrays by the tape, of symbols by the pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._graph.differentiating import gradient
from weft._graph.making import Group, Variable
from weft._ops.unbroadcast import zeros_of
from weft._registry.symbol_hook import is_symbol
from weft._tape.transforms import vjp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def pull(function: Callable[..., Any], operands: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """Return the gradients of `operands`, given those of `function`'s results: one, or a tuple.

    Parameters
    ----------
    function : callable
        Made of functions that take arrays and symbols alike.
    operands : sequence of NDArray or of Symbol
        Its arguments.
    grads : sequence
        The gradients of its results.

    Examples
    --------
    >>> import weft
    >>> from weft._nn.composite import pull
    >>> pull(lambda x, y: x * y, [weft.asarray(2.0), weft.asarray(3.0)], [weft.asarray(1.0)])
    [NDArray(3.), NDArray(2.)]
    """
    if any(map(is_symbol, operands)):
        return _pull_symbols(function, operands, grads)
    result, back = vjp(function, *operands)
    found = back(tuple(grads) if isinstance(result, tuple) else grads[0])
    return list(found)


def _pull_symbols(function: Callable[..., Any], operands: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """Differentiate by variables, and put the operands in their place: these may depend on each other."""
    given = {f"_pulled{at}": each for at, each in enumerate(operands)}
    heads = {f"_head{at}": each for at, each in enumerate(grads)}
    variables = [Variable(name) for name in given]
    results = function(*variables)
    found = gradient(
        None,
        Group(results) if isinstance(results, tuple) else results,
        Group(variables),
        [Variable(name) for name in heads],
    ).symbol
    needed = set(found.list_inputs())
    put = {name: each for name, each in (given | heads).items() if name in needed}
    return list(found(**put))


def through(function: Callable[..., Any], *, count: int | None = None) -> Callable[[Any, Any], list[Any]]:
    """Return the rule of an op that computes as `function` does; only its first `count` operands have gradients.

    Examples
    --------
    >>> import weft
    >>> from weft._nn.composite import through
    >>> rule = through(lambda x: x * x)
    """

    def rule(node: Any, grads: Any) -> list[Any]:
        operands = list(node.inputs)
        heads = [zeros_of(y) if g is None else g for g, y in zip(grads, node.outputs, strict=True)]
        differentiated = operands[:count]
        rest = operands[len(differentiated) :]
        found = pull(lambda *arrays: function(*arrays, *rest, **node.attributes), differentiated, heads)
        return [*found, *(None for _ in rest)]

    return rule
