"""Kernels of networks on CUDA arrays: each step runs on CuPy's arrays, on the stream of its op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from nn.networks import NETWORKS, check_on_device
from nn.steps import CASES, numbers
from weft import nn

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


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_and_their_gradients_stay_on_the_device(name: str) -> None:
    check_on_device(name, DEVICE)


def test_what_nothing_chooses_is_nan_where_nobody_can_look() -> None:
    x, wrong = weft.asarray(numbers(3, 4), device=DEVICE), weft.asarray([0, 4, -1], device=DEVICE)
    assert np.isnan(nn.cross_entropy(x, wrong).numpy()).tolist() == [False, True, True]
    assert np.isnan(nn.embedding(wrong, x).numpy().sum(axis=1)).tolist() == [False, True, True]
    right = weft.asarray([0, 3, 1], device=DEVICE)
    assert np.isfinite(nn.cross_entropy(x, right).numpy()).all()
