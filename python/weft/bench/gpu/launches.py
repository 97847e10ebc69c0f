"""Launches: how long ``kernel(...)`` takes to return, and the cost of issuing one on a worker."""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

import weft
from weft.bench.gpu import issue
from weft.bench.gpu.bounds import Bound
from weft.bench.gpu.kernels import ADD_SCALED, STEP, THREADS, after, check, mutate, numbers, read
from weft.bench.gpu.setup import CUPY, DRIVER, WEFT, Line, Setup, wait
from weft.bench.samples import Job
from weft.bench.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft.bench.gpu.bounds import Figures
    from weft.bench.gpu.settings import Settings

_HOST = "launch"
_ONE, _FOUR = "1 array", "2 arrays and 2 numbers"
_MADE_BEFORE, _LISTS = "weft, accesses made before", "weft, lists of accesses"
_FACTOR = 3


def until_return(body: Callable[[], object], finish: Callable[[], object], count: int) -> list[float]:
    """Return how long a call takes to return, in microseconds, from an idle device: `body` makes `count` in a row."""
    start = perf_counter_ns()
    body()
    elapsed = perf_counter_ns() - start
    finish()
    return [elapsed / 1e3 / count]


def _bounds(_settings: Settings) -> tuple[Bound, ...]:
    def beyond_driver(figures: Figures) -> float:
        return figures(issue.TABLE, issue.WORKER, issue.CASE) - figures(issue.TABLE, DRIVER, issue.CASE)

    host = [
        Bound(_HOST, f"kernel(...) returns, {case}", partial(_cell, _HOST, WEFT, case), 1.0, "us")
        for case in (_ONE, _FOUR)
    ]
    beside = [
        Bound(_HOST, f"CuPy's RawKernel returns, {case}", partial(_cell, _HOST, CUPY, case), None, "us")
        for case in (_ONE, _FOUR)
    ]
    worker = Bound(_HOST, "a worker's launch - the driver's launch", beyond_driver, 0.3, "us")
    return (*host, *beside, worker)


def _cell(table: str, implementation: str, case: str, figures: Figures) -> float:
    return figures(table, implementation, case)


def _prepare(setup: Setup) -> list[Job]:
    return [*_weft_calls(setup), *_cupy_calls(setup), *issue.jobs(setup)]


class _Programs:
    """Calls of both kernels in a row, written in the ways in which accesses are declared."""

    def __init__(self, setup: Setup) -> None:
        start = numbers(THREADS)
        self.x, self.y = weft.asarray(start, device=setup.device), weft.asarray(start, device=setup.device)
        self._step, self._add_scaled = (
            weft.cuda.RawKernel(STEP, "step_once"),
            weft.cuda.RawKernel(ADD_SCALED, "add_scaled"),
        )
        self._made = (mutate(self.x),), (read(self.x), mutate(self.y), _FACTOR, THREADS)
        self._every = range(setup.settings.calls)

    def one(self) -> None:
        step, x = self._step, self.x
        for _ in self._every:
            step(1, THREADS, (mutate(x),))

    def four(self) -> None:
        add_scaled, x, y = self._add_scaled, self.x, self.y
        for _ in self._every:
            add_scaled(1, THREADS, (read(x), mutate(y), _FACTOR, THREADS))

    def one_made(self) -> None:
        step, (arguments, _) = self._step, self._made
        for _ in self._every:
            step(1, THREADS, arguments)

    def four_made(self) -> None:
        add_scaled, (_, arguments) = self._add_scaled, self._made
        for _ in self._every:
            add_scaled(1, THREADS, arguments)

    def one_listed(self) -> None:
        step, x = self._step, self.x
        for _ in self._every:
            step(1, THREADS, (x,), mutates=(x,))

    def four_listed(self) -> None:
        add_scaled, x, y = self._add_scaled, self.x, self.y
        for _ in self._every:
            add_scaled(1, THREADS, (x, y, _FACTOR, THREADS), reads=(x,), mutates=(y,))


def _weft_calls(setup: Setup) -> list[Job]:
    programs, count = _Programs(setup), setup.settings.calls
    bodies = {
        WEFT: (programs.one, programs.four),
        _MADE_BEFORE: (programs.one_made, programs.four_made),
        _LISTS: (programs.one_listed, programs.four_listed),
    }
    wanted = _Wanted(numbers(THREADS), count)
    for name, each in bodies.items():
        for body in each:
            body()
        wanted.check(name, programs.x.numpy(), programs.y.numpy())
    return [
        Job(_HOST, case, name, partial(until_return, body, wait, count))
        for name, each in bodies.items()
        for case, body in zip((_ONE, _FOUR), each, strict=True)
    ]


def _cupy_calls(setup: Setup) -> list[Job]:
    if not setup.has_cupy(_HOST):
        return []
    cupy, stream, start, count = setup.cupy, setup.stream(), numbers(THREADS), setup.settings.calls
    step, add_scaled = cupy.RawKernel(STEP, "step_once"), cupy.RawKernel(ADD_SCALED, "add_scaled")
    x, y = cupy.asarray(start), cupy.asarray(start)
    factor, size, every = np.uint32(_FACTOR), np.uint32(THREADS), range(count)
    cupy.cuda.Device().synchronize()

    def one() -> None:
        for _ in every:
            step((1,), (THREADS,), (x,))

    def four() -> None:
        for _ in every:
            add_scaled((1,), (THREADS,), (x, y, factor, size))

    def on_stream(body: Callable[[], object]) -> list[float]:
        with stream:
            return until_return(body, stream.synchronize, count)

    on_stream(one)
    on_stream(four)
    _Wanted(start, count).check(CUPY, cupy.asnumpy(x), cupy.asnumpy(y))
    return [Job(_HOST, case, CUPY, partial(on_stream, body)) for case, body in ((_ONE, one), (_FOUR, four))]


class _Wanted:
    """What so many calls of either kernel make of the arrays, each time that they are made."""

    def __init__(self, start: npt.NDArray[np.uint32], count: int) -> None:
        self._x, self._y, self._count = start, start, count

    def check(self, name: str, x: npt.NDArray[np.uint32], y: npt.NDArray[np.uint32]) -> None:
        self._x = after(self._x, self._count)
        self._y = self._y + self._x * np.uint32(_FACTOR * self._count)
        check(x, self._x, f"{name}, {_ONE}")
        check(y, self._y, f"{name}, {_FOUR}")


LINE = Line(
    "launch",
    (
        Table(_HOST, "Native launch: until the call returns", "us"),
        Table(
            issue.TABLE,
            "Issue: launches of one chain, until the driver has taken the last",
            "us",
            ("minimum", "median"),
        ),
    ),
    _bounds,
    _prepare,
)
