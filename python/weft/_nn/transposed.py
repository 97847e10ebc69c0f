"""Transposed convolutions, which compute the gradient of data.

The gradients are a convolution and the gradient of its weights, `nn.conv` and `nn.conv_weight`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._nn.arguments import fixed, floating, plain, refuse
from weft._nn.channels import channel_sum
from weft._nn.convolution import (
    add_data,
    call,
    check_groups,
    check_ranks,
    convolved,
    kernel_lengths,
    product,
    rank_of_kernel,
    weight_like,
    window_attributes,
)
from weft._nn.facts import along, cost_of, divided, elements, first, join, rank_of, takes_plain, times
from weft._nn.running import add_bias, run
from weft._nn.windows import numbers, pads
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._nn.facts import Shapes
    from weft._registry.shapes import Shape


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
    count = check_ranks(op, x, weight)
    out = weight.shape[1] * groups
    check_groups(op, groups, x.shape[1], out, x=x, weight=weight)
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


def _shapes(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op = "nn.conv_transpose"
    (x, weight, *bias), (out,) = ins, outs
    rank = rank_of(x, weight, out) or rank_of_kernel(attributes)
    if rank is None:
        return ins, outs
    groups, count = attributes.get("groups", 1), rank - 2
    filters = first(
        attributes.get("filters"), times(along(weight, 1), groups), along(out, 1), *(along(each, 0) for each in bias)
    )
    channels = first(along(x, 1), along(weight, 0))
    kernel = kernel_lengths(op, attributes, weight, count)
    weight = join(op, "weight", weight, (channels, divided(filters, groups), *kernel))
    batch = first(along(x, 0), along(out, 0))
    x = join(op, "x", x, (batch, channels, *(None,) * count))
    lengths: list[int | None] = []
    stride = numbers(op, "stride", attributes.get("stride", 1), count)
    dilation = numbers(op, "dilation", attributes.get("dilation", 1), count)
    padding = pads(op, attributes.get("padding", 0), count)
    extra = numbers(op, "output_padding", attributes.get("output_padding", 0), count, least=0)
    for at in range(count):
        length, size = along(x, at + 2), kernel[at]
        whole = None if length is None or size is None else (length - 1) * stride[at] + (size - 1) * dilation[at] + 1
        lengths.append(None if whole is None else whole - sum(padding[at]) + extra[at])
    out = join(op, "the result", out, (batch, filters, *lengths))
    return [x, weight, *(join(op, "bias", each, (filters,)) for each in bias)], [out]


@register_op("nn.conv_transpose", infer=_infer_transpose)
def _conv_transpose(out: Elements, x: Elements, weight: Elements, *bias: Elements, **given: Any) -> None:
    windows, groups = convolved("nn.conv_transpose", out.shape[2:], weight.shape[2:], **given)
    add_data(out, x, weight, windows, groups)
    if bias:
        out += bias[0].reshape(-1, *(1,) * (out.ndim - 2))


def _push_transpose(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:
    """Push it as the gradient of data, then add the bias."""
    (out,), (x, weight) = outputs, operands[:2]
    kernel = product("nn.conv_transpose", "data", out.dtype, out.shape, weight.shape, x.shape, False, **attributes)
    if any(each.dtype != out.dtype for each in operands) or not run(kernel, outputs, operands[:2]):
        return False
    for bias in operands[2:]:
        add_bias(out, bias, 1)
    return True


state(
    _conv_transpose,
    infer_shape=_shapes,
    infer_type="same",
    layout=takes_plain,
    cost=cost_of(lambda x, w: elements(x) * elements(w) / max(w[0], 1)),
    push=_push_transpose,
)


@gradient_of("nn.conv_transpose", inputs=[0, 1])
def _conv_transpose_rule(node: Any, grads: Any) -> Any:
    x, weight = node.inputs[:2]
    shared, g = window_attributes(node), grads[0]
    dx = get_op("nn.conv")(g, weight, **shared) if needs(node, 0) else None
    dw = weight_like(g, x, weight, shared) if needs(node, 1) else None
    return dx, dw, *(channel_sum(g) if needs(node, at) else None for at in range(2, len(node.inputs)))


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
        O and the kernel's lengths; the shapes of symbols' weights follow from them.

    Examples
    --------
    >>> import weft
    >>> x = weft.asarray([[[1.0, 2.0]]])
    >>> print(weft.nn.conv_transpose(x, weft.ones((1, 1, 2)), stride=2))
    [[[1. 1. 2. 2.]]]
    """
    more = {} if output_padding == 0 else {"output_padding": plain(output_padding)}
    return call(
        "nn.conv_transpose", x, weight, bias, stride, padding, dilation, groups, filters=filters, kernel=kernel, **more
    )
