"""Inference for kernels both ways: shapes of parameters from those of data, and the batch from the results.

A shape is a tuple whose unknown lengths are None, or None where even the number of axes is not known.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from weft._graph.layouts import axes_of
from weft._nn.pooling import pooled
from weft._nn.windows import numbers, pads, windows_of
from weft._registry.op import get_op
from weft._registry.shapes import axis_tuple
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Partial: TypeAlias = "tuple[int | None, ...] | None"
Shapes: TypeAlias = "list[Partial]"


def _join(op: str, name: str, known: Partial, follows: Partial) -> Partial:
    """Return what two shapes say together."""
    if known is None or follows is None:
        return follows if known is None else known
    if len(known) != len(follows) or any(
        a != b for a, b in zip(known, follows, strict=True) if a is not None and b is not None
    ):
        raise ShapeError(f"{op}: {name} has shape {known}, and {follows} follows from the other shapes")
    return tuple(b if a is None else a for a, b in zip(known, follows, strict=True))


def _at(shape: Partial, axis: int) -> int | None:
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def _first(*values: int | None) -> int | None:
    return next((each for each in values if each is not None), None)


def _rank(*shapes: Partial) -> int | None:
    return next((len(each) for each in shapes if each is not None), None)


def _rank_of_kernel(attributes: dict[str, Any]) -> int | None:
    said: Any = attributes.get("kernel")
    return len(said) + 2 if said.__class__ is tuple else None


def _times(value: int | None, by: int) -> int | None:
    return None if value is None else value * by


def _over(value: int | None, by: int) -> int | None:
    return None if value is None or by < 1 or value % by else value // by


def _windows(op: str, attributes: dict[str, Any], shape: Partial, kernel: Partial) -> list[int | None]:
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


def _kernel(op: str, attributes: dict[str, Any], weight: Partial, count: int) -> tuple[int | None, ...]:
    said = attributes.get("kernel")
    if said is not None:
        return numbers(op, "kernel", said, count)
    return (None,) * count if weight is None else tuple(weight[2:])


def _conv(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op = "nn.conv"
    (x, weight, *bias), (out,) = ins, outs
    rank = _rank(x, weight, out) or _rank_of_kernel(attributes)
    if rank is None:
        return ins, outs
    groups, count = attributes.get("groups", 1), rank - 2
    filters = _first(attributes.get("filters"), _at(weight, 0), _at(out, 1), *(_at(each, 0) for each in bias))
    channels = _first(_at(x, 1), _times(_at(weight, 1), groups))
    kernel = _kernel(op, attributes, weight, count)
    weight = _join(op, "weight", weight, (filters, _over(channels, groups), *kernel))
    batch = _first(_at(x, 0), _at(out, 0))
    x = _join(op, "x", x, (batch, channels, *(None,) * count))
    out = _join(op, "the result", out, (batch, filters, *_windows(op, attributes, x, tuple(weight or ())[2:])))
    return [x, weight, *(_join(op, "bias", each, (filters,)) for each in bias)], [out]


def _conv_transpose(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op = "nn.conv_transpose"
    (x, weight, *bias), (out,) = ins, outs
    rank = _rank(x, weight, out) or _rank_of_kernel(attributes)
    if rank is None:
        return ins, outs
    groups, count = attributes.get("groups", 1), rank - 2
    filters = _first(
        attributes.get("filters"), _times(_at(weight, 1), groups), _at(out, 1), *(_at(each, 0) for each in bias)
    )
    channels = _first(_at(x, 1), _at(weight, 0))
    kernel = _kernel(op, attributes, weight, count)
    weight = _join(op, "weight", weight, (channels, _over(filters, groups), *kernel))
    batch = _first(_at(x, 0), _at(out, 0))
    x = _join(op, "x", x, (batch, channels, *(None,) * count))
    lengths: list[int | None] = []
    stride = numbers(op, "stride", attributes.get("stride", 1), count)
    dilation = numbers(op, "dilation", attributes.get("dilation", 1), count)
    padding = pads(op, attributes.get("padding", 0), count)
    extra = numbers(op, "output_padding", attributes.get("output_padding", 0), count, least=0)
    for at in range(count):
        length, size = _at(x, at + 2), kernel[at]
        whole = None if length is None or size is None else (length - 1) * stride[at] + (size - 1) * dilation[at] + 1
        lengths.append(None if whole is None else whole - sum(padding[at]) + extra[at])
    out = _join(op, "the result", out, (batch, filters, *lengths))
    return [x, weight, *(_join(op, "bias", each, (filters,)) for each in bias)], [out]


def _dense(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op, flatten = "nn.dense", attributes.get("flatten", False)
    (x, weight, *bias), (out,) = ins, outs
    units = _first(attributes.get("units"), _at(weight, 0), _at(out, -1), *(_at(each, 0) for each in bias))
    wide = _at(weight, 1)
    if x is not None:
        features = x[1:] if flatten else x[-1:]
        if None not in features:
            wide = _first(wide, math.prod(each or 0 for each in features))
    weight = _join(op, "weight", weight, (units, wide))
    if flatten:
        out = _join(op, "the result", out, (_first(_at(x, 0), _at(out, 0)), units))
        if x is not None:
            x = _join(op, "x", x, (_at(out, 0), *x[1:]))
    else:
        ahead = x[:-1] if x is not None else out[:-1] if out is not None else None
        if ahead is not None:
            out = _join(op, "the result", out, (*ahead, units))
            x = _join(op, "x", x, (*tuple(out or ())[:-1], wide))
    return [x, weight, *(_join(op, "bias", each, (units,)) for each in bias)], [out]


def _embedding(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    del attributes
    op = "nn.embedding"
    (indices, weight), (out,) = ins, outs
    if weight == ():
        raise ShapeError(f"{op}: weights (rows, ...) are taken, and their shape is ()")
    if indices is not None and weight is not None:
        out = _join(op, "the result", out, (*indices, *weight[1:]))
    if out is not None and (indices is not None or weight is not None):
        ahead = len(indices) if indices is not None else len(out) + 1 - len(weight or (None,))
        if ahead >= 0:
            indices = _join(op, "indices", indices, tuple(out[:ahead]))
            weight = _join(op, "weight", weight, (_at(weight, 0), *out[ahead:]))
    return [indices, weight], [out]


def _batch_norm(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op, axis = "nn.batch_norm", attributes.get("axis", 1)
    (x, *vectors), (out, *statistics) = ins, outs
    x = out = _join(op, "the result", out, x)
    channels = _first(_at(x, axis), *(_at(each, 0) for each in (*vectors, *statistics)))
    if x is not None and -len(x) <= axis < len(x):
        x = out = _join(op, "x", x, tuple(channels if at == axis % len(x) else n for at, n in enumerate(x)))
    return (
        [x, *(_join(op, "a vector of channels", each, (channels,)) for each in vectors)],
        [out, *(_join(op, "a vector of channels", each, (channels,)) for each in statistics)],
    )


def _layer_norm(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op = "nn.layer_norm"
    (x, *vectors), (out,) = ins, outs
    x = out = _join(op, "the result", out, x)
    if x is not None:
        shape = tuple(x[at] for at in axis_tuple(attributes.get("axis", -1), len(x)))
        vectors = [_join(op, "gamma or beta", each, shape) for each in vectors]
    return [x, *vectors], [out]


def _pooling(op: str) -> Callable[..., tuple[Shapes, Shapes]]:
    def rule(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
        (x,), (out,) = ins, outs
        if x is None:
            return ins, outs
        given = {key: each for key, each in attributes.items() if key != "count_include_pad"}
        counts: Sequence[int | None] = (None,) * (len(x) - 2)
        if None not in x[2:]:
            lengths = tuple(each or 0 for each in x)
            counts = pooled(op, lengths, **given).counts
        batch = tuple(_first(a, _at(out, at)) for at, a in enumerate(x[:2]))
        return [_join(op, "x", x, (*batch, *x[2:]))], [_join(op, "the result", out, (*batch, *counts))]

    return rule


_BOTH_WAYS = {
    "nn.conv": _conv,
    "nn.conv_transpose": _conv_transpose,
    "nn.dense": _dense,
    "nn.batch_norm": _batch_norm,
    "nn.batch_norm_train": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.max_pool": _pooling("nn.max_pool"),
    "nn.avg_pool": _pooling("nn.avg_pool"),
}
_SAME = (
    *(
        f"nn.{name}{end}"
        for name in ("relu", "leaky_relu", "elu", "sigmoid", "softplus", "gelu")
        for end in ("", "_data")
    ),
    *("nn.softmax", "nn.softmax_data", "nn.log_softmax", "nn.log_softmax_data", "nn.lrn", "nn.window_sum"),
)
_ONE_DTYPE = (
    *_BOTH_WAYS,
    *_SAME,
    *("nn.conv_data", "nn.conv_weight", "nn.dense_data", "nn.dense_weight", "nn.dense_rows", "nn.batch_norm_data"),
    *("nn.layer_norm_data", "nn.max_pool_data", "nn.max_pool_take", "nn.avg_pool_data", "nn.channel_sum", "nn.over"),
    *("nn.lstm_gates", "nn.lstm_gates_data", "nn.gru_gates", "nn.gru_gates_data", "nn.part", "nn.state"),
    *("nn.lstm_sequence", "nn.lstm_sequence_data", "nn.gru_sequence", "nn.gru_sequence_data", "nn.rnn_sequence"),
    *("nn.rnn_sequence_data", "nn.state_data"),
)

#: Of these operands only the shape counts.
_IGNORED: dict[str, tuple[int, ...]] = {
    "nn.conv_data": (2,),
    "nn.conv_weight": (2,),
    "nn.dense_data": (2,),
    "nn.dense_weight": (2,),
    "nn.avg_pool_data": (1,),
    "nn.over": (1,),
    "nn.embedding_weight": (2,),
    "nn.state_data": (1,),
}


#: Ops that take data with their channels along the second axis, whatever else they take.
_PLAIN = ("nn.conv", "nn.conv_transpose", "nn.max_pool", "nn.avg_pool", "nn.lrn")
#: Ops that take data in any layout.
_ANY = tuple(f"nn.{name}" for name in ("relu", "leaky_relu", "elu", "sigmoid", "softplus", "gelu"))

Layouts: TypeAlias = "Sequence[str | None]"


def _plain_layout(layout: str | None) -> str | None:
    """Return a layout of the same axes without blocks, in the order in which kernels take them: batch, channels, others."""
    if layout is None:
        return None
    names = {axis.name for axis in axes_of(layout)}
    return "".join([each for each in "NC" if each in names] + sorted(names - {"N", "C"}))


def _takes_plain(attributes: dict[str, Any], ins: Layouts, last: Layouts, outs: Layouts) -> tuple[Any, Any]:
    """Follow the rule of ops whose results have the layout of their data, the plain one."""
    del attributes
    wanted = _plain_layout(ins[0])
    return [wanted, *last[1:]], [wanted for _ in outs]


def _takes_any(attributes: dict[str, Any], ins: Layouts, last: Layouts, outs: Layouts) -> tuple[Any, Any]:
    del attributes, last
    return ins, [ins[0] for _ in outs]


#: Ops whose work is products: which two operands' shapes say how much there is.
_PRODUCTS: dict[str, Callable[[Any, Any], float]] = {
    "nn.conv": lambda x, w: _size(w) * _size(x) / max(x[1], 1),
    "nn.conv_data": lambda g, w: _size(g) * _size(w) / max(w[0], 1),
    "nn.conv_weight": lambda x, g: _size(x) * _size(g) / max(g[0], 1),
    "nn.conv_transpose": lambda x, w: _size(x) * _size(w) / max(w[0], 1),
    "nn.dense": lambda x, w: _size(x) * w[0],
    "nn.dense_data": lambda g, w: _size(g) * w[1],
    "nn.dense_weight": lambda x, g: _size(x) * g[-1],
    "nn.dense_rows": lambda x, w: _size(x) * w[0],
}


def _size(shape: Any) -> float:
    return float(math.prod(shape))


def _cost_of(products: Callable[[Any, Any], float]) -> Callable[..., tuple[float, float]]:
    """Return the cost of an op of products: (flops, bytes)."""

    def cost(attributes: dict[str, Any], shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[float, float]:
        del attributes
        touched = sum(
            _size(shape) * (4 if dtype is None else dtype.itemsize)
            for shape, dtype in zip(shapes, dtypes, strict=False)
        )
        return 2 * products(shapes[0], shapes[1]), touched

    return cost


def attach() -> None:
    """Give the ops their rules; once, when all are there."""
    for name, rule in _BOTH_WAYS.items():
        get_op(name).set_attribute("infer_shape", rule)
    get_op("nn.embedding").set_attribute("infer_shape", _embedding)
    for name in _SAME:
        get_op(name).set_attribute("infer_shape", "same")
    for name in _ONE_DTYPE:
        get_op(name).set_attribute("infer_type", "same")
    for name, inputs in _IGNORED.items():
        get_op(name).set_attribute("ignores", inputs)
    for name in _PLAIN:
        get_op(name).set_attribute("layout", _takes_plain)
    for name in _ANY:
        get_op(name).set_attribute("layout", _takes_any)
    for name, products in _PRODUCTS.items():
        get_op(name).set_attribute("cost", _cost_of(products))
