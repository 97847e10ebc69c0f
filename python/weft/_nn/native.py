"""Kernels of the core: made once for shapes and attributes, pushed without the GIL; NumPy computes the other cases."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from weft._core import Kernel, Loop, NDArray
from weft._nn import native_cells, native_layers
from weft._nn.convolution import convolved
from weft._nn.onednn import onednn
from weft._nn.pooling import pooled
from weft._nn.running import add_bias, around, is_plain, run
from weft._registry.op import get_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import DType
    from weft._nn.windows import Windows
    from weft._registry.shapes import Shape


def _three(values: Shape, fill: int) -> tuple[int, int, int]:
    """Return a number for each of three axes, of which the first ones may be missing."""
    first, second, third = (*(fill,) * (3 - len(values)), *values)
    return first, second, third


def _described(windows: Windows) -> tuple[tuple[int, int, int], ...]:
    """Return windows as the core takes them."""
    return (
        _three(windows.lengths, 1),
        _three(windows.kernel, 1),
        _three(windows.stride, 1),
        _three(tuple(before for before, _ in windows.padding), 0),
        _three(windows.dilation, 1),
        _three(windows.counts, 1),
    )


@lru_cache(maxsize=1024)
def _convolution(
    name: str,
    product: str,
    dtype: DType,
    data: Shape,
    weight: Shape,
    results: Shape,
    bias: bool,
    **given: Any,
) -> Kernel | None:
    """Return the kernel of one of a convolution's products, given the shapes of all three."""
    windows, groups = convolved(name, data[2:], weight[2:], **given)
    if windows.counts != results[2:] or 0 in (*data, *weight, *results):
        return None
    onednn()
    sizes = [data[0], data[1], results[1], groups]
    return Kernel.convolution(name, product, dtype, sizes, _described(windows), bias)


def _push_conv(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:
    (out,), (x, weight) = outputs, operands[:2]
    shapes, bias = (x.shape, weight.shape, out.shape), len(operands) > 2  # data and weights
    kernel = _convolution("nn.conv", "results", out.dtype, *shapes, bias, **attributes)
    return run(kernel, outputs, operands)


def _push_data(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:
    (out,), (g, weight) = outputs, operands[:2]
    kernel = _convolution("nn.conv_data", "data", out.dtype, out.shape, weight.shape, g.shape, False, **attributes)
    return run(kernel, outputs, operands[:2])


def _push_weight(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:
    (out,), (x, g) = outputs, operands[:2]
    kernel = _convolution("nn.conv_weight", "weights", out.dtype, x.shape, out.shape, g.shape, False, **attributes)
    return run(kernel, outputs, operands[:2])


def _push_transpose(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:
    """Push it as the gradient of data, then add the bias."""
    (out,), (x, weight) = outputs, operands[:2]
    kernel = _convolution("nn.conv_transpose", "data", out.dtype, out.shape, weight.shape, x.shape, False, **attributes)
    if any(each.dtype != out.dtype for each in operands) or not run(kernel, outputs, operands[:2]):
        return False
    for bias in operands[2:]:
        add_bias(out, bias, 1)
    return True


@lru_cache(maxsize=1024)
def _pooling(
    name: str,
    pool: str,
    dtype: DType,
    shape: Shape,
    include: bool | None,
    **given: Any,
) -> Kernel | None:
    if 0 in shape:
        return None
    windows = pooled(name, shape, **given)
    reach = None
    if include:
        reach = _three(
            tuple(before + n + after for n, (before, after) in zip(windows.lengths, windows.padding, strict=True)), 1
        )
    return Kernel.pooling(name, pool, dtype, shape[0] * shape[1], _described(windows), reach)


def _pool(name: str, pool: str, *, data: int | None) -> Callable[..., bool]:
    """Return what pushes a pooling; its data, of which at least the shape counts, are operand `data`, or the result."""

    def push(
        outputs: tuple[NDArray],
        operands: tuple[NDArray, ...],
        *,
        count_include_pad: bool | None = None,
        **given: Any,
    ) -> bool:
        shape = outputs[0].shape if data is None else operands[data].shape
        if pool in ("mean", "to_mean"):
            operands = operands[:1]
            count_include_pad = count_include_pad is None or count_include_pad
        return run(_pooling(name, pool, outputs[0].dtype, shape, count_include_pad, **given), outputs, operands)

    return push


def _push_dense(
    outputs: tuple[NDArray], operands: tuple[NDArray, ...], *, units: int | None = None, flatten: bool = False
) -> bool:
    del units
    (out,), (x, weight) = outputs, operands[:2]
    if not _products(out, *operands) or not is_plain(out):
        return False
    rows = x.reshape(x.shape[0], -1) if flatten else x.reshape(-1, x.shape[-1])
    get_op("matmul")(rows, weight.mT, out=out.reshape(rows.shape[0], -1))
    for bias in operands[2:]:
        add_bias(out, bias, -1)
    return True


def _products(out: NDArray, *operands: NDArray) -> bool:
    """Return whether products of these are the core's."""
    return out.size > 0 and all(x.size > 0 and x.dtype == out.dtype for x in operands)


def _push_dense_data(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    (out,), (g, weight) = outputs, operands[:2]
    if not _products(out, g, weight) or not is_plain(out):
        return False
    get_op("matmul")(g.reshape(-1, g.shape[-1]), weight, out=out.reshape(-1, weight.shape[1]))
    return True


def _push_dense_weight(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    (out,), (x, g) = outputs, operands[:2]
    if not _products(out, x, g):
        return False
    get_op("matmul")(g.reshape(-1, out.shape[0]).mT, x.reshape(-1, out.shape[1]), out=out)
    return True


def _push_dense_rows(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    (out,), (x, weight) = outputs, operands
    if not _products(out, x, weight):
        return False
    get_op("matmul")(x.reshape(out.shape[0], -1), weight.mT, out=out)
    return True


@lru_cache(maxsize=1024)
def _channels(name: str, what: str, dtype: DType, shape: Shape, axis: int, eps: float) -> Kernel | None:
    return None if 0 in shape else Kernel.channels(name, what, dtype, around(shape, axis), eps)


def _of_channels(name: str, what: str, data: int) -> Callable[..., bool]:
    """Return what pushes an op on channels, whose data are operand `data`."""

    def push(outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, axis: int = 1, eps: float = 1e-5) -> bool:
        shape = operands[data].shape
        return run(_channels(name, what, outputs[0].dtype, shape, axis, eps), outputs, operands)

    return push


@lru_cache(maxsize=1024)
def _rows(name: str, dtype: DType, shape: Shape, axis: int) -> Kernel | None:
    return None if 0 in shape else Kernel.rows(f"nn.{name}", name, dtype, around(shape, axis))


def _of_rows(name: str) -> Callable[..., bool]:
    """Return what pushes a softmax, its logarithm, or the gradient of one."""

    def push(outputs: tuple[NDArray], operands: tuple[NDArray, ...], *, axis: int = -1) -> bool:
        return run(_rows(name, outputs[0].dtype, outputs[0].shape, axis), outputs, operands)

    return push


@cache
def _loop(name: str, dtype: DType) -> Loop | None:
    return Loop.activation(name, dtype)


def _activation(name: str, default: float | None) -> Callable[..., bool]:
    """Return what pushes an activation, or its gradient, with the number that it takes besides."""

    def push(outputs: tuple[NDArray], operands: tuple[Any, ...], **attributes: float) -> bool:
        dtype = outputs[0].dtype
        loop = _loop(name, dtype)
        if loop is None or any(not isinstance(x, NDArray) or x.dtype != dtype for x in operands):
            return False
        numbers = () if default is None else (next(iter(attributes.values()), default),)
        loop.push(outputs, (*operands, *numbers))
        return True

    return push


_NUMBERS = {"relu": None, "leaky_relu": 0.01, "elu": 1.0, "sigmoid": None, "softplus": None, "gelu": None}

_PUSHES: dict[str, Callable[..., bool]] = {
    "nn.conv": _push_conv,
    "nn.conv_data": _push_data,
    "nn.conv_weight": _push_weight,
    "nn.conv_transpose": _push_transpose,
    "nn.max_pool": _pool("nn.max_pool", "largest", data=0),
    "nn.max_pool_data": _pool("nn.max_pool", "to_largest", data=1),
    "nn.max_pool_take": _pool("nn.max_pool", "of_largest", data=1),
    "nn.avg_pool": _pool("nn.avg_pool", "mean", data=0),
    "nn.avg_pool_data": _pool("nn.avg_pool", "to_mean", data=None),
    "nn.dense": _push_dense,
    "nn.dense_data": _push_dense_data,
    "nn.dense_weight": _push_dense_weight,
    "nn.dense_rows": _push_dense_rows,
    "nn.channel_sum": _of_channels("nn.channel_sum", "sum", 0),
    "nn.batch_norm": _of_channels("nn.batch_norm", "normal", 0),
    "nn.batch_norm_train": _of_channels("nn.batch_norm_train", "train", 0),
    "nn.batch_norm_data": _of_channels("nn.batch_norm_data", "gradient", 1),
    **{f"nn.{name}": _of_rows(name) for name in ("softmax", "softmax_data", "log_softmax", "log_softmax_data")},
    **{
        f"nn.{name}{end}": _activation(f"{name}{end}", default)
        for name, default in _NUMBERS.items()
        for end in ("", "_data")
    },
    **native_layers.PUSHES,
    **native_cells.PUSHES,
}


def attach() -> None:
    """Let the core compute what it has kernels for; once, when all ops are there."""
    for name, push in _PUSHES.items():
        get_op(name).set_attribute("push", push)
