"""What no engine can go below: a plain call, a ctypes call, one atomic, a cache line handed over."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from harness.latency import EXP_FLOATS
from harness.runners import no_op
from harness.samples import Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.build import Binaries
    from harness.settings import Settings

NATIVE_FLOORS = ("native call", "uncontended atomic", "cache-line hand-off, one way")


def floor_jobs(binaries: Binaries, settings: Settings) -> list[Job]:
    """Return the floors' jobs, in nanoseconds per call."""
    n = settings.floor_calls // 5
    values = np.linspace(0.0, 1.0, EXP_FLOATS, dtype=np.float32)
    out = np.empty_like(values)
    jobs = [
        Job("floors", "Python call", "floor", _calls(no_op, n)),
        Job("floors", "np.exp on 20,000 floats", "floor", _calls(partial(np.exp, values, out), max(n // 1000, 1))),
    ]
    if binaries.ops is not None:
        native = binaries.ops.no_op
        jobs.append(Job("floors", "ctypes call", "floor", _calls(partial(native, None), n)))
    if binaries.floors is not None:
        program = binaries.floors
        jobs += [Job("floors", name, "floor", _native(program, name, settings.floor_calls)) for name in NATIVE_FLOORS]
    return jobs


def _calls(function: Callable[[], object], n: int) -> Callable[[], list[float]]:
    def repetition() -> list[float]:
        start = perf_counter_ns()
        for _ in range(n):
            function()
        return [(perf_counter_ns() - start) / n]

    return repetition


def _native(program: Path, name: str, n: int) -> Callable[[], list[float]]:
    def repetition() -> list[float]:
        done = subprocess.run([program, name, str(n)], capture_output=True, text=True, timeout=60, check=True)
        return [float(json.loads(line)["ns"]) for line in done.stdout.splitlines()]

    return repetition
