"""Recurrent networks: the fused op, with its weights in one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.draws import kept
from weft._mxnet.gradients import again_as_drawn
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import data_dtype
from weft._mxnet.settings import REQUIRED, Settings, choice, flag, integer, number, optional
from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._tape.modes import TRAINING
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft._mxnet.partial_shapes import Shapes

#: By mode: its name for `weft.nn.rnn`, and the rows of weights for each unit.
_MODES = {"rnn_relu": ("relu", 1), "rnn_tanh": ("tanh", 1), "lstm": ("lstm", 4), "gru": ("gru", 3)}


def _layers(s: Any, width: int) -> Iterator[int]:
    """Return the width of each layer's input."""
    for layer in range(s.num_layers):
        yield width if layer == 0 else s.state_size * (1 + s.bidirectional)


def parameter_count(s: Any, width: int) -> int:
    """Return the length of the vector of parameters for data of this width.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from weft._mxnet.recurrent import parameter_count
    >>> parameter_count(SimpleNamespace(mode="lstm", state_size=3, num_layers=1, bidirectional=False), 2)
    84
    """
    rows = _MODES[s.mode][1] * s.state_size
    ways = 1 + s.bidirectional
    return sum(ways * rows * (each + s.state_size + 2) for each in _layers(s, width))


def unpacked(s: Any, parameters: Any, width: int) -> list[list[tuple[Any, Any, Any, Any]]]:
    """Return the weights and biases of each layer and direction: all weights come first in the vector, then all biases."""
    rows = _MODES[s.mode][1] * s.state_size
    ways = 1 + s.bidirectional
    at = 0

    def take(*shape: int) -> Any:
        nonlocal at
        size = 1
        for each in shape:
            size *= each
        at += size
        return parameters[at - size : at].reshape(shape)

    weights = [[(take(rows, each), take(rows, s.state_size)) for _ in range(ways)] for each in _layers(s, width)]
    biases = [[(take(rows), take(rows)) for _ in range(ways)] for _ in range(s.num_layers)]
    return [[(*w, *b) for w, b in zip(*each, strict=True)] for each in zip(weights, biases, strict=True)]


def _inputs(s: Any) -> tuple[str, ...]:
    return ("data", "parameters", "state", *(("state_cell",) if s.mode == "lstm" else ()))


def _shown(s: Any) -> int:
    return (3 if s.mode == "lstm" else 2) if s.state_outputs else 1


def _masks(s: Any) -> tuple[int, ...]:
    """Return the results that are factors of elements between layers, of which some are dropped."""
    return tuple(range(_shown(s), _shown(s) + s.num_layers - 1)) if s.p > 0 else ()


def _names(s: Any) -> tuple[str, ...]:
    count = _shown(s)
    shown = ("output",) if count == 1 else tuple(f"output{at}" for at in range(count))
    return (*shown, *(f"mask{at}" for at in range(len(_masks(s)))))


def _shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    if s.projection_size is not None or s.use_sequence_length:
        raise GraphError("op 'RNN' with projection_size or use_sequence_length is not read")
    if s.lstm_state_clip_min is not None or s.lstm_state_clip_max is not None:
        raise GraphError(
            "op 'RNN' does not clip states: leave lstm_state_clip_min and lstm_state_clip_max out, or None"
        )
    ways = 1 + s.bidirectional
    ins.learn_rank(0, 3)
    outs.learn(0, (None, None, ways * s.state_size))
    width = ins.length(0, 2)
    if width is not None:
        ins.learn(1, (parameter_count(s, width),))
    batch = ins.length(0, 1) or outs.length(0, 1) or ins.length(2, 1)
    state = (ways * s.num_layers, batch, s.state_size)
    for at in range(2, len(ins)):
        ins.learn(at, state)
    for at in range(1, _shown(s)):
        outs.learn(at, state)
    length = ins.length(0, 0) or outs.length(0, 0)
    ins.learn(0, (length, batch, None))
    outs.learn(0, (length, batch, None))
    for at in _masks(s):
        outs.learn(at, (length, batch, ways * s.state_size))


@operator(
    "RNN",
    "_npx_rnn",
    settings=Settings(
        state_size=(integer, REQUIRED),
        num_layers=(integer, REQUIRED),
        bidirectional=(flag, False),
        mode=(choice(*_MODES), REQUIRED),
        p=(number, 0.0),
        state_outputs=(flag, False),
        projection_size=(optional(integer), None),
        use_sequence_length=(flag, False),
        lstm_state_clip_min=(optional(number), None),
        lstm_state_clip_max=(optional(number), None),
        lstm_state_clip_nan=(flag, False),
    ),
    inputs=_inputs,
    outputs=lambda s: _shown(s) + len(_masks(s)),
    visible=_shown,
    output_names=_names,
    shapes=_shapes,
    gradient=again_as_drawn(_masks),
    pure=lambda s: not _masks(s),
)
def _rnn(s: Any, data: Any, parameters: Any, state: Any, cell: Any = None, drawn: Sequence[Any] = ()) -> Any:
    mode = _MODES[s.mode][0]
    ways = 1 + s.bidirectional
    found: Any = data
    states: list[Any] = []
    cells: list[Any] = []
    masks: list[Any] = []
    for number_, layer in enumerate(unpacked(s, parameters, data.shape[2])):
        if number_ and s.p > 0:
            masks.append(drawn[number_ - 1] if drawn else _factors(s, found))
            found = found * masks[-1] if drawn or TRAINING.get() else found
        own = slice(number_ * ways, (number_ + 1) * ways)
        answer = nn.rnn(
            found,
            state[own],
            [layer if s.bidirectional else layer[0]],
            mode=mode,
            c0=None if cell is None else cell[own],
            bidirectional=bool(s.bidirectional),
        )
        found = answer[0]
        states.append(answer[1])
        cells.extend(answer[2:])
    if not s.state_outputs:
        return (found, *masks) if masks else found
    ends = (each[0] if len(each) == 1 else namespace.concat(each, axis=0) for each in (states, cells) if each)
    return (found, *ends, *masks)


def _factors(s: Any, x: Any) -> Any:
    """Return a factor for each element: ones outside of training."""
    return (
        kept(x, s.p)
        if TRAINING.get()
        else namespace.broadcast_to(namespace.ones((), dtype=x.dtype, engine=x.engine), x.shape)
    )


_rnn.set_attribute("draws_untrained", value=False)


def _length_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], [0])
    batch = ins.length(0, 1 - s.axis)
    if len(ins) > 1:
        ins.learn(1, (batch,))


_SEQUENCE: dict[str, Any] = {"use_sequence_length": (flag, False), "axis": (integer, 0)}


def _sequence_inputs(s: Any) -> tuple[str, ...]:
    return ("data", "sequence_length") if s.use_sequence_length else ("data",)


def _steps(s: Any, data: Any) -> Any:
    """Return the numbers of the steps, along their axis."""
    shape = [1] * data.ndim
    shape[s.axis] = data.shape[s.axis]
    return namespace.arange(data.shape[s.axis], engine=data.engine).reshape(tuple(shape))


def _along(s: Any, data: Any, lengths: Any) -> Any:
    shape = [1] * data.ndim
    shape[1 - s.axis] = data.shape[1 - s.axis]
    return namespace.astype(lengths, "int64").reshape(tuple(shape))


@operator(
    "SequenceMask",
    "_npx_sequence_mask",
    settings=Settings((), **_SEQUENCE, value=(number, 0.0)),
    inputs=_sequence_inputs,
    shapes=_length_shapes,
    dtypes=data_dtype,
)
def _mask(s: Any, data: Any, lengths: Any = None) -> Any:
    return data if lengths is None else namespace.where(_steps(s, data) < _along(s, data, lengths), data, s.value)


@operator(
    "SequenceReverse",
    settings=Settings((), **_SEQUENCE),
    inputs=_sequence_inputs,
    shapes=_length_shapes,
    dtypes=data_dtype,
)
def _reverse(s: Any, data: Any, lengths: Any = None) -> Any:
    if lengths is None:
        return namespace.flip(data, axis=s.axis)
    steps, length = _steps(s, data), _along(s, data, lengths)
    rows: Any = namespace.where(steps < length, length - 1 - steps, steps)
    return namespace.take_along_axis(
        data, namespace.broadcast_to(rows, (*data.shape[:2], *rows.shape[2:])), axis=s.axis
    )


def _last_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        at: int = 1 - s.axis
        batch = known[at]
        outs.learn(0, (batch, *known[2:]))
        if len(ins) > 1:
            ins.learn(1, (batch,))


@operator(
    "SequenceLast",
    settings=Settings((), **_SEQUENCE),
    inputs=_sequence_inputs,
    shapes=_last_shapes,
    dtypes=data_dtype,
)
def _last(s: Any, data: Any, lengths: Any = None) -> Any:
    if lengths is None:
        return data[-1] if s.axis == 0 else data[:, -1]
    rows = _along(s, data, lengths) - 1
    shape = list(data.shape)
    shape[s.axis] = 1
    spread = namespace.broadcast_to(rows, (*shape[:2], *(1,) * (data.ndim - 2)))
    return namespace.take_along_axis(data, spread, axis=s.axis).reshape((data.shape[1 - s.axis], *data.shape[2:]))
