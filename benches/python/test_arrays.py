"""What NDArray arithmetic costs: pushes of small ops, views, ops in place, a wait for a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

OPS = 1_000
LENGTH = 16


@pytest.fixture
def x(engine: weft.Engine) -> Iterator[weft.NDArray]:
    """Sixteen ones of float32, on an engine that is the default meanwhile."""
    previous = weft.set_engine(engine)
    yield weft.ones(LENGTH, dtype=weft.float32)
    weft.set_engine(previous)


def test_independent_additions(benchmark: BenchmarkFixture, x: weft.NDArray) -> None:
    """Each makes an array that nobody keeps."""

    def run() -> weft.NDArray:
        for _ in range(OPS):
            y = x + x
        weft.wait_all()
        return y

    assert benchmark(run).numpy().tolist() == [2.0] * LENGTH


def test_additions_in_place(benchmark: BenchmarkFixture, x: weft.NDArray) -> None:
    """A chain on one array."""
    before = x.version

    def run() -> None:
        y = x
        for _ in range(OPS):
            y += 1
        weft.wait_all()

    benchmark(run)
    assert (x.version - before) % OPS == 0


def test_additions_to_disjoint_slices(benchmark: BenchmarkFixture, x: weft.NDArray) -> None:
    """A view for each op."""

    def run() -> None:
        for i in range(OPS):
            x[i % LENGTH : i % LENGTH + 1] *= 1
        weft.wait_all()

    benchmark(run)
    assert x.numpy().tolist() == [1.0] * LENGTH


def test_addition_and_its_value(benchmark: BenchmarkFixture, x: weft.NDArray) -> None:
    """A round trip through a wait."""
    one = x[:1]
    assert benchmark(lambda: float((one + one).item())) == 2.0  # noqa: PLR2004
