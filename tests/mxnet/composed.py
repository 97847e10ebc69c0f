"""Ops of MXNet's composed, computed and differentiated, with what follows of shapes and dtypes beside what comes."""

from typing import Any

import numpy as np
import pytest

import weft
import weft.mxnet.symbol as mx

draw = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    """Return numbers that are drawn."""
    return draw.normal(size=shape).astype("f")


def run(op: str, *arrays: np.ndarray, room: str | None = None, **attributes: Any) -> list[np.ndarray]:
    """Compute an op as a symbol; what follows of shapes and dtypes is what comes."""
    names = [f"a{at}" for at in range(len(arrays))]
    net = getattr(getattr(mx, room) if room else mx, op)(*map(mx.Variable, names), **attributes)
    given = dict(zip(names, arrays, strict=True))
    found = [each.numpy() for each in net.eval(**given)]
    assert [each.shape for each in found] == net.infer_shape(**{name: each.shape for name, each in given.items()})[1]
    assert [each.dtype for each in found] == net.infer_type(**{name: each.dtype for name, each in given.items()})[1]
    return found


def gradients(op: str, *arrays: np.ndarray, room: str | None = None, **attributes: Any) -> list[np.ndarray]:
    """Return the gradients of the sum of all results."""
    names = [f"a{at}" for at in range(len(arrays))]
    net = getattr(getattr(mx, room) if room else mx, op)(*map(mx.Variable, names), **attributes)
    given = {name: weft.asarray(each) for name, each in zip(names, arrays, strict=True)}
    executor = net.bind(args=given, args_grad={name: weft.zeros_like(each) for name, each in given.items()})
    executor.forward(is_train=True)
    executor.backward()
    return [executor.grad_dict[name].numpy() for name in names]


def follows_differences(op: str, *arrays: np.ndarray, wrt: tuple[int, ...] = (0,), **options: Any) -> None:
    """Compare gradients with differences along a direction that is drawn."""
    arrays = tuple(each.astype("d") for each in arrays)
    found = gradients(op, *arrays, **options)
    for at in wrt:
        step = draw.normal(size=arrays[at].shape) * 1e-6
        ends = [
            sum(each.sum() for each in run(op, *arrays[:at], arrays[at] + sign * step, *arrays[at + 1 :], **options))
            for sign in (1, -1)
        ]
        assert (found[at] * step).sum() == pytest.approx((ends[0] - ends[1]) / 2, rel=1e-3, abs=1e-9)
