"""One run of the benchmarks: build, verify, interleave."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from harness.arrays import TABLES as ARRAY_TABLES
from harness.arrays import ArrayHosts
from harness.build import build, workshop
from harness.callables import callable_jobs
from harness.floors import floor_jobs
from harness.latency import floor_latency_jobs, peer_latency_jobs, weft_latency_jobs
from harness.native import native_jobs
from harness.progress import progress
from harness.pushes import peer_push_jobs, weft_push_jobs
from harness.runners import CounterRunner, MapRunner, WeftRunner
from harness.samples import Job, Samples, interleave
from peers.counter_engine import CounterEngine

if TYPE_CHECKING:
    from types import ModuleType

    from harness.build import Binaries
    from harness.runners import Runner
    from harness.settings import Settings

try:
    import weft as weft_module
except ImportError:
    weft: ModuleType | None = None
else:
    weft = weft_module


def measure(settings: Settings) -> Samples:
    """Time every table that the settings name.

    Raises
    ------
    VerificationError
        When an implementation does not run a pattern in serial order, or gives other values than NumPy: nothing is
        reported then.
    """
    samples = Samples()
    with workshop() as folder:
        binaries = build(Path(folder), settings.tables)
        _note_missing(binaries, samples, settings)
        _time("floors", floor_jobs(binaries, settings), settings, samples)
        if "A" in settings.tables:
            _time("table A", native_jobs(binaries, settings), settings, samples)
        if "B" in settings.tables:
            with ExitStack() as stack:
                _time("table B", callable_jobs(_runners(stack, settings), settings), settings, samples)
            with ExitStack() as stack:
                _time("pushes", _push_jobs(stack, binaries, settings), settings, samples)
        if not set(ARRAY_TABLES).isdisjoint(settings.tables):
            _time_arrays(settings, samples)
        if "E" in settings.tables:
            with ExitStack() as stack:
                _time("table E", _latency_jobs(stack, binaries, settings), settings, samples)
    return samples


def _time(title: str, jobs: list[Job], settings: Settings, samples: Samples) -> None:
    with progress(title, len(jobs) * settings.reps) as tick:
        interleave(jobs, settings.reps, samples, tick)


def _time_arrays(settings: Settings, samples: Samples) -> None:
    with ArrayHosts(settings) as hosts:
        hosts.start(samples)
        if "C" in settings.tables:
            _time("table C", hosts.add_jobs(), settings, samples)
        if "D" in settings.tables:
            _time("table D", hosts.script_jobs(), settings, samples)


def _note_missing(binaries: Binaries, samples: Samples, settings: Settings) -> None:
    for name, reason in binaries.missing.items():
        samples.missing["A" if name in {"weft", "OpenMP", "oneTBB"} else "floors", name] = reason
    if weft is None:
        for table in {"B": ("B", "push", "threads"), "E": ("E",)}.items():
            if table[0] in settings.tables:
                samples.missing.update({(key, "weft"): "not available: weft is not installed" for key in table[1]})


def _runners(stack: ExitStack, settings: Settings) -> list[Runner]:
    runners: list[Runner] = [
        CounterRunner(settings.workers, own_queue=False),
        CounterRunner(settings.workers, own_queue=True),
        MapRunner(settings.workers, chunked=False),
        MapRunner(settings.workers, chunked=True),
    ]
    if weft is not None:
        runners.insert(0, WeftRunner(weft.Engine(settings.workers)))
    for runner in runners:
        stack.callback(runner.close)
    return runners


def _push_jobs(stack: ExitStack, binaries: Binaries, settings: Settings) -> list[Job]:
    counter = CounterEngine(1)
    stack.callback(counter.close)
    pool = stack.enter_context(ThreadPoolExecutor(settings.workers))
    jobs = []
    if weft is not None:
        engine = stack.enter_context(weft.Engine(settings.workers))
        single = stack.enter_context(weft.Engine(1))
        jobs += weft_push_jobs(engine, single, binaries.ops, settings)
    return jobs + peer_push_jobs(counter, pool, binaries.ops, settings)


def _latency_jobs(stack: ExitStack, binaries: Binaries, settings: Settings) -> list[Job]:
    pool = stack.enter_context(ThreadPoolExecutor(settings.workers))
    jobs = [] if weft is None else weft_latency_jobs(weft.Engine, binaries.ops, settings)
    jobs += peer_latency_jobs(pool, binaries.ops, settings)
    return jobs + floor_latency_jobs(binaries.ops, settings)
