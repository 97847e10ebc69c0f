"""Kernels and their gradients beside PyTorch's, where that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import nn

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")
functions: Any = torch.nn.functional


def _numbers(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def _recurrent(mode: str) -> tuple[Callable[..., Any], Callable[..., Any], list[Any]]:
    """Return a network of two layers, both ways, in both libraries, and its operands."""
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    shapes: list[tuple[int, ...]] = []
    for wide in (3, 8):
        shapes += [(gates * 4, wide), (gates * 4, 4), (gates * 4,), (gates * 4,)] * 2
    operands = [_numbers(6, 5, 3), _numbers(4, 5, 4), _numbers(4, 5, 4, seed=2)]
    operands += [_numbers(*shape, seed=at) * np.float32(0.5) for at, shape in enumerate(shapes)]

    def ours(x: Any, h: Any, c: Any, *weights: Any) -> Any:
        each = [tuple(weights[at : at + 4]) for at in range(0, 16, 4)]
        layers = [tuple(each[:2]), tuple(each[2:])]
        given: Any = {"c0": c} if mode == "lstm" else {}
        return nn.rnn(x, h, layers, mode=mode, bidirectional=True, **given)[:2]

    def theirs(x: Any, h: Any, c: Any, *weights: Any) -> Any:
        settings = (True, 2, 0.0, False, True, False)
        name = mode if mode in ("lstm", "gru") else f"rnn_{mode}"
        states = (h, c) if mode == "lstm" else h
        return getattr(torch, name)(x, states, list(weights), *settings)[:2]

    return ours, theirs, operands


def _pair(shape: tuple[int, ...], kernel: tuple[int, ...]) -> list[Any]:
    return [_numbers(*shape), _numbers(*kernel), _numbers(kernel[0])]


_X = _numbers(3, 4, 9, 8)
_V = [_numbers(4, seed=at) for at in (3, 4)]
_CLASSES = np.array([0, 4, 2, 2, 1, 3])

#: A function of weft's, the same in PyTorch, and operands.
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Any]]] = {
    "conv": (
        lambda x, w, b: nn.conv(x, w, b, stride=2, padding=(1, 2), groups=2),
        lambda x, w, b: functions.conv2d(x, w, b, 2, (1, 2), 1, 2),
        _pair((3, 4, 9, 8), (6, 2, 3, 3)),
    ),
    "wide conv": (
        lambda x, w, b: nn.conv(x, w, b, padding=1),
        lambda x, w, b: functions.conv2d(x, w, b, 1, 1),
        _pair((5, 16, 14, 14), (32, 16, 3, 3)),
    ),
    "conv of one axis": (
        lambda x, w, b: nn.conv(x, w, b, dilation=2),
        lambda x, w, b: functions.conv1d(x, w, b, dilation=2),
        _pair((3, 4, 20), (6, 4, 3)),
    ),
    "conv_transpose": (
        lambda x, w: nn.conv_transpose(x, w, stride=2, padding=1, output_padding=1),
        lambda x, w: functions.conv_transpose2d(x, w, None, 2, 1, 1),
        [_X, _numbers(4, 5, 3, 3)],
    ),
    "max_pool": (
        lambda x: nn.max_pool(x, 3, stride=2, padding=1, ceil_mode=True),
        lambda x: functions.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        [_X],
    ),
    "avg_pool": (
        lambda x: nn.avg_pool(x, 3, stride=2, padding=1, count_include_pad=False),
        lambda x: functions.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        [_X],
    ),
    "batch_norm": (
        lambda x, g, b: nn.batch_norm_train(x, g, b)[0],
        lambda x, g, b: functions.batch_norm(x, None, None, g, b, training=True),
        [_X, *_V],
    ),
    "layer_norm": (
        nn.layer_norm,
        lambda x, g, b: functions.layer_norm(x, (8,), g, b),
        [_X, _numbers(8), _numbers(8, seed=2)],
    ),
    "softmax": (lambda x: nn.softmax(x, 1), lambda x: functions.softmax(x, 1), [_X]),
    "log_softmax": (lambda x: nn.log_softmax(x, 1), lambda x: functions.log_softmax(x, 1), [_X]),
    "cross_entropy": (
        lambda x: nn.cross_entropy(x, _CLASSES),
        lambda x: functions.cross_entropy(x, torch.tensor(_CLASSES), reduction="none"),
        [_numbers(6, 5)],
    ),
    "embedding": (
        lambda w: nn.embedding(_CLASSES, w),
        lambda w: functions.embedding(torch.tensor(_CLASSES), w),
        [_numbers(5, 3)],
    ),
    "lrn": (
        lambda x: nn.lrn(x, 3, alpha=0.3, beta=0.75, k=1.5),
        lambda x: functions.local_response_norm(x, 3, 0.3, 0.75, 1.5),
        [_X],
    ),
    **{
        name: (getattr(nn, name), getattr(functions, name), [_X])
        for name in ("relu", "leaky_relu", "elu", "sigmoid", "softplus", "gelu")
    },
    **{f"rnn of {mode}": _recurrent(mode) for mode in ("lstm", "gru", "tanh", "relu")},
}


@pytest.mark.parametrize("case", CASES)
def test_results_and_gradients_are_pytorchs(case: str) -> None:
    ours, theirs, operands = CASES[case]
    tensors = [torch.tensor(x, requires_grad=True) for x in operands]
    expected = theirs(*tensors)
    expected = expected if isinstance(expected, tuple) else (expected,)
    results, pull = weft.vjp(ours, *(weft.asarray(x) for x in operands))
    several = isinstance(results, tuple)
    results = results if isinstance(results, tuple) else (results,)
    heads = [_numbers(*each.shape, seed=7 + at) for at, each in enumerate(results)]
    torch.autograd.backward(expected, [torch.tensor(head) for head in heads])
    found = pull(tuple(map(weft.asarray, heads)) if several else weft.asarray(heads[0]))
    wanted = [*expected, *(x.grad if x.grad is not None else torch.zeros_like(x) for x in tensors)]
    for mine, other in zip((*results, *found), wanted, strict=True):
        other_ = other.detach().numpy()
        np.testing.assert_allclose(mine.numpy(), other_, rtol=1e-4, atol=2e-5 * max(1, np.abs(other_).max()))
