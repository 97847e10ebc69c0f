"""Copies of 8 MiB, in and out, from and to pinned and pageable memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from weft.bench.gpu.setup import Setup, wait

if TYPE_CHECKING:
    import numpy.typing as npt
    from pytest_benchmark.fixture import BenchmarkFixture

BYTES = 8 << 20


@pytest.fixture
def host(request: pytest.FixtureRequest) -> npt.NDArray[np.uint8]:
    """Memory of the kind that the test asks for."""
    if request.param == "pageable":
        return np.zeros(BYTES, np.uint8)
    setup: Setup = request.getfixturevalue("with_cupy")
    return np.frombuffer(setup.cupy.cuda.alloc_pinned_memory(BYTES), np.uint8, BYTES)


@pytest.mark.parametrize("host", ["pinned", "pageable"], indirect=True)
def test_in(benchmark: BenchmarkFixture, setup: Setup, host: npt.NDArray[np.uint8]) -> None:
    """To the device."""
    source, target = weft.asarray(host, copy=False), weft.empty(BYTES, dtype=weft.uint8, device=setup.device)

    def copy() -> None:
        source.copyto(target)
        wait()

    benchmark(copy)


@pytest.mark.parametrize("host", ["pinned", "pageable"], indirect=True)
def test_out(benchmark: BenchmarkFixture, setup: Setup, host: npt.NDArray[np.uint8]) -> None:
    """To the host."""
    source, target = weft.ones(BYTES, dtype=weft.uint8, device=setup.device), weft.asarray(host, copy=False)

    def copy() -> None:
        source.copyto(target)
        wait()

    benchmark(copy)
    assert (host == 1).all()
