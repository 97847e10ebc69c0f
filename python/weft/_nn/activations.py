"""Activations, element by element, and the ops of their gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._core import Loop, Native
from weft._nn.arguments import floating, refuse
from weft._nn.facts import takes_any
from weft._nn.gaussian import cumulative
from weft._ops.elementwise import exp, square
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft._registry.shapes import as_number
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._nn.running import Make

_DENSITY = 1 / math.sqrt(2 * math.pi)


def _rule(name: str, *attributes: str) -> Callable[..., Aval]:
    """Return the rule of an op of one operand."""

    def infer(x: Aval, **given: float) -> Aval:
        _check(name, given, attributes)
        return Aval(x.shape, floating(name, x=x))

    return infer


def _rule_of_gradient(name: str, *attributes: str) -> Callable[..., Aval]:
    """Return the rule of an op of a gradient and an array of its shape."""

    def infer(g: Aval, x: Aval, **given: float) -> Aval:
        _check(name, given, attributes)
        if g.shape != x.shape:
            raise refuse(name, "both are to have one shape", g=g, x=x)
        return Aval(x.shape, floating(name, g=g, x=x))

    return infer


def _check(name: str, given: dict[str, float], known: tuple[str, ...]) -> None:
    if not given.keys() <= set(known):
        raise ArgumentTypeError(f"{name} has no attributes {sorted(given.keys() - set(known))}: it has {list(known)}")


def _sigmoid_of(x: Elements) -> Elements:
    """Return the logistic function, by the exponential of negative numbers alone."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _making(name: str, default: float | None) -> Make:
    """Return the maker of an activation's loop, or of its gradient's, with the number that it takes besides."""

    def make(results: tuple[Aval, ...], _: tuple[Aval, ...], **attributes: float) -> Any:
        loop = Loop.activation(name, results[0].dtype)
        if loop is None or default is None:
            return loop
        return loop, (next(iter(attributes.values()), default),)

    return make


@register_op("nn.relu", infer=_rule("nn.relu"), inplace=[(0, 0)])
def _relu(out: Elements, x: Elements) -> None:
    np.maximum(x, 0, out=out)


@register_op("nn.relu_data", infer=_rule_of_gradient("nn.relu_data"), inplace=[(0, 0), (1, 0)])
def _relu_data(out: Elements, g: Elements, y: Elements) -> None:
    np.copyto(out, np.where(y > 0, g, 0))


@register_op("nn.leaky_relu", infer=_rule("nn.leaky_relu", "slope"), inplace=[(0, 0)])
def _leaky_relu(out: Elements, x: Elements, *, slope: float = 0.01) -> None:
    np.copyto(out, np.where(x > 0, x, x * x.dtype.type(slope)))


@register_op("nn.leaky_relu_data", infer=_rule_of_gradient("nn.leaky_relu_data", "slope"), inplace=[(0, 0), (1, 0)])
def _leaky_relu_data(out: Elements, g: Elements, x: Elements, *, slope: float = 0.01) -> None:
    np.copyto(out, np.where(x > 0, g, g * g.dtype.type(slope)))


@register_op("nn.elu", infer=_rule("nn.elu", "alpha"), inplace=[(0, 0)])
def _elu(out: Elements, x: Elements, *, alpha: float = 1.0) -> None:
    np.copyto(out, np.where(x > 0, x, np.expm1(x) * x.dtype.type(alpha)))


@register_op("nn.elu_data", infer=_rule_of_gradient("nn.elu_data", "alpha"), inplace=[(0, 0), (1, 0)])
def _elu_data(out: Elements, g: Elements, x: Elements, *, alpha: float = 1.0) -> None:
    np.copyto(out, np.where(x > 0, g, g * np.exp(x) * x.dtype.type(alpha)))


@register_op("nn.sigmoid", infer=_rule("nn.sigmoid"), inplace=[(0, 0)])
def _sigmoid(out: Elements, x: Elements) -> None:
    np.copyto(out, _sigmoid_of(x))


@register_op("nn.sigmoid_data", infer=_rule_of_gradient("nn.sigmoid_data"), inplace=[(0, 0), (1, 0)])
def _sigmoid_data(out: Elements, g: Elements, y: Elements) -> None:
    np.copyto(out, g * y * (1 - y))


@register_op("nn.softplus", infer=_rule("nn.softplus"), inplace=[(0, 0)])
def _softplus(out: Elements, x: Elements) -> None:
    np.copyto(out, np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


@register_op("nn.softplus_data", infer=_rule_of_gradient("nn.softplus_data"), inplace=[(0, 0), (1, 0)])
def _softplus_data(out: Elements, g: Elements, x: Elements) -> None:
    np.copyto(out, g * _sigmoid_of(x))


@register_op("nn.gelu", infer=_rule("nn.gelu"), inplace=[(0, 0)])
def _gelu(out: Elements, x: Elements) -> None:
    np.copyto(out, x * cumulative(x))


@register_op("nn.gelu_data", infer=_rule_of_gradient("nn.gelu_data"), inplace=[(0, 0), (1, 0)])
def _gelu_data(out: Elements, g: Elements, x: Elements) -> None:
    np.copyto(out, g * (cumulative(x) + x * np.exp(-0.5 * x * x) * x.dtype.type(_DENSITY)))


#: The number that an activation takes besides, if it takes one.
_NUMBERS = {_relu: None, _leaky_relu: 0.01, _elu: 1.0, _sigmoid: None, _softplus: None, _gelu: None}

for _op, _number in _NUMBERS.items():
    state(_op, layout=takes_any)
    for _each in (_op, get_op(f"{_op.name}_data")):
        state(_each, infer_shape="same", infer_type="same", batch="broadcast")
        _each._run_by(Native.by(_making(_each.name.removeprefix("nn."), _number)))


def _by_result(name: str) -> None:
    """Give an op the rule that its gradient op takes its result."""

    def rule(node: Any, grads: Any) -> Any:
        return (get_op(f"{name}_data")(grads[0], node.outputs[0], **node.attributes),)

    gradient_of(name, outputs=[0])(rule)


def _by_operand(name: str) -> None:
    """Give an op the rule that its gradient op takes its operand."""

    def rule(node: Any, grads: Any) -> Any:
        return (get_op(f"{name}_data")(grads[0], node.inputs[0], **node.attributes),)

    gradient_of(name, inputs=[0])(rule)


for _name in ("nn.relu", "nn.sigmoid"):
    _by_result(_name)


for _name in ("nn.leaky_relu", "nn.elu", "nn.softplus", "nn.gelu"):
    _by_operand(_name)


@gradient_of("nn.relu_data", inputs=[1])
def _relu_data_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.relu_data")(grads[0], node.inputs[1]), None


@gradient_of("nn.leaky_relu_data", inputs=[1])
def _leaky_relu_data_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.leaky_relu_data")(grads[0], node.inputs[1], **node.attributes), None


@gradient_of("nn.elu_data", inputs=[0, 1])
def _elu_data_rule(node: Any, grads: Any) -> Any:
    (g, x), t = node.inputs, grads[0]
    dg = get_op("nn.elu_data")(t, x, **node.attributes) if needs(node, 0) else None
    if not needs(node, 1):
        return dg, None
    left = g - get_op("nn.relu_data")(g, x)  # where x is negative
    return dg, get_op("nn.elu_data")(t * left, x, **node.attributes)


@gradient_of("nn.sigmoid_data", inputs=[0, 1])
def _sigmoid_data_rule(node: Any, grads: Any) -> Any:
    (g, y), t = node.inputs, grads[0]
    dg = get_op("nn.sigmoid_data")(t, y) if needs(node, 0) else None
    return dg, t * g * (1 - 2 * y) if needs(node, 1) else None


@gradient_of("nn.softplus_data", inputs=[0, 1])
def _softplus_data_rule(node: Any, grads: Any) -> Any:
    (g, x), t = node.inputs, grads[0]
    dg = get_op("nn.softplus_data")(t, x) if needs(node, 0) else None
    return dg, get_op("nn.sigmoid_data")(t * g, sigmoid(x)) if needs(node, 1) else None


@gradient_of("nn.gelu_data", inputs=[0, 1])
def _gelu_data_rule(node: Any, grads: Any) -> Any:
    (g, x), t = node.inputs, grads[0]
    dg = get_op("nn.gelu_data")(t, x) if needs(node, 0) else None
    return dg, t * g * (2 - square(x)) * exp(square(x) * -0.5) * _DENSITY if needs(node, 1) else None


def relu(x: ArrayLike, /) -> NDArray:
    """Return positive elements as they are, and 0 for others.

    Examples
    --------
    >>> import weft
    >>> weft.nn.relu([-1.0, 0.0, 2.0])
    NDArray([0., 0., 2.])
    """
    return one(_relu, x)


def leaky_relu(x: ArrayLike, /, slope: float = 0.01) -> NDArray:
    """Return positive elements as they are, and others times `slope`.

    Examples
    --------
    >>> import weft
    >>> weft.nn.leaky_relu([-1.0, 0.0, 2.0], 0.1)
    NDArray([-0.1,  0. ,  2. ])
    """
    return one(_leaky_relu, x, slope=as_number(slope, "slope"))


def elu(x: ArrayLike, /, alpha: float = 1.0) -> NDArray:
    """Return positive elements as they are, and ``alpha * (exp(x) - 1)`` for others.

    Examples
    --------
    >>> import weft
    >>> weft.nn.elu([-1.0, 0.0, 2.0])
    NDArray([-0.63212056,  0.        ,  2.        ])
    """
    return one(_elu, x, alpha=as_number(alpha, "alpha"))


def sigmoid(x: ArrayLike, /) -> NDArray:
    """Return the logistic function, ``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import weft
    >>> weft.nn.sigmoid([-1.0, 0.0, 1.0])
    NDArray([0.26894142, 0.5       , 0.73105858])
    """
    return one(_sigmoid, x)


def softplus(x: ArrayLike, /) -> NDArray:
    """Return ``log(1 + exp(x))``.

    Examples
    --------
    >>> import weft
    >>> weft.nn.softplus([-1.0, 0.0, 1.0])
    NDArray([0.31326169, 0.69314718, 1.31326169])
    """
    return one(_softplus, x)


def gelu(x: ArrayLike, /) -> NDArray:
    """Return each element times the probability that a standard normal variable is smaller.

    Examples
    --------
    >>> import weft
    >>> weft.nn.gelu([-1.0, 0.0, 1.0])
    NDArray([-0.15865525,  0.        ,  0.84134475])
    """
    return one(_gelu, x)
