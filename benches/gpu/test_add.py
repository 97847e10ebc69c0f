"""``c = a + b`` on a device: sixty-four times until the last returns, and until all are done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft.bench.gpu.setup import Setup, wait

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

ADDITIONS = 64
SIZES = [1_000, 1_000_000]


def add(a: Any, b: Any) -> None:  # noqa: ANN401 - CuPy has no types
    for _ in range(ADDITIONS):
        _c = a + b


@pytest.mark.parametrize("size", SIZES)
def test_returns(benchmark: BenchmarkFixture, setup: Setup, size: int) -> None:
    """From an idle device."""
    a = weft.ones(size, dtype=weft.float32, device=setup.device)
    benchmark.pedantic(add, (a, a), setup=wait, rounds=50, warmup_rounds=1)
    wait()


@pytest.mark.parametrize("size", SIZES)
def test_returns_in_cupy(benchmark: BenchmarkFixture, with_cupy: Setup, size: int) -> None:
    """CuPy's."""
    a, stream = with_cupy.cupy.asarray(np.ones(size, np.float32)), with_cupy.stream()
    with stream:
        benchmark.pedantic(add, (a, a), setup=stream.synchronize, rounds=50, warmup_rounds=1)
        stream.synchronize()


@pytest.mark.parametrize("size", SIZES)
def test_done(benchmark: BenchmarkFixture, setup: Setup, size: int) -> None:
    """With the wait."""
    a = weft.ones(size, dtype=weft.float32, device=setup.device)

    def additions() -> None:
        add(a, a)
        wait()

    benchmark(additions)
