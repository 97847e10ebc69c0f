"""Gradient rules of element-wise functions, made from derivatives: functions of the operands, or of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from weft._ops.unbroadcast import conjugate, fit
from weft._registry.gradients import needs, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._registry.gradients import Rule

#: A rule, and the values that it reads (`reading`).
Gradient: TypeAlias = "tuple[Rule, int | tuple[int, int]]"


def of_operand(derivative: Callable[[Any], Any]) -> Gradient:
    """Return the rule of a function of one operand, given its derivative as a function of the operand."""

    def rule(node: Any, grads: Any) -> Any:
        x = node.inputs[0]
        return (fit(grads[0] * conjugate(derivative(x)), x),)

    return rule, reading([0])


def of_result(derivative: Callable[[Any], Any]) -> Gradient:
    """Return the rule of a function of one operand, given its derivative as a function of the result."""

    def rule(node: Any, grads: Any) -> Any:
        return (fit(grads[0] * conjugate(derivative(node.outputs[0])), node.inputs[0]),)

    return rule, reading((), [0])


def linear(factor: float) -> Gradient:
    """Return the rule of a product with a number."""

    def rule(node: Any, grads: Any) -> Any:
        g = grads[0] if factor == 1 else -grads[0] if factor == -1 else grads[0] * factor
        return (fit(g, node.inputs[0]),)

    return rule, reading()


def of_pair(
    *derivatives: Callable[[Any, Any, Any], Any] | None,
    inputs: Sequence[int] = (0, 1),
    outputs: Sequence[int] = (),
    each: tuple[int, int] | None = None,
) -> Gradient:
    """Return the rule of a function of two operands, given both derivatives as functions of x1, x2 and the result."""

    def rule(node: Any, grads: Any) -> Any:
        x1, x2 = node.inputs
        y = node.outputs[0] if outputs else None
        return tuple(
            fit(grads[0] * conjugate(derivative(x1, x2, y)), x) if derivative is not None and needs(node, at) else None
            for at, (derivative, x) in enumerate(zip(derivatives, (x1, x2), strict=True))
        )

    return rule, reading(inputs, outputs) if each is None else each


def _constant(node: Any, grads: Any) -> Any:
    del grads
    return (None,) * len(node.inputs)


#: The rule of a function that is constant almost everywhere.
CONSTANT: Gradient = (_constant, reading())
