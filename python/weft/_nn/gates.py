"""The element-wise part of recurrent cells, behind their products: one op for each kind, and its gradient.

Gates lie side by side along the last axis: i, f, g, o of an LSTM, r, z, n of a GRU, as in PyTorch and cuDNN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.views import view
from weft._core import Native, NDArray, copy_elements, kernel_cells
from weft._nn.activations import sigmoid
from weft._nn.arguments import floating, refuse
from weft._nn.composite import pull
from weft._ops.elementwise import tanh
from weft._ops.unbroadcast import apply
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._core import Kernel
    from weft._nn.running import Make


def _logistic(x: Elements) -> Elements:
    half: Any = x.dtype.type(0.5)
    found: Elements = np.tanh(x * half) * half + half
    return found


def lstm_forward(z: Elements, c: Elements) -> tuple[Elements, Elements, Elements]:
    """Return hidden state, cell and gates of an LSTM after one step."""
    i, f, g, o = np.split(z, 4, axis=-1)
    gates = np.concatenate([_logistic(i), _logistic(f), np.tanh(g), _logistic(o)], axis=-1)
    i, f, g, o = np.split(gates, 4, axis=-1)
    cell = f * c + i * g
    return o * np.tanh(cell), cell, gates


def lstm_backward(
    dh: Elements, dc: Elements, gates: Elements, c: Elements, cell: Elements
) -> tuple[Elements, Elements]:
    """Return the gradients of the products and of the cell before, given those of hidden state and cell after."""
    i, f, g, o = np.split(gates, 4, axis=-1)
    bent = np.tanh(cell)
    total = dc + dh * o * (1 - bent * bent)
    parts = [total * g * i * (1 - i), total * c * f * (1 - f), total * i * (1 - g * g), dh * bent * o * (1 - o)]
    return np.concatenate(parts, axis=-1), total * f


def gru_forward(zx: Elements, zh: Elements, h: Elements) -> tuple[Elements, Elements]:
    """Return hidden state and gates of a GRU after one step; the fourth part is the factor of the reset gate."""
    rx, ux, nx = np.split(zx, 3, axis=-1)
    rh, uh, nh = np.split(zh, 3, axis=-1)
    r, u = _logistic(rx + rh), _logistic(ux + uh)
    n = np.tanh(nx + r * nh)
    return n + u * (h - n), np.concatenate([r, u, n, nh], axis=-1)


def gru_backward(dh: Elements, gates: Elements, h: Elements) -> tuple[Elements, Elements, Elements]:
    """Return the gradients of both products and of the hidden state before."""
    r, u, n, nh = np.split(gates, 4, axis=-1)
    dn = dh * (1 - u) * (1 - n * n)
    du = dh * (h - n) * u * (1 - u)
    dr = dn * nh * r * (1 - r)
    return np.concatenate([dr, du, dn], axis=-1), np.concatenate([dr, du, dn * r], axis=-1), dh * u


def _check(op: str, wide: int, z: Aval, h: Aval) -> None:
    if not h.shape or z.shape != (*h.shape[:-1], wide * h.shape[-1]):
        raise refuse(op, f"products are {wide} times as wide as the states", z=z, state=h)


def _infer_lstm(z: Aval, c: Aval) -> tuple[Aval, Aval]:
    _check("nn.lstm_gates", 4, z, c)
    found = Aval(c.shape, floating("nn.lstm_gates", z=z, c=c))
    return found, found


# All results are computed before one is written: so an operand may lie where a result goes.
@register_op("nn.lstm_gates", infer=_infer_lstm, nout=2, inplace=[(1, 1)])
def _lstm_gates(h: Elements, cell: Elements, z: Elements, c: Elements) -> None:
    h[...], cell[...], _ = lstm_forward(z, c)


def _infer_lstm_data(dh: Aval, dc: Aval, z: Aval, c: Aval) -> tuple[Aval, Aval]:
    _check("nn.lstm_gates_data", 4, z, c)
    dtype = floating("nn.lstm_gates_data", dh=dh, dc=dc, z=z, c=c)
    return Aval(z.shape, dtype), Aval(c.shape, dtype)


@register_op("nn.lstm_gates_data", infer=_infer_lstm_data, nout=2, inplace=[(2, 0), (1, 1), (0, 1), (3, 1)])
def _lstm_gates_data(dz: Elements, before: Elements, dh: Elements, dc: Elements, z: Elements, c: Elements) -> None:
    _, cell, gates = lstm_forward(z, c)
    dz[...], before[...] = lstm_backward(dh, dc, gates, c, cell)


def _infer_gru(zx: Aval, zh: Aval, h: Aval) -> Aval:
    _check("nn.gru_gates", 3, zx, h)
    _check("nn.gru_gates", 3, zh, h)
    return Aval(h.shape, floating("nn.gru_gates", zx=zx, zh=zh, h=h))


@register_op("nn.gru_gates", infer=_infer_gru, inplace=[(2, 0)])
def _gru_gates(out: Elements, zx: Elements, zh: Elements, h: Elements) -> None:
    out[...], _ = gru_forward(zx, zh, h)


def _infer_gru_data(dh: Aval, zx: Aval, zh: Aval, h: Aval) -> tuple[Aval, Aval, Aval]:
    _check("nn.gru_gates_data", 3, zx, h)
    dtype = floating("nn.gru_gates_data", dh=dh, zx=zx, zh=zh, h=h)
    return Aval(zx.shape, dtype), Aval(zh.shape, dtype), Aval(h.shape, dtype)


@register_op("nn.gru_gates_data", infer=_infer_gru_data, nout=3, inplace=[(1, 0), (2, 1), (0, 2), (3, 2)])
def _gru_gates_data(
    dzx: Elements, dzh: Elements, before: Elements, dh: Elements, zx: Elements, zh: Elements, h: Elements
) -> None:
    _, gates = gru_forward(zx, zh, h)
    dzx[...], dzh[...], before[...] = gru_backward(dh, gates, h)


def _making(name: str, gates: str) -> Make:
    """Return the maker of the kernel of a cell's gates, or of their gradients; the last operand has the shape of the states."""

    def make(results: tuple[Aval, ...], operands: tuple[Aval, ...]) -> Kernel | None:
        states = operands[-1].shape
        if 0 in states:
            return None
        return kernel_cells(name, results[0].dtype, gates, [math.prod(states[:-1]), states[-1]])

    return make


for _op in (_lstm_gates, _lstm_gates_data, _gru_gates, _gru_gates_data):
    state(_op, infer_type="same")
    _op._run_by(Native.by(_making(_op.name, _op.name.removeprefix("nn.").replace("_gates", ""))))


def _infer_part(z: Aval, *, number: int, count: int) -> Aval:
    if not z.shape or z.shape[-1] % count:
        raise refuse("nn.part", f"a last axis of {count} equal parts is taken", z=z)
    del number
    return Aval((*z.shape[:-1], z.shape[-1] // count), z.dtype)


@register_op("nn.part", infer=_infer_part)
def _part(out: Elements, z: Elements, *, number: int, count: int) -> None:
    out[...] = np.split(z, count, axis=-1)[number]


def _push_part(outputs: tuple[NDArray], operands: tuple[Any, ...], *, number: int, count: int) -> bool:
    (out,), (z,) = outputs, operands
    if not isinstance(z, NDArray) or z.dtype != out.dtype:
        return False
    del count
    copy_elements(out, view(z, out.shape, z.strides, number * out.shape[-1] * z.strides[-1]))
    return True


state(_part, infer_type="same", push=_push_part)


def part(z: Any, number: int, count: int) -> Any:
    """Return one of `count` equal parts along the last axis, of an array or a symbol."""
    return get_op("nn.part")(z, number=number, count=count)


@gradient_of("nn.part")
def _part_rule(node: Any, grads: Any) -> Any:
    number, count = node.attributes["number"], node.attributes["count"]
    g = grads[0]
    return (apply("concat", *(g if at == number else g * 0 for at in range(count)), axis=-1),)


@gradient_of("nn.lstm_gates", inputs=[0, 1])
def _lstm_rule(node: Any, grads: Any) -> Any:
    z, c = node.inputs
    dh, dc = (c * 0 if g is None else g for g in grads)
    return get_op("nn.lstm_gates_data")(dh, dc, z, c)


@gradient_of("nn.gru_gates", inputs=[0, 1, 2])
def _gru_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.gru_gates_data")(grads[0], *node.inputs)


def _lstm_gradients(dh: Any, dc: Any, z: Any, c: Any) -> Any:
    """Return the same as ``nn.lstm_gates_data`` in functions of arrays."""
    i, f, g, o = (part(z, at, 4) for at in range(4))
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    bent = tanh(f * c + i * g)
    total = dc + dh * o * (1 - bent * bent)
    parts = [total * g * i * (1 - i), total * c * f * (1 - f), total * i * (1 - g * g), dh * bent * o * (1 - o)]
    return apply("concat", *parts, axis=-1), total * f


def _gru_gradients(dh: Any, zx: Any, zh: Any, h: Any) -> Any:
    """Return the same as ``nn.gru_gates_data`` in functions of arrays."""
    r, u = (sigmoid(part(zx, at, 3) + part(zh, at, 3)) for at in range(2))
    nh = part(zh, 2, 3)
    n = tanh(part(zx, 2, 3) + r * nh)
    dn = dh * (1 - u) * (1 - n * n)
    du = dh * (h - n) * u * (1 - u)
    dr = dn * nh * r * (1 - r)
    return apply("concat", dr, du, dn, axis=-1), apply("concat", dr, du, dn * r, axis=-1), dh * u


@gradient_of("nn.lstm_gates_data", inputs=[0, 1, 2, 3])
def _lstm_data_rule(node: Any, grads: Any) -> Any:
    z, c = node.inputs[2:]
    heads = [like * 0 if g is None else g for g, like in zip(grads, (z, c), strict=True)]
    return pull(_lstm_gradients, node.inputs, heads)


@gradient_of("nn.gru_gates_data", inputs=[0, 1, 2, 3])
def _gru_data_rule(node: Any, grads: Any) -> Any:
    heads = [like * 0 if g is None else g for g, like in zip(grads, node.inputs[1:], strict=True)]
    return pull(_gru_gradients, node.inputs, heads)
