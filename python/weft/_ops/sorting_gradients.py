"""Rules of sorting and of order statistics: gradients go to the selected elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._ops.unbroadcast import apply, cast_like, stand_in
from weft._registry.avals import Aval
from weft._registry.gradients import ALL_INPUTS, give, gradient_of, needs
from weft._registry.op import get_op, register_op
from weft._registry.shapes import Shape, axis_tuple
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import Elements


@gradient_of("sort", inputs=[0])
def _sort(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    order = apply("argsort", x, **node.attributes)
    return (get_op("scatter_along_axis")(grads[0], stand_in(x), order, axis=node.attributes["axis"]),)


@gradient_of("partition", inputs=[0], outputs=[0])
def _partition(node: Any, grads: Any) -> Any:
    """Match elements by their ranks, among operands as among results."""
    x, y = node.inputs[0], node.outputs[0]
    axis = node.attributes["axis"]
    before, after = (apply("argsort", each, axis=axis) for each in (x, y))
    ranked = get_op("take_along_axis")(grads[0], after, axis=axis)
    return (get_op("scatter_along_axis")(ranked, stand_in(x), before, axis=axis),)


def _lines(x: Elements, axis: Shape) -> tuple[Elements, Shape]:
    """Return the reduced axes as one, behind the others, and the shape of the lines."""
    kept = [i for i in range(x.ndim) if i not in axis]
    moved = x.transpose([*kept, *axis])
    shape = moved.shape
    return moved.reshape(-1, int(np.prod([x.shape[i] for i in axis], dtype=np.int64))), shape


def _weights(
    x: Elements, q: Elements, method: str, *, past_nan: bool
) -> list[tuple[Elements, Elements, Elements, Elements, Elements]]:
    """Return for lines of as many numbers: which lines, their elements on both sides of each quantile, and the shares."""
    counts = np.count_nonzero(x == x, axis=1) if past_nan else np.full(x.shape[0], x.shape[1])  # noqa: PLR0124 - not NaN
    found: list[tuple[Elements, Elements, Elements, Elements, Elements]] = []
    for count in np.unique(counts):
        if count:
            lines = np.flatnonzero(counts == count)
            options: dict[str, Any] = {"method": method}
            # For the numbers 0, 1, 2 ... a quantile is its own place.
            place = np.atleast_1d(np.quantile(np.arange(count, dtype=np.float64), q, **options)).reshape(-1)
            low = np.floor(place).astype(np.intp)
            high = np.ceil(place).astype(np.intp)
            order = np.argsort(x[lines], axis=1, kind="stable")
            share = place - low
            found.append((lines, order[:, low], order[:, high], 1 - share, share))
    return found


def _wanted(q: Any, qs: tuple[Elements, ...]) -> Elements:
    return np.asarray(qs[0] if qs else q, np.float64)


def _infer_gradient(g: Aval, x: Aval, *qs: Aval, **_: object) -> Aval:
    del qs
    return Aval(x.shape, g.dtype)


@register_op("quantile_gradient", infer=_infer_gradient)
def _quantile_gradient(
    out: Elements,
    g: Elements,
    x: Elements,
    *qs: Elements,
    axis: Shape | None,
    q: Any,
    method: str,
    past_nan: bool,
) -> None:
    axes = axis_tuple(axis, x.ndim)
    lines, shape = _lines(x, axes)
    wanted = _wanted(q, qs)
    by_quantile = g.reshape(max(wanted.size, 1), -1)
    found = np.zeros(lines.shape, out.dtype)
    for rows, low, high, first, second in _weights(lines, wanted, method, past_nan=past_nan):
        given = by_quantile[:, rows].T
        np.add.at(found, (rows[:, None], low), given * first)
        np.add.at(found, (rows[:, None], high), given * second)
    kept = [i for i in range(x.ndim) if i not in axes]
    np.copyto(out, found.reshape(shape).transpose(np.argsort([*kept, *axes])))


def _infer_follow(t: Aval, x: Aval, like: Aval, *qs: Aval, **_: object) -> Aval:
    del x, qs
    return Aval(like.shape, t.dtype)


@register_op("quantile_follow", infer=_infer_follow)
def _quantile_follow(
    out: Elements,
    t: Elements,
    x: Elements,
    like: Elements,
    *qs: Elements,
    axis: Shape | None,
    q: Any,
    method: str,
    past_nan: bool,
) -> None:
    """Combine elements of `t` as those of `x` make its quantiles."""
    del like
    axes = axis_tuple(axis, x.ndim)
    (lines, _), (moved, _) = _lines(x, axes), _lines(t, axes)
    wanted = _wanted(q, qs)
    found: Elements = np.zeros((max(wanted.size, 1), lines.shape[0]), out.dtype)
    for rows, low, high, first, second in _weights(lines, wanted, method, past_nan=past_nan):
        found[:, rows] = (moved[rows[:, None], low] * first + moved[rows[:, None], high] * second).T
    np.copyto(out, found.reshape(out.shape))


def _options(node: Any, past_nan: bool | None) -> dict[str, Any]:
    known = node.attributes
    return {
        "axis": known.get("axis"),
        "q": known.get("q", 0.5) if past_nan is None else 0.5,
        "method": known.get("method", "linear"),
        "past_nan": known.get("past_nan", False) if past_nan is None else past_nan,
    }


def _rule_of(past_nan: bool | None) -> Callable[..., Any]:
    def rule(node: Any, grads: Any) -> Any:
        x, *qs = node.inputs
        if qs and needs(node, 1) and getattr(node, "needs", None) is not None:
            raise GradientError("quantile() has no gradient by q: compute q by weft.autograd.stop_gradient()")
        found = get_op("quantile_gradient")(grads[0], x, *qs, **_options(node, past_nan))
        return (cast_like(found, x), *(None,) * len(qs))

    return rule


for _name, _past in (("median", False), ("nanmedian", True), ("quantile", None)):
    give(get_op(_name), _rule_of(_past), ALL_INPUTS)


def _quantile_gradient_rule(node: Any, grads: Any) -> Any:
    g, x, *qs = node.inputs
    found = get_op("quantile_follow")(grads[0], x, stand_in(g), *qs, **node.attributes)
    return (cast_like(found, g), None, *(None,) * len(qs))


give(get_op("quantile_gradient"), _quantile_gradient_rule, ALL_INPUTS & ~1)


def _quantile_follow_rule(node: Any, grads: Any) -> Any:
    t, x, _, *qs = node.inputs
    found = get_op("quantile_gradient")(grads[0], x, *qs, **node.attributes)
    return (cast_like(found, t), None, None, *(None,) * len(qs))


give(get_op("quantile_follow"), _quantile_follow_rule, ALL_INPUTS & ~5)
