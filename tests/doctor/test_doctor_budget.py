"""Checks keep to the time that they may take, whatever ops do: on a clock that ops, waits and looks move."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from weft._doctor import budget, check, programs

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._doctor.pushes import Push

#: Seconds that an op takes, a wait for it beside that, and a look at the memory.
OP, WAIT, LOOK = 2e-5, 8e-5, 1e-4
TURNS = 1500


class Clock:
    """Stands still but for what is said to take time."""

    def __init__(self) -> None:
        self._now, self._lock = 0.0, threading.Lock()

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds

    def perf_counter(self) -> float:
        return self._now

    process_time = perf_counter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of checks."""
    clock = Clock()
    drain, before = check._watch_drain, check.Checker._before

    def waits(timeout: float | None) -> bool:
        ended = drain(timeout)
        clock.advance(WAIT)
        return ended

    def looks(checker: check.Checker, push: Push) -> None:
        clock.advance(LOOK)
        before(checker, push)

    monkeypatch.setattr(check, "time", clock)
    monkeypatch.setattr(budget, "time", clock)
    monkeypatch.setattr(check, "_watch_drain", waits)
    monkeypatch.setattr(check.Checker, "_before", looks)
    return clock


def task_script(clock: Clock) -> int:
    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        clock.advance(OP)
        x += 1

    x = np.zeros(3)
    for _ in range(TURNS):
        work(x)
    return TURNS


def nested_script(clock: Clock) -> int:
    @weft.task
    def inner(x: weft.Mutate[np.ndarray]) -> None:
        clock.advance(OP)
        x += 1

    @weft.task
    def outer(x: weft.Read[np.ndarray], y: np.ndarray) -> None:
        assert len(x) == 3
        clock.advance(OP)
        for _ in range(4):
            inner(y)

    x, y = np.zeros(3), np.zeros(3)
    for _ in range(TURNS // 5):
        outer(x, y)
        weft.wait()  # else ops move the clock under the checks of other ones, as often as it comes
    return TURNS


def native_script(clock: Clock) -> int:
    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    def work(_: int) -> int:
        clock.advance(OP)
        return 0

    engine = weft.get_engine()
    x = np.zeros(3)
    address = ctypes.cast(work, ctypes.c_void_p).value
    assert address is not None
    for _ in range(TURNS):
        engine.push_native(address, x.ctypes.data, mutate_vars=[engine.variable_of(x)])
    engine.wait_for_all()
    return TURNS


@pytest.mark.parametrize("script", [task_script, nested_script, native_script])
def test_checks_keep_to_their_time(script: Callable[[Clock], int], clock: Clock) -> None:
    with weft.doctor(only=["undeclared-write", "undeclared-read", "first-nan"]) as report:
        ops = script(clock)
        weft.wait()
    taken = clock.perf_counter()
    assert report.findings == []
    assert report.checked["ops"] > 30
    assert taken - budget.GRACE < 4 * ops * OP, report.checked


def test_calls_of_programs_run_op_by_op_as_long_as_there_is_time(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "time", clock)
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        clock.advance(10 * OP)  # what a replay does without
        return x + 1

    x = weft.zeros(3)
    with weft.doctor(only="first-nan") as report:
        for _ in range(TURNS):
            clock.advance(OP)
            step(x)
    assert report.findings == []
    assert len(ran) > 50, report.checked
    assert clock.perf_counter() < (1 + budget.OF_PROGRAMS + 0.5) * TURNS * OP, report.checked


def test_the_first_ops_of_each_line_are_checked_whatever_they_cost(clock: Clock) -> None:
    totals = np.zeros(2)
    engine = weft.get_engine()

    def add() -> None:
        totals[0] += 1

    def nothing() -> None:
        clock.advance(1e-9)

    with weft.doctor(only="undeclared-write") as report:
        for _ in range(TURNS):
            engine.push(nothing)  # which uses up all the time that there is
        for _ in range(check._FIRST):
            engine.push(nothing)
        for turn in range(100):  # of each code, at a line of many
            engine.push(add if turn == 99 else nothing)
    assert report.checked["ops that were not looked at"] > TURNS // 2
    assert [one.kind for one in report.findings] == ["undeclared-write"]
