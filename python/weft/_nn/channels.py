"""Vectors along one axis of arrays: repeated over the others, and sums over the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.views import view
from weft._core import Kernel, Native, NDArray, copy_elements
from weft._nn.arguments import refuse
from weft._nn.running import around
from weft._ops.unbroadcast import stand_in
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft._registry.shapes import axis_index

if TYPE_CHECKING:
    from weft._call.calls import Elements


def across(v: Elements, ndim: int, axis: int) -> Elements:
    """Return a vector in a shape that broadcasts along one axis of arrays of `ndim` axes."""
    return v.reshape([-1 if at == axis % ndim else 1 for at in range(ndim)])


def others_of(ndim: int, axis: int) -> tuple[int, ...]:
    """Return all axes but one."""
    return tuple(at for at in range(ndim) if at != axis % ndim)


def channel_kernel(name: str, kernel: str, data: int) -> Native:
    """Return the core's run of an op on channels; operand `data` has the data."""

    def make(
        results: tuple[Aval, ...], operands: tuple[Aval, ...], *, axis: int = 1, eps: float = 1e-5
    ) -> Kernel | None:
        shape = operands[data].shape
        return None if 0 in shape else Kernel.channels(name, kernel, results[0].dtype, around(shape, axis), eps)

    return Native.by(make)


def _infer_sum(x: Aval, *, axis: int = 1) -> Aval:
    return Aval((x.shape[axis_index(axis, len(x.shape))],), x.dtype)


@register_op("nn.channel_sum", infer=_infer_sum)
def _channel_sum(out: Elements, x: Elements, *, axis: int = 1) -> None:
    out[...] = x.sum(axis=others_of(x.ndim, axis))


state(_channel_sum, infer_type="same")
_channel_sum._run_by(channel_kernel("nn.channel_sum", "sum", 0))


def _infer_over(v: Aval, like: Aval, *, axis: int = 1) -> Aval:
    at = axis_index(axis, len(like.shape))
    if v.shape != (like.shape[at],):
        raise refuse("nn.over", f"a vector along axis {axis} has shape ({like.shape[at]},)", v=v, x=like)
    return Aval(like.shape, v.dtype)


@register_op("nn.over", infer=_infer_over)
def _over(out: Elements, v: Elements, like: Elements, *, axis: int = 1) -> None:
    np.copyto(out, across(v, like.ndim, axis))


def _push_over(outputs: tuple[NDArray], operands: tuple[Any, ...], *, axis: int = 1) -> bool:
    (out,), v = outputs, operands[0]
    if not isinstance(v, NDArray) or v.dtype != out.dtype:
        return False
    at = axis_index(axis, out.ndim)
    shape, strides = [1] * out.ndim, [0] * out.ndim
    shape[at], strides[at] = v.shape[0], v.strides[0]
    copy_elements(out, view(v, shape, strides))
    return True


state(_over, infer_type="same", ignores=(1,), push=_push_over)


def channel_sum(x: Any, axis: int = 1) -> Any:
    """Return the sums over all axes but one, an array or a symbol."""
    return get_op("nn.channel_sum")(x, axis=axis)


def over(v: Any, like: Any, axis: int = 1) -> Any:
    """Return a vector along one axis of an array of the shape of `like`."""
    return get_op("nn.over")(v, stand_in(like), axis=axis)


@gradient_of("nn.channel_sum")
def _channel_sum_rule(node: Any, grads: Any) -> Any:
    return (over(grads[0], node.inputs[0], node.attributes.get("axis", 1)),)


@gradient_of("nn.over")
def _over_rule(node: Any, grads: Any) -> Any:
    return channel_sum(grads[0], node.attributes.get("axis", 1)), None
