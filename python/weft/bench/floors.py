"""The floors of any engine in Python: a plain call, a call through ctypes, NumPy itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from weft.bench.latency import EXP_FLOATS
from weft.bench.runners import no_op
from weft.bench.samples import Job, timed_calls

if TYPE_CHECKING:
    from weft.bench.native_ops import NativeOps
    from weft.bench.settings import Settings


def floor_jobs(native: NativeOps | None, settings: Settings) -> list[Job]:
    """Return the floors' jobs, in nanoseconds per call."""
    n = settings.floor_calls // 5
    values = np.linspace(0.0, 1.0, EXP_FLOATS, dtype=np.float32)
    out = np.empty_like(values)
    calls = {"Python call": (no_op, n), "np.exp on 20,000 floats": (partial(np.exp, values, out), max(n // 1000, 1))}
    if native is not None:
        calls["ctypes call"] = (partial(native.no_op, 0), n)
    return [Job("floors", case, "floor", partial(timed_calls, call, count, 1)) for case, (call, count) in calls.items()]
