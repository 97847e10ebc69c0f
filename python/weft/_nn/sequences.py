"""Recurrent layers over whole sequences, as one op each: all steps of a direction, and all steps of its gradient.

The products with the data are made before, for all steps together; the code here multiplies the states of each step.
Sequences are ``(T, N, ...)``; for `reverse` the last step is the first. The values that gradients look at later are
results too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.filling import fill
from weft._call.views import view
from weft._core import Native, NDArray, beside, copy_elements, kernel_sequence
from weft._nn.arguments import fixed, floating, refuse
from weft._nn.gates import gru_backward, gru_forward, lstm_backward, lstm_forward
from weft._nn.running import run
from weft._ops.unbroadcast import stand_in
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft.errors import ArgumentValueError, GradientError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft._call.calls import DType, Elements
    from weft._core import Kernel
    from weft._nn.running import Make
    from weft._registry.shapes import Shape

ACTIVATIONS = ("tanh", "relu")


def _check(op: str, gates: int, z: Aval, h: Aval, w: Aval) -> Shape:
    """Return the shape of the results: (T, N, H)."""
    if len(z.shape) != 3 or len(h.shape) != 2:  # as the message says
        raise refuse(op, "products (T, N, gates) and states (N, H) are taken", z=z, h=h)
    steps, batch, wide = z.shape
    fixed(op, "h", h, (batch, wide // gates), z=z)
    fixed(op, "w_h", w, (wide, wide // gates), z=z)
    if wide % gates:
        raise refuse(op, f"products of {gates} equal parts are taken", z=z)
    return (steps, batch, wide // gates)


def _order(steps: int, *, reverse: bool) -> Iterable[int]:
    return range(steps - 1, -1, -1) if reverse else range(steps)


@lru_cache(maxsize=1024)
def _sequence(name: str, mode: str, dtype: DType, shape: Shape, gradient: bool, reverse: bool) -> Kernel | None:
    return None if 0 in shape else kernel_sequence(name, dtype, mode, list(shape), gradient, reverse)


def _making(mode: str | None) -> Make:
    """Return the maker of the kernel of a layer's steps; its results' shape is that of the first."""

    def make(
        results: tuple[Aval, ...], _: tuple[Aval, ...], *, activation: str = "tanh", reverse: bool = False
    ) -> Kernel | None:
        name, y = f"nn.{mode or 'rnn'}_sequence", results[0]
        return _sequence(name, mode or activation, y.dtype, y.shape, False, reverse)

    return make


def _backwards(mode: str, outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, reverse: bool) -> bool:
    """Push the gradients of products and states."""
    dy = operands[0]
    name = f"nn.{mode if mode in ('lstm', 'gru') else 'rnn'}_sequence_data"
    return run(_sequence(name, mode, dy.dtype, dy.shape, True, reverse), outputs, operands)


def _weigh(dw: NDArray, dz: NDArray, y: NDArray, h: NDArray, *, reverse: bool) -> None:
    """Write the gradient of the weights of states: of each step's products by the state before it."""
    first, later, before = (dz[-1], dz[:-1], y[1:]) if reverse else (dz[0], dz[1:], y[:-1])
    matmul = get_op("matmul")
    matmul(first.mT, h, out=dw)
    if later.size:
        more = matmul(later.reshape(-1, dz.shape[-1]).mT, before.reshape(-1, y.shape[-1]))
        get_op("add")(dw, more, out=dw)


def _infer_lstm(z: Aval, h: Aval, c: Aval, w: Aval, *, reverse: bool = False) -> tuple[Aval, ...]:
    del reverse
    op = "nn.lstm_sequence"
    shape = _check(op, 4, z, h, w)
    fixed(op, "c", c, h.shape, z=z)
    dtype = floating(op, z=z, h=h, c=c, w_h=w)
    state = Aval(h.shape, dtype)
    return Aval(shape, dtype), state, state, Aval(z.shape, dtype), Aval(shape, dtype)


@register_op("nn.lstm_sequence", infer=_infer_lstm, nout=5)
def _lstm(*arrays: Elements, reverse: bool = False) -> None:
    y, h_n, c_n, gates, cells, z, h, c, w = arrays
    for at in _order(len(z), reverse=reverse):
        h, c, gates[at] = lstm_forward(z[at] + np.matmul(h, w.T), c)
        y[at], cells[at] = h, c
    h_n[...], c_n[...] = h, c


def _infer_lstm_data(
    dy: Aval, dh: Aval, dc: Aval, gates: Aval, cells: Aval, y: Aval, h: Aval, c: Aval, w: Aval, *, reverse: bool = False
) -> tuple[Aval, ...]:
    del reverse
    dtype = floating("nn.lstm_sequence_data", dy=dy, dh=dh, dc=dc, gates=gates, cells=cells, y=y, h=h, c=c, w_h=w)
    return Aval(gates.shape, dtype), Aval(h.shape, dtype), Aval(c.shape, dtype), Aval(w.shape, dtype)


@register_op("nn.lstm_sequence_data", infer=_infer_lstm_data, nout=4)
def _lstm_data(*arrays: Elements, reverse: bool = False) -> None:
    dz, dh_0, dc_0, dw, dy, dh, dc, gates, cells, y, h, c, w = arrays
    order = list(_order(len(dy), reverse=reverse))
    for number in range(len(order) - 1, -1, -1):
        at = order[number]
        cell = cells[order[number - 1]] if number else c
        dz[at], dc = lstm_backward(dy[at] + dh, dc, gates[at], cell, cells[at])
        dh = np.matmul(dz[at], w)
    dh_0[...], dc_0[...] = dh, dc
    dw[...] = _weights(dz, y, h, order)


def _push_lstm_data(outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, reverse: bool = False) -> bool:
    dz, _, _, dw = outputs
    dy, dh, dc, gates, cells, y, h, c, w = operands
    if not _backwards("lstm", outputs[:3], (dy, dh, dc, gates, cells, c, w), reverse=reverse):
        return False
    _weigh(dw, dz, y, h, reverse=reverse)
    return True


def _weights(dz: Elements, y: Elements, h: Elements, order: list[int]) -> Elements:
    """Return the gradient of the weights of states: of each step's products by the state before it."""
    if not order:
        return np.zeros_like(dz, shape=(dz.shape[-1], h.shape[-1]))
    before = np.empty_like(y)
    before[order[0]] = h
    if order[0] == 0:
        before[1:] = y[:-1]
    else:
        before[:-1] = y[1:]
    found: Elements = np.matmul(dz.reshape(-1, dz.shape[-1]).T, before.reshape(-1, y.shape[-1]))
    return found


def _infer_gru(z: Aval, h: Aval, w: Aval, b: Aval, *, reverse: bool = False) -> tuple[Aval, ...]:
    del reverse
    op = "nn.gru_sequence"
    shape = _check(op, 3, z, h, w)
    fixed(op, "b_h", b, z.shape[2:], z=z)
    dtype = floating(op, z=z, h=h, w_h=w, b_h=b)
    return Aval(shape, dtype), Aval(h.shape, dtype), Aval((*shape[:2], 4 * shape[2]), dtype)


@register_op("nn.gru_sequence", infer=_infer_gru, nout=3)
def _gru(*arrays: Elements, reverse: bool = False) -> None:
    y, h_n, gates, z, h, w, b = arrays
    for at in _order(len(z), reverse=reverse):
        h, gates[at] = gru_forward(z[at], np.matmul(h, w.T) + b, h)
        y[at] = h
    h_n[...] = h


def _infer_gru_data(
    dy: Aval, dh: Aval, gates: Aval, y: Aval, h: Aval, w: Aval, *, reverse: bool = False
) -> tuple[Aval, ...]:
    del reverse
    dtype = floating("nn.gru_sequence_data", dy=dy, dh=dh, gates=gates, y=y, h=h, w_h=w)
    wide = w.shape[0]
    return Aval((*y.shape[:2], wide), dtype), Aval(h.shape, dtype), Aval(w.shape, dtype), Aval((wide,), dtype)


@register_op("nn.gru_sequence_data", infer=_infer_gru_data, nout=4)
def _gru_data(*arrays: Elements, reverse: bool = False) -> None:
    dz, dh_0, dw, db, dy, dh, gates, y, h, w = arrays
    order = list(_order(len(dy), reverse=reverse))
    inner = np.empty_like(dz)
    for number in range(len(order) - 1, -1, -1):
        at = order[number]
        before = y[order[number - 1]] if number else h
        dz[at], inner[at], straight = gru_backward(dy[at] + dh, gates[at], before)
        dh = straight + np.matmul(inner[at], w)
    dh_0[...] = dh
    dw[...], db[...] = _weights(inner, y, h, order), inner.sum(axis=(0, 1))


def _push_gru_data(outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, reverse: bool = False) -> bool:
    dz, dh_0, dw, db = outputs
    inner = beside(dz, dz.shape, dz.dtype)
    if not _backwards("gru", (dz, dh_0, inner), operands, reverse=reverse):
        return False
    _, _, _, y, h, _ = operands
    _weigh(dw, inner, y, h, reverse=reverse)
    get_op("nn.channel_sum")(inner, axis=-1, out=db)
    return True


def _infer_rnn(z: Aval, h: Aval, w: Aval, *, activation: str = "tanh", reverse: bool = False) -> tuple[Aval, Aval]:
    del reverse
    op = "nn.rnn_sequence"
    if activation not in ACTIVATIONS:
        raise ArgumentValueError(f"{op}: activation is 'tanh' or 'relu', not {activation!r}")
    shape = _check(op, 1, z, h, w)
    dtype = floating(op, z=z, h=h, w_h=w)
    return Aval(shape, dtype), Aval(h.shape, dtype)


@register_op("nn.rnn_sequence", infer=_infer_rnn, nout=2)
def _rnn(*arrays: Elements, activation: str = "tanh", reverse: bool = False) -> None:
    y, h_n, z, h, w = arrays
    for at in _order(len(z), reverse=reverse):
        found = z[at] + np.matmul(h, w.T)
        h = np.tanh(found) if activation == "tanh" else np.maximum(found, 0)
        y[at] = h
    h_n[...] = h


def _infer_rnn_data(
    dy: Aval, dh: Aval, y: Aval, h: Aval, w: Aval, *, activation: str = "tanh", reverse: bool = False
) -> tuple[Aval, ...]:
    del activation, reverse
    dtype = floating("nn.rnn_sequence_data", dy=dy, dh=dh, y=y, h=h, w_h=w)
    return Aval(y.shape, dtype), Aval(h.shape, dtype), Aval(w.shape, dtype)


@register_op("nn.rnn_sequence_data", infer=_infer_rnn_data, nout=3)
def _rnn_data(*arrays: Elements, activation: str = "tanh", reverse: bool = False) -> None:
    dz, dh_0, dw, dy, dh, y, h, w = arrays
    order = list(_order(len(dy), reverse=reverse))
    for at in order[::-1]:
        g = dy[at] + dh
        dz[at] = g * (1 - y[at] * y[at]) if activation == "tanh" else np.where(y[at] > 0, g, 0)
        dh = np.matmul(dz[at], w)
    dh_0[...] = dh
    dw[...] = _weights(dz, y, h, order)


def _push_rnn_data(
    outputs: tuple[NDArray, ...], operands: tuple[NDArray, ...], *, activation: str = "tanh", reverse: bool = False
) -> bool:
    dz, dh_0, dw = outputs
    dy, dh, y, h, w = operands
    if not _backwards(activation, (dz, dh_0), (dy, dh, y, w), reverse=reverse):
        return False
    _weigh(dw, dz, y, h, reverse=reverse)
    return True


for _op, _mode in ((_lstm, "lstm"), (_gru, "gru"), (_rnn, None)):
    state(_op, infer_type="same")
    _op._run_by(Native.by(_making(_mode)))

for _op, _push in ((_lstm_data, _push_lstm_data), (_gru_data, _push_gru_data), (_rnn_data, _push_rnn_data)):
    state(_op, infer_type="same", push=_push)


@gradient_of("nn.lstm_sequence", inputs=[1, 2, 3], outputs=[0, 3, 4])
def _lstm_rule(node: Any, grads: Any) -> Any:
    _, h, c, w = node.inputs
    y, _, _, gates, cells = node.outputs
    dy, dh, dc = _heads(grads[:3], y, h, c)
    dz, dh_0, dc_0, dw = get_op("nn.lstm_sequence_data")(dy, dh, dc, gates, cells, y, h, c, w, **node.attributes)
    return dz, dh_0, dc_0, dw


@gradient_of("nn.gru_sequence", inputs=[1, 2], outputs=[0, 2])
def _gru_rule(node: Any, grads: Any) -> Any:
    _, h, w, _ = node.inputs
    y, _, gates = node.outputs
    dy, dh = _heads(grads[:2], y, h)
    dz, dh_0, dw, db = get_op("nn.gru_sequence_data")(dy, dh, gates, y, h, w, **node.attributes)
    return dz, dh_0, dw, db


@gradient_of("nn.rnn_sequence", inputs=[1, 2], outputs=[0])
def _rnn_rule(node: Any, grads: Any) -> Any:
    _, h, w = node.inputs
    y = node.outputs[0]
    dy, dh = _heads(grads, y, h)
    return get_op("nn.rnn_sequence_data")(dy, dh, y, h, w, **node.attributes)


def _heads(grads: Any, *likes: Any) -> list[Any]:
    return [like * 0 if g is None else g for g, like in zip(grads, likes, strict=True)]


@gradient_of("nn.lstm_sequence_data", "nn.gru_sequence_data", "nn.rnn_sequence_data")
def _second_rule(node: Any, grads: Any) -> Any:
    del node, grads
    raise GradientError(
        "nn.rnn has gradients, and these have none of their own: write the steps with nn.lstm_cell, nn.gru_cell or "
        "nn.rnn_cell, which have all"
    )


def _infer_state(states: Aval, *, number: int) -> Aval:
    if not states.shape or not 0 <= number < states.shape[0]:
        raise refuse("nn.state", f"there is no state {number}", states=states)
    return Aval(states.shape[1:], states.dtype)


@register_op("nn.state", infer=_infer_state)
def _state(out: Elements, states: Elements, *, number: int) -> None:
    out[...] = states[number]


def _push_state(outputs: tuple[NDArray], operands: tuple[Any, ...], *, number: int) -> bool:
    (out,), (states,) = outputs, operands
    if not isinstance(states, NDArray) or states.dtype != out.dtype:
        return False
    copy_elements(out, view(states, out.shape, states.strides[1:], number * states.strides[0]))
    return True


state(_state, infer_type="same", push=_push_state)


def _infer_state_data(g: Aval, like: Aval, *, number: int) -> Aval:
    del number
    return Aval(like.shape, g.dtype)


@register_op("nn.state_data", infer=_infer_state_data)
def _state_data(out: Elements, g: Elements, like: Elements, *, number: int) -> None:
    del like
    out.fill(0)
    out[number] = g


def _push_state_data(outputs: tuple[NDArray], operands: tuple[Any, ...], *, number: int) -> bool:
    (out,), g = outputs, operands[0]
    if not isinstance(g, NDArray) or g.dtype != out.dtype or not out.size:
        return False
    fill(out, 0)
    copy_elements(view(out, g.shape, out.strides[1:], number * out.strides[0]), g)
    return True


state(_state_data, infer_type="same", ignores=(1,), push=_push_state_data)


@gradient_of("nn.state")
def _state_rule(node: Any, grads: Any) -> Any:
    return (get_op("nn.state_data")(grads[0], stand_in(node.inputs[0]), **node.attributes),)


@gradient_of("nn.state_data")
def _state_data_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.state")(grads[0], **node.attributes), None
