"""Rules of interpolation, of differences for derivatives, and of convolutions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import weft._ops.elementwise as e
from weft._ops.gradients.indexing import stand_in
from weft._ops.gradients.shapes import pad_axis
from weft._ops.indexing import take
from weft._ops.joining import concat
from weft._ops.searching import searchsorted, where
from weft._ops.sorting import argsort
from weft._ops.unbroadcast import apply, cast_like, conjugate, shape_of
from weft._registry.avals import Aval
from weft._registry.gradients import ALL_INPUTS, give, gradient_of, needs
from weft._registry.hooks import vjp
from weft._registry.op import get_op, register_op
from weft.errors import GradientError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._core import NDArray


@gradient_of("interp", inputs=[0, 1, 2])
def _interp(node: Any, grads: Any) -> Any:
    x, xp, fp = node.inputs
    answer: tuple[Any, ...] = vjp(partial(_lines, **node.attributes), x, xp, fp)[1](grads[0])
    return answer


def _lines(
    x: NDArray,
    xp: NDArray,
    fp: NDArray,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> NDArray:
    """Interpolate by functions that have gradients."""
    if period is not None:
        period = abs(period)
        x, xp = x % period, xp % period
        order = argsort(xp)
        xp, fp = take(xp, order, axis=0), take(fp, order, axis=0)
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
        left = right = None
    last = xp.shape[0] - 1
    at = e.maximum(e.minimum(searchsorted(xp, x, side="right") - 1, last - 1), 0)
    low, high = take(xp, at, axis=0), take(xp, e.minimum(at + 1, last), axis=0)
    first, second = take(fp, at, axis=0), take(fp, e.minimum(at + 1, last), axis=0)
    width = where(e.equal(high, low), 1, high - low)
    found: Any = first + (second - first) * ((x - low) / width)
    found = where(e.less(x, xp[:1]), fp[:1] if left is None else left, found)
    found = where(e.greater(x, xp[last:]), fp[last:] if right is None else right, found)
    return found * 1.0  # type: ignore[no-any-return] # an array


def _infer_adjoint(g: Aval, like: Aval, *spacing: Aval, axis: int, edge_order: int) -> Aval:
    del spacing, axis, edge_order
    return Aval(like.shape, g.dtype)


@register_op("gradient_adjoint", infer=_infer_adjoint)
def _adjoint(out: Elements, g: Elements, like: Elements, *spacing: Any, axis: int, edge_order: int) -> None:
    options: Any = {"axis": 0, "edge_order": edge_order}
    matrix: Any = np.gradient(np.eye(like.shape[axis]), *spacing, **options)
    out[...] = np.moveaxis(np.tensordot(matrix, g, axes=((0,), (axis,))), 0, axis)


get_op("gradient_adjoint").set_attribute("ignores", (1,))


def _of_differences(other: str, *, likes: int) -> Any:
    """Return the rule of `gradient`, or of its adjoint: each is the other one's."""

    def rule(node: Any, grads: Any) -> Any:
        x, *rest = node.inputs
        spacing = rest[likes:]
        known = getattr(node, "needs", None)
        if known is not None and any(known[1:]):
            raise GradientError(
                "gradient() has no gradient by the distances of the samples: compute them by weft.autograd.stop_gradient()"
            )
        like = [] if likes else [stand_in(x)]
        found = get_op(other)(grads[0], *like, *spacing, **node.attributes)
        return (cast_like(found, x), *(None,) * len(rest))

    return rule


give(get_op("gradient"), _of_differences("gradient_adjoint", likes=0), ALL_INPUTS & ~1)
give(get_op("gradient_adjoint"), _of_differences("gradient", likes=1), ALL_INPUTS & ~3)


@gradient_of("convolve", each=(2, 1))
def _convolve(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    (n1,), (n2,) = shape_of(x1), shape_of(x2)
    mode, g, short = node.attributes["mode"], grads[0], min(n1, n2)
    start = {"full": 0, "same": short - 1 - short // 2, "valid": short - 1}[mode]
    length = {"full": n1 + n2 - 1, "same": max(n1, n2), "valid": max(n1, n2) - short + 1}[mode]
    full = pad_axis(g, 0, start, n1 + n2 - 1 - start - length)
    found: list[Any] = []
    for at, (x, other) in enumerate(((x1, x2), (x2, x1))):
        if not needs(node, at):
            found.append(None)
            continue
        turned = apply("flip", conjugate(other), axes=(0,))
        found.append(cast_like(get_op("convolve")(full, turned, mode="valid"), x))
    return tuple(found)
