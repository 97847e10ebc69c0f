"""The floors of any engine in Python: a plain call, a call through ctypes, NumPy itself."""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from weft.bench.latency import EXP_FLOATS
from weft.bench.runners import no_op
from weft.bench.samples import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.native_ops import NativeOps
    from weft.bench.settings import Settings


def floor_jobs(native: NativeOps | None, settings: Settings) -> list[Job]:
    """Return the floors' jobs, in nanoseconds per call."""
    n = settings.floor_calls // 5
    values = np.linspace(0.0, 1.0, EXP_FLOATS, dtype=np.float32)
    out = np.empty_like(values)
    jobs = [
        Job("floors", "Python call", "floor", _calls(no_op, n)),
        Job("floors", "np.exp on 20,000 floats", "floor", _calls(partial(np.exp, values, out), max(n // 1000, 1))),
    ]
    if native is not None:
        jobs.append(Job("floors", "ctypes call", "floor", _calls(partial(native.no_op, 0), n)))
    return jobs


def _calls(function: Callable[[], object], n: int) -> Callable[[], list[float]]:
    def repetition() -> list[float]:
        start = perf_counter_ns()
        for _ in range(n):
            function()
        return [(perf_counter_ns() - start) / n]

    return repetition
