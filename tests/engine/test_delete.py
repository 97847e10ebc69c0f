"""``delete_variable``: the last access, and the finalizer that goes with it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from conftest import MOMENT, SOON, Gate, background, still_waits
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    import weft


def test_finalizer_runs_once_after_everything_pushed_before(engine: weft.Engine) -> None:
    x, order = engine.new_variable(), list[str]()
    engine.push(lambda: order.append("mutate"), (), (x,))
    for _ in range(10):
        engine.push(lambda: order.append("read"), (x,))
    engine.delete_variable(x, lambda: order.append("finalizer"))
    engine.wait_for_all()
    assert order == ["mutate"] + ["read"] * 10 + ["finalizer"]


def test_waits_for_readers_and_writers(many: weft.Engine, gates: Callable[[], Gate]) -> None:
    x, order = many.new_variable(), list[str]()
    writer, reader = gates(), gates()
    writer.hold(many, mutate=(x,))
    many.push(reader, (x,))
    many.delete_variable(x, lambda: order.append("finalizer"))
    writer.open()
    assert reader.entered.wait(SOON)
    assert order == []
    reader.open()
    many.wait_for_all()
    assert order == ["finalizer"]


def test_returns_at_once(parallel: weft.Engine, gate: Gate) -> None:
    x = parallel.new_variable()
    gate.hold(parallel, mutate=(x,))
    parallel.delete_variable(x)
    with pytest.raises(errors.WaitTimeoutError):
        parallel.wait_for_all(timeout=MOMENT)


def test_without_finalizer(engine: weft.Engine) -> None:
    x = engine.new_variable()
    before = engine.stats()["variables"]
    engine.delete_variable(x)
    engine.wait_for_all()
    del x
    assert engine.stats()["variables"] == before - 1


def test_a_deleted_handle_raises(engine: weft.Engine) -> None:
    x, ran = engine.new_variable("gone"), list[str]()
    engine.delete_variable(x)
    for misuse in (
        lambda: engine.push(lambda: ran.append("r"), (x,)),
        lambda: engine.push(lambda: ran.append("m"), (), (x,)),
        lambda: engine.push(lambda: ran.append("o"), overwrite_vars=(x,)),
        lambda: engine.wait_for_var(x),
        lambda: engine.wait_to_write(x),
        lambda: engine.delete_variable(x),
    ):
        with pytest.raises(errors.VariableDeletedError, match="gone"):
            misuse()
    engine.wait_for_all()
    assert ran == []


def test_finalizer_runs_after_a_failure_too(engine: weft.Engine) -> None:
    """What the variable stood for must be given back, whatever happened to it."""
    x, order = engine.new_variable(), list[str]()
    engine.push(lambda: 1 / 0, (), (x,))
    engine.delete_variable(x, lambda: order.append("finalizer"))
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_all()
    assert order == ["finalizer"]


def test_a_finalizer_that_raises_is_reported_and_harms_nothing(engine: weft.Engine) -> None:
    x, y, error, order = engine.new_variable(), engine.new_variable(), ValueError("finalizer"), list[str]()

    def finalizer() -> None:
        order.append("finalizer")
        raise error

    engine.delete_variable(x, finalizer)
    engine.push(lambda: order.append("on"), (), (y,))
    with pytest.raises(ValueError, match="finalizer") as caught:
        engine.wait_for_all()
    assert caught.value is error
    engine.wait_for_var(y)
    assert sorted(order) == ["finalizer", "on"]


def test_a_wait_that_began_before_ends(parallel: weft.Engine, gate: Gate) -> None:
    x = parallel.new_variable()
    gate.hold(parallel, mutate=(x,))
    waiter = background(lambda: parallel.wait_for_var(x))
    assert still_waits(waiter)
    parallel.delete_variable(x)
    gate.open()
    waiter.result(SOON)


def test_dropped_handles_return_their_variables(engine: weft.Engine) -> None:
    before, ran = engine.stats()["variables"], list[int]()
    for i in range(1000):
        engine.push(lambda i=i: ran.append(i), (), (engine.new_variable(),))
    engine.wait_for_all()
    gc.collect()
    assert sorted(ran) == list(range(1000))
    assert engine.stats()["variables"] - before < 100
