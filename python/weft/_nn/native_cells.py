"""Kernels of the core for recurrent cells and layers."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from weft._core import Kernel, NDArray, beside, kernel_cells, kernel_sequence
from weft._nn.running import run
from weft._registry.op import get_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import DType
    from weft._registry.shapes import Shape


@lru_cache(maxsize=1024)
def _cells(name: str, gates: str, dtype: DType, state: Shape) -> Kernel | None:
    return None if 0 in state else kernel_cells(name, dtype, gates, [math.prod(state[:-1]), state[-1]])


def _of_cells(name: str, gates: str) -> Callable[..., bool]:
    """Return what pushes a cell's gates, or their gradients; the last operand has the shape of the states."""

    def push(outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...]) -> bool:
        return run(_cells(name, gates, outputs[0].dtype, operands[-1].shape), outputs, operands)

    return push


@lru_cache(maxsize=1024)
def _sequence(
    name: str,
    mode: str,
    dtype: DType,
    shape: Shape,
    gradient: bool,
    reverse: bool,
) -> Kernel | None:
    return None if 0 in shape else kernel_sequence(name, dtype, mode, list(shape), gradient, reverse)


def _of_sequence(mode: str | None) -> Callable[..., bool]:
    """Return what pushes a layer's steps; its results' shape is that of the first."""

    def push(
        outputs: tuple[NDArray, ...],
        operands: tuple[NDArray, ...],
        *,
        activation: str = "tanh",
        reverse: bool = False,
    ) -> bool:
        name, y = f"nn.{mode or 'rnn'}_sequence", outputs[0]
        return run(_sequence(name, mode or activation, y.dtype, y.shape, False, reverse), outputs, operands)

    return push


def _backwards(
    mode: str,
    outputs: tuple[NDArray, ...],
    operands: tuple[NDArray, ...],
    *,
    reverse: bool,
) -> bool:
    """Push the gradients of products and states."""
    dy = operands[0]
    name = f"nn.{mode if mode in ('lstm', 'gru') else 'rnn'}_sequence_data"
    return run(_sequence(name, mode, dy.dtype, dy.shape, True, reverse), outputs, operands)


def _push_lstm_data(outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, reverse: bool = False) -> bool:
    dz, _, _, dw = outputs
    dy, dh, dc, gates, cells, y, h, c, w = operands
    if not _backwards("lstm", outputs[:3], (dy, dh, dc, gates, cells, c, w), reverse=reverse):
        return False
    _weigh(dw, dz, y, h, reverse=reverse)
    return True


def _push_gru_data(outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, reverse: bool = False) -> bool:
    dz, dh_0, dw, db = outputs
    inner = beside(dz, dz.shape, dz.dtype)
    if not _backwards("gru", (dz, dh_0, inner), operands, reverse=reverse):
        return False
    _, _, _, y, h, _ = operands
    _weigh(dw, inner, y, h, reverse=reverse)
    get_op("nn.channel_sum")(inner, axis=-1, out=db)
    return True


def _push_rnn_data(
    outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, activation: str = "tanh", reverse: bool = False
) -> bool:
    dz, dh_0, dw = outputs
    dy, dh, y, h, w = operands
    if not _backwards(activation, (dz, dh_0), (dy, dh, y, w), reverse=reverse):
        return False
    _weigh(dw, dz, y, h, reverse=reverse)
    return True


def _weigh(dw: NDArray, dz: NDArray, y: NDArray, h: NDArray, *, reverse: bool) -> None:
    """Write the gradient of the weights of states: of each step's products by the state before it."""
    first, later, before = (dz[-1], dz[:-1], y[1:]) if reverse else (dz[0], dz[1:], y[:-1])
    matmul = get_op("matmul")
    matmul(first.mT, h, out=dw)
    if later.size:
        more = matmul(later.reshape(-1, dz.shape[-1]).mT, before.reshape(-1, y.shape[-1]))
        get_op("add")(dw, more, out=dw)


PUSHES: dict[str, Callable[..., bool]] = {
    **{
        f"nn.{kind}_gates{end}": _of_cells(f"nn.{kind}_gates{end}", f"{kind}{end}")
        for kind in ("lstm", "gru")
        for end in ("", "_data")
    },
    "nn.lstm_sequence": _of_sequence("lstm"),
    "nn.gru_sequence": _of_sequence("gru"),
    "nn.rnn_sequence": _of_sequence(None),
    "nn.lstm_sequence_data": _push_lstm_data,
    "nn.gru_sequence_data": _push_gru_data,
    "nn.rnn_sequence_data": _push_rnn_data,
}
