"""Kernels of the core for labels, rows, tables and neighbouring channels, and copies that stand for ops."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from weft._call.filling import fill
from weft._call.views import view
from weft._core import (
    Kernel,
    NDArray,
    beside,
    copy_elements,
    kernel_cross_entropy,
    kernel_layer_norm,
    kernel_lookup,
    kernel_mask,
    kernel_neighbours,
)
from weft._nn.running import around, is_plain, run
from weft._registry.op import get_op
from weft._registry.shapes import axis_index, axis_tuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import DType
    from weft._registry.shapes import Shape


@lru_cache(maxsize=1024)
def _cross_entropy(
    name: str,
    dtype: DType,
    logits: Shape,
    gradient: bool,
    classes: DType | None,
) -> Kernel | None:
    if 0 in logits:
        return None
    return kernel_cross_entropy(name, dtype, [math.prod(logits[:-1]), logits[-1]], gradient, classes)


def _push_cross_entropy(outputs: tuple[NDArray], operands: tuple[Any, ...]) -> bool:
    """Push the loss of logits and labels, or, with gradients before them, its gradient."""
    logits, labels = operands[-2:]
    gradient, rows = len(operands) == 3, labels.ndim == logits.ndim  # gradients, logits, labels
    name = "nn.cross_entropy_data" if gradient else "nn.cross_entropy"
    kernel = _cross_entropy(name, outputs[0].dtype, logits.shape, gradient, None if rows else labels.dtype)
    return run(kernel, outputs, operands, integers=None if rows else len(operands) - 1)


def _push_labels(outputs: tuple[NDArray], operands: tuple[Any, ...]) -> bool:
    """Push the gradient of rows of probabilities: logarithms of the softmax times those of the losses, turned round."""
    (out,), (g, logits, labels) = outputs, operands
    if labels.ndim != logits.ndim:
        fill(out, 0)
        return True
    if any(not isinstance(x, NDArray) or x.dtype != out.dtype for x in operands) or not out.size:
        return False
    get_op("nn.log_softmax")(logits, out=out)
    spread = view(g, (*g.shape, 1), (*g.strides, 0))
    get_op("multiply")(out, spread, out=out)
    get_op("negative")(out, out=out)
    return True


def _push_label_weight(outputs: tuple[NDArray], operands: tuple[Any, ...]) -> bool:
    (out,), (logits, labels) = outputs, operands
    if labels.ndim != logits.ndim:
        fill(out, 1)
        return True
    if not isinstance(labels, NDArray) or labels.dtype != out.dtype or not labels.size:
        return False
    get_op("sum")(labels, axis=(-1,), keepdims=True, out=out)
    return True


@lru_cache(maxsize=1024)
def _layer_norm(
    name: str,
    dtype: DType,
    sizes: tuple[int, int],
    gradient: bool,
    eps: float,
) -> Kernel | None:
    return None if 0 in sizes else kernel_layer_norm(name, dtype, list(sizes), gradient, eps)


def _layer(*, gradient: bool) -> Callable[..., bool]:
    """Return what pushes a normalisation of rows, or its gradients."""
    wide = 2 if gradient else 1  # so many operands have the shape of the data
    name = "nn.layer_norm_data" if gradient else "nn.layer_norm"

    def push(outputs: tuple[NDArray, ...], operands: tuple[Any, ...], *, axis: Any = -1, eps: float = 1e-5) -> bool:
        x, out = operands[0], outputs[0]
        axes = axis_tuple(axis, x.ndim)
        order = [*(at for at in range(x.ndim) if at not in axes), *axes]
        length = math.prod([x.shape[at] for at in axes])
        kernel = _layer_norm(name, out.dtype, (x.size // max(length, 1), length), gradient, eps)
        if order == list(range(x.ndim)):
            return run(kernel, outputs, operands)
        turned = tuple([each.transpose(*order) for each in operands[:wide]])
        between = beside(out, turned[0].shape, out.dtype)
        if not run(kernel, (between, *outputs[1:]), (*turned, *operands[wide:])):
            return False
        copy_elements(out.transpose(*order), between)
        return True

    return push


@lru_cache(maxsize=1024)
def _lookup(
    name: str,
    dtype: DType,
    numbers: DType,
    sizes: tuple[int, int, int],
    gradient: bool,
) -> Kernel | None:
    return None if 0 in sizes else kernel_lookup(name, dtype, numbers, list(sizes), gradient)


def _push_embedding(outputs: tuple[NDArray], operands: tuple[Any, ...]) -> bool:
    indices, weight = operands
    sizes = (indices.size, weight.shape[0], math.prod(weight.shape[1:]))
    kernel = _lookup("nn.embedding", outputs[0].dtype, indices.dtype, sizes, gradient=False)
    return run(kernel, outputs, operands, integers=0)


def _push_embedding_weight(outputs: tuple[NDArray], operands: tuple[Any, ...]) -> bool:
    (out,), (g, indices) = outputs, operands[:2]
    sizes = (indices.size, out.shape[0], math.prod(out.shape[1:]))
    kernel = _lookup("nn.embedding_weight", out.dtype, indices.dtype, sizes, gradient=True)
    return run(kernel, outputs, (g, indices), integers=1)


@lru_cache(maxsize=1024)
def _neighbours(
    name: str, dtype: DType, shape: Shape, reach: tuple[int, int], normal: tuple[float, float, float] | None
) -> Kernel | None:
    return None if 0 in shape else kernel_neighbours(name, dtype, around(shape, 1), reach, normal)


def _push_window_sum(outputs: tuple[NDArray], operands: tuple[Any, ...], *, size: int, reverse: bool = False) -> bool:
    reach = ((size - 1) // 2, size // 2) if reverse else (size // 2, (size - 1) // 2)
    kernel = _neighbours("nn.window_sum", outputs[0].dtype, outputs[0].shape, reach, None)
    return run(kernel, outputs, operands)


def _push_lrn(
    outputs: tuple[NDArray], operands: tuple[Any, ...], *, size: int, alpha: float, beta: float, k: float
) -> bool:
    reach = (size // 2, (size - 1) // 2)
    kernel = _neighbours("nn.lrn", outputs[0].dtype, outputs[0].shape, reach, (alpha / size, k, -beta))
    return run(kernel, outputs, operands)


@lru_cache(maxsize=1024)
def _mask(dtype: DType, count: int, rate: float, words: int) -> Kernel | None:
    return kernel_mask("random.dropout_mask", dtype, count, rate, words) if count else None


def _push_mask(outputs: tuple[NDArray], operands: tuple[Any, ...], *, rate: float) -> bool:
    """Push a draw that changes a generator's state: what the other operand is does not count."""
    (out,), state = outputs, operands[0]
    return is_plain(state) and run(_mask(out.dtype, out.size, rate, state.size), outputs, (state,), integers=0)


def _push_over(outputs: tuple[NDArray], operands: tuple[Any, ...], *, axis: int = 1) -> bool:
    (out,), v = outputs, operands[0]
    if not isinstance(v, NDArray) or v.dtype != out.dtype:
        return False
    at = axis_index(axis, out.ndim)
    shape, strides = [1] * out.ndim, [0] * out.ndim
    shape[at], strides[at] = v.shape[0], v.strides[0]
    copy_elements(out, view(v, shape, strides))
    return True


def _push_part(outputs: tuple[NDArray], operands: tuple[Any, ...], *, number: int, count: int) -> bool:
    (out,), (z,) = outputs, operands
    if not isinstance(z, NDArray) or z.dtype != out.dtype:
        return False
    del count
    copy_elements(out, view(z, out.shape, z.strides, number * out.shape[-1] * z.strides[-1]))
    return True


def _push_state(outputs: tuple[NDArray], operands: tuple[Any, ...], *, number: int) -> bool:
    (out,), (states,) = outputs, operands
    if not isinstance(states, NDArray) or states.dtype != out.dtype:
        return False
    copy_elements(out, view(states, out.shape, states.strides[1:], number * states.strides[0]))
    return True


def _push_state_data(outputs: tuple[NDArray], operands: tuple[Any, ...], *, number: int) -> bool:
    (out,), g = outputs, operands[0]
    if not isinstance(g, NDArray) or g.dtype != out.dtype or not out.size:
        return False
    fill(out, 0)
    copy_elements(view(out, g.shape, out.strides[1:], number * out.strides[0]), g)
    return True


PUSHES: dict[str, Callable[..., bool]] = {
    "nn.cross_entropy": _push_cross_entropy,
    "nn.cross_entropy_data": _push_cross_entropy,
    "nn.cross_entropy_labels": _push_labels,
    "nn.label_weight": _push_label_weight,
    "nn.layer_norm": _layer(gradient=False),
    "nn.layer_norm_data": _layer(gradient=True),
    "nn.embedding": _push_embedding,
    "nn.embedding_weight": _push_embedding_weight,
    "nn.window_sum": _push_window_sum,
    "nn.lrn": _push_lrn,
    "nn.over": _push_over,
    "nn.part": _push_part,
    "random.dropout_mask": _push_mask,
    "nn.state": _push_state,
    "nn.state_data": _push_state_data,
}
