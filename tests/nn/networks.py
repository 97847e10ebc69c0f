"""Kernels of networks as functions of their operands: what is held against the host on devices, with gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from nn.steps import numbers
from weft import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NETWORKS", "check_on_device"]

_X, _V = numbers(2, 4, 7, 6), np.abs(numbers(4))
_CLASSES = np.array([0, 2, 1])

NETWORKS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "conv": (lambda x, w, b: nn.conv(x, w, b, stride=2, padding=1, groups=2), [_X, numbers(6, 2, 3, 3), numbers(6)]),
    "conv_transpose": (lambda x, w, b: nn.conv_transpose(x, w, b, stride=2), [_X, numbers(4, 3, 3, 3), numbers(3)]),
    "max_pool": (lambda x: nn.max_pool(x, 3, stride=2, padding=1, ceil_mode=True), [_X]),
    "avg_pool": (lambda x: nn.avg_pool(x, 3, stride=2, padding=1, count_include_pad=False), [_X]),
    "batch_norm": (nn.batch_norm, [_X, _V, _V, _V, _V]),
    "batch_norm_train": (lambda x, g, b: nn.batch_norm_train(x, g, b)[0], [_X, _V, _V]),
    "layer_norm": (nn.layer_norm, [_X, numbers(6), numbers(6)]),
    "softmax": (lambda x: nn.softmax(x, 1), [_X]),
    "log_softmax": (nn.log_softmax, [_X]),
    "cross_entropy": (lambda x: nn.cross_entropy(x, weft.asarray(_CLASSES, device=x.device)), [numbers(3, 4)]),
    "cross_entropy with rows": (nn.cross_entropy, [numbers(3, 4), np.abs(numbers(3, 4, seed=2))]),
    "embedding": (lambda w: nn.embedding(weft.asarray(_CLASSES, device=w.device), w), [numbers(4, 3)]),
    "dense": (lambda x, w, b: nn.dense(x, w, b, flatten=True), [_X, numbers(5, 168), numbers(5)]),
    "lrn": (lambda x: nn.lrn(x, 3, alpha=0.3, beta=0.75, k=1.5), [_X]),
    **{name: (getattr(nn, name), [_X]) for name in ("relu", "leaky_relu", "elu", "sigmoid", "softplus", "gelu")},
    "lstm_cell": (
        lambda *given: nn.lstm_cell(*given)[0],
        [numbers(3, 5), numbers(3, 2), numbers(3, 2), numbers(8, 5), numbers(8, 2), numbers(8), numbers(8)],
    ),
    "gru_cell": (
        nn.gru_cell,
        [numbers(3, 5), numbers(3, 2), numbers(6, 5), numbers(6, 2), numbers(6), numbers(6)],
    ),
    "rnn_cell": (
        nn.rnn_cell,
        [numbers(3, 5), numbers(3, 2), numbers(2, 5), numbers(2, 2), numbers(2), numbers(2)],
    ),
    "rnn": (
        lambda x, h, c, *layer: nn.rnn(x, h, [layer], c0=c)[0],
        [numbers(4, 3, 5), numbers(1, 3, 2), numbers(1, 3, 2), numbers(8, 5), numbers(8, 2), numbers(8), numbers(8)],
    ),
}  # fmt: skip


def check_on_device(name: str, on: weft.Device) -> None:
    """Hold a kernel and its gradients on a device against those of the host."""
    function, operands = NETWORKS[name]
    results: list[list[Any]] = []
    for device in (on, None):
        y, pull = weft.vjp(function, *(weft.asarray(x, device=device) for x in operands))
        found = [y, *pull(weft.ones(y.shape, dtype=y.dtype, device=device))]
        assert device is None or all(each.device == device for each in found)
        results.append([each.numpy() for each in found])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
