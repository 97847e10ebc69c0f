"""A linear recurrence along an axis, for gradients of cumulative products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._ops.unbroadcast import conjugate
from weft._registry.avals import Aval, result_dtype
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft._registry.shapes import axis_index
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from weft._call.calls import Elements


def _infer(g: Aval, x: Aval, *, axis: int, reverse: bool) -> Aval:
    del reverse
    axis_index(axis, len(g.shape))
    if g.shape != x.shape:
        raise ArgumentValueError(f"a recurrence takes arrays of one shape, got {g.shape} and {x.shape}")
    return Aval(g.shape, result_dtype(g, x))


@register_op("recurrence", infer=_infer)
def _recurrence(out: Elements, g: Elements, x: Elements, *, axis: int, reverse: bool) -> None:
    along, factors = (np.moveaxis(each, axis, 0) for each in (out, x))
    along[...] = np.moveaxis(g, axis, 0)
    if reverse:
        along, factors = along[::-1], factors[::-1]
    for at in range(1, along.shape[0]):
        along[at] += factors[at] * along[at - 1]


def recurrence(g: Any, x: Any, axis: int, *, reverse: bool = False) -> Any:
    """Return s with s[j] = g[j] + x[j] s[j - 1] along `axis`, or s[j + 1] for `reverse`.

    Examples
    --------
    >>> import weft
    >>> from weft._ops.recurrence import recurrence
    >>> recurrence(weft.asarray([1.0, 1.0, 1.0]), weft.asarray([0.0, 2.0, 3.0]), 0)
    NDArray([ 1.,  3., 10.])
    """
    return get_op("recurrence")(g, x, axis=axis, reverse=reverse)


@gradient_of("recurrence", inputs=[1], outputs=[0])
def _recurrence_rule(node: Any, grads: Any) -> Any:
    """Run the gradients in the other direction, by the factor of the next step."""
    from weft._ops.manipulation_gradients import pad_axis  # noqa: PLC0415 - a circle at import

    axis, reverse = node.attributes["axis"], node.attributes["reverse"]
    x, s = node.inputs[1], node.outputs[0]
    ahead, behind = ((0, 1), (1, 0)) if reverse else ((1, 0), (0, 1))

    def moved(each: Any, to: tuple[int, int]) -> Any:
        """Return the elements moved by one along the axis, with a zero at the free end."""
        before, after = to
        return pad_axis(pad_axis(each, axis, before, after), axis, -after, -before)

    dg = recurrence(grads[0], moved(conjugate(x), behind), axis, reverse=not reverse)
    return dg, dg * conjugate(moved(s, ahead))
