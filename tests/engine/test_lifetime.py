"""How long engines live whose ops have failed: no longer than anybody can ask for them, whatever tracebacks refer to."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import threading
import time
import traceback
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weft
from conftest import SERIAL, SOON, RunScript, address_of, background
from weft import errors
from weft.ops import like_first, register_op

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable


class Boom(Exception):  # noqa: N818 - not an error of weft's
    """What the ops of these tests raise."""


@register_op("test_lifetime_fails", infer=like_first)
def fails(_out: Any, _x: Any) -> None:
    raise Boom


def push(engine: weft.Engine, _: ctypes.CDLL) -> weft.Variable:
    """An op that raises with its engine among its frame's locals."""
    x = engine.new_variable()

    def explode() -> None:
        mine = engine
        raise Boom(mine, x)

    engine.push(explode, (), (x,))
    return x


def push_operator(engine: weft.Engine, _: ctypes.CDLL) -> weft.Variable:
    """The same, pushed by an operator."""
    x = engine.new_variable()

    def explode() -> None:
        raise Boom(operator)

    operator = engine.new_operator(explode, (), (x,))
    operator.push()
    return x


def push_async(engine: weft.Engine, _: ctypes.CDLL) -> weft.Variable:
    """An asynchronous op that raises with its token among its frame's locals."""
    x = engine.new_variable()

    def explode(done: weft.Completion) -> None:
        raise Boom(engine, done)

    engine.push_async(explode, (), (x,))
    return x


def fail_later(engine: weft.Engine, _: ctypes.CDLL) -> weft.Variable:
    """A token that is told an exception which refers to it."""
    x = engine.new_variable()

    def explode(done: weft.Completion) -> None:
        try:
            raise Boom(engine)
        except Boom as error:
            done.fail(error)

    engine.push_async(explode, (), (x,))
    return x


def drop_token(engine: weft.Engine, _: ctypes.CDLL) -> weft.Variable:
    """A token that is dropped unused."""
    x = engine.new_variable()
    engine.push_async(lambda _done: engine.name, (), (x,))
    return x


def push_native(engine: weft.Engine, native: ctypes.CDLL) -> weft.Variable:
    """A native function that fails."""
    x = engine.new_variable()
    engine.push_native(address_of(native.fail_with_seven), 0, (), (x,))
    return x


def skip(engine: weft.Engine, native: ctypes.CDLL) -> weft.Variable:
    """An op that is skipped for the failure of another."""
    x, y = push(engine, native), engine.new_variable()
    engine.push(lambda: None, (x,), (y,))
    return y


def compute(engine: weft.Engine, _: ctypes.CDLL) -> weft.NDArray:
    """An op on arrays."""
    result = fails(weft.zeros(3, engine=engine))
    assert isinstance(result, weft.NDArray)
    return result


WAYS = [push, push_operator, push_async, fail_later, drop_token, push_native, skip, compute]


def wait(engine: weft.Engine, result: weft.Variable | weft.NDArray) -> None:
    """Wait for a failure, which adds this frame and its callers to the traceback."""
    with contextlib.suppress(Boom, errors.WeftError):
        if isinstance(result, weft.Variable):
            engine.wait_for_var(result, timeout=SOON)
        else:
            result.wait_to_read(timeout=SOON)


def drain(engine: weft.Engine, result: weft.Variable | weft.NDArray) -> None:
    """Have the op run, and tell nobody."""
    engine._drain(SOON)
    assert result.is_ready()


def ask(engine: weft.Engine, result: weft.Variable | weft.NDArray) -> None:
    """Look at the exception."""
    engine._drain(SOON)
    assert result.exception() is not None


def wait_for_all(engine: weft.Engine, _: weft.Variable | weft.NDArray) -> None:
    """Wait for everything."""
    with pytest.raises((Boom, errors.WeftError)):
        engine.wait_for_all(timeout=SOON)


def close(engine: weft.Engine, _: weft.Variable | weft.NDArray) -> None:
    """Close the engine."""
    with pytest.raises((Boom, errors.WeftError)):
        engine.close(timeout=SOON)


LOOKS = [drain, wait, ask, wait_for_all, close]


def threads_called(name: str) -> int:
    """How many threads of this process have a name that begins so; 0 where that cannot be asked."""
    found = 0
    for each in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            found += each.read_text(encoding="utf-8").startswith(name)
    return found


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes true: the end of a thread tells nobody."""
    end = time.monotonic() + SOON
    while not condition():
        if time.monotonic() > end:
            return False
        gc.collect()
        time.sleep(0.001)
    return True


@pytest.mark.parametrize("setting", [SERIAL, ("work_stealing", 2), ("per_device", 1)], ids=str)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("way", WAYS)
def test_an_engine_goes_though_tracebacks_refer_to_it(
    way: Callable[..., Any], look: Callable[..., None], setting: tuple[Any, int], native: ctypes.CDLL
) -> None:
    policy, workers = setting

    def use() -> weakref.ref[weft.Engine]:
        engine = weft.Engine(workers, policy, name="mortal")
        look(engine, way(engine, native))
        return weakref.ref(engine)

    engine = use()
    assert eventually(lambda: engine() is None)
    assert eventually(lambda: threads_called("mortal") == 0)


@pytest.mark.parametrize("way", [push, push_native, compute])
def test_the_exception_stays_for_as_long_as_its_version_is_failed(way: Callable[..., Any], native: ctypes.CDLL) -> None:
    def make() -> tuple[weft.Variable | weft.NDArray, str]:
        engine = weft.Engine(2, name="mortal")
        result = way(engine, native)
        drain(engine, result)
        error = result.exception()
        return result, "".join(traceback.format_exception(error))

    result, told = make()
    for _ in range(3):
        gc.collect()
        error = result.exception()
        assert error is not None
        assert "".join(traceback.format_exception(error)) == told
        with pytest.raises(type(error)) as caught:
            result.engine.wait_for_var(result) if isinstance(result, weft.Variable) else result.wait_to_read()
        assert caught.value is error
        del error, caught


def test_the_exception_goes_with_its_version() -> None:
    engine = weft.Engine(1)
    error = Boom()
    gone = weakref.ref(error)

    def explode(given: list[Boom]) -> None:
        raise given.pop()

    x = engine.new_variable()
    engine.push(functools.partial(explode, [error]), (), (x,))
    del error
    with pytest.raises(Boom):
        engine.wait_for_var(x, timeout=SOON)
    gc.collect()
    assert gone() is x.exception()
    engine.push(lambda: None, (), (), overwrite_vars=(x,))
    engine.wait_for_var(x, timeout=SOON)
    with contextlib.suppress(Boom):
        engine.wait_for_all(timeout=SOON)
    assert eventually(lambda: gone() is None)
    engine.close()


def test_a_used_token_keeps_nothing() -> None:
    """Its frame is that of the exception, which the engine's core has for as long as that lives."""

    def make() -> weakref.ref[Boom]:
        engine = weft.Engine(1, name="mortal")
        x = engine.new_variable()

        def explode(done: weft.Completion) -> None:
            raise Boom(done)

        engine.push_async(explode, (), (x,))
        drain(engine, x)
        error = x.exception()
        assert isinstance(error, Boom)
        return weakref.ref(error)

    gone = make()

    def forgotten() -> bool:
        weft.Engine(1).new_variable()  # an engine that ends has those forgotten that are over
        return gone() is None

    assert eventually(forgotten)


def test_an_exception_of_two_engines_outlives_one() -> None:
    def make() -> tuple[weft.Variable, weakref.ref[weft.Engine]]:
        first, second = weft.Engine(1), weft.Engine(1)
        x, y = first.new_variable(), second.new_variable()

        def explode() -> None:
            raise Boom(first)

        first.push(explode, (), (x,))
        second.push(lambda: first.wait_for_var(x, timeout=SOON), (), (y,))
        drain(second, y)
        assert y.exception() is x.exception()
        return y, weakref.ref(second)

    y, second = make()
    gc.collect()
    with pytest.raises(Boom):
        y.engine.wait_for_var(y)
    del y
    assert eventually(lambda: second() is None)


def test_the_collector_may_come_at_any_time() -> None:
    """It runs at every allocation, and in another thread without end, while ops fail, are told and are forgotten."""
    stop = threading.Event()

    def collect() -> None:
        while not stop.is_set():
            gc.collect()

    def fail() -> list[weakref.ref[weft.Engine]]:
        made = []
        for number in range(60):
            engine = weft.Engine(2)
            variables = [engine.new_variable() for _ in range(5)]

            def explode(engine: weft.Engine = engine, number: int = number) -> None:
                raise Boom(engine, number)

            for _ in range(3):
                for x in variables:
                    engine.push(explode, (), (), overwrite_vars=(x,))
            for x in variables:
                with pytest.raises(Boom) as caught:
                    engine.wait_for_var(x, timeout=SOON)
                assert caught.value.args[1] == number
            made.append(weakref.ref(engine))
        return made

    threshold = gc.get_threshold()
    gc.freeze()  # a collection looks at what this test makes alone, not at what thousands of tests before it have left
    gc.set_threshold(1)
    try:
        collector, *failing = background(collect), background(fail), background(fail)
        made = [engine for each in failing for engine in each.result(2 * SOON)]
    finally:
        gc.set_threshold(*threshold)
        stop.set()
    collector.result(SOON)
    assert eventually(lambda: all(engine() is None for engine in made))


def test_an_engine_that_a_finalizer_has_saved_goes_on() -> None:
    saved: list[tuple[weft.Engine, weft.Variable]] = []

    class Saver:
        def __init__(self, engine: weft.Engine, x: weft.Variable) -> None:
            self.engine, self.x = engine, x

        def __del__(self) -> None:
            if not saved:
                saved.append((self.engine, self.x))

    def make() -> None:
        engine = weft.Engine(1)
        x = engine.new_variable()
        saver = Saver(engine, x)

        def explode() -> None:
            raise Boom("old", saver)

        engine.push(explode, (), (x,))
        drain(engine, x)

    make()
    assert eventually(lambda: bool(saved))
    engine, x = saved[0]
    with pytest.raises((Boom, errors.WeftError), match="old"):  # in words, if the collector has taken the original
        engine.wait_for_var(x, timeout=SOON)

    def explode() -> None:
        raise Boom("new")

    y = engine.new_variable()
    engine.push(explode, (), (y,))
    for _ in range(2):
        gc.collect()
        with pytest.raises(Boom, match="new"):
            engine.wait_for_var(y, timeout=SOON)
    engine.close(cancel=True, timeout=SOON)


@pytest.mark.parametrize("refers", [True, False])
def test_an_exiting_process_tells_of_engines_that_are_gone(script: RunScript, refers: bool) -> None:
    done = script(
        f"""
        import gc, weft

        def main():
            engine = weft.Engine(policy="serial", name="gone")
            x = engine.new_variable()
            def explode():
                seen = engine if {refers} else None
                raise ValueError("on purpose")
            engine.push(explode, (), (x,), name="explode")

        main()
        gc.collect()
        """
    )
    assert done.returncode == 0, done.stderr
    if "on purpose" in done.stderr:  # one that is over is forgotten
        assert "op 'explode'" in done.stderr
    assert ("in explode" in done.stderr) <= (not refers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_the_exceptions_and_lets_engines_go(script: RunScript) -> None:
    done = script(
        """
        import gc, os, weakref, weft

        def explode_with(engine):
            def explode():
                raise ValueError("on purpose", engine)
            return explode

        def main():
            engine = weft.Engine(2)
            x = engine.new_variable()
            engine.push(explode_with(engine), (), (x,))
            engine._drain()
            child = os.fork()
            for _ in range(2):
                gc.collect()
                try:
                    engine.wait_for_var(x)
                except ValueError as error:
                    assert error.args[1] is engine
                    assert error.__traceback__.tb_next.tb_frame.f_code.co_name == "explode"
                    del error
                else:
                    raise AssertionError("it has failed")
            engine.push(explode_with(engine), (), (), overwrite_vars=(x,))
            engine._drain()
            return child, weakref.ref(engine)

        child, engine = main()
        gc.collect()
        assert engine() is None
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr
