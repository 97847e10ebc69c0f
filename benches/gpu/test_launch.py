"""Launches of small kernels: until the calls return, and until a chain of them is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weft
from weft.bench.gpu.issue import bare_step
from weft.bench.gpu.kernels import STEP, THREADS, mutate, numbers
from weft.bench.gpu.setup import Setup, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

CALLS = 64
LAUNCHES = 1_000


@pytest.fixture
def push(setup: Setup) -> Callable[[int], None]:
    """Return what pushes so many launches, one behind the other."""
    x, step = weft.asarray(numbers(THREADS), device=setup.device), weft.cuda.RawKernel(STEP, "step_once")

    def push(count: int) -> None:
        for _ in range(count):
            step(1, THREADS, (mutate(x),))

    push(1)
    return push


@pytest.fixture
def launch(with_cupy: Setup) -> Callable[[int], None]:
    """Return the same of CuPy's."""
    x, step = with_cupy.cupy.asarray(numbers(THREADS)), with_cupy.cupy.RawKernel(STEP, "step_once")

    def launch(count: int) -> None:
        for _ in range(count):
            step((1,), (THREADS,), (x,))

    launch(1)
    return launch


def test_calls_return(benchmark: BenchmarkFixture, push: Callable[[int], None]) -> None:
    """Sixty-four calls, from an idle device."""
    benchmark.pedantic(push, (CALLS,), setup=wait, rounds=50)
    wait()


def test_calls_return_in_cupy(benchmark: BenchmarkFixture, launch: Callable[[int], None], with_cupy: Setup) -> None:
    """Sixty-four calls of CuPy's."""
    stream = with_cupy.stream()
    with stream:
        benchmark.pedantic(launch, (CALLS,), setup=stream.synchronize, rounds=50)
        stream.synchronize()


def test_a_chain(benchmark: BenchmarkFixture, push: Callable[[int], None]) -> None:
    """A thousand launches, until the last result."""

    def chain() -> None:
        push(LAUNCHES)
        wait()

    benchmark(chain)


def test_a_chain_of_the_driver(benchmark: BenchmarkFixture, setup: Setup) -> None:
    """The same by the driver alone, back to back."""
    bare = bare_step(setup, weft.asarray(numbers(THREADS), device=setup.device), 1)
    benchmark(bare.time, LAUNCHES)
