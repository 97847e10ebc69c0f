"""The runners of grids, and their times for tasks of growing length."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, TypeAlias

import weft
from weft.bench.metg.curve import Point, metg, points_of
from weft.bench.metg.patterns import PATTERNS, make_program, serial_digest
from weft.bench.native_ops import Kernel
from weft.bench.patterns import State
from weft.bench.runners import NATIVE_WEFT, NativeRunner
from weft.bench.samples import Cell, VerificationError, quiet, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.bench.native_ops import NativeOps

_ELSEWHERE = "not timed here: benches/metg.py in a checkout does"
#: The best of so many runs is a repetition's.
RUNS = 3
#: Digits of a call that reaches the peak: long enough that the call itself, and when the threads start, is nothing.
_PEAK_DIGITS = 500_000
_PEAK_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Settings:
    """The choice of runs."""

    patterns: tuple[str, ...] = PATTERNS
    widths: tuple[int, ...] = (2, 16)
    workers: int = 2
    reps: int = 5
    #: Of one grid.
    tasks: int = 8192
    #: Of the kernel: digits that it reads.
    lengths: tuple[int, ...] = tuple(8 << k for k in range(12))

    @classmethod
    def smoke(cls) -> Settings:
        """Return sizes that show that everything works, and measure nothing."""
        return cls(reps=1, tasks=128, lengths=(8, 512))


@dataclass(frozen=True, slots=True)
class Grid:
    """One program: a pattern of so many columns and rows."""

    pattern: str
    width: int
    steps: int

    @property
    def title(self) -> str:
        """As tables name it."""
        return f"{self.pattern}, {self.width}"


#: Verifies a grid in one implementation, and answers nanoseconds for a task by the length of its kernel: nothing where it
#: took too long.
Sweep: TypeAlias = "Callable[[Grid], Mapping[int, float]]"


@dataclass(slots=True)
class Additions:
    """Whom a checkout times beside, and why some are missing."""

    sweeps: dict[str, Sweep] = field(default_factory=dict[str, "Sweep"])
    missing: dict[str, str] = field(default_factory=dict[str, str])


#: Implementations that only a checkout can build.
OUTSIDE = Additions(
    missing=dict.fromkeys(
        ("weft, pushed", "weft, replayed", "OpenMP", "oneTBB", "Taskflow", "oneTBB, run again", "Taskflow static"),
        _ELSEWHERE,
    )
)


@dataclass(slots=True)
class Curves:
    """The measured curves."""

    settings: Settings
    #: Digits that one thread reads in a nanosecond while all others do, too: the best of all repetitions.
    peak: float = 0.0
    #: By grid, implementation and length, a value of each repetition.
    elapsed: dict[tuple[Grid, str, int], list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict[str, str])

    def grids(self) -> list[Grid]:
        """Return the grids, in the order of the settings."""
        return list(dict.fromkeys(grid for grid, _, _ in self.elapsed))

    def names(self) -> list[str]:
        """Return the implementations, weft's first."""
        names = dict.fromkeys(name for _, name, _ in self.elapsed)
        return sorted(names, key=lambda name: not name.startswith("weft"))

    def points(self, grid: Grid, name: str, statistic: str) -> list[Point]:
        """Return a curve by the minima or by the medians of its repetitions."""
        elapsed = {
            length: float(getattr(Cell.of(values), statistic))
            for (its_grid, its_name, length), values in self.elapsed.items()
            if (its_grid, its_name) == (grid, name)
        }
        return points_of(elapsed, self.peak, self.settings.workers)

    def metg(self, grid: Grid, name: str, statistic: str) -> float | None:
        """Return METG in nanoseconds, or None where no tasks were long enough, or none were timed."""
        return metg(self.points(grid, name, statistic))


def grids_of(settings: Settings) -> list[Grid]:
    """Return the grids that the settings ask for."""
    return [
        Grid(pattern, width, max(2, settings.tasks // width))
        for width in settings.widths
        for pattern in settings.patterns
    ]


def measure(settings: Settings, native: NativeOps, additions: Additions = OUTSIDE) -> Curves:
    """Verify, then time every grid in every implementation, in turns.

    Parameters
    ----------
    settings : Settings
        The choice of runs.
    native : NativeOps
        The library with the tasks' kernel.
    additions : Additions
        Further lines to time.

    Raises
    ------
    VerificationError
        When an implementation does not run a grid in serial order: nothing is reported then.
    """
    curves = Curves(settings, missing=dict(additions.missing))
    kernel = Kernel(native, max(settings.lengths))
    with weft.Engine(settings.workers) as engine:
        own = _FromPython(engine, native, kernel, settings)
        sweeps: dict[str, Sweep] = {NATIVE_WEFT: own, **additions.sweeps}
        jobs = [(grid, name, sweep) for grid in grids_of(settings) for name, sweep in sweeps.items()]
        for rep in range(settings.reps):
            print(f"metg: repetition {rep + 1} of {settings.reps}", file=sys.stderr, flush=True)
            curves.peak = max(curves.peak, peak(native, settings.workers))
            # Each repetition begins at another job, so that load on the machine hits all alike.
            start = rep * len(jobs) // settings.reps
            for grid, name, sweep in (*jobs[start:], *jobs[:start]):
                with watched(), quiet():
                    found = sweep(grid)
                for length, value in found.items():
                    curves.elapsed.setdefault((grid, name, length), []).append(value)
    # In the order of the settings again.
    order = {(grid, name): number for number, (grid, name, _) in enumerate(jobs)}
    curves.elapsed = dict(sorted(curves.elapsed.items(), key=lambda item: (order[item[0][:2]], item[0][2])))
    return curves


def peak(native: NativeOps, workers: int) -> float:
    """Return the digits that one thread reads in a nanosecond while ``workers`` threads do nothing else.

    The best of some rounds; in each, the slowest thread counts: on a loaded machine, too, that is one with a processor
    for each thread.
    """
    kernel = Kernel(native, _PEAK_DIGITS)
    data = kernel.data(_PEAK_DIGITS)
    gate = threading.Barrier(workers)
    took: list[list[int]] = []

    def read() -> None:
        own: list[int] = []
        took.append(own)
        for _ in range(_PEAK_ROUNDS):
            gate.wait()
            began = perf_counter_ns()
            native.read_digits(data)  # without the GIL
            own.append(perf_counter_ns() - began)

    threads = [threading.Thread(target=read) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slowest: int = min(max(each) for each in zip(*took, strict=True))
    return _PEAK_DIGITS / slowest


class _FromPython:
    """`weft.Engine.push_native` from Python: a task costs the call, too."""

    def __init__(self, engine: weft.Engine, native: NativeOps, kernel: Kernel, settings: Settings) -> None:
        self._engine = engine
        self._runner = NativeRunner(engine, native)
        self._address = native.read_digits_address
        self._kernel = kernel
        self._lengths = settings.lengths
        self._verified: set[Grid] = set()

    def __call__(self, grid: Grid) -> dict[int, float]:
        program = make_program(grid.pattern, grid.width, grid.steps)
        if grid not in self._verified:
            state = State(program)
            self._runner.prepare(program, state)()
            if state.digest() != serial_digest(grid.pattern, grid.width, grid.steps):
                raise VerificationError(f"{NATIVE_WEFT}, {grid.title}: not in serial order")
            self._verified.add(grid)
        variables = [self._engine.new_variable() for _ in range(program.variables)]
        ops = [(tuple(variables[i] for i in op.reads), tuple(variables[i] for i in op.mutates)) for op in program.ops]
        return {
            length: min(self._run(ops, self._kernel.data(length)) for _ in range(RUNS)) / len(ops)
            for length in self._lengths
        }

    def _run(self, ops: Sequence[tuple[tuple[weft.Variable, ...], tuple[weft.Variable, ...]]], data: int) -> int:
        push, address = self._engine.push_native, self._address
        began = perf_counter_ns()
        for reads, mutates in ops:
            push(address, data, reads, mutates)
        self._engine.wait_for_all()
        return perf_counter_ns() - began
