"""Functions of rules that bring a gradient to the shape and dtype of its operand.

On the tape, shapes are known, and these functions do as little as they can. For symbols they make nodes of ops with the
other array as an operand; only its shape and dtype count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import device_of
from weft._core import NDArray, Outline, tape_alike
from weft._ops.creation import empty, full
from weft._ops.dtypes import astype
from weft._ops.manipulation import broadcast_to, reshape
from weft._ops.reductions import sum as total
from weft._ops.searching import where
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of
from weft._registry.op import Op, get_op, register_op
from weft.errors import GradientError

if TYPE_CHECKING:
    from weft._call.calls import Elements


def is_known(x: Any) -> bool:
    """Return whether the shape of `x` is known: on the tape, not of a symbol."""
    return isinstance(x, NDArray | Outline)


def apply(name: str, *arrays: Any, **attributes: Any) -> Any:
    """Call the op of a name: as a view if it is one and can be."""
    op = get_op(name)
    show = op.attribute("view", None)
    if show is not None and isinstance(arrays[0], NDArray):
        return show(arrays[0], **attributes)
    return op(*arrays, **attributes)


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of `x`; GradientError for a symbol of unknown shape."""
    found: tuple[int, ...] | None = getattr(x, "shape", None)
    if found is None:
        raise GradientError(f"the gradient needs the shape of {x!r}: give its variables their shapes")
    return found


def conjugate(x: Any) -> Any:
    """Return the complex conjugate; real arrays as they are."""
    if isinstance(x, NDArray):
        return get_op("conj")(x) if x.dtype.kind == "c" else x
    if isinstance(x, bool | int | float | complex):
        return x.conjugate()
    return apply("conj", x)


def choose(condition: Any, x1: Any, x2: Any) -> Any:
    """Return `where` of arrays or symbols."""
    return where(condition, x1, x2) if isinstance(condition, NDArray) else apply("where", condition, x1, x2)


def _sum_rule(x: Aval, like: Aval) -> Aval:
    del x
    return Aval(like.shape, like.dtype)


def _spread(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes of `new` along which broadcasting repeats an array of shape `old`."""
    lead = len(new) - len(old)
    return (*range(lead), *(lead + i for i, n in enumerate(old) if n == 1 and new[lead + i] != 1))


@register_op("sum_like", infer=_sum_rule)
def _sum_like(out: Elements, x: Elements, like: Elements) -> None:
    part = x if out.dtype.kind == "c" else x.real
    np.copyto(out, part.sum(_spread(like.shape, x.shape)).reshape(like.shape), casting="unsafe")


def _cast_rule(x: Aval, like: Aval) -> Aval:
    return Aval(x.shape, like.dtype)


@register_op("cast_like", infer=_cast_rule)
def _cast_like(out: Elements, x: Elements, like: Elements) -> None:
    del like
    np.copyto(out, x if out.dtype.kind == "c" else x.real, casting="unsafe")


def _shaped_rule(x: Aval, like: Aval) -> Aval:
    return Aval(like.shape, x.dtype)


@register_op("broadcast_like", infer=_shaped_rule)
def _broadcast_like(out: Elements, x: Elements, like: Elements) -> None:
    del like
    np.copyto(out, x)


@register_op("reshape_like", infer=_shaped_rule)
def _reshape_like(out: Elements, x: Elements, like: Elements) -> None:
    np.copyto(out, x.reshape(like.shape))


def _zeros_rule(like: Aval) -> Aval:
    return Aval(like.shape, like.dtype)


@register_op("zeros_like", infer=_zeros_rule)
def _zeros_like(out: Elements, like: Elements) -> None:
    del like
    out.fill(0)


@register_op("ones_like", infer=_zeros_rule)
def _ones_like(out: Elements, like: Elements) -> None:
    del like
    out.fill(1)


_like: dict[str, Op] = {
    name: get_op(name)
    for name in ("sum_like", "cast_like", "broadcast_like", "reshape_like", "zeros_like", "ones_like")
}
# Only the other array's shape and dtype count; if they equal the first one's, that array is the result.
for _name, _op in _like.items():
    _op.set_attribute("ignores", (0,) if _name in ("zeros_like", "ones_like") else (1,))
    if _name in ("zeros_like", "ones_like"):
        _op.set_attribute("infer_shape", "like_first")
        _op.set_attribute("infer_type", "like_first")
        _op.set_attribute("batch", "broadcast")
    else:
        _op.set_attribute("identity", "like")


def cast_like(g: Any, like: Any) -> Any:
    """Return a gradient in the dtype of `like`: its real part if that is real."""
    if not is_known(like):
        return _like["cast_like"](g, like)
    if g.dtype == like.dtype:
        return g
    part: Any = get_op("real")(g) if g.dtype.kind == "c" and like.dtype.kind != "c" else g
    return part if part.dtype == like.dtype else astype(part, like.dtype)


def fit(g: Any, like: Any) -> Any:
    """Return the gradient of an operand that was broadcast and cast: sums over repeated elements, in its dtype."""
    if tape_alike(g, like):
        return g
    if not is_known(like):
        return None if isinstance(like, bool | int | float | complex) else _like["sum_like"](g, like)
    if g.shape != like.shape:
        axes = _spread(like.shape, g.shape)
        lead = g.ndim - like.ndim
        if axes:
            g = total(g, axis=axes, keepdims=lead == 0)
        if g.shape != like.shape:
            g = reshape(g, like.shape)
    return cast_like(g, like)


def broadcast_like(g: Any, like: Any) -> Any:
    """Return a gradient repeated to the shape of `like`."""
    if not is_known(like):
        return _like["broadcast_like"](g, like)
    return g if g.shape == like.shape else broadcast_to(g, like.shape)


def reshape_like(g: Any, like: Any) -> Any:
    """Return a gradient in the shape of `like`."""
    if not is_known(like):
        return _like["reshape_like"](g, like)
    return g if g.shape == like.shape else reshape(g, like.shape)


def stand_in(like: Any) -> Any:
    """Return an array of the shape of an outline, without elements."""
    if isinstance(like, NDArray) or not hasattr(like, "_device"):
        return like
    return broadcast_to(empty((), like.dtype, device=device_of(like), engine=like.engine), like.shape)


def zeros_of(like: Any) -> Any:
    """Return zeros of the shape and dtype of `like`."""
    if not is_known(like):
        return _like["zeros_like"](like)
    return full(like.shape, 0, like.dtype, device=device_of(like), engine=like.engine)


@gradient_of("sum_like")
def _sum_like_rule(node: Any, grads: Any) -> Any:
    return cast_like(broadcast_like(grads[0], node.inputs[0]), node.inputs[0]), None


@gradient_of("cast_like")
def _cast_like_rule(node: Any, grads: Any) -> Any:
    return cast_like(grads[0], node.inputs[0]), None


@gradient_of("broadcast_like")
def _broadcast_like_rule(node: Any, grads: Any) -> Any:
    return fit(grads[0], node.inputs[0]), None


@gradient_of("reshape_like")
def _reshape_like_rule(node: Any, grads: Any) -> Any:
    return reshape_like(grads[0], node.inputs[0]), None


@gradient_of("zeros_like", "ones_like")
def _zeros_like_rule(node: Any, grads: Any) -> Any:
    del node, grads
    return (None,)


@register_op("tape.identity", infer=_zeros_rule)
def _identity(out: Elements, x: Elements) -> None:
    np.copyto(out, x)


@gradient_of("tape.identity")
def _identity_rule(node: Any, grads: Any) -> Any:
    del node
    return (grads[0],)
