"""Rules of ops that show elements in another shape or order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._ops.unbroadcast import apply, cast_like, conjugate, fit, is_known, reshape_like, zeros_of
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft._registry.shapes import axis_index

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._registry.shapes import Shape


def _pad_shape(shape: Shape, axis: int, before: int, after: int) -> Shape:
    at = axis_index(axis, len(shape))
    return (*shape[:at], max(shape[at] + before + after, 0), *shape[at + 1 :])


def _infer_pad(x: Aval, *, axis: int, before: int, after: int) -> Aval:
    return Aval(_pad_shape(x.shape, axis, before, after), x.dtype)


@register_op("pad_axis", infer=_infer_pad)
def _pad_axis(out: Elements, x: Elements, *, axis: int, before: int, after: int) -> None:
    to, source = np.moveaxis(out, axis, 0), np.moveaxis(x, axis, 0)
    to[...] = 0
    length = max(min(source.shape[0] - max(-before, 0) - max(-after, 0), to.shape[0]), 0)
    first, start = max(before, 0), max(-before, 0)
    to[first : first + length] = source[start : start + length]


def pad_axis(x: Any, axis: int, before: int, after: int) -> Any:
    """Return an array with zeros added before and after its elements along an axis; negative counts remove elements.

    Examples
    --------
    >>> import weft
    >>> from weft._ops.manipulation_gradients import pad_axis
    >>> pad_axis(weft.asarray([1, 2, 3]), 0, 1, -1)
    NDArray([0, 1, 2])
    """
    return get_op("pad_axis")(x, axis=axis, before=before, after=after)


@gradient_of("pad_axis")
def _pad_axis_rule(node: Any, grads: Any) -> Any:
    attributes = node.attributes
    x = node.inputs[0]
    found = pad_axis(grads[0], attributes["axis"], -attributes["before"], -attributes["after"])
    return (found if not is_known(x) or found.shape == x.shape else zeros_of(x),)


@gradient_of("permute_dims")
def _permute_dims(node: Any, grads: Any) -> Any:
    axes = node.attributes["axes"]
    if axes is None:  # all of them, reversed: its own inverse
        return (apply("permute_dims", grads[0], axes=None),)
    count = len(axes)
    back = sorted(range(count), key=lambda at: axes[at] % count)
    return (apply("permute_dims", grads[0], axes=tuple(back)),)


def transposed(x: Any) -> Any:
    """Return a view with the last two axes swapped."""
    return apply("matrix_transpose", x)


def adjoint(x: Any) -> Any:
    """Return the conjugate with the last two axes swapped."""
    return conjugate(transposed(x))


@gradient_of("matrix_transpose")
def _matrix_transpose(node: Any, grads: Any) -> Any:
    del node
    return (transposed(grads[0]),)


@gradient_of("expand_dims", "squeeze", "reshape")
def _reshape(node: Any, grads: Any) -> Any:
    return (reshape_like(grads[0], node.inputs[0]),)


@gradient_of("flip")
def _flip(node: Any, grads: Any) -> Any:
    return (apply("flip", grads[0], axes=node.attributes["axes"]),)


@gradient_of("broadcast_to")
def _broadcast_to(node: Any, grads: Any) -> Any:
    return (fit(grads[0], node.inputs[0]),)


@gradient_of("roll")
def _roll(node: Any, grads: Any) -> Any:
    shift = tuple(-each for each in node.attributes["shift"])
    return (apply("roll", grads[0], shift=shift, axes=node.attributes["axes"]),)


@gradient_of("astype")
def _astype(node: Any, grads: Any) -> Any:
    x, g = node.inputs[0], grads[0]
    g = cast_like(g, x)
    if isinstance(g, NDArray) and is_known(x) and g._device != x._device:
        from weft._call.devices import device_of  # noqa: PLC0415 - rare

        g = g.to_device(device_of(x))
    return (g,)
