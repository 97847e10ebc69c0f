"""Table E: how long an op waits for its start, or for the GIL, while the main thread runs bytecode."""

from __future__ import annotations

import ctypes
import sys
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from harness.samples import Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

    import weft
    from harness.build import NativeOps
    from harness.settings import Settings

EXP_FLOATS = 20_000
# Bytecode between two samples, long enough for an idle worker to go to sleep.
PAUSE_NS = 2_000_000
LIMIT_NS = 5_000_000_000
SHORT_SWITCH_S = 0.0005


class Slot:
    """Where an op leaves a number for the busy main thread; native ops write through ``address``."""

    def __init__(self) -> None:
        self._word = ctypes.c_int64(0)
        self.address = ctypes.addressof(self._word)

    def stamp(self) -> None:
        """Leave the time."""
        self._word.value = perf_counter_ns()

    def leave(self, number: int) -> None:
        """Leave a number other than 0."""
        self._word.value = number

    def clear(self) -> None:
        """Forget the number."""
        self._word.value = 0

    def spin(self) -> int:
        """Run bytecode until a number is there, and some more."""
        word = self._word
        limit = perf_counter_ns() + LIMIT_NS
        while not word.value:
            if perf_counter_ns() > limit:
                message = "an op beside a busy main thread did not start in 5 s"
                raise TimeoutError(message)
        pause = perf_counter_ns() + PAUSE_NS
        while perf_counter_ns() < pause:
            pass
        return word.value


def start_latency(slot: Slot, push: Callable[[], object], samples: int) -> list[float]:
    """Return microseconds from before a push to the stamp that its op leaves."""
    found = []
    for _ in range(samples):
        slot.clear()
        start = perf_counter_ns()
        push()
        found.append((slot.spin() - start) / 1000)
    return found


def exp_duration(slot: Slot, push: Callable[[], object], samples: int) -> list[float]:
    """Return microseconds that the op's own clock saw ``np.exp`` take."""
    found = []
    for _ in range(samples):
        slot.clear()
        push()
        found.append(slot.spin() / 1000)
    return found


def exp_op(slot: Slot) -> Callable[[], None]:
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

    def __init__(self, make_engine: Callable[[], weft.Engine], ops: NativeOps | None, samples: int) -> None:
        self._make_engine = make_engine
        self._ops = ops
        self._samples = samples

    def callable(self) -> list[float]:
        slot = Slot()
        return self._measure(start_latency, slot, lambda engine: engine.push(slot.stamp))

    def exp(self) -> list[float]:
        slot = Slot()
        op = exp_op(slot)
        return self._measure(exp_duration, slot, lambda engine: engine.push(op))

    def native(self) -> list[float]:
        if self._ops is None:
            return []
        slot, address = Slot(), self._ops.stamp_address
        return self._measure(start_latency, slot, lambda engine: engine.push_native(address, slot.address))

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


def weft_latency_jobs(new_engine: type[weft.Engine], ops: NativeOps | None, settings: Settings) -> list[Job]:
    """Return weft's jobs, as it comes and with a shorter switch interval."""
    jobs = []
    for name, make in {
        "weft": lambda: new_engine(settings.workers),
        f"weft, switch_interval={SHORT_SWITCH_S}": lambda: new_engine(settings.workers, switch_interval=SHORT_SWITCH_S),
    }.items():
        latency = _WeftLatency(make, ops, settings.latency_samples)
        jobs += [Job("E", "callable", name, latency.callable), Job("E", "np.exp on 20,000 floats", name, latency.exp)]
        if ops is not None:
            jobs.append(Job("E", "native op", name, latency.native))
    return jobs


def peer_latency_jobs(pool: ThreadPoolExecutor, ops: NativeOps | None, settings: Settings) -> list[Job]:
    """Return the jobs of a ThreadPoolExecutor; its native op is called through ctypes."""
    samples = settings.latency_samples
    slot = Slot()
    exp = exp_op(slot)
    name = "ThreadPoolExecutor"
    jobs = [
        Job("E", "callable", name, lambda: start_latency(slot, lambda: pool.submit(slot.stamp), samples)),
        Job("E", "np.exp on 20,000 floats", name, lambda: exp_duration(slot, lambda: pool.submit(exp), samples)),
    ]
    if ops is not None:
        stamp = ops.stamp
        jobs.append(
            Job("E", "native op", name, lambda: start_latency(slot, lambda: pool.submit(stamp, slot.address), samples))
        )
    return jobs


def floor_latency_jobs(ops: NativeOps | None, settings: Settings) -> list[Job]:
    """Return the job of a parked native thread that is only woken: the system's own share of every latency here."""
    if ops is None:
        return []

    def repetition() -> list[float]:
        slot = Slot()
        ops.bell_open(None)
        try:
            return start_latency(slot, lambda: ops.bell_ring(slot.address), settings.latency_samples)
        finally:
            ops.bell_close(None)

    return [Job("E", "native op", "floor: a parked thread woken", repetition)]
