"""A node that refuses a gradient of a wrong shape: behind each gradient that a rule from outside of weft returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._graph.composite import Composite, make_node, register
from weft._graph.naming import next_name
from weft.errors import GradientError

if TYPE_CHECKING:
    from weft._core import NDArray
    from weft._graph.symbols import Symbol
    from weft._registry.avals import Aval


def checked(gradient: Symbol, of: Symbol, op: str, operand: int) -> Symbol:
    """Return a gradient that is refused unless it has its value's shape, as soon as both are known.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.gradient_check import checked
    >>> x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
    >>> try:
    ...     checked(y, x, "double", 0).eval(x=[1.0, 2.0], y=3.0)
    ... except weft.errors.GradientError as error:
    ...     print(error)
    the gradient rule of 'double' returned an array of shape () for input 0, which is of shape (2,)
    """
    name, texts = next_name("gradient_check")
    return make_node(_op, name, {"op": op, "operand": operand}, [gradient, of], texts)[0]


def _refusal(op: str, operand: int, found: Any, wanted: Any) -> str:
    return f"the gradient rule of {op!r} returned an array of shape {found} for input {operand}, which is of shape {wanted}"


def _run(gradient: NDArray, of: NDArray, *, op: str, operand: int) -> tuple[NDArray]:
    if gradient.shape != of.shape:
        raise GradientError(_refusal(op, operand, gradient.shape, of.shape))
    return (gradient,)


def _infer(gradient: Aval, of: Aval, *, op: str, operand: int) -> tuple[Aval]:
    if gradient.shape != of.shape:
        raise GradientError(_refusal(op, operand, gradient.shape, of.shape))
    return (gradient,)


def _shapes(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Give all three one shape."""
    gradient, of = ins
    if gradient is not None and of is not None and tuple(gradient) != tuple(of) and -1 not in (*gradient, *of):
        raise GradientError(_refusal(attributes["op"], attributes["operand"], tuple(gradient), tuple(of)))
    found = gradient if gradient is not None else of if of is not None else outs[0]
    return [gradient, of], [found]


def _types(_attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Give the result the gradient's dtype."""
    return ins, [ins[0] if ins[0] is not None else outs[0]]


def _pass_on(_node: Any, grads: Any) -> Any:
    return grads[0], None


_op: Composite = register(
    "gradient_check",
    _run,
    _infer,
    num_inputs=2,
    num_outputs=1,
    infer_shape=_shapes,
    infer_type=_types,
    gradient=_pass_on,
    ignores=(1,),
    attribute_names=("op", "operand"),
)
