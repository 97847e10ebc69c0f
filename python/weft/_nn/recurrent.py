"""Recurrent cells, and recurrent networks over sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from weft._call.operands import as_array
from weft._nn.activations import relu
from weft._nn.dense import dense
from weft._nn.sequences import ACTIVATIONS
from weft._ops.elementwise import tanh
from weft._ops.joining import concat, stack
from weft._registry.op import get_op
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft._call.operands import ArrayLike
    from weft._core import NDArray

_MODES = ("lstm", "gru", "tanh", "relu")


def lstm_cell(
    x: ArrayLike,
    h: ArrayLike,
    c: ArrayLike,
    w_x: ArrayLike,
    w_h: ArrayLike,
    b_x: ArrayLike | None = None,
    b_h: ArrayLike | None = None,
) -> tuple[NDArray, NDArray]:
    """Take one step of a long short-term memory.

    Parameters
    ----------
    x : array_like
        Data of shape ``(N, F)``.
    h, c : array_like
        Hidden state and cell, of shape ``(N, H)``.
    w_x, w_h : array_like
        Weights of shapes ``(4 * H, F)`` and ``(4 * H, H)``: gates i, f, g, o, one below the other.
    b_x, b_h : array_like, optional
        Biases of shape ``(4 * H,)``.

    Returns
    -------
    h, c : NDArray
        Hidden state and cell after the step.

    Examples
    --------
    >>> import weft
    >>> h, c = weft.nn.lstm_cell(weft.ones((2, 3)), *[weft.zeros((2, 1))] * 2, weft.zeros((4, 3)), weft.zeros((4, 1)))
    >>> h.shape, c.shape
    ((2, 1), (2, 1))
    """
    x = as_array(x)
    z = dense(x, w_x, b_x) + dense(as_array(h, x), w_h, b_h)
    found: tuple[NDArray, NDArray] = get_op("nn.lstm_gates")(z, as_array(c, x))  # type: ignore[assignment] # two results
    return found


def gru_cell(
    x: ArrayLike, h: ArrayLike, w_x: ArrayLike, w_h: ArrayLike, b_x: ArrayLike | None, b_h: ArrayLike | None
) -> NDArray:
    """Take one step of a gated recurrent unit, as PyTorch and cuDNN have it: the reset gate multiplies after `b_h` is added.

    Parameters
    ----------
    x : array_like
        Data of shape ``(N, F)``.
    h : array_like
        Hidden state, of shape ``(N, H)``.
    w_x, w_h : array_like
        Weights of shapes ``(3 * H, F)`` and ``(3 * H, H)``: gates r, z, n, one below the other.
    b_x, b_h : array_like or None
        Biases of shape ``(3 * H,)``.

    Returns
    -------
    NDArray
        The hidden state after the step.

    Examples
    --------
    >>> import weft
    >>> w_x, w_h = weft.zeros((3, 3)), weft.zeros((3, 1))
    >>> weft.nn.gru_cell(weft.ones((2, 3)), weft.ones((2, 1)), w_x, w_h, None, None).tolist()
    [[0.5], [0.5]]
    """
    x = as_array(x)
    h = as_array(h, x)
    found: NDArray = get_op("nn.gru_gates")(dense(x, w_x, b_x), dense(h, w_h, b_h), h)  # type: ignore[assignment] # one result
    return found


def rnn_cell(
    x: ArrayLike,
    h: ArrayLike,
    w_x: ArrayLike,
    w_h: ArrayLike,
    b_x: ArrayLike | None = None,
    b_h: ArrayLike | None = None,
    activation: str = "tanh",
) -> NDArray:
    """Take one step of a plain recurrent network.

    Parameters
    ----------
    x : array_like
        Data of shape ``(N, F)``.
    h : array_like
        Hidden state, of shape ``(N, H)``.
    w_x, w_h : array_like
        Weights of shapes ``(H, F)`` and ``(H, H)``.
    b_x, b_h : array_like, optional
        Biases of shape ``(H,)``.
    activation : {"tanh", "relu"}
        The function of the sum of the products.

    Returns
    -------
    NDArray
        The hidden state after the step.

    Examples
    --------
    >>> import weft
    >>> weft.nn.rnn_cell([[1.0]], [[2.0]], [[1.0]], [[-1.0]], activation="relu").tolist()
    [[0.0]]
    """
    if activation not in ACTIVATIONS:
        raise ArgumentValueError(f"nn.rnn_cell: activation is 'tanh' or 'relu', not {activation!r}")
    x = as_array(x)
    z = dense(x, w_x, b_x) + dense(as_array(h, x), w_h, b_h)
    return tanh(z) if activation == "tanh" else relu(z)


def rnn(
    x: ArrayLike,
    h0: ArrayLike | Sequence[ArrayLike],
    weights: Sequence[Any],
    *,
    mode: str = "lstm",
    c0: ArrayLike | Sequence[ArrayLike] | None = None,
    bidirectional: bool = False,
) -> tuple[NDArray, ...]:
    """Run a recurrent network over sequences, layer by layer.

    Parameters
    ----------
    x : array_like
        Sequences of shape ``(T, N, F)``.
    h0 : array_like
        The hidden states before the first step, of shape ``(layers * directions, N, H)``, or a sequence of them.
    weights : sequence
        For each layer a tuple ``(w_x, w_h, b_x, b_h)``, with None for missing biases; if bidirectional, a pair of tuples:
        forwards and backwards. Shapes are those of the cells.
    mode : {"lstm", "gru", "tanh", "relu"}
        The kind of cells.
    c0 : array_like, optional
        The cells of an LSTM before the first step, as `h0`.
    bidirectional : bool, default: False
        Whether each layer runs both ways; results lie side by side along the last axis.

    Returns
    -------
    y, h_n : NDArray
        The last layer's hidden states at each step, ``(T, N, directions * H)``, and those of all layers after the last
        step, of the shape of `h0`; of an LSTM the cells too, `c_n`.

    Raises
    ------
    ShapeError
        If shapes do not fit, or there are not as many states as layers and directions.

    Examples
    --------
    >>> import weft
    >>> layer = (weft.zeros((4, 3)), weft.zeros((4, 1)), None, None)
    >>> y, h, c = weft.nn.rnn(weft.ones((5, 2, 3)), weft.zeros((1, 2, 1)), [layer], c0=weft.zeros((1, 2, 1)))
    >>> y.shape, h.shape, c.shape
    ((5, 2, 1), (1, 2, 1), (1, 2, 1))
    """
    if mode not in _MODES:
        raise ArgumentValueError(f"nn.rnn: mode is one of {', '.join(_MODES)}, not {mode!r}")
    if (c0 is None) == (mode == "lstm"):
        raise ArgumentValueError(f"nn.rnn: c0= is given for mode='lstm', and for that alone; mode is {mode!r}")
    directions = 2 if bidirectional else 1
    layers = [_directions(layer, directions) for layer in weights]
    count = len(layers) * directions
    y: Any = as_array(x)
    hidden, cells = _states("h0", h0, count, y), None if c0 is None else _states("c0", c0, count, y)
    ends: list[Any] = []
    cell_ends: list[Any] = []
    for number, layer in enumerate(layers):
        parts: list[Any] = []
        for way, parameters in enumerate(layer):
            at = number * directions + way
            found = _run(y, hidden[at], None if cells is None else cells[at], parameters, mode, reverse=way == 1)
            parts.append(found[0])
            ends.append(found[1])
            cell_ends.append(found[2])
        y = parts[0] if directions == 1 else concat(parts, axis=-1)
    if mode == "lstm":
        return y, stack(ends), stack(cell_ends)
    return y, stack(ends)


def _directions(layer: Any, directions: int) -> list[Any]:
    """Return the parameters of each direction of a layer."""
    if not isinstance(layer, list | tuple):
        raise ArgumentTypeError(
            f"nn.rnn: weights is a list with a tuple (w_x, w_h, b_x, b_h) for each layer, and holds a {type(layer).__name__}"
        )
    found: list[Any] = list(cast("Any", layer))
    if len(found) == 4 and not isinstance(found[0], list | tuple):  # parameters of one direction
        found = [found]
    if len(found) != directions or any(len(each) != 4 for each in found):
        raise ArgumentTypeError(
            f"nn.rnn: each layer has (w_x, w_h, b_x, b_h) for each of {directions} directions, and one has {len(found)}"
        )
    return found


def _states(name: str, given: Any, count: int, like: Any) -> list[Any]:
    """Return the state of each layer and direction."""
    if isinstance(given, list | tuple):
        found = [as_array(each, like) for each in cast("Iterable[Any]", given)]
        if len(found) != count:
            raise ShapeError(f"nn.rnn: {name} has {len(found)} states, and there are {count} layers and directions")
        return found
    stacked = as_array(given, like)
    if getattr(stacked, "shape", (count,))[:1] != (count,):
        raise ShapeError(f"nn.rnn: {name} has shape {stacked.shape}, and there are {count} layers and directions")
    return [get_op("nn.state")(stacked, number=at) for at in range(count)]


def _run(x: Any, h: Any, c: Any, parameters: Any, mode: str, *, reverse: bool) -> tuple[Any, Any, Any]:
    """Return results, last hidden state and last cell of one direction of one layer."""
    w_x, w_h, b_x, b_h = parameters
    z = dense(x, w_x, b_x)
    w_h = as_array(w_h, x)
    if mode == "gru":
        zeros = get_op("nn.channel_sum")(w_h, axis=0) * 0 if b_h is None else as_array(b_h, x)
        y, last, _ = get_op("nn.gru_sequence")(z, h, w_h, zeros, reverse=reverse)
        return y, last, None
    if b_h is not None:
        z = z + as_array(b_h, x)
    if mode == "lstm":
        y, last, cell, _, _ = get_op("nn.lstm_sequence")(z, h, c, w_h, reverse=reverse)
        return y, last, cell
    y, last = get_op("nn.rnn_sequence")(z, h, w_h, activation=mode, reverse=reverse)
    return y, last, None
