"""``WEFT_CHECK=1`` and ``Engine(check=True)``: arrays with pending tasks are read-only for everybody else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def checking() -> Iterator[weft.Engine]:
    """The default engine, which checks."""
    engine = weft.Engine(2, check=True)
    previous = weft.set_engine(engine)
    yield engine
    weft.set_engine(previous)
    engine.close(cancel=True)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What holds the tasks of a test until it is set."""
    made = threading.Event()
    yield made
    made.set()


@weft.task
def double(x: weft.Mutate[np.ndarray], until: threading.Event) -> None:
    until.wait(SOON)
    x *= 2


def refuses(x: np.ndarray) -> bool:
    """Whether an array cannot be written to."""
    try:
        x[...] = x
    except ValueError:
        return True
    return False


def test_a_write_between_two_calls_is_refused(checking: weft.Engine, gate: threading.Event) -> None:
    x = np.ones(4)
    double(x, gate)
    with pytest.raises(ValueError, match="read-only"):
        x /= x.max()
    double(x, gate)
    gate.set()
    weft.wait(x)
    x /= 4
    assert x.tolist() == [1, 1, 1, 1]
    assert checking.check


def test_off_by_default(gate: threading.Event) -> None:
    engine = weft.Engine(1)
    assert engine.check is False
    x = np.ones(4)
    weft.task(engine=engine)(double.__wrapped__)(x, gate)
    assert not refuses(x)
    gate.set()
    engine.close()


@pytest.mark.usefixtures("checking")
def test_readers_guard_too(gate: threading.Event) -> None:
    @weft.task
    def total(x: weft.Read[np.ndarray], until: threading.Event) -> float:
        until.wait(SOON)
        return float(x.sum())

    x = np.ones(4)
    handle = total(x, gate)
    assert refuses(x)
    gate.set()
    assert handle.result() == 4
    assert not refuses(x)


@pytest.mark.usefixtures("checking")
def test_views_and_their_owners(gate: threading.Event) -> None:
    for owner in (np.zeros((6, 4)), np.zeros((6, 4), order="F"), np.zeros((6, 4), "c8")):
        gate.clear()
        rows = [owner[at] for at in range(3)]
        for row in rows:
            double(row, gate)
        for at in range(3, 6):
            double(owner[at], gate)  # a view that was made of a guarded array
        back = owner[::-2, 1:3]
        double(back, gate)
        assert refuses(owner)
        assert all(map(refuses, rows))
        assert refuses(back)
        gate.set()
        weft.wait(owner)
        assert not refuses(owner)
        assert not any(map(refuses, rows))
        assert not refuses(back)


@pytest.mark.usefixtures("checking")
def test_values_are_the_same(gate: threading.Event) -> None:
    gate.set()
    generator = np.random.default_rng(5)
    for order in "CF":
        x = np.asarray(generator.normal(size=(5, 4)), order=order)
        expected = x.copy()
        for _ in range(40):
            first, last = sorted(generator.choice(6, 2, replace=False))
            step = int(generator.choice([-1, 1, 2]))
            double(x[first:last][::step], gate)
            expected[first:last][::step] *= 2
        weft.wait(x)
        assert np.array_equal(x, expected)
        assert x.flags.writeable


@pytest.mark.usefixtures("checking")
def test_failures_and_skipped_tasks_give_back(gate: threading.Event) -> None:
    @weft.task
    def fail(x: weft.Mutate[np.ndarray], until: threading.Event) -> None:
        until.wait(SOON)
        raise KeyError(x.size)

    x, y = np.ones(4), np.ones(4)
    fail(x, gate)
    beside = double(y, gate)
    double(x, gate)
    assert refuses(x)
    gate.set()
    with pytest.raises(KeyError):
        weft.wait(x)
    assert not refuses(x)
    beside.wait()
    assert not refuses(y)


@pytest.mark.parametrize("look", ["wait", "result", "done", "exception", "await", "weft.wait"])
def test_a_handle_of_a_skipped_task_gives_back(checking: weft.Engine, look: str) -> None:
    @weft.task
    def fail() -> int:
        raise KeyError

    @weft.task
    def add(x: weft.Mutate[np.ndarray], one: int) -> None:
        x += one

    async def wait_in_asyncio(handle: weft.TaskHandle) -> None:
        await handle

    x = np.ones(4)
    handle = add(x, fail())
    looks: dict[str, Any] = {
        "await": lambda: asyncio.run(wait_in_asyncio(handle)),
        "weft.wait": lambda: weft.wait(handle),
    }
    checking._drain()
    with contextlib.suppress(KeyError):
        looks.get(look, getattr(handle, look, None))()
    assert not refuses(x)
    with contextlib.suppress(KeyError):
        checking.wait_for_all()


def test_a_cancelled_task_gives_back(gate: threading.Event) -> None:
    engine = weft.Engine(1, check=True)
    begun, x = threading.Event(), np.ones(4)
    engine.push(lambda: (begun.set(), gate.wait(SOON)))
    assert begun.wait(SOON)
    handle = weft.task(engine=engine)(double.__wrapped__)(x, gate)
    assert refuses(x)
    closing = threading.Thread(target=lambda: engine.close(cancel=True))
    closing.start()
    while not engine.closed:  # it closes before it waits
        pass
    gate.set()
    closing.join(SOON)
    assert not refuses(x)
    assert isinstance(handle.exception(), errors.OpCancelledError)


@pytest.mark.usefixtures("checking")
def test_a_recorded_task_holds_nothing_when_the_recording_ends(gate: threading.Event) -> None:
    gate.set()
    x = np.ones(4)
    with weft.capture() as doubling:
        double(x, gate)
        assert refuses(x)
    assert not refuses(x)
    doubling.replay()
    weft.wait(x)
    assert x.tolist() == [2, 2, 2, 2]
    assert not refuses(x)

    def fail(y: weft.NDArray) -> weft.NDArray:
        double(x, gate)
        raise KeyError(y.shape)

    with pytest.raises(KeyError):
        weft.program(fail)(weft.ones(2))
    assert not refuses(x)


@pytest.mark.usefixtures("checking")
def test_a_task_goes_on_with_its_array_after_it_has_pushed_another_on_it(gate: threading.Event) -> None:
    @weft.task
    def twice(x: weft.Mutate[np.ndarray], *, y: weft.Mutate[np.ndarray]) -> weft.TaskHandle:
        handles = double(x, gate), double(x[1:], gate), double(y, gate)
        x += 1
        y += 1
        return handles[-1]

    x, y = np.ones(2), np.ones(2)
    pushed = twice(x, y=y).result(SOON)
    assert refuses(x)
    assert refuses(y)
    gate.set()
    pushed.wait(SOON)
    weft.wait(x)
    assert x.tolist() == [4, 8]
    assert y.tolist() == [4, 4]
    assert not refuses(x)
    assert not refuses(y)


def test_a_refused_push_gives_back() -> None:
    engine = weft.Engine(1, check=True)
    engine.close()
    x = np.ones(2)
    with pytest.raises(errors.EngineClosedError):
        weft.task(engine=engine)(double.__wrapped__)(x, threading.Event())
    assert not refuses(x)


@pytest.mark.usefixtures("checking")
def test_declared_arrays(gate: threading.Event) -> None:
    totals, weights, begun = np.zeros(2), np.ones(2), threading.Event()

    @weft.task(mutates=[totals], reads=[weights])
    def add(until: threading.Event) -> None:
        begun.set()
        until.wait(SOON)
        totals[:] += weights

    add(gate)
    assert begun.wait(SOON)
    for _ in range(2):
        add(gate)  # while the first one runs
    assert refuses(weights)
    gate.set()
    weft.wait(totals)
    assert totals.tolist() == [3, 3]
    assert not refuses(totals)
    assert not refuses(weights)


@pytest.mark.usefixtures("checking")
def test_what_cannot_be_guarded_is_left_alone(gate: threading.Event) -> None:
    gate.set()
    lent, objects, readonly = bytearray(32), np.array([1, 2], object), np.ones(2)
    readonly.flags.writeable = False
    double(np.frombuffer(lent, "i8"), gate).wait()
    double(objects, gate).wait()
    assert objects.tolist() == [2, 4]
    with pytest.raises(ValueError, match="read-only"):
        double(readonly, gate).wait()
    assert not readonly.flags.writeable
    empty = np.zeros((0, 3))
    double(empty, gate).wait()
    weft.wait(empty)
    assert empty.flags.writeable


@pytest.mark.usefixtures("checking")
def test_nothing_is_kept(gate: threading.Event) -> None:
    from weft._engine import guards

    gate.set()
    gc.collect()
    before = len(guards._guarded)
    for _ in range(50):
        double(np.ones(3), gate).wait()
    gc.collect()
    assert len(guards._guarded) <= before


@pytest.mark.slow
def test_the_message_names_the_task(script: Callable[..., object]) -> None:
    done = script(
        """
        import threading, numpy, weft
        gate = threading.Event()
        @weft.task
        def sobel(edge: weft.Mutate[numpy.ndarray]) -> None:
            gate.wait(2)
        edge = numpy.ones(4)
        sobel(edge)
        edge /= edge.max()
        """,
        WEFT_CHECK="1",
    )
    assert done.returncode == 1
    assert "read-only" in done.stderr
    assert "weft: task 'sobel', pushed at" in done.stderr
    assert "weft.wait(edge) before this line" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_fork_gives_back(script: Callable[..., object]) -> None:
    done = script(
        """
        import os, threading, numpy, weft
        gate = threading.Event()
        @weft.task
        def hold(x: weft.Mutate[numpy.ndarray]) -> None:
            gate.wait(20)
        x = numpy.ones(4)
        hold(x)
        child = os.fork()
        if not child:
            os._exit(0 if x.flags.writeable else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert not x.flags.writeable
        gate.set()
        """,
        WEFT_CHECK="1",
    )
    assert done.returncode == 0, done.stderr


def test_the_environment_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, check in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv("WEFT_CHECK", said)
        assert weft.Engine(1).check is check
        assert weft.Engine(1, check=True).check is True
    monkeypatch.setenv("WEFT_CHECK", "maybe")
    with pytest.raises(errors.ArgumentValueError, match="WEFT_CHECK must be 0 or 1, not 'maybe'"):
        weft.Engine(1)
    with pytest.raises(errors.ArgumentTypeError):
        weft.Engine(1, check="yes")  # type: ignore[arg-type]


def test_a_wait_for_what_no_op_knows_says_so() -> None:
    x, y = np.ones(2), np.ones(2)
    with pytest.warns(errors.UndeclaredAccessWarning, match=r"no op .* was ever told to change this ndarray") as told:
        weft.wait(x)

    async def wait_in_asyncio() -> None:
        await weft.wait_async(x)

    with pytest.warns(errors.UndeclaredAccessWarning, match=r"no op .* was ever told to change this ndarray") as later:
        asyncio.run(wait_in_asyncio())
    assert told[0].filename == later[0].filename == __file__
    gate = threading.Event()
    gate.set()
    double(y, gate)
    weft.wait(y)
