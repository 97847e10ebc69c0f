"""What NDArray arithmetic costs: pushes of small ops, views, ops in place, large ops, copies, a wait for a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weft

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

OPS = 1_000
LENGTH = 16
ROWS = 1_000


@pytest.fixture
def x(default_engine: weft.Engine) -> weft.NDArray:  # noqa: ARG001 - it is made there
    """Sixteen ones of float32."""
    return weft.ones(LENGTH, dtype=weft.float32)


@pytest.fixture
def large(default_engine: weft.Engine) -> weft.NDArray:  # noqa: ARG001 - it is made there
    """A million ones of float32, in rows of 1000."""
    return weft.ones((ROWS, ROWS), dtype=weft.float32)


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


def test_views(benchmark: BenchmarkFixture, large: weft.NDArray) -> None:
    """Push nothing."""
    assert benchmark(lambda: large[1:-1, ::2].T).shape == (ROWS // 2, ROWS - 2)


def test_a_chain_on_a_large_array(benchmark: BenchmarkFixture, large: weft.NDArray) -> None:
    """Goes through the cache block by block."""

    def run() -> weft.NDArray:
        y = large
        for _ in range(10):
            y = y * 0.5 + 0.5
        weft.wait_all()
        return y

    assert float(benchmark(run)[0, 0].item()) == 1.0


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_sum(benchmark: BenchmarkFixture, large: weft.NDArray, axis: int | None) -> None:
    """A reduction, of all and along either axis."""

    def run() -> weft.NDArray:
        total = weft.sum(large, axis=axis)
        total.wait_to_read()
        return total

    assert float(benchmark(run).numpy().sum()) == ROWS * ROWS


def test_a_product(benchmark: BenchmarkFixture, large: weft.NDArray) -> None:
    """Of matrices of 256 rows, by BLAS."""
    matrix = large[:256, :256]

    def run() -> weft.NDArray:
        product = matrix @ matrix
        product.wait_to_read()
        return product

    assert float(benchmark(run)[0, 0].item()) == 256.0  # noqa: PLR2004


def test_a_copy_to_another_device(benchmark: BenchmarkFixture, large: weft.NDArray) -> None:
    """Four megabytes."""

    def run() -> weft.NDArray:
        copy = large.to_device(weft.cpu(1))
        copy.wait_to_read()
        return copy

    assert benchmark(run).device == weft.cpu(1)


def test_exchange_with_numpy(benchmark: BenchmarkFixture, large: weft.NDArray) -> None:
    """Asking for the values waits and copies."""
    assert benchmark(large.numpy).shape == large.shape
