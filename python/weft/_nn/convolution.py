"""Convolutions: the op, its transpose, and the two that are their gradients.

Each of the three products of data, weights and results is linear in its two operands, and the gradients of each are the
other two: so there are gradients of any order.

| op | of | gives |
|---|---|---|
| ``nn.conv`` | data, weights, maybe a bias | results |
| ``nn.conv_data`` | results, weights, maybe data, for their shape | data |
| ``nn.conv_weight`` | data, results, maybe weights, for their shape | weights |

The computations here are a product of matrices for each place of the kernel, on NumPy's arrays or on CuPy's.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._core import Kernel, Native
from weft._nn.arguments import describe, fixed, floating, known, plain, refuse
from weft._nn.channels import channel_sum
from weft._nn.facts import along, cost_of, divided, elements, first, join, rank_of, takes_plain, times
from weft._nn.onednn import onednn
from weft._nn.windows import numbers, pads, windows_of
from weft._ops.unbroadcast import is_known
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft.errors import ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._nn.facts import Partial, Shapes
    from weft._nn.windows import Windows
    from weft._registry.shapes import Shape

_SPATIAL = range(1, 4)


def check_ranks(op: str, x: Aval, weight: Aval) -> int:
    """Return the number of spatial axes."""
    count = len(x.shape) - 2
    if count not in _SPATIAL or len(weight.shape) != len(x.shape):
        why = "data (N, C, *spatial) and weights (O, C / groups, *kernel) of 1 to 3 spatial dimensions are taken"
        raise refuse(op, why, x=x, weight=weight)
    return count


def check_groups(op: str, groups: Any, channels: int, filters: int, **avals: Aval) -> int:
    if not isinstance(groups, int) or groups < 1:
        raise ArgumentValueError(f"{op}: groups is a number of at least 1, not {groups!r}")
    if channels % groups or filters % groups:
        raise refuse(op, f"{channels} channels and {filters} filters do not both divide into {groups} groups", **avals)
    return groups


def _windows(
    op: str, lengths: Shape, kernel: Shape, stride: Any, padding: Any, dilation: Any, **avals: Aval
) -> Windows:
    try:
        return windows_of(op, lengths, kernel, stride, padding, dilation)
    except ShapeError as error:
        raise ShapeError(f"{error}; {describe(**avals)}") from None


def convolved(
    op: str,
    lengths: Shape,
    size: Shape,
    /,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    **_: Any,
) -> tuple[Windows, int]:
    """Return the windows and the groups that a convolution's attributes describe; the others are said of shapes.

    Examples
    --------
    >>> from weft._nn.convolution import convolved
    >>> windows, groups = convolved("nn.conv", (8,), (3,), stride=2, filters=4)
    >>> windows.counts, groups
    ((3,), 1)
    """
    return windows_of(op, lengths, size, stride, padding, dilation), groups


@lru_cache(maxsize=1024)
def product(
    name: str, product: str, dtype: DType, data: Shape, weight: Shape, results: Shape, bias: bool, **given: Any
) -> Kernel | None:
    """Return the core's kernel of one of a convolution's products, given the shapes of all three."""
    windows, groups = convolved(name, data[2:], weight[2:], **given)
    if windows.counts != results[2:] or 0 in (*data, *weight, *results):
        return None
    onednn()
    sizes = [data[0], data[1], results[1], groups]
    return Kernel.convolution(name, product, dtype, sizes, windows.described, bias)


def rank_of_kernel(attributes: dict[str, Any]) -> int | None:
    """Return the number of axes of data, if a convolution's attributes tell it."""
    said: Any = attributes.get("kernel")
    return len(said) + 2 if said.__class__ is tuple else None


def kernel_lengths(op: str, attributes: dict[str, Any], weight: Partial, count: int) -> tuple[int | None, ...]:
    """Return the lengths of a kernel, where they are known."""
    said = attributes.get("kernel")
    if said is not None:
        return numbers(op, "kernel", said, count)
    return (None,) * count if weight is None else tuple(weight[2:])


def _infer_conv(
    x: Aval,
    weight: Aval,
    *bias: Aval,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    filters: int | None = None,
    kernel: Any = None,
) -> Aval:
    op = "nn.conv"
    count = check_ranks(op, x, weight)
    out, each = weight.shape[:2]
    check_groups(op, groups, x.shape[1], out, x=x, weight=weight)
    if x.shape[1] != each * groups:
        why = f"{x.shape[1]} channels in {groups} groups ask for weights of {x.shape[1] // groups} channels each"
        raise refuse(op, why, x=x, weight=weight)
    if (filters is not None and filters != out) or (
        kernel is not None and numbers(op, "kernel", kernel, count) != weight.shape[2:]
    ):
        raise refuse(op, f"weights of filters={filters}, kernel={kernel} were asked for", weight=weight)
    dtype = floating(op, x=x, weight=weight, bias=bias[0] if bias else None)
    if bias:
        fixed(op, "bias", bias[0], (out,), weight=weight)
    found = _windows(op, x.shape[2:], weight.shape[2:], stride, padding, dilation, x=x, weight=weight)
    return Aval((x.shape[0], out, *found.counts), dtype)


def _counts(op: str, attributes: dict[str, Any], shape: Partial, kernel: Partial) -> list[int | None]:
    """Return how many windows there are along each axis, where lengths are known."""
    assert shape is not None and kernel is not None  # noqa: PT018 - for the type checker
    count = len(kernel)
    stride = numbers(op, "stride", attributes.get("stride", 1), count)
    dilation = numbers(op, "dilation", attributes.get("dilation", 1), count)
    padding = pads(op, attributes.get("padding", 0), count)
    found: list[int | None] = []
    for at in range(count):
        length, size = shape[at + 2], kernel[at]
        if length is None or size is None:
            found.append(None)
        else:
            found += windows_of(op, (length,), size, stride[at], (padding[at],), dilation[at]).counts
    return found


def _conv_shapes(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op = "nn.conv"
    (x, weight, *bias), (out,) = ins, outs
    rank = rank_of(x, weight, out) or rank_of_kernel(attributes)
    if rank is None:
        return ins, outs
    groups, count = attributes.get("groups", 1), rank - 2
    filters = first(attributes.get("filters"), along(weight, 0), along(out, 1), *(along(each, 0) for each in bias))
    channels = first(along(x, 1), times(along(weight, 1), groups))
    kernel = kernel_lengths(op, attributes, weight, count)
    weight = join(op, "weight", weight, (filters, divided(channels, groups), *kernel))
    batch = first(along(x, 0), along(out, 0))
    x = join(op, "x", x, (batch, channels, *(None,) * count))
    out = join(op, "the result", out, (batch, filters, *_counts(op, attributes, x, tuple(weight or ())[2:])))
    return [x, weight, *(join(op, "bias", each, (filters,)) for each in bias)], [out]


def _grouped(x: Elements, groups: int) -> Elements:
    """Return data as (N, groups, C / groups, elements)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, math.prod(x.shape[2:]))


def _place(weight: Elements, place: Any, groups: int) -> Elements:
    """Return the weights of one place of the kernel as (groups, O / groups, C / groups)."""
    found: Elements = weight[place].reshape(groups, weight.shape[0] // groups, weight.shape[1])
    return found


@register_op("nn.conv", infer=_infer_conv)
def _conv(out: Elements, x: Elements, weight: Elements, *bias: Elements, **given: Any) -> None:
    windows, groups = convolved("nn.conv", x.shape[2:], weight.shape[2:], **given)
    padded = windows.around(x)
    total = np.zeros_like(out, shape=(out.shape[0], groups, out.shape[1] // groups, math.prod(windows.counts)))
    for place, where in windows.places():
        total += np.matmul(_place(weight, place, groups), _grouped(padded[where], groups))
    out[...] = total.reshape(out.shape)
    if bias:
        out += bias[0].reshape(-1, *(1,) * (out.ndim - 2))


def _make_conv(results: tuple[Aval, ...], operands: tuple[Aval, ...], **attributes: Any) -> Kernel | None:
    (out,), (x, weight) = results, operands[:2]
    shapes, bias = (x.shape, weight.shape, out.shape), len(operands) > 2  # data and weights
    return product("nn.conv", "results", out.dtype, *shapes, bias, **attributes)


state(
    _conv,
    infer_shape=_conv_shapes,
    batch="rows",
    infer_type="same",
    layout=takes_plain,
    cost=cost_of(lambda x, w: elements(w) * elements(x) / max(x[1], 1)),
)
_conv._run_by(Native.by(_make_conv))


def _lengths(op: str, g: Aval, like: tuple[Aval, ...], size: Any) -> Shape:
    """Return the lengths of data that are the gradient's."""
    if like:
        return like[0].shape[2:]
    return numbers(op, "size", size, len(g.shape) - 2)


def _infer_data(
    g: Aval,
    weight: Aval,
    *like: Aval,
    size: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Aval:
    op = "nn.conv_data"
    check_ranks(op, g, weight)
    lengths = _lengths(op, g, like, size)
    check_groups(op, groups, weight.shape[1] * groups, g.shape[1], g=g, weight=weight)
    found = _windows(op, lengths, weight.shape[2:], stride, padding, dilation, g=g, weight=weight)
    if g.shape[1:] != (weight.shape[0], *found.counts):
        why = f"results of data of lengths {lengths} have shape (N, {weight.shape[0]}, *{found.counts})"
        raise refuse(op, why, g=g, weight=weight)
    return Aval((g.shape[0], weight.shape[1] * groups, *lengths), floating(op, g=g, weight=weight))


def add_data(out: Elements, g: Elements, weight: Elements, windows: Windows, groups: int) -> None:
    """Write the gradient of the data, from `g`, that of the results."""
    padded = np.zeros_like(out, shape=(*out.shape[:2], *windows.padded))
    given = _grouped(g, groups)
    for place, where in windows.places():
        part = np.matmul(np.swapaxes(_place(weight, place, groups), -1, -2), given)
        padded[where] += part.reshape(*out.shape[:2], *windows.counts)
    out[...] = padded[windows.inner]


@register_op("nn.conv_data", infer=_infer_data)
def _conv_data(out: Elements, g: Elements, weight: Elements, *like: Elements, **given: Any) -> None:
    del like  # its shape is the result's
    windows, groups = convolved("nn.conv_data", out.shape[2:], weight.shape[2:], **given)
    add_data(out, g, weight, windows, groups)


def _make_data(results: tuple[Aval, ...], operands: tuple[Aval, ...], **attributes: Any) -> Kernel | None:
    (out,), (g, weight) = results, operands[:2]
    return product("nn.conv_data", "data", out.dtype, out.shape, weight.shape, g.shape, False, **attributes)


state(
    _conv_data,
    infer_type="same",
    ignores=(2,),
    cost=cost_of(lambda g, w: elements(g) * elements(w) / max(w[0], 1)),
)
_conv_data._run_by(Native.by(_make_data))


def _infer_weight(
    x: Aval,
    g: Aval,
    *like: Aval,
    kernel: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Aval:
    op = "nn.conv_weight"
    count = check_ranks(op, x, g)
    size = like[0].shape[2:] if like else numbers(op, "kernel", kernel, count)
    check_groups(op, groups, x.shape[1], g.shape[1], x=x, g=g)
    found = _windows(op, x.shape[2:], size, stride, padding, dilation, x=x, g=g)
    if g.shape[0] != x.shape[0] or g.shape[2:] != found.counts:
        raise refuse(op, f"results of a kernel of {size} have shape ({x.shape[0]}, O, *{found.counts})", x=x, g=g)
    return Aval((g.shape[1], x.shape[1] // groups, *size), floating(op, x=x, g=g))


@register_op("nn.conv_weight", infer=_infer_weight)
def _conv_weight(out: Elements, x: Elements, g: Elements, *like: Elements, **given: Any) -> None:
    del like  # its shape is the result's
    windows, groups = convolved("nn.conv_weight", x.shape[2:], out.shape[2:], **given)
    padded = windows.around(x)
    results = _grouped(g, groups)
    for place, where in windows.places():
        data = np.swapaxes(_grouped(padded[where], groups), -1, -2)
        out[place] = np.matmul(results, data).sum(0).reshape(out.shape[:2])


def _make_weight(results: tuple[Aval, ...], operands: tuple[Aval, ...], **attributes: Any) -> Kernel | None:
    (out,), (x, g) = results, operands[:2]
    return product("nn.conv_weight", "weights", out.dtype, x.shape, out.shape, g.shape, False, **attributes)


state(
    _conv_weight,
    infer_type="same",
    ignores=(2,),
    cost=cost_of(lambda x, g: elements(x) * elements(g) / max(g[0], 1)),
)
_conv_weight._run_by(Native.by(_make_weight))


_WINDOW = ("stride", "padding", "dilation", "groups")


def window_attributes(node: Any) -> dict[str, Any]:
    """Return the attributes that all of these ops have."""
    return {name: node.attributes[name] for name in _WINDOW if name in node.attributes}


def _data_like(g: Any, weight: Any, like: Any, shared: dict[str, Any]) -> Any:
    if is_known(like):
        return get_op("nn.conv_data")(g, weight, size=like.shape[2:], **shared)
    return get_op("nn.conv_data")(g, weight, like, **shared)


def weight_like(x: Any, g: Any, like: Any, shared: dict[str, Any]) -> Any:
    if is_known(like):
        return get_op("nn.conv_weight")(x, g, kernel=like.shape[2:], **shared)
    return get_op("nn.conv_weight")(x, g, like, **shared)


@gradient_of("nn.conv", inputs=[0, 1])
def _conv_rule(node: Any, grads: Any) -> Any:
    x, weight = node.inputs[:2]
    shared, g = window_attributes(node), grads[0]
    dx = _data_like(g, weight, x, shared) if needs(node, 0) else None
    dw = weight_like(x, g, weight, shared) if needs(node, 1) else None
    return dx, dw, *(channel_sum(g) if needs(node, at) else None for at in range(2, len(node.inputs)))


@gradient_of("nn.conv_data", inputs=[0, 1])
def _conv_data_rule(node: Any, grads: Any) -> Any:
    g, weight = node.inputs[:2]
    shared, t = window_attributes(node), grads[0]
    dg = get_op("nn.conv")(t, weight, **shared) if needs(node, 0) else None
    dw = weight_like(t, g, weight, shared) if needs(node, 1) else None
    return dg, dw, *(None for _ in node.inputs[2:])


@gradient_of("nn.conv_weight", inputs=[0, 1])
def _conv_weight_rule(node: Any, grads: Any) -> Any:
    x, g = node.inputs[:2]
    shared, t = window_attributes(node), grads[0]
    dx = _data_like(g, t, x, shared) if needs(node, 0) else None
    dg = get_op("nn.conv")(x, t, **shared) if needs(node, 1) else None
    return dx, dg, *(None for _ in node.inputs[2:])


def conv(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    filters: int | None = None,
    kernel: Any = None,
) -> NDArray:
    """Convolve data with weights along their spatial axes, as networks do: without turning the kernel round.

    Parameters
    ----------
    x : array_like
        Data of shape ``(N, C, *spatial)``, with 1 to 3 spatial axes, of float32 or float64.
    weight : array_like
        Shape ``(O, C / groups, *kernel)``.
    bias : array_like, optional
        Shape ``(O,)``: a number for each channel, added to the results.
    stride, dilation : int or sequence of int, default: 1
        How far windows are apart, and elements in a window, along all axes or along each.
    padding : int, sequence of int, or of pairs (before, after), default: 0
        How many zeros are put around the data.
    groups : int, default: 1
        In how many groups of channels data and results fall, each with weights of its own.
    filters : int, optional
        O; the shapes of symbols' weights follow from it.
    kernel : int or sequence of int, optional
        The kernel's lengths, likewise.

    Returns
    -------
    NDArray
        Shape ``(N, O, *counts)``.

    Raises
    ------
    ShapeError
        If shapes do not fit, or the kernel is larger than the padded data.
    ValueError
        If a stride is 0, or groups do not divide channels and filters.
    TypeError
        If elements are no real floating-point numbers.

    Examples
    --------
    >>> import weft
    >>> x = weft.ones((1, 1, 4, 4), dtype="float32")
    >>> print(weft.nn.conv(x, weft.ones((1, 1, 3, 3), dtype="float32"), stride=2, padding=1)[0, 0])
    [[4. 6.]
     [6. 9.]]
    """
    return call("nn.conv", x, weight, bias, stride, padding, dilation, groups, filters=filters, kernel=kernel)


def call(
    name: str, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any, **more: Any
) -> NDArray:
    x = as_array(x)
    operands = [x, as_array(weight, x), *([] if bias is None else [as_array(bias, x)])]
    given = {name: plain(value) for name, value in more.items()}
    return one(
        get_op(name),
        *operands,
        stride=plain(stride),
        padding=plain(padding),
        dilation=plain(dilation),
        groups=plain(groups),
        **known(**given),
    )
