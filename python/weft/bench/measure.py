"""One run of the tables: verify, then time everything in turns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import weft
from weft.bench import native_ops
from weft.bench.arrays.hosts import TABLES as ARRAY_TABLES, ArrayHosts
from weft.bench.dependencies import callable_jobs, native_jobs
from weft.bench.floors import floor_jobs
from weft.bench.latency import peer_latency_jobs, weft_latency_jobs
from weft.bench.peers.counter_engine import CounterEngine
from weft.bench.progress import progress
from weft.bench.pushes import peer_push_jobs, weft_push_jobs
from weft.bench.runners import CounterRunner, MapRunner, NativeRunner, WeftRunner
from weft.bench.samples import Job, Samples, interleave
from weft.bench.symbols.jobs import chain_jobs, inference_jobs, training_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.native_ops import NativeOps
    from weft.bench.runners import Runner
    from weft.bench.settings import Settings

_ELSEWHERE = "not timed here: benches/run.py in a checkout does"
_NO_OPS = "not available: the C library has no functions of one pointer to call"


@dataclass(slots=True)
class Additions:
    """Implementations beside the package's own.

    Attributes
    ----------
    jobs : dict of str to list of Job
        By table; ``"floors"`` is one.
    missing : dict of (str, str) to str
        Why an implementation is missing, by table and name.
    """

    jobs: dict[str, list[Job]] = field(default_factory=dict[str, list[Job]])
    missing: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])


#: Implementations that only a checkout can build.
OUTSIDE = Additions(
    missing={
        **{("A", name): _ELSEWHERE for name in ("weft, from Rust", "OpenMP", "oneTBB", "Taskflow")},
        **{("R replay", name): _ELSEWHERE for name in ("weft, from Rust", "Taskflow static", "oneTBB")},
        **{(table, "MiniMalloc's instances"): _ELSEWHERE for table in ("M fit", "M offsets")},
        ("N", "MXNet"): _ELSEWHERE,
    }
)


def measure(settings: Settings, additions: Additions = OUTSIDE) -> Samples:
    """Time every table that the settings name.

    Parameters
    ----------
    settings : Settings
        Which tables, and how large.
    additions : Additions
        Further lines to time.

    Returns
    -------
    Samples
        The figures.

    Raises
    ------
    VerificationError
        When an implementation does not run a pattern in serial order, or gives other values than NumPy: nothing is
        reported then.
    """
    samples = Samples()
    native = native_ops.load()
    for (table, name), reason in additions.missing.items():
        if table.partition(" ")[0] in {*settings.tables, "floors"}:
            samples.missing[table, name] = reason
    if native is None:
        samples.missing["floors", "native ops"] = _NO_OPS

    def time(title: str, table: str, jobs: list[Job]) -> None:
        jobs = [*jobs, *additions.jobs.get(table, ())]
        with progress(title, len(jobs) * settings.reps) as tick:
            interleave(jobs, settings.reps, samples, tick)

    time("floors", "floors", floor_jobs(native, settings))
    for table, parts in _PARTS.items():
        if table in settings.tables:
            for key, make in parts.items():
                with ExitStack() as stack:
                    time(f"table {table}", key, make(stack, native, settings))
    if not set(ARRAY_TABLES).isdisjoint(settings.tables):
        with ArrayHosts(settings) as hosts:
            hosts.start(samples)
            for table, jobs in hosts.jobs().items():
                time(f"table {table}", table, jobs)
    return samples


def _native(stack: ExitStack, native: NativeOps | None, settings: Settings) -> list[Job]:
    if native is None:
        return []
    runners: list[Runner] = [
        NativeRunner(weft.Engine(settings.workers), native),
        CounterRunner(settings.workers, own_queue=True, native=native),
    ]
    return native_jobs(_closed_by(stack, runners), settings)


def _callables(stack: ExitStack, _native: NativeOps | None, settings: Settings) -> list[Job]:
    runners: list[Runner] = [
        WeftRunner(weft.Engine(settings.workers)),
        CounterRunner(settings.workers, own_queue=False),
        CounterRunner(settings.workers, own_queue=True),
        MapRunner(settings.workers, chunked=False),
        MapRunner(settings.workers, chunked=True),
    ]
    return callable_jobs(_closed_by(stack, runners), settings)


def _closed_by(stack: ExitStack, runners: list[Runner]) -> list[Runner]:
    for runner in runners:
        stack.callback(runner.close)
    return runners


def _pushes(stack: ExitStack, native: NativeOps | None, settings: Settings) -> list[Job]:
    counter = CounterEngine(1)
    stack.callback(counter.close)
    pool = stack.enter_context(ThreadPoolExecutor(settings.workers))
    engine = stack.enter_context(weft.Engine(settings.workers))
    single = stack.enter_context(weft.Engine(1))
    own = weft_push_jobs(engine, single, native, settings)
    return own + peer_push_jobs(counter, pool, native, settings)


def _plain(jobs: Callable[[Settings], list[Job]]) -> _Make:
    """Return the maker of jobs that nothing has to be opened for."""
    return lambda _stack, _native, settings: jobs(settings)


def _outside(_settings: Settings) -> list[Job]:
    """Return none: these are in C++ and Rust alone."""
    return []


def _latencies(stack: ExitStack, native: NativeOps | None, settings: Settings) -> list[Job]:
    pool = stack.enter_context(ThreadPoolExecutor(settings.workers))
    return weft_latency_jobs(weft.Engine, native, settings) + peer_latency_jobs(pool, native, settings)


_Make: TypeAlias = "Callable[[ExitStack, NativeOps | None, Settings], list[Job]]"
#: The jobs of a table, by their key in reports; each is closed before the next is made.
_PARTS: dict[str, dict[str, _Make]] = {
    "A": {"A": _native},
    "B": {"B": _callables, "push": _pushes},
    "E": {"E": _latencies},
    "M": {
        "M inference": _plain(inference_jobs),
        "M training": _plain(training_jobs),
        "M fit": _plain(_outside),
        "M offsets": _plain(_outside),
    },
    "N": {"N": _plain(chain_jobs)},
    "R": {"R replay": _plain(_outside)},
}
