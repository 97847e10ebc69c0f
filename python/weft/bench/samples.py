"""Jobs, their interleaving, and their times."""

from __future__ import annotations

import faulthandler
import gc
import statistics
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

# More than any repetition takes, on a loaded machine too.
_HANG_S = 300


class VerificationError(RuntimeError):
    """An implementation ran a program in an order, or gave values, other than the serial one."""


@dataclass(frozen=True, slots=True)
class Job:
    """One cell of a table; ``run`` does one repetition and returns its times, in the table's unit."""

    table: str
    case: str
    implementation: str
    run: Callable[[], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Cell:
    """All repetitions of one job, summed up."""

    n: int
    minimum: float
    median: float
    mean: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Cell:
        """Sum up at least one value."""
        ordered = sorted(values)
        last = min(len(ordered) - 1, len(ordered) * 99 // 100)
        return cls(len(ordered), ordered[0], statistics.median(ordered), statistics.fmean(ordered), ordered[last])


@dataclass(slots=True)
class Samples:
    """Measured values by (table, implementation, case), and why some rows are missing."""

    values: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, job: Job, values: Sequence[float]) -> None:
        """Keep the values of one repetition."""
        self.values.setdefault((job.table, job.implementation, job.case), []).extend(values)

    def cell(self, table: str, implementation: str, case: str) -> Cell | None:
        """Return a cell, or None where nothing was measured."""
        values = self.values.get((table, implementation, case))
        return Cell.of(values) if values else None

    def rows(self, table: str) -> list[str]:
        """Return the implementations of a table, in the order of their first times."""
        return list(dict.fromkeys(key[1] for key in self.values if key[0] == table))

    def cases(self, table: str) -> list[str]:
        """Return the columns of a table."""
        return list(dict.fromkeys(key[2] for key in self.values if key[0] == table))

    def reasons(self) -> list[dict[str, str]]:
        """Return the reasons of missing rows as JSON has them."""
        return [
            {"table": table, "implementation": name, "reason": reason} for (table, name), reason in self.missing.items()
        ]

    def json(self) -> dict[str, list[dict[str, Any]]]:
        """Return the cells of each table as JSON has them."""
        cells: dict[str, list[dict[str, Any]]] = {}
        for table, implementation, case in self.values:
            cell = self.cell(table, implementation, case)
            if cell is not None:
                cells.setdefault(table, []).append({"implementation": implementation, "case": case, **asdict(cell)})
        return cells


def interleave(jobs: Sequence[Job], reps: int, samples: Samples, tick: Callable[[Job], None]) -> None:
    """Run every job once per repetition, each repetition starting at another job, so that load on the machine hits all alike."""
    with settled():
        for rep in range(reps):
            start = rep * len(jobs) // reps
            for job in (*jobs[start:], *jobs[:start]):
                tick(job)
                with watched(), quiet():
                    samples.add(job, job.run())


def timed(body: Callable[[], object], per: float, finish: Callable[[], object] | None = None) -> list[float]:
    """Return one repetition: the nanoseconds of `body`, and of `finish` behind it, divided by `per`."""
    start = perf_counter_ns()
    body()
    if finish is not None:
        finish()
    return [(perf_counter_ns() - start) / per]


def timed_calls(body: Callable[[], object], count: int, per: float) -> list[float]:
    """Return one repetition: the nanoseconds of a call of `body`, on average over `count`, divided by `per`."""
    start = perf_counter_ns()
    for _ in range(count):
        body()
    return [(perf_counter_ns() - start) / per / count]


@contextmanager
def watched() -> Generator[None]:
    """End the process with every thread's traceback when the body hangs; a blocked engine may keep the GIL."""
    try:
        faulthandler.dump_traceback_later(_HANG_S, exit=True)
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def settled() -> Generator[None]:
    """Keep what is there from the collections before each timing: after large imports they take longer than small jobs."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def quiet() -> Generator[None]:
    """Keep Python's cycle collector out of a timing, as timeit does."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
