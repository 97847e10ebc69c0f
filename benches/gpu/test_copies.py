"""Copies of 8 MiB, in and out, from and to pinned and pageable memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weft
from weft.bench.gpu.setup import Setup, wait

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

BYTES = 8 << 20


@pytest.fixture
def host(request: pytest.FixtureRequest, setup: Setup) -> weft.NDArray:  # noqa: ARG001 - it skips where there is no GPU
    """Memory of the kind that the test asks for."""
    make = weft.cuda.empty_pinned if request.param == "pinned" else weft.empty
    made = make(BYTES, dtype=weft.uint8)
    made.fill(0)
    return made


@pytest.mark.parametrize("host", ["pinned", "pageable"], indirect=True)
def test_in(benchmark: BenchmarkFixture, setup: Setup, host: weft.NDArray) -> None:
    """To the device."""
    target = weft.empty(BYTES, dtype=weft.uint8, device=setup.device)

    def copy() -> None:
        host.copyto(target)
        wait()

    benchmark(copy)
    assert (target.numpy() == 0).all()


@pytest.mark.parametrize("host", ["pinned", "pageable"], indirect=True)
def test_out(benchmark: BenchmarkFixture, setup: Setup, host: weft.NDArray) -> None:
    """To the host."""
    source = weft.ones(BYTES, dtype=weft.uint8, device=setup.device)

    def copy() -> None:
        source.copyto(host)
        wait()

    benchmark(copy)
    assert (host.numpy() == 1).all()
