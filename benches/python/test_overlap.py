"""A pipeline over chunks, copied in, multiplied, copied out: in order, overlapping, and its parts alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from weft.bench.overlap.by_hand import ThreadsPipeline
from weft.bench.overlap.pipelines import Chunks, Pipeline, WeftPipeline, make_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

PIPELINES = {
    "per_device": lambda chunks: WeftPipeline(chunks, weft.Engine(1, "per_device")),
    "serial": lambda chunks: WeftPipeline(chunks, weft.Engine(policy="serial")),
    "by hand": ThreadsPipeline,
}


@pytest.fixture(autouse=True)
def _one_thread_of_blas() -> Iterator[None]:
    with import_module("threadpoolctl").threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def chunks() -> Chunks:
    """Eight chunks of 1 MiB."""
    return make_chunks(8, 8192, 32)


@pytest.fixture(params=PIPELINES)
def pipeline(request: pytest.FixtureRequest, chunks: Chunks) -> Iterator[Pipeline]:
    """One of the pipelines, its threads already running."""
    made = PIPELINES[request.param](chunks)
    made.run()
    yield made
    made.close()


def test_copies_alone(benchmark: BenchmarkFixture, pipeline: Pipeline, chunks: Chunks) -> None:
    """In and out again."""
    benchmark(pipeline.copy)
    assert all(map(np.array_equal, pipeline.results(), chunks.sources))


def test_products_alone(benchmark: BenchmarkFixture, pipeline: Pipeline) -> None:
    """Of chunks that are there already."""
    benchmark(pipeline.compute)


def test_the_pipeline(benchmark: BenchmarkFixture, pipeline: Pipeline, chunks: Chunks) -> None:
    """Both, chunk by chunk."""
    benchmark(pipeline.run)
    assert np.allclose(pipeline.results()[-1], chunks.sources[-1] @ chunks.matrix)
