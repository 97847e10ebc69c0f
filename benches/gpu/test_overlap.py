"""A pipeline over chunks in pinned memory, copied in, computed, copied out; and its stages alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from weft.bench.gpu.overlap import pipelines, tune
from weft.bench.gpu.pipelines import make_chunks, verify

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from weft.bench.gpu.pipelines import Pipeline
    from weft.bench.gpu.setup import Setup

NAMES = ["weft", "weft, three buffers", "CuPy, streams and events by hand"]


@pytest.fixture(scope="module")
def made(with_cupy: Setup) -> dict[str, Pipeline]:
    """All pipelines on the same chunks, verified; their kernels take about as long as the copies."""
    chunks = make_chunks(with_cupy, pinned=True)
    found = pipelines(with_cupy, chunks)
    chunks.steps = tune(with_cupy, chunks, found[0])
    for each in found:
        verify(each, chunks)
    return {each.name: each for each in found}


@pytest.mark.parametrize("name", NAMES)
def test_the_pipeline(benchmark: BenchmarkFixture, made: dict[str, Pipeline], name: str) -> None:
    """All stages, chunk by chunk."""
    benchmark(made[name].run)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stage", ["copy_in", "compute", "copy_out"])
def test_a_stage_alone(benchmark: BenchmarkFixture, made: dict[str, Pipeline], name: str, stage: str) -> None:
    """One of them, for all chunks."""
    benchmark(getattr(made[name], stage))
