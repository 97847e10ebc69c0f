"""Kernels of networks on CUDA arrays: each step runs on CuPy's arrays, on the stream of its op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from nn.steps import CASES, numbers
from weft import nn

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("fake_cuda", "cupy")

DEVICE = weft.gpu(0)


@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_the_host(case: str) -> None:
    name, operands, attributes = CASES[case]
    op: Any = weft.ops.get_op(name)
    wanted = op(*map(weft.asarray, operands), **attributes)
    found = op(*(weft.asarray(x, device=DEVICE) for x in operands), **attributes)
    for ours, theirs in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
        assert ours.device == DEVICE
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-4)


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


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_and_their_gradients_stay_on_the_device(name: str) -> None:
    function, operands = NETWORKS[name]
    results: list[list[Any]] = []
    for device in (DEVICE, None):
        y, pull = weft.vjp(function, *(weft.asarray(x, device=device) for x in operands))
        found = [y, *pull(weft.ones(y.shape, dtype=y.dtype, device=device))]
        assert device is None or all(each.device == device for each in found)
        results.append([each.numpy() for each in found])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_what_nothing_chooses_is_nan_where_nobody_can_look() -> None:
    x, wrong = weft.asarray(numbers(3, 4), device=DEVICE), weft.asarray([0, 4, -1], device=DEVICE)
    assert np.isnan(nn.cross_entropy(x, wrong).numpy()).tolist() == [False, True, True]
    assert np.isnan(nn.embedding(wrong, x).numpy().sum(axis=1)).tolist() == [False, True, True]
    right = weft.asarray([0, 3, 1], device=DEVICE)
    assert np.isfinite(nn.cross_entropy(x, right).numpy()).all()
