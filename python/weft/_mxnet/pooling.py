"""Windows without weights: pooling by both conventions, and its opposite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.any_layout import data_layout, in_plain, windows_lie
from weft._mxnet.layouts import pooling as pooling_layouts
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, choice, flag, integer, optional, shape
from weft._mxnet.shapes_of_windows import padding_of, pooled, pooling, spread
from weft._nn import namespace as nn
from weft._numpy import namespace
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes

_SETTINGS = Settings(
    ("cudnn_off",),
    kernel=(shape, ()),
    stride=(shape, ()),
    pad=(shape, ()),
    pool_type=(choice("max", "avg", "sum", "lp"), "max"),
    pooling_convention=(choice("valid", "full", "same"), "valid"),
    global_pool=(flag, False),
    p_value=(optional(integer), None),
    count_include_pad=(optional(flag), None),
    layout=(optional(data_layout), None),
)


def _windows(s: Any, data: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Return kernel, stride, and padding before and after each axis such that windows end where it does."""
    count = data.ndim - 2
    kernel = spread(s.kernel, count, 1, "kernel")
    stride, pad = spread(s.stride, count, 1, "stride"), padding_of(s, count)
    pads: list[tuple[int, int]] = []
    for at, (length, made) in enumerate(zip(data.shape[2:], pooled(s, data.shape[2:]), strict=True)):
        assert made is not None
        reach = (made - 1) * stride[at] + kernel[at]
        before = pad[at]
        if s.pooling_convention == "same":
            before = max(0, reach - length) // 2
        pads.append((before, max(reach - length - before, 0)))
    return kernel, stride, tuple(pads)


def _counts(s: Any, data: Any, kernel: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """Return the number of elements that divides the sum of each window: padding counts, places behind it do not."""
    count = data.ndim - 2
    pad = padding_of(s, count)
    found: Any = np.ones((1,) * count)
    for at, (length, made) in enumerate(zip(data.shape[2:], pooled(s, data.shape[2:]), strict=True)):
        first = np.arange(made or 0) * stride[at] - pad[at]
        last = np.minimum(first + kernel[at], length + pad[at])
        if s.count_include_pad is False:
            first, last = np.maximum(first, 0), np.minimum(last, length)
        sizes = np.maximum(last - first, 1)
        found = found * sizes.reshape(*(1,) * at, -1, *(1,) * (count - at - 1))
    return found


@operator("Pooling", "Pooling_v1", "_npx_pooling", settings=_SETTINGS, shapes=pooling, layout=pooling_layouts)
@in_plain(windows_lie)
def _pooling(s: Any, data: Any) -> Any:
    if s.pool_type == "lp":
        power = s.p_value or 2
        return _reduced(s, abs(data) ** power, "sum") ** (1.0 / power)
    return _reduced(s, data, s.pool_type)


def _reduced(s: Any, data: Any, kind: str) -> Any:
    """Return the largest element, the mean or the sum of each window."""
    if s.global_pool:
        reduce: Any = {"max": namespace.max, "avg": namespace.mean, "sum": namespace.sum}[kind]
        return reduce(data, axis=tuple(range(2, data.ndim)), keepdims=True)
    kernel, stride, pads = _windows(s, data)
    if kind == "max":
        return nn.max_pool(data, kernel, stride=stride, padding=pads)
    mean = nn.avg_pool(data, kernel, stride=stride, padding=pads)
    size = math.prod(kernel)
    if kind == "sum":
        return mean * size
    counts = _counts(s, data, kernel, stride)
    if (counts == size).all():
        return mean
    return mean * namespace.asarray((size / counts).astype(data.dtype), engine=data.engine)


def _up_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    if s.sample_type == "bilinear":
        size = 2 * s.scale - s.scale % 2
        known = ins[0]
        channels = ins.length(0, 1)
        ins.learn(1, (channels, 1, size, size))
        if known is not None:
            outs.learn(0, (*known[:2], *(None if each is None else each * s.scale for each in known[2:])))
        return
    first = ins[0]
    if first is None:
        return
    if len(first) != 4:  # (n, c, h, w)
        raise ShapeError(f"UpSampling takes data (n, c, h, w), and got {first}")
    lengths = tuple(None if each is None else each * s.scale for each in first[2:])
    widths = [ins.length(at, 1) for at in range(len(ins))]
    summed = s.multi_input_mode == "sum"
    total = widths[0] if summed else None if None in widths else sum(each or 0 for each in widths)
    outs.learn(0, (first[0], total, *lengths))


def _up_inputs(s: Any) -> tuple[str, ...] | None:
    if s.sample_type == "bilinear":
        return ("data", "weight")
    if s.num_args is None:  # as many as are given
        return None
    return tuple(f"arg{at}" for at in range(s.num_args)) if s.num_args > 1 else ("data",)


def _repeated(data: Any, by: int) -> Any:
    return namespace.repeat(namespace.repeat(data, by, axis=2), by, axis=3) if by > 1 else data


@operator(
    "UpSampling",
    settings=Settings(
        ("workspace",),
        scale=(integer, REQUIRED),
        num_filter=(integer, 0),
        sample_type=(choice("nearest", "bilinear"), REQUIRED),
        multi_input_mode=(choice("concat", "sum"), "concat"),
        num_args=(integer, None),
    ),
    inputs=_up_inputs,
    shapes=_up_shapes,
)
def _up_sampling(s: Any, *data: Any) -> Any:
    if s.sample_type == "bilinear":
        x, weight = data
        kernel = 2 * s.scale - s.scale % 2
        pad = -(-(s.scale - 1) // 2)
        return nn.conv_transpose(x, weight, stride=s.scale, padding=pad, groups=x.shape[1]) if kernel else x
    height = data[0].shape[2] * s.scale
    grown: list[Any] = []
    for x in data:
        if height % x.shape[2]:
            raise GraphError(f"UpSampling: data of shape {x.shape} cannot grow to a height of {height}")
        grown.append(_repeated(x, height // x.shape[2]))
    if len(grown) == 1:
        return grown[0]
    if s.multi_input_mode == "sum":
        total = grown[0]
        for each in grown[1:]:
            total = total + each
        return total
    return namespace.concat(grown, axis=1)
