"""The same for the kernels of networks; each derivative op is reached by the op whose gradient it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from gradient.cases import Case
from weft import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KERNELS"]

_rng = np.random.default_rng(21)


def _any(*shape: int) -> np.ndarray[Any, Any]:
    return _rng.standard_normal(shape)


def _apart(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers of both signs, none near another one or near zero."""
    size = int(np.prod(shape))
    return (_rng.permutation(size).reshape(shape) + 0.35 - size // 2) / size * 2


def _conv(**given: Any) -> Callable[..., Any]:
    return lambda *operands: nn.conv(*operands, **given)


def _transpose(**given: Any) -> Callable[..., Any]:
    return lambda *operands: nn.conv_transpose(*operands, **given)


def _rnn(mode: str, layers: int, directions: int) -> Case:
    count = layers * directions
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    parameters: list[np.ndarray[Any, Any]] = []
    for layer in range(layers):
        wide = 2 if layer == 0 else 2 * directions
        for _ in range(directions):
            parameters += [_any(gates * 2, wide), _any(gates * 2, 2), _any(gates * 2), _any(gates * 2)]

    def run(x: Any, h: Any, c: Any, *given: Any) -> Any:
        each = [tuple(given[at : at + 4]) for at in range(0, len(given), 4)]
        weights = [each[at : at + directions] for at in range(0, count, directions)]
        cells = {"c0": c} if mode == "lstm" else {}
        found = nn.rnn(x, h, weights, mode=mode, bidirectional=directions == 2, **cells)
        return found if mode == "lstm" else (*found, c * 1)

    return Case(run, (_any(3, 2, 2), _any(count, 2, 2), _any(count, 2, 2), *parameters), second=False)


def _names(*names: str, cases: list[Case]) -> dict[str, list[Case]]:
    return {name: cases if at == 0 else cases[:1] for at, name in enumerate(names)}


_CONVOLUTIONS = [
    Case(_conv(padding=1), (_any(2, 2, 4, 3), _any(3, 2, 3, 2), _any(3))),
    Case(
        _conv(stride=(2, 1), padding=((0, 1), (2, 1)), dilation=(1, 2), groups=2), (_any(2, 4, 5, 4), _any(2, 2, 2, 2))
    ),
    Case(_conv(stride=2), (_any(1, 2, 6), _any(2, 2, 3), _any(2))),
    Case(_conv(), (_any(1, 2, 2, 3, 2), _any(1, 2, 2, 2, 1))),
]
_CLASSES = weft.asarray([2, 0])
_PROBABILITIES = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])

KERNELS: dict[str, list[Case]] = {
    **_names("nn.conv", "nn.conv_data", "nn.conv_weight", "nn.channel_sum", "nn.over", cases=_CONVOLUTIONS),
    "nn.conv_transpose": [
        Case(_transpose(stride=2, padding=1, output_padding=1), (_any(2, 2, 3, 3), _any(2, 3, 3, 3), _any(3))),
        Case(_transpose(groups=2, dilation=2), (_any(1, 4, 3), _any(4, 1, 2))),
    ],
    **_names(
        "nn.max_pool", "nn.max_pool_data", "nn.max_pool_take",
        cases=[
            Case(lambda x: nn.max_pool(x, 3, stride=2, padding=1, ceil_mode=True), (_apart(2, 2, 5, 6),)),
            Case(lambda x: nn.max_pool(x, 2), (_apart(1, 2, 5),)),
            Case(lambda x: nn.max_pool(x, (2, 3), padding=((0, 1), (1, 0))), (_apart(1, 2, 4, 5),)),
        ],
    ),
    **_names(
        "nn.avg_pool", "nn.avg_pool_data",
        cases=[
            Case(lambda x: nn.avg_pool(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), (_any(2, 2, 5, 6),)),
            Case(lambda x: nn.avg_pool(x, (1, 2, 2)), (_any(1, 2, 2, 3, 4),)),
        ],
    ),
    "nn.batch_norm": [
        Case(lambda x, g, b, m, v: nn.batch_norm(x, g, b, m, v * v), (_any(3, 2, 2), *(_any(2) for _ in range(4)))),
        Case(lambda x, g, b, m, v: nn.batch_norm(x, g, b, m, v * v, axis=-1, eps=0.1), (_any(3, 2), *(_any(2) for _ in range(4)))),
    ],
    **_names(
        "nn.batch_norm_train", "nn.batch_norm_data",
        cases=[
            Case(lambda x, g, b: nn.batch_norm_train(x, g, b), (_any(3, 2, 2), _any(2), _any(2))),
            Case(lambda x, g, b: nn.batch_norm_train(x, g, b, axis=-1, eps=0.1)[0], (_any(4, 3), _any(3), _any(3))),
        ],
    ),
    **_names(
        "nn.layer_norm", "nn.layer_norm_data",
        cases=[
            Case(nn.layer_norm, (_any(3, 4), _any(4), _any(4))),
            Case(lambda x, g, b: nn.layer_norm(x, g, b, axis=(1, 2), eps=0.1), (_any(2, 3, 2), _any(3, 2), _any(3, 2))),
        ],
    ),
    **{f"nn.{name}{end}": [Case(getattr(nn, name), (_apart(2, 3),))] for name in ("relu", "sigmoid", "softplus", "gelu") for end in ("", "_data")},
    **{f"nn.leaky_relu{end}": [Case(lambda x: nn.leaky_relu(x, 0.2), (_apart(2, 3),))] for end in ("", "_data")},
    **{f"nn.elu{end}": [Case(lambda x: nn.elu(x, 0.7), (_apart(2, 3),))] for end in ("", "_data")},
    **{
        f"nn.{name}{end}": [Case(getattr(nn, name), (_any(2, 3),)), Case(lambda x, f=getattr(nn, name): f(x, axis=1), (_any(2, 3, 2),))]
        for name in ("softmax", "log_softmax") for end in ("", "_data")
    },
    **_names(
        "nn.cross_entropy", "nn.cross_entropy_data", "nn.cross_entropy_labels", "nn.label_weight",
        cases=[
            Case(nn.cross_entropy, (_any(2, 3), _PROBABILITIES)),
            Case(lambda x: nn.cross_entropy(x, _CLASSES), (_any(2, 3),)),
        ],
    ),
    **_names(
        "nn.dense", "nn.dense_data", "nn.dense_weight", "nn.dense_rows",
        cases=[
            Case(nn.dense, (_any(2, 3, 4), _any(5, 4), _any(5))),
            Case(lambda x, w: nn.dense(x, w, flatten=True), (_any(2, 3, 4), _any(5, 12))),
        ],
    ),
    **_names("nn.embedding", "nn.embedding_weight", cases=[Case(lambda w: nn.embedding([[0, 2], [2, 1]], w), (_any(3, 2),))]),
    **_names("nn.lrn", "nn.window_sum", cases=[Case(lambda x: nn.lrn(x, 4, alpha=0.5, beta=0.75, k=1.0), (_any(2, 6, 2),))]),
    **_names(
        "nn.lstm_gates", "nn.lstm_gates_data", "nn.part",
        cases=[Case(nn.lstm_cell, (_any(2, 3), _any(2, 2), _any(2, 2), _any(8, 3), _any(8, 2), _any(8), _any(8)))],
    ),
    **_names("nn.gru_gates", "nn.gru_gates_data", cases=[Case(nn.gru_cell, (_any(2, 3), _any(2, 2), _any(6, 3), _any(6, 2), _any(6), _any(6)))]),
    "nn.rnn_cell": [Case(lambda *given: nn.rnn_cell(*given), (_any(2, 3), _any(2, 2), _any(2, 3), _any(2, 2)))],
    **_names("nn.lstm_sequence", "nn.lstm_sequence_data", "nn.state", "nn.state_data", cases=[_rnn("lstm", 2, 2)]),
    **_names("nn.gru_sequence", "nn.gru_sequence_data", cases=[_rnn("gru", 2, 2)]),
    **_names("nn.rnn_sequence", "nn.rnn_sequence_data", cases=[_rnn("tanh", 1, 1), _rnn("relu", 1, 1)]),
}  # fmt: skip
