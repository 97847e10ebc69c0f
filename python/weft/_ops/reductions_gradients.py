"""Rules of reductions and cumulative functions."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import weft._ops.elementwise as e
from weft._core import NDArray
from weft._ops.dtypes import astype
from weft._ops.manipulation_gradients import pad_axis
from weft._ops.recurrence import recurrence
from weft._ops.unbroadcast import apply, broadcast_like, cast_like, choose, conjugate, is_known, zeros_of
from weft._registry.gradients import gradient_of

if TYPE_CHECKING:
    from collections.abc import Callable


def _kept(g: Any, node: Any) -> Any:
    """Return a result, or its gradient, with the reduced axes kept."""
    axis = node.attributes.get("axis")
    if axis is None or node.attributes.get("keepdims"):
        return g
    return apply("expand_dims", g, axes=axis) if axis else g


def _spread(g: Any, node: Any) -> Any:
    """Return the gradient of a result for each of its elements, and zero for those outside the mask."""
    x = node.inputs[0]
    g = cast_like(broadcast_like(_kept(g, node), x), x)
    return choose(node.inputs[1], g, 0) if len(node.inputs) > 1 else g


def _answer(g: Any, node: Any) -> Any:
    return (g, *(None,) * (len(node.inputs) - 1))


def _count(node: Any, mask: Any = None) -> Any:
    """Return the number of elements of each result."""
    x = node.inputs[0]
    if mask is None and len(node.inputs) > 1:
        mask = node.inputs[1]
    if mask is not None:
        return _total(broadcast_like(mask, x), node)
    if is_known(x):
        axis = node.attributes.get("axis")
        return math.prod(x.shape if axis is None else (x.shape[at] for at in axis))
    return _total(e.equal(zeros_of(x), 0), node)


def _total(x: Any, node: Any, name: str = "sum") -> Any:
    return apply(name, x, axis=node.attributes.get("axis"), keepdims=True)


@gradient_of("sum", inputs=[1])
def _sum(node: Any, grads: Any) -> Any:
    return _answer(_spread(grads[0], node), node)


@gradient_of("mean", inputs=[1])
def _mean(node: Any, grads: Any) -> Any:
    return _answer(_spread(_kept(_wide(grads[0]), node) / _count(node), _with_kept(node)), node)


def _wide(g: Any) -> Any:
    """Return numbers that counts and sums do not leave: those of half precision end at 65504."""
    return astype(g, np.float32) if isinstance(g, NDArray) and g.dtype == np.float16 else g


class _Widened:
    """A node as `_wide` has its first operand."""

    def __init__(self, node: Any) -> None:
        self._node = node
        x, *others = node.inputs
        self.inputs, self.attributes = (_wide(x), *others), node.attributes

    @property
    def outputs(self) -> tuple[Any, ...]:
        return tuple(map(_wide, self._node.outputs))


def _widely(rule: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the rule of a statistic, computed in single precision for operands in half."""

    def wide(node: Any, grads: Any) -> Any:
        found, *others = rule(_Widened(node), [_wide(grads[0])])
        return (cast_like(found, node.inputs[0]), *others)

    return wide


class _with_kept:  # noqa: N801 - what a rule sees, seen otherwise
    """A node with results that keep their reduced axes."""

    def __init__(self, node: Any) -> None:
        self.inputs, self.attributes = node.inputs, {**node.attributes, "keepdims": True}


def _others(x: Any, axis: int) -> Any:
    """Return for each element the product of the others along an axis."""

    def before(x: Any) -> Any:
        return pad_axis(apply("cumulative_prod", x, axis=axis, include_initial=True), axis, 0, -1)

    return before(x) * apply("flip", before(apply("flip", x, axes=(axis,))), axes=(axis,))


@gradient_of("prod", inputs=[0, 1])
def _prod(node: Any, grads: Any) -> Any:
    """Multiply by the product of the others: of those before times of those behind, so zeros do no harm."""
    x = node.inputs[0]
    if len(node.inputs) > 1:
        x = choose(node.inputs[1], x, 1)
    axis = node.attributes.get("axis")
    if axis is None:
        others = apply("reshape_like", _others(apply("reshape", x, shape=(-1,)), 0), x)
    else:
        axes: list[int] = list(axis) if isinstance(axis, tuple) else [axis]  # pyright: ignore[reportUnknownArgumentType] # of integers
        others, rest = _others(x, axes[0]) if axes else None, x
        for done, following in itertools.pairwise(axes):
            rest = apply("prod", rest, axis=done, keepdims=True)
            others = others * _others(rest, following)
        if others is None:
            return _answer(_spread(grads[0], node), node)
    initial = node.attributes.get("initial")
    if initial is not None:
        others = others * initial
    return _answer(_spread(grads[0], node) * conjugate(others), node)


@gradient_of("max", "min", inputs=[0, 1], outputs=[0])
def _extreme(node: Any, grads: Any) -> Any:
    """Share the gradient among the elements that are equal to the result."""
    x = node.inputs[0]
    same = e.equal(x, _kept(node.outputs[0], node))
    if len(node.inputs) > 1:
        same = e.logical_and(same, node.inputs[1])
    initial = node.attributes.get("initial")
    count = _total(same, node)
    if initial is not None:  # it has no gradient, but takes its share
        count = count + e.equal(_kept(node.outputs[0], node), initial)
    return _answer(_spread(grads[0], node) * cast_like(same, x) / cast_like(e.maximum(count, 1), x), node)


@gradient_of("nanmax", "nanmin", inputs=[0], outputs=[0])
def _nan_extreme(node: Any, grads: Any) -> Any:
    return _extreme(node, grads)


@gradient_of("ptp", inputs=[0])
def _ptp(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    first, last = (e.equal(x, _total(x, node, name)) for name in ("min", "max"))
    share = cast_like(last, x) / cast_like(_total(last, node), x) - cast_like(first, x) / cast_like(
        _total(first, node), x
    )
    return (_spread(grads[0], node) * share,)


def _centred(node: Any, mask: Any = None) -> tuple[Any, Any]:
    """Return the distances from the mean, over the corrected count, and zero outside the mask."""
    x = node.inputs[0]
    count = _count(node, mask)
    masked = mask if mask is not None else node.inputs[1] if len(node.inputs) > 1 else None
    kept = x if masked is None else choose(masked, x, 0)
    off = x - _total(kept, node) / count
    if masked is not None:
        off = choose(masked, off, 0)
    correction = node.attributes.get("correction", 0.0)
    return off, _divisor(count, correction)


def _divisor(count: Any, correction: float) -> Any:
    if isinstance(count, int):
        return count - correction if count > correction else math.nan
    return choose(e.greater(count, correction), count - correction, math.nan)


def _plain(node: Any) -> Any:
    """Return the node without a mask, because the product is under the mask already."""
    seen = _with_kept(node)
    seen.inputs = node.inputs[:1]
    return seen


@gradient_of("var", inputs=[0, 1])
@_widely
def _var(node: Any, grads: Any) -> Any:
    off, divisor = _centred(node)
    return _answer(_spread(_kept(grads[0], node) / divisor, _plain(node)) * off * 2, node)


@gradient_of("std", inputs=[0, 1], outputs=[0])
@_widely
def _std(node: Any, grads: Any) -> Any:
    """Return zero for slices of equal elements."""
    off, divisor = _centred(node)
    return _answer(_spread(_kept(_by_deviation(node, grads[0]), node) / divisor, _plain(node)) * off, node)


def _by_deviation(node: Any, g: Any) -> Any:
    y = node.outputs[0]
    flat = e.equal(y, 0)
    return choose(flat, 0, g / choose(flat, 1, y))


@gradient_of("nansum", inputs=[0])
def _nansum(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    return (choose(e.equal(x, x), _spread(grads[0], node), 0),)


@gradient_of("nanmean", inputs=[0])
@_widely
def _nanmean(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    some = e.equal(x, x)
    return (choose(some, _spread(_kept(grads[0], node) / _total(some, node), _plain(node)), 0),)


@gradient_of("nanprod", inputs=[0])
def _nanprod(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    seen = _plain(node)
    seen.inputs = (choose(e.equal(x, x), x, 1),)
    found = _prod(seen, [_kept(grads[0], node)])
    return (choose(e.equal(x, x), found[0], 0),)


@gradient_of("nanvar", inputs=[0])
@_widely
def _nanvar(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    off, divisor = _centred(node, e.equal(x, x))
    return (_spread(_kept(grads[0], node) / divisor, _plain(node)) * off * 2,)


@gradient_of("nanstd", inputs=[0], outputs=[0])
@_widely
def _nanstd(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    off, divisor = _centred(node, e.equal(x, x))
    return (_spread(_kept(_by_deviation(node, grads[0]), node) / divisor, _plain(node)) * off,)


@gradient_of("cumulative_sum")
def _cumulative_sum(node: Any, grads: Any) -> Any:
    axis = node.attributes["axis"]
    g = _without_initial(grads[0], node, axis)
    summed = apply("cumulative_sum", apply("flip", g, axes=(axis,)), axis=axis)
    return (cast_like(apply("flip", summed, axes=(axis,)), node.inputs[0]),)


@gradient_of("cumulative_prod", inputs=[0])
def _cumulative_prod(node: Any, grads: Any) -> Any:
    """For x[j]: the products before it times s[j], with s[j] = g[j] + x[j + 1] s[j + 1]. Zeros do no harm."""
    axis, x = node.attributes["axis"], node.inputs[0]
    if is_known(x) and 0 in x.shape:
        return (zeros_of(x),)
    g = _without_initial(grads[0], node, axis)
    before = apply("cumulative_prod", x, axis=axis, include_initial=True)
    before = pad_axis(before, axis, 0, -1)
    following = pad_axis(conjugate(x), axis, -1, 1)
    return (cast_like(conjugate(before) * recurrence(g, following, axis, reverse=True), x),)


def _without_initial(g: Any, node: Any, axis: int) -> Any:
    return pad_axis(g, axis, -1, 0) if node.attributes.get("include_initial") else g


@gradient_of("diff")
def _diff(node: Any, grads: Any) -> Any:
    g, axis = grads[0], node.attributes["axis"]
    x = node.inputs[0]
    if is_known(x) and x.shape[axis] <= node.attributes["n"]:
        return (zeros_of(x) if node.attributes["n"] else g,)
    for _ in range(node.attributes["n"]):
        g = pad_axis(g, axis, 1, 0) - pad_axis(g, axis, 0, 1)
    return (g,)
