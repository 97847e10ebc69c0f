"""``close``: drain or cancel, within a deadline, once."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from typing import TYPE_CHECKING

import psutil
import pytest

import weft
from conftest import MOMENT, SOON, Gate, background, still_waits
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable


def test_drains(engine: weft.Engine) -> None:
    x, ran = engine.new_variable(), list[int]()
    for i in range(1000):
        engine.push(lambda i=i: ran.append(i), (), (x,))
    engine.close()
    assert ran == list(range(1000))
    assert engine.closed


def test_drains_what_ops_push(parallel: weft.Engine, gate: Gate) -> None:
    x, y, ran = parallel.new_variable(), parallel.new_variable(), list[str]()

    def outer() -> None:
        gate()
        parallel.push(lambda: ran.append("inner"), (), (y,))

    parallel.push(outer, (), (x,))
    assert gate.entered.wait(SOON)
    closer = background(parallel.close)
    assert still_waits(closer)
    gate.open()
    closer.result(SOON)
    assert ran == ["inner"]


def test_cancel_drops_what_has_not_started(parallel: weft.Engine, gates: Callable[[], Gate]) -> None:
    held, ran = [gates() for _ in range(parallel.workers)], list[int]()
    x, y = parallel.new_variable(), parallel.new_variable()
    for gate in held:
        gate.hold(parallel, mutate=(x,) if gate is held[0] else ())
    for i in range(100):
        parallel.push(lambda i=i: ran.append(i), (), (x,))
        parallel.push(lambda i=i: ran.append(i), (), (y,))
    closer = background(lambda: parallel.close(cancel=True))
    assert still_waits(closer), "what runs is let finish"
    for gate in held:
        gate.open()
    closer.result(SOON)
    assert ran == []
    assert isinstance(x.exception(), errors.OpCancelledError)
    assert isinstance(y.exception(), errors.OpCancelledError)
    assert (y.version, y.completed_version, parallel.pending) == (100, 100, 0)


def test_cancel_runs_what_always_runs(single: weft.Engine, gate: Gate) -> None:
    """Clean-up is what ``always_run`` is for; a cancelled op is a failure like others."""
    ran: list[str] = []
    x = single.new_variable()
    gate.hold(single)
    single.push(lambda: ran.append("dropped"), (), (x,))
    single.push(lambda: ran.append("clean-up"), (x,), always_run=True)
    single.delete_variable(x, lambda: ran.append("finalizer"))
    closer = background(lambda: single.close(cancel=True))
    assert still_waits(closer)
    gate.open()
    closer.result(SOON)
    assert ran == ["clean-up", "finalizer"]


def test_cancel_tells_whoever_waits(single: weft.Engine, gate: Gate) -> None:
    x = single.new_variable()
    gate.hold(single)
    single.push(lambda: None, (), (x,), name="late")
    waiter = background(lambda: single.wait_for_var(x))
    assert still_waits(waiter)
    closer = background(lambda: single.close(cancel=True))
    assert still_waits(closer)
    gate.open()
    assert isinstance(waiter.exception(SOON), errors.OpCancelledError)
    closer.result(SOON)


@pytest.mark.parametrize("cancel", [False, True])
def test_deadline(parallel: weft.Engine, gate: Gate, cancel: bool) -> None:
    gate.hold(parallel, name="stuck")
    with pytest.raises(errors.WaitTimeoutError):
        parallel.close(cancel=cancel, timeout=MOMENT)
    with pytest.raises(errors.EngineClosedError):
        parallel.push(lambda: None)
    gate.open()
    parallel.close(timeout=SOON)
    assert parallel.closed


def test_context_manager_drains() -> None:
    ran: list[int] = []
    with weft.Engine(2) as engine:
        for i in range(100):
            engine.push(lambda i=i: ran.append(i))
        assert not engine.closed
    assert engine.closed
    assert sorted(ran) == list(range(100))


def test_context_manager_cancels_when_the_body_raises(gates: Callable[[], Gate]) -> None:
    ran, gate = list[int](), gates()
    engine = weft.Engine(1)

    def until_closed() -> None:
        gate.entered.set()
        while not engine.closed:  # closing has begun
            threading.Event().wait(0.001)

    def use() -> None:
        with engine:
            engine.push(until_closed)
            assert gate.entered.wait(SOON)
            engine.push(lambda: ran.append(1))
            message = "the body's own"
            raise KeyError(message)

    with pytest.raises(KeyError, match="the body's own"):
        use()
    assert ran == []
    assert engine.closed


def test_is_idempotent(engine: weft.Engine) -> None:
    engine.push(lambda: None)
    for _ in range(3):
        engine.close()
    engine.close(cancel=True, timeout=0)
    assert engine.closed


def test_from_many_threads(parallel: weft.Engine) -> None:
    for _ in range(100):
        parallel.push(lambda: None)
    for closer in [background(parallel.close) for _ in range(4)]:
        closer.result(SOON)
    assert parallel.stats()["completed"] == 100


@pytest.mark.usefixtures("often")
def test_every_push_beside_a_close_either_raises_or_runs() -> None:
    for _ in range(50):
        engine = weft.Engine(2)
        meet = threading.Barrier(4)

        def pusher(engine: weft.Engine = engine, meet: threading.Barrier = meet) -> tuple[int, list[None]]:
            x, ran, pushed = engine.new_variable(), list[None](), 0
            meet.wait(SOON)
            try:
                while True:
                    engine.push(lambda: ran.append(None), (), (x,))
                    pushed += 1
            except errors.EngineClosedError:
                return pushed, ran

        pushers = [background(pusher) for _ in range(3)]
        meet.wait(SOON)
        engine.close(timeout=SOON)
        for pushed, ran in (each.result(SOON) for each in pushers):
            assert len(ran) == pushed


def test_what_cancel_does_not_drop_has_run() -> None:
    for _ in range(50):
        engine, ran = weft.Engine(2), set[int]()
        variables = [engine.new_variable() for _ in range(50)]
        for i, x in enumerate(variables):
            engine.push(lambda i=i, ran=ran: ran.add(i), (), (x,))
        engine.close(cancel=True)
        dropped = {i for i, x in enumerate(variables) if isinstance(x.exception(), errors.OpCancelledError)}
        assert ran | dropped == set(range(50))
        assert not ran & dropped
        assert all(x.completed_version == 1 for x in variables)


def test_a_push_after_close_raises(engine: weft.Engine) -> None:
    x, ran = engine.new_variable(), list[str]()
    engine.push(lambda: ran.append("before"), (), (x,))
    engine.close()
    for misuse in (
        lambda: engine.push(lambda: ran.append("after"), (), (x,)),
        lambda: engine.push_async(lambda done: done(), (), (x,)),
        lambda: engine.new_operator(lambda: ran.append("after")).push(),
        lambda: engine.delete_variable(x),
    ):
        with pytest.raises(errors.EngineClosedError):
            misuse()
    assert ran == ["before"]
    assert x.version == x.completed_version == 1


def test_values_stay_readable(engine: weft.Engine) -> None:
    x, y = engine.new_variable(), engine.new_variable()
    engine.push(lambda: None, (), (x,))
    engine.push(lambda: 1 / 0, (), (y,))
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_var(y)
    engine.close()
    engine.wait_for_var(x, timeout=SOON)
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_var(y, timeout=SOON)


def test_draining_tells_what_no_wait_has_told(engine: weft.Engine) -> None:
    error = KeyError("untold")

    def fail() -> None:
        raise error

    engine.push(fail)
    with pytest.raises(KeyError) as caught:
        engine.close()
    assert caught.value is error
    assert engine.closed
    engine.close()


def test_context_manager_tells_it_too_and_never_hides_the_bodys_own() -> None:
    with pytest.raises(ZeroDivisionError), weft.Engine(1) as engine:
        engine.push(lambda: 1 / 0)

    def use() -> None:
        with weft.Engine(1) as engine:
            engine.push(lambda: 1 / 0)
            message = "the body's own"
            raise KeyError(message)

    with pytest.raises(KeyError, match="the body's own"):
        use()


def test_before_anything_was_pushed(engine: weft.Engine) -> None:
    engine.close()
    assert engine.closed


def test_an_engine_let_go_of_runs_what_was_pushed_and_ends_its_threads(gates: Callable[[], Gate]) -> None:
    gate, ran, threads = gates(), threading.Event(), set[int]()

    def use() -> None:
        engine = weft.Engine(2)
        x = engine.new_variable()
        gate.hold(engine, mutate=(x,))
        engine.push(lambda: threads.add(threading.get_native_id()), (), (x,))
        engine.push(ran.set, (), (x,))

    use()
    gc.collect()
    gate.open()
    assert ran.wait(SOON)
    assert threads
    assert end_soon(threads)


def native_threads() -> set[int]:
    """The threads of this process, Python's and others."""
    if sys.platform == "darwin":  # whose threads psutil numbers in its own way
        list_thread_identifiers, most = 28, 4096
        found = (ctypes.c_uint64 * most)()
        room = ctypes.sizeof(found)
        filled = ctypes.CDLL(None).proc_pidinfo(os.getpid(), list_thread_identifiers, ctypes.c_uint64(0), found, room)
        return set(found[: filled // 8])
    return {thread.id for thread in psutil.Process().threads()}


def end_soon(threads: set[int]) -> bool:
    """Whether these threads end: a join returns a moment before the system takes the thread off its list."""
    for _ in range(2000):
        if not threads & native_threads():
            return True
        threading.Event().wait(0.01)
    return False


def test_stops_its_threads() -> None:
    with weft.Engine(4) as engine:
        names: set[int] = set()
        meet = threading.Barrier(4)
        for _ in range(4):
            engine.push(lambda: (meet.wait(SOON), names.add(threading.get_native_id())))
        engine.wait_for_all()
    assert len(names) == 4
    assert end_soon(names)
