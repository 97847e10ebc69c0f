"""The cost of issuing a launch on a worker, beside the driver's own launches."""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import TYPE_CHECKING

import weft
from weft._core import BareLaunch, cuda_wait_issued
from weft._cuda.nvrtc import build
from weft.bench.gpu.kernels import STEP, THREADS, after, check, mutate, numbers
from weft.bench.gpu.setup import DRIVER, Setup, wait
from weft.bench.samples import Job

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE, CASE, WORKER = "issue", "per launch", "weft's worker"


def bare_step(setup: Setup, array: weft.NDArray, grid: int) -> BareLaunch:
    """Return launches of `STEP` by the driver alone, on an array of ``grid * THREADS`` numbers."""
    return BareLaunch(array, build("step_once", STEP, setup.capability), "step_once", grid, THREADS)


def jobs(setup: Setup) -> list[Job]:
    """Verify both, and return the jobs that time them."""
    count, start = setup.settings.launches, numbers(THREADS)
    x, y = weft.asarray(start, device=setup.device), weft.asarray(start, device=setup.device)
    step, access = weft.cuda.RawKernel(STEP, "step_once"), (mutate(x),)
    bare = bare_step(setup, y, 1)

    def worker() -> list[float]:
        """Let a worker issue the launches behind a gate; the device may still be at it when it is issued."""
        gate = _Gate(x)
        for _ in range(count):
            step(1, THREADS, access)
        start = gate.open()
        cuda_wait_issued(x)
        elapsed = perf_counter_ns() - start
        wait()
        return [elapsed / 1e3 / count]

    def driver() -> list[float]:
        issued, _completed = bare.time(count)
        return [issued * 1e6 / count]

    worker()
    driver()
    stepped = after(start, count)
    check(x.numpy(), stepped, WORKER)
    check(y.numpy(), stepped, DRIVER)
    return [Job(TABLE, CASE, WORKER, worker), Job(TABLE, CASE, DRIVER, driver)]


class _Gate:
    """An op that holds an array until it is let go."""

    def __init__(self, array: weft.NDArray) -> None:
        self._entered = threading.Event()
        array.engine.push_async(self._hold, (), (array,), name="gate")

    def _hold(self, completion: Callable[[], object]) -> None:
        self._completion = completion
        self._entered.set()

    def open(self) -> int:
        """Let it go, and return when, in nanoseconds."""
        self._entered.wait()
        now = perf_counter_ns()
        self._completion()
        return now
