"""Softmax and its logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._core import Kernel, Native
from weft._nn.arguments import floating, refuse
from weft._nn.running import around
from weft._ops.elementwise import exp
from weft._ops.unbroadcast import apply
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft._registry.shapes import axis_index

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._nn.running import Make


def _making(name: str) -> Make:
    """Return the maker of the kernel of a softmax, its logarithm, or the gradient of one."""

    def make(results: tuple[Aval, ...], _: tuple[Aval, ...], *, axis: int = -1) -> Kernel | None:
        shape = results[0].shape
        return None if 0 in shape else Kernel.rows(f"nn.{name}", name, results[0].dtype, around(shape, axis))

    return make


def _infer(op: str, x: Aval, axis: int) -> Aval:
    at = axis_index(axis, len(x.shape))
    if not x.shape[at] and 0 not in (*x.shape[:at], *x.shape[at + 1 :]):
        raise refuse(op, f"there is nothing along axis {axis}", x=x)
    return Aval(x.shape, floating(op, x=x))


def _infer_data(op: str, g: Aval, y: Aval, axis: int) -> Aval:
    axis_index(axis, len(y.shape))
    if g.shape != y.shape:
        raise refuse(op, "both are to have one shape", g=g, y=y)
    return Aval(y.shape, floating(op, g=g, y=y))


def _infer_softmax(x: Aval, *, axis: int = -1) -> Aval:
    return _infer("nn.softmax", x, axis)


def _shifted(x: Elements, axis: int) -> Elements:
    """Return elements less the largest along the axis, so that none overflows."""
    return x - x.max(axis=axis, keepdims=True) if x.size else x


@register_op("nn.softmax", infer=_infer_softmax, inplace=[(0, 0)])
def _softmax(out: Elements, x: Elements, *, axis: int = -1) -> None:
    found = np.exp(_shifted(x, axis))
    np.divide(found, found.sum(axis=axis, keepdims=True), out=out)


def _infer_softmax_data(g: Aval, y: Aval, *, axis: int = -1) -> Aval:
    return _infer_data("nn.softmax_data", g, y, axis)


@register_op("nn.softmax_data", infer=_infer_softmax_data, inplace=[(0, 0), (1, 0)])
def _softmax_data(out: Elements, g: Elements, y: Elements, *, axis: int = -1) -> None:
    np.multiply(y, g - (g * y).sum(axis=axis, keepdims=True), out=out)


def _infer_log_softmax(x: Aval, *, axis: int = -1) -> Aval:
    return _infer("nn.log_softmax", x, axis)


def log_softmax_of(x: Elements, axis: int) -> Elements:
    moved = _shifted(x, axis)
    found: Elements = moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))
    return found


@register_op("nn.log_softmax", infer=_infer_log_softmax, inplace=[(0, 0)])
def _log_softmax(out: Elements, x: Elements, *, axis: int = -1) -> None:
    np.copyto(out, log_softmax_of(x, axis))


def _infer_log_softmax_data(g: Aval, y: Aval, *, axis: int = -1) -> Aval:
    return _infer_data("nn.log_softmax_data", g, y, axis)


@register_op("nn.log_softmax_data", infer=_infer_log_softmax_data, inplace=[(0, 0), (1, 0)])
def _log_softmax_data(out: Elements, g: Elements, y: Elements, *, axis: int = -1) -> None:
    np.subtract(g, np.exp(y) * g.sum(axis=axis, keepdims=True), out=out)


for _op in (_softmax, _softmax_data, _log_softmax, _log_softmax_data):
    state(_op, infer_shape="same", infer_type="same", batch="axis")
    _op._run_by(Native.by(_making(_op.name.removeprefix("nn."))))


def total(x: Any, axis: int) -> Any:
    return apply("sum", x, axis=(axis,), keepdims=True)


@gradient_of("nn.softmax", outputs=[0])
def _softmax_rule(node: Any, grads: Any) -> Any:
    return (get_op("nn.softmax_data")(grads[0], node.outputs[0], **node.attributes),)


@gradient_of("nn.softmax_data", inputs=[0, 1])
def _softmax_data_rule(node: Any, grads: Any) -> Any:
    """Of ``y (g - sum(g y))``."""
    (g, y), t, axis = node.inputs, grads[0], node.attributes.get("axis", -1)
    dg = get_op("nn.softmax_data")(t, y, **node.attributes) if needs(node, 0) else None
    if not needs(node, 1):
        return dg, None
    return dg, t * g - t * total(g * y, axis) - g * total(t * y, axis)


@gradient_of("nn.log_softmax", outputs=[0])
def _log_softmax_rule(node: Any, grads: Any) -> Any:
    return (get_op("nn.log_softmax_data")(grads[0], node.outputs[0], **node.attributes),)


@gradient_of("nn.log_softmax_data", inputs=[0, 1])
def _log_softmax_data_rule(node: Any, grads: Any) -> Any:
    """Of ``g - exp(y) sum(g)``."""
    (g, y), t, axis = node.inputs, grads[0], node.attributes.get("axis", -1)
    chances = exp(y)
    dg = t - total(t * chances, axis) if needs(node, 0) else None
    return dg, -(t * chances) * total(g, axis) if needs(node, 1) else None


def softmax(x: ArrayLike, /, axis: int = -1) -> NDArray:
    """Return exponentials divided by their sums along an axis.

    Parameters
    ----------
    x : array_like
        Real floating-point numbers.
    axis : int, default: -1
        The axis along which results sum to 1.

    Examples
    --------
    >>> import weft
    >>> weft.nn.softmax([0.0, 0.0])
    NDArray([0.5, 0.5])
    """
    return one(_softmax, x, axis=axis)


def log_softmax(x: ArrayLike, /, axis: int = -1) -> NDArray:
    """Return the logarithm of `softmax`, computed without it.

    Examples
    --------
    >>> import weft
    >>> weft.nn.log_softmax([0.0, 0.0])
    NDArray([-0.69314718, -0.69314718])
    """
    return one(_log_softmax, x, axis=axis)
