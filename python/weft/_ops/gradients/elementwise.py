"""Rules of element-wise ops: derivatives as functions of the operand, or of the result where that says it shorter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import weft._ops.elementwise as e
from weft._core import NDArray
from weft._ops.gradients.unbroadcast import apply, cast_like, conjugate, fit
from weft._ops.searching import where
from weft._registry.gradients import gradient_of, needs, reading

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["choose"]

_LN2, _LN10 = math.log(2), math.log(10)


def choose(condition: Any, x1: Any, x2: Any) -> Any:
    """Return `where` of arrays or symbols."""
    return where(condition, x1, x2) if isinstance(condition, NDArray) else apply("where", condition, x1, x2)


def _of_operand(name: str, derivative: Callable[[Any], Any]) -> None:
    @gradient_of(name, inputs=[0])
    def rule(node: Any, grads: Any) -> Any:
        x = node.inputs[0]
        return (fit(grads[0] * conjugate(derivative(x)), x),)


def _of_result(name: str, derivative: Callable[[Any], Any]) -> None:
    @gradient_of(name, outputs=[0])
    def rule(node: Any, grads: Any) -> Any:
        return (fit(grads[0] * conjugate(derivative(node.outputs[0])), node.inputs[0]),)


def _linear(name: str, factor: float) -> None:
    @gradient_of(name)
    def rule(node: Any, grads: Any) -> Any:
        g = grads[0] if factor == 1 else -grads[0] if factor == -1 else grads[0] * factor
        return (fit(g, node.inputs[0]),)


_OF_OPERAND: dict[str, Callable[[Any], Any]] = {
    "acos": lambda x: -1 / e.sqrt(1 - x * x),
    "acosh": lambda x: 1 / (e.sqrt(x - 1) * e.sqrt(x + 1)),
    "asin": lambda x: 1 / e.sqrt(1 - x * x),
    "asinh": lambda x: 1 / e.sqrt(x * x + 1),
    "atan": lambda x: 1 / (1 + x * x),
    "atanh": lambda x: 1 / (1 - x * x),
    "cos": lambda x: -e.sin(x),
    "cosh": e.sinh,
    "log": lambda x: 1 / x,
    "log10": lambda x: 1 / (x * _LN10),
    "log1p": lambda x: 1 / (x + 1),
    "log2": lambda x: 1 / (x * _LN2),
    "sin": e.cos,
    "sinh": e.cosh,
    "square": lambda x: x * 2,
}
_OF_RESULT: dict[str, Callable[[Any], Any]] = {
    "cbrt": lambda y: 1 / (3 * y * y),
    "exp": lambda y: y,
    "exp2": lambda y: y * _LN2,
    "expm1": lambda y: y + 1,
    "reciprocal": lambda y: -y * y,
    "sqrt": lambda y: 0.5 / y,
    "tan": lambda y: y * y + 1,
    "tanh": lambda y: 1 - y * y,
}
for _name, _derivative in _OF_OPERAND.items():
    _of_operand(_name, _derivative)
for _name, _derivative in _OF_RESULT.items():
    _of_result(_name, _derivative)

for _name, _factor in {
    "degrees": 180 / math.pi,
    "negative": -1.0,
    "positive": 1.0,
    "radians": math.pi / 180,
}.items():
    _linear(_name, _factor)


@gradient_of("conj")
def _conj(node: Any, grads: Any) -> Any:
    return (fit(conjugate(grads[0]), node.inputs[0]),)


@gradient_of("abs", "fabs", inputs=[0])
def _abs(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    return (fit(grads[0] * e.sign(x), x),)


@gradient_of("sign", inputs=[0], outputs=[0])
def _sign(node: Any, grads: Any) -> Any:
    """Of a complex number: x / abs(x) turns, and does not grow. Of a real one, zero."""
    x, y, g = node.inputs[0], node.outputs[0], grads[0]
    if isinstance(x, NDArray) and x.dtype.kind != "c":
        return (None,)
    size = cast_like(e.abs(x), x)
    turned = (g - y * cast_like(apply("real", conjugate(y) * g), y)) / choose(e.equal(size, 0), 1.0, size)
    return (fit(turned, x),)


@gradient_of("ceil", "floor", "rint", "trunc", "round")
def _step(node: Any, grads: Any) -> Any:
    del node, grads  # constant almost everywhere
    return (None,)


@gradient_of("spacing")
def _spacing(node: Any, grads: Any) -> Any:
    del node, grads  # constant almost everywhere
    return (None,)


@gradient_of("nextafter")
def _nextafter(node: Any, grads: Any) -> Any:
    """Move with the number whose neighbour it is."""
    return fit(grads[0], node.inputs[0]), None


@gradient_of("floor_divide")
def _floor_divide(node: Any, grads: Any) -> Any:
    del node, grads  # constant almost everywhere
    return None, None


def _binary(
    name: str,
    *derivatives: Callable[[Any, Any, Any], Any] | None,
    inputs: tuple[int, ...] = (0, 1),
    outputs: tuple[int, ...] = (),
    each: tuple[int, int] | None = None,
) -> None:
    """Register the rule of an op of two operands, given both derivatives as functions of x1, x2 and the result."""

    @gradient_of(name, inputs=inputs, outputs=outputs, each=each)
    def rule(node: Any, grads: Any) -> Any:
        x1, x2 = node.inputs
        y = node.outputs[0] if outputs else None
        return tuple(
            fit(grads[0] * conjugate(derivative(x1, x2, y)), x) if derivative is not None and needs(node, at) else None
            for at, (derivative, x) in enumerate(zip(derivatives, (x1, x2), strict=True))
        )


@gradient_of("add")
def _add(node: Any, grads: Any) -> Any:
    return tuple(fit(grads[0], x) if needs(node, at) else None for at, x in enumerate(node.inputs))


@gradient_of("subtract")
def _subtract(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    return fit(grads[0], x1) if needs(node, 0) else None, fit(-grads[0], x2) if needs(node, 1) else None


_binary("multiply", lambda x1, x2, y: x2, lambda x1, x2, y: x1, each=(reading([1]), reading([0])))
_binary(
    "divide", lambda x1, x2, y: 1 / x2, lambda x1, x2, y: -y / x2, outputs=(0,), each=(reading([1]), reading([1], [0]))
)
_binary("atan2", lambda x1, x2, y: x2 / (x1 * x1 + x2 * x2), lambda x1, x2, y: -x1 / (x1 * x1 + x2 * x2))
_binary("hypot", lambda x1, x2, y: _share(x1, y), lambda x1, x2, y: _share(x2, y), outputs=(0,))
_binary("logaddexp", lambda x1, x2, y: e.exp(x1 - y), lambda x1, x2, y: e.exp(x2 - y), outputs=(0,))
_binary("logaddexp2", lambda x1, x2, y: e.exp2(x1 - y), lambda x1, x2, y: e.exp2(x2 - y), outputs=(0,))
_binary("remainder", lambda x1, x2, y: 1.0, lambda x1, x2, y: -e.floor_divide(x1, x2))
_binary("fmod", lambda x1, x2, y: 1.0, lambda x1, x2, y: -e.trunc(x1 / x2))
_binary("copysign", lambda x1, x2, y: _sign_of(x2) * e.sign(x1), None)
_binary("heaviside", None, lambda x1, x2, y: cast_like(e.equal(x1, 0), y), inputs=(0,), outputs=(0,))
_binary("ldexp", lambda x1, x2, y: e.ldexp(1.0, x2), None, inputs=(1,))


def _sign_of(x: Any) -> Any:
    """Return 1 with the signs of `x`, zeros' too; of a number as a number, which symbols take."""
    return math.copysign(1.0, x) if isinstance(x, bool | int | float) else e.copysign(1.0, x)


def _share(x: Any, y: Any) -> Any:
    return x / choose(e.equal(y, 0), 1.0, y)


def _extreme(name: str, better: Callable[[Any, Any], Any], *, past_nan: bool) -> None:
    """Register the rule of a maximum or a minimum: equal operands share the gradient in halves."""

    def weight(x: Any, other: Any, like: Any) -> Any:
        chosen = cast_like(better(x, other), like) + 0.5 * cast_like(e.equal(x, other), like)
        unordered = e.not_equal(x, x)
        if not past_nan:
            return choose(unordered, 1.0, chosen)
        if not isinstance(other, bool | int | float):  # a number counts, rather than NaN
            chosen = choose(e.not_equal(other, other), 1.0, chosen)
        elif math.isnan(other):
            chosen = cast_like(e.equal(x, x), like)
        return choose(unordered, 0.0, chosen)

    _binary(name, weight, lambda x1, x2, y: weight(x2, x1, y), outputs=(0,))


_extreme("maximum", e.greater, past_nan=False)
_extreme("minimum", e.less, past_nan=False)
_extreme("fmax", e.greater, past_nan=True)
_extreme("fmin", e.less, past_nan=True)


def _power_base(x1: Any, x2: Any, y: Any) -> Any:
    del y
    if isinstance(x2, bool | int | float | complex):
        return x1 * 0.0 if x2 == 0 else x2 * e.pow(x1, x2 - 1)
    return x2 * e.pow(x1, choose(e.equal(x2, 0), 1.0, x2 - 1))


def _power_exponent(x1: Any, x2: Any, y: Any) -> Any:
    if isinstance(x1, bool | int | float | complex):
        if x1 == 0:
            return choose(e.equal(x2, 0), -math.inf, y * 0.0)
        return y * e.log(cast_like(x2 * 0 + x1, y))
    base = cast_like(x1, y)
    return choose(e.equal(base, 0), 0.0, y * e.log(choose(e.equal(base, 0), 1.0, base)))


_binary("pow", _power_base, _power_exponent, outputs=(0,))
_binary("float_power", _power_base, _power_exponent, outputs=(0,))


@gradient_of("divmod", inputs=[0, 1])
def _divmod(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    first = fit(grads[1], x1) if needs(node, 0) else None
    return first, fit(-grads[1] * e.floor_divide(x1, x2), x2) if needs(node, 1) else None


@gradient_of("modf")
def _modf(node: Any, grads: Any) -> Any:
    return (fit(grads[0], node.inputs[0]),)


@gradient_of("frexp", outputs=[1])
def _frexp(node: Any, grads: Any) -> Any:
    return (fit(e.ldexp(grads[0], -node.outputs[1]), node.inputs[0]),)


@gradient_of("clip", inputs=[0, 1, 2])
def _clip(node: Any, grads: Any) -> Any:
    """Of clip(x, low, high) = minimum(maximum(x, low), high): the operand that the result is has the gradient."""
    x, low, high = node.inputs
    g = grads[0]
    capped = e.greater(low, high) if is_array(low) or is_array(high) else low > high
    above = e.logical_or(e.greater(x, high), capped)
    below = e.logical_and(e.less(x, low), e.logical_not(above))
    inside = e.logical_not(e.logical_or(above, below))
    return tuple(
        fit(g * cast_like(mask, g), each) if needs(node, at) else None
        for at, (mask, each) in enumerate(zip((inside, below, above), (x, low, high), strict=True))
    )


def is_array(x: Any) -> bool:
    """Return whether `x` is no Python number."""
    return not isinstance(x, bool | int | float | complex)


@gradient_of("nan_to_num", inputs=[0])
def _nan_to_num(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    return (grads[0] * cast_like(e.isfinite(x), grads[0]),)


@gradient_of("angle", inputs=[0])
def _angle(node: Any, grads: Any) -> Any:
    """Of atan2(imag, real): i x / abs(x)**2, and zero for real numbers."""
    x, g = node.inputs[0], grads[0]
    if isinstance(x, NDArray) and x.dtype.kind != "c":
        return (None,)
    scale = 180 / math.pi if node.attributes.get("deg") else 1.0
    return (cast_like(cast_like(g * scale, x) * (1j * x) / (x * conjugate(x)), x),)
