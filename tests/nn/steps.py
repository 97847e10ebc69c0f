"""Steps of networks that the core computes: ops of the registry with operands and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["CASES", "numbers"]


def numbers(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def _classes(count: int, dtype: str, *shape: int) -> Any:
    return np.random.default_rng(2).integers(0, count, shape).astype(dtype)


def _gates(wide: int, *shape: int) -> Any:
    return np.abs(np.tanh(numbers(*shape, wide, seed=9)))


_LAYER = {"axis": (1, -1), "eps": 1e-3}
_LRN = {"size": 5, "alpha": 0.3, "k": 1.5}
_T, _N, _H = 5, 40, 8  # more rows than a block has


def _batch(shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Return gradients, data far from 0, and for their channels gamma, mean and variance."""
    others = tuple(at for at in range(len(shape)) if at != axis)
    x = numbers(*shape) * 2 + 9
    exact = x.astype("float64")
    statistics = (f(others).astype("float32") for f in (exact.mean, exact.var))
    return (numbers(*shape, seed=2), x, numbers(shape[axis], seed=3), *statistics)


def _train(shape: tuple[int, ...], axis: int) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    _, x, gamma, *_ = _batch(shape, axis)
    return "nn.batch_norm_train", (x, gamma, numbers(shape[axis], seed=4)), {"axis": axis}


#: Ops that are computed by the core, their operands and attributes.
CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "layer norm": ("nn.layer_norm", (numbers(3, 4, 7), numbers(7), numbers(7)), {}),
    "layer norm of the first axis": ("nn.layer_norm", (numbers(6, 4), numbers(6), numbers(6)), {"axis": 0}),
    "layer norm of two axes": ("nn.layer_norm", (numbers(6, 4, 3), numbers(4, 3), numbers(4, 3)), _LAYER),
    "its gradients": ("nn.layer_norm_data", (numbers(900, 300, seed=2), numbers(900, 300), numbers(300)), {}),
    "those of the first axis": ("nn.layer_norm_data", (numbers(6, 4, seed=2), numbers(6, 4), numbers(6)), {"axis": 0}),
    "normalised rows of several vectors": ("nn.layer_norm", (numbers(5, 83), numbers(83), numbers(83)), {}),
    "batch norm": _train((3, 5, 7, 11), 1),
    "batch norm of short rows": _train((40, 3, 2), 1),
    "batch norm of channels side by side": _train((9, 150), 1),
    "batch norm of the last axis": _train((3, 5, 7, 70), 3),
    "gradients of batch norm": ("nn.batch_norm_data", _batch((3, 5, 7, 11), 1), {}),
    "those of channels side by side": ("nn.batch_norm_data", _batch((9, 150), 1), {}),
    "those of the last axis": ("nn.batch_norm_data", _batch((3, 5, 7, 70), 3), {"axis": 3}),
    "sums of channels": ("nn.channel_sum", (numbers(3, 5, 7, 11),), {}),
    "sums of channels side by side": ("nn.channel_sum", (numbers(9, 150),), {}),
    "softmax of several vectors": ("nn.softmax", (numbers(5, 83),), {}),
    "softmax of the first axis": ("nn.softmax", (numbers(83, 5),), {"axis": 0}),
    "cross entropy of several vectors": ("nn.cross_entropy", (numbers(5, 83), _classes(83, "int64", 5)), {}),
    "cross entropy": ("nn.cross_entropy", (numbers(3, 5, 11), _classes(11, "int32", 3, 5)), {}),
    "cross entropy with rows": ("nn.cross_entropy", (numbers(9, 11), np.abs(numbers(9, 11, seed=3))), {}),
    "its gradient": ("nn.cross_entropy_data", (numbers(9), numbers(9, 11), _classes(11, "int64", 9)), {}),
    "that with rows": ("nn.cross_entropy_data", (numbers(9), numbers(9, 11), np.abs(numbers(9, 11, seed=3))), {}),
    "the gradient of rows": ("nn.cross_entropy_labels", (numbers(9), numbers(9, 11), numbers(9, 11, seed=3)), {}),
    "sums of rows": ("nn.label_weight", (numbers(9, 11), numbers(9, 11, seed=3)), {}),
    "ones for classes": ("nn.label_weight", (numbers(9, 11), _classes(11, "int64", 9)), {}),
    "embedding": ("nn.embedding", (_classes(6, "int32", 4, 3), numbers(6, 2, 5)), {}),
    "its gradient, with rows named twice": (
        "nn.embedding_weight",
        (numbers(4, 3, 2, 5), _classes(6, "int64", 4, 3), numbers(6, 2, 5)),
        {},
    ),
    "sums over channels": ("nn.window_sum", (numbers(2, 9, 30, 11),), {"size": 4}),
    "the other way": ("nn.window_sum", (numbers(2, 9, 3),), {"size": 4, "reverse": True}),
    "normalisation over channels": ("nn.lrn", (numbers(2, 9, 30, 11),), {**_LRN, "beta": 0.75}),
    "normalisation by a root": ("nn.lrn", (numbers(2, 9, 3),), {**_LRN, "beta": 0.5}),
    "normalisation by any power": ("nn.lrn", (numbers(2, 9, 3),), {**_LRN, "beta": 0.6}),
    "a vector along an axis": ("nn.over", (numbers(4), numbers(3, 4, 2)), {}),
    "a part": ("nn.part", (numbers(5, 12),), {"number": 2, "count": 3}),
    "a state": ("nn.state", (numbers(3, 4, 2),), {"number": 1}),
    "its gradient among zeros": ("nn.state_data", (numbers(4, 2), numbers(3, 4, 2)), {"number": 1}),
    "gates of an LSTM": ("nn.lstm_gates", (numbers(3, 20), numbers(3, 5)), {}),
    "their gradients": ("nn.lstm_gates_data", (numbers(3, 5), numbers(3, 5, seed=4), numbers(3, 20), numbers(3, 5, seed=5)), {}),
    "gates of a GRU": ("nn.gru_gates", (numbers(3, 15), numbers(3, 15, seed=6), numbers(3, 5)), {}),
    "gradients of these": ("nn.gru_gates_data", (numbers(3, 5), numbers(3, 15), numbers(3, 15, seed=6), numbers(3, 5, seed=7)), {}),
    **{
        f"{mode} forwards{' reversed' if reverse else ''}": (
            f"nn.{'rnn' if mode in ('tanh', 'relu') else mode}_sequence",
            operands,
            {**({"activation": mode} if mode in ("tanh", "relu") else {}), "reverse": reverse},
        )
        for reverse in (False, True)
        for mode, operands in {
            "lstm": (numbers(_T, _N, 4 * _H), numbers(_N, _H), numbers(_N, _H, seed=2), numbers(4 * _H, _H)),
            "gru": (numbers(_T, _N, 3 * _H), numbers(_N, _H), numbers(3 * _H, _H), numbers(3 * _H)),
            "tanh": (numbers(_T, _N, _H), numbers(_N, _H), numbers(_H, _H)),
            "relu": (numbers(_T, _N, _H), numbers(_N, _H), numbers(_H, _H)),
        }.items()
    },
    **{
        f"{mode} backwards{' reversed' if reverse else ''}": (
            f"nn.{'rnn' if mode in ('tanh', 'relu') else mode}_sequence_data",
            operands,
            {**({"activation": mode} if mode in ("tanh", "relu") else {}), "reverse": reverse},
        )
        for reverse in (False, True)
        for mode, operands in {
            "lstm": (
                *(numbers(_T, _N, _H), numbers(_N, _H), numbers(_N, _H, seed=2), _gates(4 * _H, _T, _N)),
                *(numbers(_T, _N, _H, seed=3), _gates(_H, _T, _N), numbers(_N, _H, seed=4), numbers(_N, _H, seed=5)),
                numbers(4 * _H, _H),
            ),
            "gru": (
                *(numbers(_T, _N, _H), numbers(_N, _H), _gates(4 * _H, _T, _N), _gates(_H, _T, _N)),
                *(numbers(_N, _H, seed=4), numbers(3 * _H, _H)),
            ),
            "tanh": (numbers(_T, _N, _H), numbers(_N, _H), _gates(_H, _T, _N), numbers(_N, _H, seed=4), numbers(_H, _H)),
            "relu": (numbers(_T, _N, _H), numbers(_N, _H), _gates(_H, _T, _N), numbers(_N, _H, seed=4), numbers(_H, _H)),
        }.items()
    },
}  # fmt: skip
