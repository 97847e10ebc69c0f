"""Pooling: the largest element of each window, or the mean of its elements.

``nn.max_pool_data`` puts gradients where the largest elements are, the first of equals as in PyTorch; ``nn.max_pool_take``
takes elements of another array from there. ``nn.avg_pool_data`` is the transpose of ``nn.avg_pool``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._core import Kernel, Native
from weft._nn.arguments import floating, plain, refuse
from weft._nn.facts import along, first, join, takes_plain
from weft._nn.windows import three, windows_of
from weft._ops.unbroadcast import stand_in
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._nn.facts import Shapes
    from weft._nn.windows import Windows
    from weft._registry.shapes import Shape

_SPATIAL = range(1, 4)


def pooled(
    op: str, shape: Shape, *, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False
) -> Windows:
    """Return the windows that a pooling's attributes describe; ValueError where one would lie in the padding alone."""
    found = windows_of(op, shape[2:], kernel, kernel if stride is None else stride, padding, up=ceil_mode)
    if any(max(pair) >= size for pair, size in zip(found.padding, found.kernel, strict=True)):
        raise ArgumentValueError(f"{op}: padding {padding!r} is to be smaller than the kernel {kernel!r}")
    return found


def _kernel(name: str, pool: str, dtype: DType, shape: Shape, include: bool | None, **given: Any) -> Kernel | None:
    if 0 in shape:
        return None
    windows = pooled(name, shape, **given)
    reach = None
    if include:
        reach = three(
            tuple(before + n + after for n, (before, after) in zip(windows.lengths, windows.padding, strict=True)), 1
        )
    return Kernel.pooling(name, pool, dtype, shape[0] * shape[1], windows.described, reach)


def _pooling(name: str, pool: str, *, data: int | None) -> Native:
    """Return the core's pooling; the data, for their shape at least, are operand `data`, or the result."""

    def make(
        results: tuple[Aval, ...], operands: tuple[Aval, ...], *, count_include_pad: bool | None = None, **given: Any
    ) -> Kernel | None:
        shape = results[0].shape if data is None else operands[data].shape
        if pool in ("mean", "to_mean"):
            count_include_pad = count_include_pad is None or count_include_pad
        return _kernel(name, pool, results[0].dtype, shape, count_include_pad, **given)

    return Native.by(make)


def _shapes(op: str) -> Callable[..., tuple[Shapes, Shapes]]:
    def rule(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
        (x,), (out,) = ins, outs
        if x is None:
            return ins, outs
        given = {key: each for key, each in attributes.items() if key != "count_include_pad"}
        counts: Sequence[int | None] = (None,) * (len(x) - 2)
        if None not in x[2:]:
            lengths = tuple(each or 0 for each in x)
            counts = pooled(op, lengths, **given).counts
        batch = tuple(first(a, along(out, at)) for at, a in enumerate(x[:2]))
        return [join(op, "x", x, (*batch, *x[2:]))], [join(op, "the result", out, (*batch, *counts))]

    return rule


def _infer(op: str, x: Aval, **given: Any) -> Aval:
    if len(x.shape) - 2 not in _SPATIAL:
        raise refuse(op, "data (N, C, *spatial) of 1 to 3 spatial dimensions are taken", x=x)
    floating(op, x=x)
    return Aval((*x.shape[:2], *pooled(op, x.shape, **given).counts), x.dtype)


def _infer_max(x: Aval, *, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False) -> Aval:
    return _infer("nn.max_pool", x, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode)


@register_op("nn.max_pool", infer=_infer_max)
def _max_pool(out: Elements, x: Elements, **given: Any) -> None:
    windows = pooled("nn.max_pool", x.shape, **given)
    padded = windows.around(x, -np.inf)
    out.fill(-np.inf)
    for _, where in windows.places():
        np.maximum(out, padded[where], out=out)


state(
    _max_pool,
    infer_shape=_shapes("nn.max_pool"),
    batch="rows",
    infer_type="same",
    layout=takes_plain,
)
_max_pool._run_by(_pooling("nn.max_pool", "largest", data=0))


def _largest(x: Elements, windows: Windows) -> Elements:
    """Return, for each window, the number of the place where the first of its largest elements is; NaN is the largest."""
    shape = (*x.shape[:2], *windows.counts)
    best, found = np.full_like(x, -np.inf, shape=shape), np.full_like(x, -1, dtype=np.int32, shape=shape)
    padded = windows.around(x, -np.inf)
    inside = np.zeros_like(x, dtype=np.bool_, shape=windows.padded)
    inside[windows.inner] = True
    for number, (_, where) in enumerate(windows.places()):
        candidate = padded[where]
        better = (candidate > best) | ((found < 0) & inside[where]) | (np.isnan(candidate) & ~np.isnan(best))
        best = np.where(better, candidate, best)
        found = np.where(better, np.int32(number), found)
    return found


def _infer_max_data(
    g: Aval, x: Aval, *, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False
) -> Aval:
    wanted = _infer("nn.max_pool_data", x, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode)
    if g.shape != wanted.shape:
        raise refuse("nn.max_pool_data", f"gradients are to have shape {wanted.shape}", g=g, x=x)
    return Aval(x.shape, floating("nn.max_pool_data", g=g, x=x))


@register_op("nn.max_pool_data", infer=_infer_max_data)
def _max_pool_data(out: Elements, g: Elements, x: Elements, **given: Any) -> None:
    windows = pooled("nn.max_pool", x.shape, **given)
    chosen = _largest(x, windows)
    padded = np.zeros_like(out, shape=(*x.shape[:2], *windows.padded))
    for number, (_, where) in enumerate(windows.places()):
        padded[where] += np.where(chosen == number, g, 0)
    out[...] = padded[windows.inner]


state(_max_pool_data, infer_type="same")
_max_pool_data._run_by(_pooling("nn.max_pool", "to_largest", data=1))


def _infer_take(
    t: Aval, x: Aval, *, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False
) -> Aval:
    if t.shape != x.shape:
        raise refuse("nn.max_pool_take", "both are to have one shape", t=t, x=x)
    found = _infer("nn.max_pool_take", x, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode)
    return Aval(found.shape, floating("nn.max_pool_take", t=t, x=x))


@register_op("nn.max_pool_take", infer=_infer_take)
def _max_pool_take(out: Elements, t: Elements, x: Elements, **given: Any) -> None:
    windows = pooled("nn.max_pool", x.shape, **given)
    chosen = _largest(x, windows)
    padded = windows.around(t, 0)
    out.fill(0)
    for number, (_, where) in enumerate(windows.places()):
        out += np.where(chosen == number, padded[where], 0)


state(_max_pool_take, infer_type="same")
_max_pool_take._run_by(_pooling("nn.max_pool", "of_largest", data=1))


def _infer_avg(
    x: Aval,
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Aval:
    del count_include_pad
    return _infer("nn.avg_pool", x, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode)


def divisors(windows: Windows, *, count_include_pad: bool) -> list[list[int]]:
    """Return, for each axis and each window along it, the number of elements that count.

    Examples
    --------
    >>> from weft._nn.pooling import divisors
    >>> from weft._nn.windows import windows_of
    >>> divisors(windows_of("nn.avg_pool", (4,), 3, 2, 1), count_include_pad=False)
    [[2, 3]]
    """
    found: list[list[int]] = []
    for length, size, step, (before, after), count in zip(
        windows.lengths, windows.kernel, windows.stride, windows.padding, windows.counts, strict=True
    ):
        first, last = (0, before + length + after) if count_include_pad else (before, before + length)
        found.append([max(min(at * step + size, last) - max(at * step, first), 1) for at in range(count)])
    return found


def _scale(like: Elements, windows: Windows, *, count_include_pad: bool) -> Elements:
    """Return the reciprocal sizes of the windows, of the kind of `like`."""
    found = np.ones(())
    for each in divisors(windows, count_include_pad=count_include_pad):
        found = found[..., None] * np.asarray(each, float)
    return np.asarray(np.reciprocal(found), like.dtype, like=like)


@register_op("nn.avg_pool", infer=_infer_avg)
def _avg_pool(out: Elements, x: Elements, *, count_include_pad: bool = True, **given: Any) -> None:
    windows = pooled("nn.avg_pool", x.shape, **given)
    padded = windows.around(x, 0)
    out.fill(0)
    for _, where in windows.places():
        out += padded[where]
    out *= _scale(x, windows, count_include_pad=count_include_pad)


state(
    _avg_pool,
    infer_shape=_shapes("nn.avg_pool"),
    batch="rows",
    infer_type="same",
    layout=takes_plain,
)
_avg_pool._run_by(_pooling("nn.avg_pool", "mean", data=0))


def _infer_avg_data(
    g: Aval,
    like: Aval,
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Aval:
    del count_include_pad
    wanted = _infer("nn.avg_pool_data", like, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode)
    if g.shape != wanted.shape:
        raise refuse("nn.avg_pool_data", f"gradients are to have shape {wanted.shape}", g=g, x=like)
    return Aval(like.shape, floating("nn.avg_pool_data", g=g))


@register_op("nn.avg_pool_data", infer=_infer_avg_data)
def _avg_pool_data(out: Elements, g: Elements, like: Elements, *, count_include_pad: bool = True, **given: Any) -> None:
    windows = pooled("nn.avg_pool", like.shape, **given)
    scaled = g * _scale(g, windows, count_include_pad=count_include_pad)
    padded = np.zeros_like(out, shape=(*out.shape[:2], *windows.padded))
    for _, where in windows.places():
        padded[where] += scaled
    out[...] = padded[windows.inner]


state(_avg_pool_data, infer_type="same", ignores=(1,))
_avg_pool_data._run_by(_pooling("nn.avg_pool", "to_mean", data=None))


@gradient_of("nn.max_pool", inputs=[0])
def _max_pool_rule(node: Any, grads: Any) -> Any:
    return (get_op("nn.max_pool_data")(grads[0], node.inputs[0], **node.attributes),)


@gradient_of("nn.max_pool_data", inputs=[1])
def _max_pool_data_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.max_pool_take")(grads[0], node.inputs[1], **node.attributes), None


@gradient_of("nn.max_pool_take", inputs=[1])
def _max_pool_take_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.max_pool_data")(grads[0], node.inputs[1], **node.attributes), None


@gradient_of("nn.avg_pool")
def _avg_pool_rule(node: Any, grads: Any) -> Any:
    return (get_op("nn.avg_pool_data")(grads[0], stand_in(node.inputs[0]), **node.attributes),)


@gradient_of("nn.avg_pool_data")
def _avg_pool_data_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.avg_pool")(grads[0], **node.attributes), None


def max_pool(x: ArrayLike, kernel: Any, *, stride: Any = None, padding: Any = 0, ceil_mode: bool = False) -> NDArray:
    """Return the largest element of each window.

    Parameters
    ----------
    x : array_like
        Data of shape ``(N, C, *spatial)``, with 1 to 3 spatial axes.
    kernel : int or sequence of int
        The windows' lengths, for all axes or for each.
    stride : int or sequence of int, optional
        How far they are apart; by default their lengths.
    padding : int, sequence of int, or of pairs (before, after), default: 0
        How much is put around the data, which is never the largest; less than the kernel.
    ceil_mode : bool, default: False
        Whether a window that begins inside and ends outside counts.

    Raises
    ------
    ShapeError
        If a window is larger than the padded data.
    ValueError
        If a stride is 0, or windows would lie in the padding alone.

    Examples
    --------
    >>> import weft
    >>> weft.nn.max_pool([[[1.0, 3.0, 2.0, 5.0, 4.0]]], 2).tolist()
    [[[3.0, 5.0]]]
    >>> weft.nn.max_pool([[[1.0, 3.0, 2.0, 5.0, 4.0]]], 2, ceil_mode=True).tolist()
    [[[3.0, 5.0, 4.0]]]
    """
    return one(_max_pool, x, **_attributes(kernel, stride, padding, ceil_mode=ceil_mode))


def avg_pool(
    x: ArrayLike,
    kernel: Any,
    *,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> NDArray:
    """Return the mean of each window; parameters as in `max_pool`.

    Parameters
    ----------
    x, kernel, stride, padding, ceil_mode
        See `max_pool`.
    count_include_pad : bool, default: True
        Whether the zeros around the data count as elements.

    Examples
    --------
    >>> import weft
    >>> weft.nn.avg_pool([[[1.0, 3.0, 2.0, 6.0]]], 2).tolist()
    [[[2.0, 4.0]]]
    """
    attributes = _attributes(kernel, stride, padding, ceil_mode=ceil_mode)
    return one(_avg_pool, x, **attributes, count_include_pad=bool(count_include_pad))


def _attributes(kernel: Any, stride: Any, padding: Any, *, ceil_mode: bool) -> dict[str, Any]:
    return {"kernel": plain(kernel), "stride": plain(stride), "padding": plain(padding), "ceil_mode": bool(ceil_mode)}
