"""Priorities: the order of ready ops, and why low ones still run."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING

import pytest

import weft
from conftest import SOON, Gate, MakeEngine

if TYPE_CHECKING:
    from collections.abc import Callable


def test_ready_ops_run_highest_first(single: weft.Engine, gate: Gate) -> None:
    order: list[int] = []
    gate.hold(single)
    for priority in (0, 7, -3, 100, 1, -100, 8):
        single.push(lambda p=priority: order.append(p), (), (single.new_variable(),), priority=priority)
    gate.open()
    single.wait_for_all()
    assert order == [100, 8, 7, 1, 0, -3, -100]


@pytest.mark.parametrize("lane", ["compute", "copy"])
def test_on_every_lane(make_engine: MakeEngine, gate: Gate, lane: str) -> None:
    engine, order = make_engine(1, "per_device"), list[int]()
    device = weft.cpu(0).copy if lane == "copy" else weft.cpu(0)
    gate.hold(engine, device=device)
    for priority in (0, 3, 1, 2):
        engine.push(lambda p=priority: order.append(p), priority=priority, device=device)
    gate.open()
    engine.wait_for_all()
    assert order == [3, 2, 1, 0]


def test_priority_never_breaks_the_order_of_a_variable(engine: weft.Engine) -> None:
    x, order = engine.new_variable(), list[int]()
    for i in range(200):
        engine.push(lambda i=i: order.append(i), (), (x,), priority=i)
    engine.wait_for_var(x)
    assert order == list(range(200))


def test_ops_that_become_ready_later_are_ordered_too(single: weft.Engine, gates: Callable[[], Gate]) -> None:
    x = single.new_variable()
    for _ in range(20):
        gate, order = gates(), list[str]()
        gate.hold(single, mutate=(x,))
        single.push(lambda order=order: order.append("low"), (x,), priority=-1)
        single.push(lambda order=order: order.append("high"), (x,), priority=1)
        single.push(lambda order=order: order.append("free"), priority=0)
        gate.open()
        single.wait_for_all()
        assert order == ["high", "free", "low"]


def test_a_low_op_is_not_starved(single: weft.Engine) -> None:
    """High ops that each push the next one would keep the only worker for ever."""
    ran, turns, limit = threading.Event(), count(), 200_000

    def high() -> None:
        if not ran.is_set() and next(turns) < limit:
            single.push(high, priority=10)

    for _ in range(3):
        single.push(high, priority=10)
    single.push(ran.set, priority=-10)
    assert ran.wait(SOON)
    assert next(turns) < limit, "it ran before the high ops gave up"


def test_a_low_op_that_blocks_a_high_one_is_lifted(single: weft.Engine, gate: Gate) -> None:
    x, order = single.new_variable(), list[str]()
    gate.hold(single)
    single.push(lambda: order.append("low"), (), (x,), priority=-5)
    for _ in range(5):
        single.push(lambda: order.append("middle"), priority=0)
    single.push(lambda: order.append("high"), (x,), priority=5)
    gate.open()
    single.wait_for_all()
    assert order == ["low", "high", *["middle"] * 5]


def test_lifting_reaches_through_a_chain(single: weft.Engine, gate: Gate) -> None:
    x, y, order = single.new_variable(), single.new_variable(), list[str]()
    gate.hold(single)
    single.push(lambda: order.append("first"), (), (x,), priority=-5)
    single.push(lambda: order.append("second"), (x,), (y,), priority=-5)
    single.push(lambda: order.append("middle"), priority=0)
    single.push(lambda: order.append("high"), (y,), priority=5)
    gate.open()
    single.wait_for_all()
    assert order == ["first", "second", "high", "middle"]


def test_an_operator_carries_its_priority(single: weft.Engine, gate: Gate) -> None:
    order: list[str] = []
    operator = single.new_operator(lambda: order.append("high"), priority=3)
    gate.hold(single)
    single.push(lambda: order.append("low"))
    operator.push()
    gate.open()
    single.wait_for_all()
    assert order == ["high", "low"]
