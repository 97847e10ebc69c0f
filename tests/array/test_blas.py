"""Threads of BLAS: workers times those never exceed the cores; limits are only lowered, and not before they matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import weft
from weft._array import blas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import MakeEngine, RunScript

CORES = 8


def threads() -> int:
    """The most threads that a BLAS of this process takes for one call."""
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of eight cores, all of them BLAS's; its threads are as before when the test ends."""
    monkeypatch.setattr(blas, "_cores", lambda: CORES)
    with threadpool_limits(CORES, user_api="blas"):
        if not any(library["user_api"] == "blas" for library in threadpool_info()) or threads() != CORES:
            pytest.skip("NumPy's BLAS does not let its threads be counted")
        yield


def square(engine: weft.Engine, device: str = "cpu:0") -> weft.NDArray:
    """A matrix on that engine."""
    return weft.full((3, 3), 2.0, device=device, engine=engine)


@pytest.mark.parametrize(
    ("workers", "policy", "limit"),
    [
        (1, "work_stealing", 8),
        (2, "work_stealing", 4),
        (3, "work_stealing", 2),
        (8, "work_stealing", 1),
        (20, "work_stealing", 1),
        (2, "per_device", 4),
        (None, "serial", 8),
    ],
)
def test_workers_share_the_cores(make_engine: MakeEngine, workers: int | None, policy: str, limit: int) -> None:
    x = square(make_engine(workers, policy))
    assert threads() == CORES
    assert (x @ x).numpy().tolist() == [[12.0] * 3] * 3
    assert threads() == limit


@pytest.mark.parametrize(
    "use",
    [
        lambda x: weft.matmul(x, x),
        lambda x: weft.tensordot(x, x),
        lambda x: weft.einsum("ij,jk", x, x),
        lambda x: weft.linalg.inv(x + weft.eye(3, engine=x.engine)),
    ],
    ids=["matmul", "tensordot", "einsum", "inv"],
)
def test_whatever_calls_blas_sets_the_limit(make_engine: MakeEngine, use: Callable[[weft.NDArray], object]) -> None:
    use(square(make_engine(2)))
    assert threads() <= CORES // 2


def test_arithmetic_leaves_blas_alone(make_engine: MakeEngine) -> None:
    x = square(make_engine(2))
    (x + 1 + weft.exp(x) * x[0]).wait_to_read()
    assert threads() == CORES


def test_the_limit_is_only_lowered(make_engine: MakeEngine) -> None:
    with threadpool_limits(2, user_api="blas"):
        x = square(make_engine(2))
        (x @ x).wait_to_read()
        assert threads() == 2


def test_a_later_setting_stays(make_engine: MakeEngine) -> None:
    x = square(make_engine(2))
    (x @ x).wait_to_read()
    with threadpool_limits(6, user_api="blas"):
        (x @ x).wait_to_read()
        assert threads() == 6


@pytest.mark.parametrize("late", [False, True], ids=["devices first", "matmul first"])
def test_each_device_has_workers_of_its_own(make_engine: MakeEngine, late: bool) -> None:
    engine = make_engine(1, "per_device")
    if late:
        x = square(engine)
        (x @ x).wait_to_read()
        assert threads() == CORES, "one worker so far"
    arrays = [square(engine, f"cpu:{index}") for index in (0, 1, 3)]
    for x in arrays:
        (x @ x).wait_to_read()
    assert threads() == CORES // 3


def test_an_import_changes_nothing(script: RunScript) -> None:
    done = script(
        """
        import sys
        import numpy
        import threadpoolctl

        def threads():
            return [x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"]

        before = threads()
        sys.modules.pop("threadpoolctl")
        import weft

        x = weft.ones((3, 3), engine=weft.Engine(workers=64))
        assert "threadpoolctl" not in sys.modules
        assert threads() == before
        (x @ x).wait_to_read()
        assert set(threads()) <= {1}
        """
    )
    assert done.returncode == 0, done.stderr
