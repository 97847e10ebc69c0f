"""A GPU for the benchmarks; where there is none they are skipped, with the reason."""

from __future__ import annotations

import pytest

import weft
from weft import _core
from weft.bench.gpu.settings import Settings
from weft.bench.gpu.setup import Setup
from weft.errors import CudaUnavailableError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them all."""
    for item in items:
        if "benches/gpu" in item.path.as_posix():
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def setup() -> Setup:
    """The first device, fewer chunks than `weft bench gpu` has, and CuPy if it is there."""
    try:
        _core.cuda_properties(0)
    except CudaUnavailableError as error:
        pytest.skip(str(error))
    return Setup(Settings(chunks=32), weft.gpu(0))


@pytest.fixture(scope="session")
def with_cupy(setup: Setup) -> Setup:
    """The same; skipped where CuPy does not work."""
    if setup.cupy is None:
        pytest.skip(setup.without_cupy)
    return setup
