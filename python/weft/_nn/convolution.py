"""Convolutions: the op, its transpose, and the two that are their gradients.

Each of the three products of data, weights and results is linear in its two operands, and the gradients of each are the
other two: so there are gradients of any order.

| op | of | gives |
|---|---|---|
| ``nn.conv`` | data, weights, maybe a bias | results |
| ``nn.conv_data`` | results, weights, maybe data, of which the shape counts | data |
| ``nn.conv_weight`` | data, results, maybe weights, of which the shape counts | weights |

The computations here are a product of matrices for each place of the kernel, on NumPy's arrays or on CuPy's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._nn.arguments import describe, fixed, floating, known, plain, refuse
from weft._nn.channels import channel_sum
from weft._nn.windows import Windows, numbers, pads, windows_of
from weft._ops.unbroadcast import is_known
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft.errors import ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._registry.shapes import Shape

_SPATIAL = range(1, 4)


def _check_ranks(op: str, x: Aval, weight: Aval) -> int:
    """Return the number of spatial axes."""
    count = len(x.shape) - 2
    if count not in _SPATIAL or len(weight.shape) != len(x.shape):
        why = "data (N, C, *spatial) and weights (O, C / groups, *kernel) of 1 to 3 spatial dimensions are taken"
        raise refuse(op, why, x=x, weight=weight)
    return count


def _check_groups(op: str, groups: Any, channels: int, filters: int, **avals: Aval) -> int:
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
    count = _check_ranks(op, x, weight)
    out, each = weight.shape[:2]
    _check_groups(op, groups, x.shape[1], out, x=x, weight=weight)
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
    _check_ranks(op, g, weight)
    lengths = _lengths(op, g, like, size)
    _check_groups(op, groups, weight.shape[1] * groups, g.shape[1], g=g, weight=weight)
    found = _windows(op, lengths, weight.shape[2:], stride, padding, dilation, g=g, weight=weight)
    if g.shape[1:] != (weight.shape[0], *found.counts):
        why = f"results of data of lengths {lengths} have shape (N, {weight.shape[0]}, *{found.counts})"
        raise refuse(op, why, g=g, weight=weight)
    return Aval((g.shape[0], weight.shape[1] * groups, *lengths), floating(op, g=g, weight=weight))


def _add_data(out: Elements, g: Elements, weight: Elements, windows: Windows, groups: int) -> None:
    """Write the data of which `g` is the gradient of the results."""
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
    _add_data(out, g, weight, windows, groups)


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
    count = _check_ranks(op, x, g)
    size = like[0].shape[2:] if like else numbers(op, "kernel", kernel, count)
    _check_groups(op, groups, x.shape[1], g.shape[1], x=x, g=g)
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


def _transposed_lengths(
    op: str, x: Aval, kernel: Shape, stride: Any, padding: Any, output_padding: Any, dilation: Any
) -> Shape:
    """Return the lengths of the results of a transposed convolution."""
    count = len(kernel)
    steps = numbers(op, "stride", stride, count)
    apart = numbers(op, "dilation", dilation, count)
    extra = numbers(op, "output_padding", output_padding, count, least=0)
    found: list[int] = []
    for length, size, step, (before, after), each, more in zip(
        x.shape[2:], kernel, steps, pads(op, padding, count), apart, extra, strict=True
    ):
        if more >= max(step, each):
            raise ArgumentValueError(
                f"{op}: output_padding {output_padding!r} is to be smaller than stride {stride!r} or dilation {dilation!r}"
            )
        found.append((length - 1) * step - before - after + (size - 1) * each + 1 + more)
    if min(found) < 1:
        raise refuse(op, f"the results would have lengths {tuple(found)}: there is too much padding {padding!r}", x=x)
    return tuple(found)


def _infer_transpose(
    x: Aval,
    weight: Aval,
    *bias: Aval,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    filters: int | None = None,
    kernel: Any = None,
) -> Aval:
    op = "nn.conv_transpose"
    count = _check_ranks(op, x, weight)
    out = weight.shape[1] * groups
    _check_groups(op, groups, x.shape[1], out, x=x, weight=weight)
    if x.shape[1] != weight.shape[0]:
        raise refuse(
            op, f"{x.shape[1]} channels ask for weights ({x.shape[1]}, O / groups, *kernel)", x=x, weight=weight
        )
    if (filters is not None and filters != out) or (
        kernel is not None and numbers(op, "kernel", kernel, count) != weight.shape[2:]
    ):
        raise refuse(op, f"weights of filters={filters}, kernel={kernel} were asked for", weight=weight)
    dtype = floating(op, x=x, weight=weight, bias=bias[0] if bias else None)
    if bias:
        fixed(op, "bias", bias[0], (out,), weight=weight)
    lengths = _transposed_lengths(op, x, weight.shape[2:], stride, padding, output_padding, dilation)
    return Aval((x.shape[0], out, *lengths), dtype)


@register_op("nn.conv_transpose", infer=_infer_transpose)
def _conv_transpose(out: Elements, x: Elements, weight: Elements, *bias: Elements, **given: Any) -> None:
    windows, groups = convolved("nn.conv_transpose", out.shape[2:], weight.shape[2:], **given)
    _add_data(out, x, weight, windows, groups)
    if bias:
        out += bias[0].reshape(-1, *(1,) * (out.ndim - 2))


_WINDOW = ("stride", "padding", "dilation", "groups")


def _shared(node: Any) -> dict[str, Any]:
    """Return the attributes that all of these ops have."""
    return {name: node.attributes[name] for name in _WINDOW if name in node.attributes}


def _data_like(g: Any, weight: Any, like: Any, shared: dict[str, Any]) -> Any:
    if is_known(like):
        return get_op("nn.conv_data")(g, weight, size=like.shape[2:], **shared)
    return get_op("nn.conv_data")(g, weight, like, **shared)


def _weight_like(x: Any, g: Any, like: Any, shared: dict[str, Any]) -> Any:
    if is_known(like):
        return get_op("nn.conv_weight")(x, g, kernel=like.shape[2:], **shared)
    return get_op("nn.conv_weight")(x, g, like, **shared)


@gradient_of("nn.conv", inputs=[0, 1])
def _conv_rule(node: Any, grads: Any) -> Any:
    x, weight = node.inputs[:2]
    shared, g = _shared(node), grads[0]
    dx = _data_like(g, weight, x, shared) if needs(node, 0) else None
    dw = _weight_like(x, g, weight, shared) if needs(node, 1) else None
    return dx, dw, *(channel_sum(g) if needs(node, at) else None for at in range(2, len(node.inputs)))


@gradient_of("nn.conv_data", inputs=[0, 1])
def _conv_data_rule(node: Any, grads: Any) -> Any:
    g, weight = node.inputs[:2]
    shared, t = _shared(node), grads[0]
    dg = get_op("nn.conv")(t, weight, **shared) if needs(node, 0) else None
    dw = _weight_like(t, g, weight, shared) if needs(node, 1) else None
    return dg, dw, *(None for _ in node.inputs[2:])


@gradient_of("nn.conv_weight", inputs=[0, 1])
def _conv_weight_rule(node: Any, grads: Any) -> Any:
    x, g = node.inputs[:2]
    shared, t = _shared(node), grads[0]
    dx = _data_like(g, t, x, shared) if needs(node, 0) else None
    dg = get_op("nn.conv")(x, t, **shared) if needs(node, 1) else None
    return dx, dg, *(None for _ in node.inputs[2:])


@gradient_of("nn.conv_transpose", inputs=[0, 1])
def _conv_transpose_rule(node: Any, grads: Any) -> Any:
    x, weight = node.inputs[:2]
    shared, g = _shared(node), grads[0]
    dx = get_op("nn.conv")(g, weight, **shared) if needs(node, 0) else None
    dw = _weight_like(g, x, weight, shared) if needs(node, 1) else None
    return dx, dw, *(channel_sum(g) if needs(node, at) else None for at in range(2, len(node.inputs)))


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
        Shape ``(O,)``: what is added to each channel of the results.
    stride, dilation : int or sequence of int, default: 1
        How far windows are apart, and elements in a window, along all axes or along each.
    padding : int, sequence of int, or of pairs (before, after), default: 0
        How many zeros are put around the data.
    groups : int, default: 1
        In how many groups of channels data and results fall, each with weights of its own.
    filters : int, optional
        O, from which shapes of symbols' weights follow.
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
    return _call("nn.conv", x, weight, bias, stride, padding, dilation, groups, filters=filters, kernel=kernel)


def conv_transpose(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    filters: int | None = None,
    kernel: Any = None,
) -> NDArray:
    """Convolve the other way: the gradient of data, given that of a convolution's results.

    Parameters
    ----------
    x : array_like
        Data of shape ``(N, C, *spatial)``.
    weight : array_like
        Shape ``(C, O / groups, *kernel)``.
    bias : array_like, optional
        Shape ``(O,)``.
    stride, padding, dilation, groups
        Of the convolution that it is the transpose of; see `conv`.
    output_padding : int or sequence of int, default: 0
        How much longer the results are than the shortest data of that convolution.
    filters, kernel : int, optional
        O and the kernel's lengths, from which shapes of symbols' weights follow.

    Examples
    --------
    >>> import weft
    >>> x = weft.asarray([[[1.0, 2.0]]])
    >>> print(weft.nn.conv_transpose(x, weft.ones((1, 1, 2)), stride=2))
    [[[1. 1. 2. 2.]]]
    """
    more = {} if output_padding == 0 else {"output_padding": plain(output_padding)}
    return _call(
        "nn.conv_transpose", x, weight, bias, stride, padding, dilation, groups, filters=filters, kernel=kernel, **more
    )


def _call(
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
