"""Waits: what they cover, whom they wake, and that they need no worker."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from conftest import MOMENT, SOON, Gate, background, still_waits
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    import weft


def test_wait_for_var_sees_the_value(engine: weft.Engine) -> None:
    x, cell = engine.new_variable(), list[int]()
    for i in range(50):
        engine.push(lambda i=i: cell.append(i), (), (x,))
        engine.wait_for_var(x)
        assert cell[-1] == i


def test_a_fresh_variable_needs_no_wait(engine: weft.Engine) -> None:
    x = engine.new_variable()
    engine.wait_for_var(x, timeout=0)
    engine.wait_to_write(x, timeout=0)
    engine.wait_for_all(timeout=0)
    assert x.is_ready()


def test_wait_for_var_does_not_wait_for_readers(many: weft.Engine, gate: Gate) -> None:
    x = many.new_variable()
    many.push(gate, (x,))
    assert gate.entered.wait(SOON)
    many.wait_for_var(x, timeout=SOON)
    with pytest.raises(errors.WaitTimeoutError):
        many.wait_to_write(x, timeout=MOMENT)
    gate.open()
    many.wait_to_write(x, timeout=SOON)


@pytest.mark.parametrize("wait", ["wait_for_var", "wait_to_write", "wait_for_all"])
def test_timeout(parallel: weft.Engine, gate: Gate, wait: str) -> None:
    x = parallel.new_variable("slow")
    gate.hold(parallel, mutate=(x,))
    arguments = () if wait == "wait_for_all" else (x,)
    for timeout in (0, 0.0, 0.05):
        before = time.monotonic()
        with pytest.raises(errors.WaitTimeoutError) as caught:
            getattr(parallel, wait)(*arguments, timeout=timeout)
        assert timeout <= time.monotonic() - before < SOON / 2
        assert isinstance(caught.value, TimeoutError)
    assert not x.is_ready()
    gate.open()
    getattr(parallel, wait)(*arguments, timeout=SOON)
    assert x.is_ready()


@pytest.mark.parametrize("wait", ["wait_for_var", "wait_to_write", "wait_for_all"])
def test_releases_the_gil(parallel: weft.Engine, gate: Gate, wait: str) -> None:
    x = parallel.new_variable()
    gate.hold(parallel, mutate=(x,))
    waiter = background(lambda: getattr(parallel, wait)(*(() if wait == "wait_for_all" else (x,))))
    assert still_waits(waiter)  # and this thread runs on
    gate.open()
    waiter.result(SOON)


def test_a_finished_variable_returns_while_every_worker_is_busy(
    parallel: weft.Engine, gates: Callable[[], Gate]
) -> None:
    x = parallel.new_variable()
    parallel.push(lambda: None, (), (x,))
    parallel.wait_for_var(x)
    for _ in range(parallel.workers):
        gates().hold(parallel)
    for _ in range(100):
        parallel.push(lambda: None)
    parallel.wait_for_var(x, timeout=SOON)
    parallel.wait_to_write(x, timeout=SOON)


def test_a_waiting_thread_runs_no_callable(parallel: weft.Engine, gates: Callable[[], Gate]) -> None:
    """With every worker held, a wait must run out of time rather than run the callable itself."""
    for _ in range(parallel.workers):
        gates().hold(parallel)
    x, ran = parallel.new_variable(), threading.Event()
    parallel.push(ran.set, (), (x,))
    with pytest.raises(errors.WaitTimeoutError):
        parallel.wait_for_var(x, timeout=MOMENT)
    assert not ran.is_set()


def test_wakes_only_its_own_waiter(many: weft.Engine, gates: Callable[[], Gate]) -> None:
    x, y = many.new_variable("x"), many.new_variable("y")
    first, second = gates(), gates()
    first.hold(many, mutate=(x,))
    second.hold(many, mutate=(y,))
    waits = [background(lambda v=v: many.wait_for_var(v)) for v in (x, y)]
    assert still_waits(waits[0])
    first.open()
    waits[0].result(SOON)
    assert still_waits(waits[1])
    second.open()
    waits[1].result(SOON)


def test_many_threads_wait_for_one_variable(parallel: weft.Engine, gate: Gate) -> None:
    x = parallel.new_variable()
    gate.hold(parallel, mutate=(x,))
    waits = [background(lambda: parallel.wait_for_var(x)) for _ in range(10)]
    gate.open()
    for wait in waits:
        wait.result(SOON)


def test_waits_end_though_pushes_go_on(parallel: weft.Engine) -> None:
    """One op always pushes the next: nothing pushed after the wait began may hold it up."""
    x, stop = parallel.new_variable(), threading.Event()

    def again() -> None:
        if not stop.is_set():
            parallel.push(again, (), (x,))

    parallel.push(again, (), (x,))
    try:
        for _ in range(10):
            parallel.wait_for_all(timeout=SOON)
            parallel.wait_for_var(x, timeout=SOON)
    finally:
        stop.set()


def test_wait_for_all_covers_only_what_was_pushed_before(many: weft.Engine, gates: Callable[[], Gate]) -> None:
    early, late = gates(), gates()
    early.hold(many)
    waiter = background(many.wait_for_all)
    assert still_waits(waiter)
    late.hold(many)
    early.open()
    waiter.result(SOON)
    assert many.pending == 1


def test_wait_for_var_covers_only_what_was_pushed_before(many: weft.Engine, gates: Callable[[], Gate]) -> None:
    x, early, late = many.new_variable(), gates(), gates()
    early.hold(many, mutate=(x,))
    waiter = background(lambda: many.wait_for_var(x))
    assert still_waits(waiter)
    many.push(late, (), (x,))
    early.open()
    waiter.result(SOON)
    assert not x.is_ready()


def test_wait_inside_an_op(engine: weft.Engine) -> None:
    """With one worker too: a worker blocked in a wait is replaced."""
    x, y, seen = engine.new_variable("x"), engine.new_variable("y"), list[str]()

    def outer() -> None:
        engine.push(lambda: seen.append("inner"), (), (x,))
        engine.wait_for_var(x)
        seen.append("outer")

    engine.push(outer, (), (y,))
    engine.wait_for_var(y, timeout=SOON)
    assert seen == ["inner", "outer"]


def test_waits_inside_ops_nest(parallel: weft.Engine) -> None:
    depth, seen = 20, list[int]()
    variables = [parallel.new_variable(str(i)) for i in range(depth)]

    def level(i: int) -> None:
        if i + 1 < depth:
            parallel.push(lambda: level(i + 1), (), (variables[i + 1],))
            parallel.wait_for_var(variables[i + 1])
        seen.append(i)

    parallel.push(lambda: level(0), (), (variables[0],))
    parallel.wait_for_var(variables[0], timeout=SOON)
    assert seen == list(reversed(range(depth)))


def test_wait_inside_an_op_takes_a_timeout(single: weft.Engine, gate: Gate) -> None:
    x, y, caught = single.new_variable(), single.new_variable(), list[BaseException]()

    def outer() -> None:
        single.push(gate, (), (x,))
        try:
            single.wait_for_var(x, timeout=MOMENT)
        except errors.WaitTimeoutError as error:
            caught.append(error)

    single.push(outer, (), (y,))
    single.wait_for_var(y, timeout=SOON)
    assert len(caught) == 1


def test_is_ready_follows_the_mutations(parallel: weft.Engine, gate: Gate) -> None:
    x = parallel.new_variable()
    gate.hold(parallel, mutate=(x,))
    assert not x.is_ready()
    gate.open()
    parallel.wait_for_var(x)
    assert x.is_ready()
