"""Replays of a graph of a hundred small kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import weft
from weft.bench.gpu.kernels import STEP, THREADS, mutate, numbers
from weft.bench.gpu.setup import Setup, wait

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

KERNELS, REPLAYS = 100, 20


def test_replays(benchmark: BenchmarkFixture, setup: Setup) -> None:
    """Twenty in flight, until the last is done."""
    x, step = weft.asarray(numbers(THREADS), device=setup.device), weft.cuda.RawKernel(STEP, "step_once")
    with weft.cuda.capture("steps") as graph:
        for _ in range(KERNELS):
            step(1, THREADS, (mutate(x),))

    def replays() -> None:
        for _ in range(REPLAYS):
            graph.replay()
        wait()

    benchmark(replays)


def test_replays_in_cupy(benchmark: BenchmarkFixture, with_cupy: Setup) -> None:
    """CuPy's."""
    cupy, stream = with_cupy.cupy, with_cupy.stream()
    x, step = cupy.asarray(numbers(THREADS)), cupy.RawKernel(STEP, "step_once")
    cupy.cuda.Device().synchronize()
    with stream:
        step((1,), (THREADS,), (x,))
        stream.synchronize()
        stream.begin_capture()
        for _ in range(KERNELS):
            step((1,), (THREADS,), (x,))
        graph = stream.end_capture()

    def replays() -> None:
        for _ in range(REPLAYS):
            graph.launch(stream)
        stream.synchronize()

    benchmark(replays)
