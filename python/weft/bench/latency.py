"""Table E: how long an op waits for its start, or for the GIL, while the main thread runs bytecode."""

from __future__ import annotations

import ctypes
import sys
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from weft.bench.native_ops import FLAG_BYTES
from weft.bench.samples import Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

    import weft
    from weft.bench.native_ops import NativeOps
    from weft.bench.settings import Settings

EXP_FLOATS = 20_000
# Bytecode between two samples, long enough for an idle worker to go to sleep.
_PAUSE_NS = 2_000_000
_LIMIT_NS = 5_000_000_000
_SHORT_SWITCH_S = 0.0005


class Slot:
    """Memory in which an op leaves a number other than 0 for the busy main thread.

    Attributes
    ----------
    address : int
        The memory, `native_ops.FLAG_BYTES` of it, for native ops that raise a flag.
    """

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * (FLAG_BYTES // 8))()
        self.address = ctypes.addressof(self._words)

    def leave(self, number: int) -> None:
        """Leave a number."""
        self._words[0] = number

    def stamp(self) -> None:
        """Leave the time."""
        self._words[0] = perf_counter_ns()

    def clear(self) -> None:
        """Forget the number."""
        self._words[0] = 0

    def spin(self) -> int:
        """Run bytecode until a number is there, and return when it was seen, in nanoseconds."""
        words = self._words
        limit = perf_counter_ns() + _LIMIT_NS
        while not words[0]:
            if perf_counter_ns() > limit:
                raise TimeoutError("an op beside a busy main thread did not start in 5 s")
        return perf_counter_ns()

    def number(self) -> int:
        """Return what was left."""
        return self._words[0]


def _pause() -> None:
    """Run bytecode for a while."""
    until = perf_counter_ns() + _PAUSE_NS
    while perf_counter_ns() < until:
        pass


def _sampled(slot: Slot, push: Callable[[], object], samples: int, took: Callable[[int, int, int], int]) -> list[float]:
    """Return microseconds: ``took(start, seen, number)`` of a push, the sight of its op's number, and that number."""
    found: list[float] = []
    for _ in range(samples):
        slot.clear()
        start = perf_counter_ns()
        push()
        seen = slot.spin()
        found.append(took(start, seen, slot.number()) / 1000)
        _pause()
    return found


def _stamp_latency(slot: Slot, push: Callable[[], object], samples: int) -> list[float]:
    """Return microseconds from before a push to the stamp that its callable leaves."""
    return _sampled(slot, push, samples, lambda start, _seen, stamp: stamp - start)


def flag_latency(slot: Slot, push: Callable[[], object], samples: int) -> list[float]:
    """Return microseconds from before a push until the main thread, which keeps the GIL, sees its native op's flag."""
    return _sampled(slot, push, samples, lambda start, seen, _flag: seen - start)


def _exp_duration(slot: Slot, push: Callable[[], object], samples: int) -> list[float]:
    """Return microseconds that the op's own clock saw ``np.exp`` take."""
    return _sampled(slot, push, samples, lambda _start, _seen, took: took)


def _exp_op(slot: Slot) -> Callable[[], None]:
    """Return a callable that times `numpy.exp` on 20,000 float32 and leaves the nanoseconds."""
    values = np.linspace(0.0, 1.0, EXP_FLOATS, dtype=np.float32)
    out = np.empty_like(values)

    def run() -> None:
        start = perf_counter_ns()
        np.exp(values, out=out)
        slot.leave(perf_counter_ns() - start)

    return run


class _WeftLatency:
    """Repetitions on an engine of their own: the switch interval is the process's, and is put back after each."""

    def __init__(self, make_engine: Callable[[], weft.Engine], native: NativeOps | None, samples: int) -> None:
        self._make_engine = make_engine
        self._native = native
        self._samples = samples

    def callable(self) -> list[float]:
        """Time the start of a callable."""
        slot = Slot()
        return self._measure(_stamp_latency, slot, lambda engine: engine.push(slot.stamp))

    def exp(self) -> list[float]:
        """Time `numpy.exp` inside a callable."""
        slot = Slot()
        op = _exp_op(slot)
        return self._measure(_exp_duration, slot, lambda engine: engine.push(op))

    def native(self) -> list[float]:
        """Time the start of a native op."""
        if self._native is None:
            return []
        slot, address = Slot(), self._native.raise_flag_address
        return self._measure(flag_latency, slot, lambda engine: engine.push_native(address, slot.address))

    def _measure(
        self,
        measure: Callable[[Slot, Callable[[], object], int], list[float]],
        slot: Slot,
        push: Callable[[weft.Engine], object],
    ) -> list[float]:
        interval = sys.getswitchinterval()
        try:
            with self._make_engine() as engine:
                push(engine)
                engine.wait_for_all()
                return measure(slot, lambda: push(engine), self._samples)
        finally:
            sys.setswitchinterval(interval)


def weft_latency_jobs(new_engine: type[weft.Engine], native: NativeOps | None, settings: Settings) -> list[Job]:
    """Return weft's jobs, as it comes and with a shorter switch interval."""
    jobs: list[Job] = []
    for interval in (None, _SHORT_SWITCH_S):
        name = "weft" if interval is None else f"weft, switch_interval={interval}"
        make = partial(new_engine, settings.workers, switch_interval=interval)
        latency = _WeftLatency(make, native, settings.latency_samples)
        jobs += [Job("E", "callable", name, latency.callable), Job("E", "np.exp on 20,000 floats", name, latency.exp)]
        if native is not None:
            jobs.append(Job("E", "native op", name, latency.native))
    return jobs


def peer_latency_jobs(pool: ThreadPoolExecutor, native: NativeOps | None, settings: Settings) -> list[Job]:
    """Return the jobs of a ThreadPoolExecutor; its native op is called through ctypes."""
    samples = settings.latency_samples
    slot = Slot()
    exp = _exp_op(slot)
    name = "ThreadPoolExecutor"
    jobs = [
        Job("E", "callable", name, lambda: _stamp_latency(slot, lambda: pool.submit(slot.stamp), samples)),
        Job("E", "np.exp on 20,000 floats", name, lambda: _exp_duration(slot, lambda: pool.submit(exp), samples)),
    ]
    if native is not None:
        flag = native.raise_flag
        jobs.append(
            Job("E", "native op", name, lambda: flag_latency(slot, lambda: pool.submit(flag, slot.address), samples))
        )
    return jobs
