"""The view of a node for a gradient's rule in a pass, and the call of the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._graph.gradient_check import checked
from weft._graph.pullback import pull_later
from weft._graph.symbols import Symbol
from weft._registry.forward import operands_of
from weft._registry.op import get_op
from weft._registry.symbol_hook import MixedOperandsError, UnknownFactError
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._core import Node, SymbolCore


class NodeView:
    """A node as a gradient's rule sees it.

    Attributes
    ----------
    op : Op
        The op.
    name : str
        The node's name.
    inputs : tuple
        The operands: symbols, and numbers where numbers were given.
    outputs : tuple of Symbol
        The results.
    attributes : dict
        The attributes of the call.
    needs : tuple of bool
        For each operand, whether its gradient is asked for: not that of a number, nor of a value that rests on no x.
    """

    __slots__ = ("attributes", "inputs", "name", "needs", "op", "outputs")

    def __init__(
        self, node: Node, inputs: Sequence[SymbolCore], outputs: Sequence[SymbolCore], needs: Sequence[bool]
    ) -> None:
        self.op: Any = node.op
        self.name = node.name
        self.inputs, self.attributes = operands_of(dict(node.attributes), [Symbol(each) for each in inputs])
        asked = iter(needs)
        self.needs = tuple(isinstance(each, Symbol) and next(asked) for each in self.inputs)
        self.outputs = tuple(Symbol(each) for each in outputs)


def call_rule(
    rule: Callable[[Any, Sequence[Any]], Any],
    node: Node,
    inputs: Sequence[SymbolCore],
    outputs: Sequence[SymbolCore],
    grads: Sequence[SymbolCore | None],
    needs: Sequence[bool],
) -> list[SymbolCore | None]:
    """Call a rule with symbols, and return the gradients of the inputs that are no numbers.

    Raises
    ------
    GradientError
        If it answers for another number of operands.
    """
    zeros = get_op("zeros_like")
    seen = NodeView(node, inputs, outputs, needs)
    # A value that nothing depends on has zeros as its gradient; a rule is called only if something depends on one of its results.
    found_grads = (zeros(of) if grad is None else Symbol(grad) for grad, of in zip(grads, seen.outputs, strict=True))
    try:
        answer: Any = rule(seen, tuple(found_grads))
    except (UnknownFactError, MixedOperandsError):  # of symbols with arrays that the rule has made
        operands = [Symbol(each) for each in inputs]
        heads = [None if grad is None else Symbol(grad) for grad in grads]
        return [each._core for each in pull_later(seen.op, node.attributes, operands, heads)]
    several: Sequence[Any] = answer  # if it is a list or a tuple
    found: list[Any] = (
        [None] * len(seen.inputs)
        if answer is None
        else list(several)
        if isinstance(answer, (list, tuple))
        else [answer]
    )
    if len(found) != len(seen.inputs):
        raise GradientError(
            f"the rule has {len(found)} answers for {len(seen.inputs)} operands: it returns one for each, None where it is zero"
        )
    cores: list[SymbolCore | None] = []
    # weft's own rules are tested, and spare the graph these nodes.
    is_own = str(getattr(rule, "__module__", "")).split(".", 1)[0] == "weft"
    for at, (operand, grad) in enumerate(zip(seen.inputs, found, strict=True)):
        if not isinstance(operand, Symbol):
            continue
        spread = grad if grad is None or isinstance(grad, Symbol) else operand * 0 + grad  # a number
        if spread is grad and grad is not None and not is_own:
            spread = checked(grad, operand, seen.op.name, at)
        cores.append(None if spread is None else spread._core)
    return cores
