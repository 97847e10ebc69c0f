"""A wait that could never end raises, and says which ops wait for each other."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from conftest import SOON
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    import weft


@pytest.mark.parametrize("wait", ["wait_for_var", "wait_to_write"])
@pytest.mark.parametrize("kind", ["mutate_vars", "overwrite_vars"])
def test_waiting_for_ones_own_variable(engine: weft.Engine, wait: str, kind: str) -> None:
    x = engine.new_variable("weights")
    engine.push(lambda: getattr(engine, wait)(x), **{kind: (x,)}, name="update")
    with pytest.raises(errors.DeadlockError, match="update") as caught:
        engine.wait_for_var(x, timeout=SOON)
    assert "weights" in str(caught.value)


def test_waiting_to_write_what_one_reads(engine: weft.Engine) -> None:
    x, y = engine.new_variable("weights"), engine.new_variable()
    engine.push(lambda: engine.wait_to_write(x), (x,), (y,), name="look")
    with pytest.raises(errors.DeadlockError, match="look"):
        engine.wait_for_var(y, timeout=SOON)


def test_waiting_for_all_inside_an_op(engine: weft.Engine) -> None:
    engine.push(engine.wait_for_all, name="all")
    with pytest.raises(errors.DeadlockError, match="all"):
        engine.wait_for_all(timeout=SOON)


def test_closing_inside_an_op(engine: weft.Engine) -> None:
    engine.push(engine.close, name="closer")
    with pytest.raises(errors.DeadlockError, match="closer"):
        engine.wait_for_all(timeout=SOON)
    assert not engine.closed


def test_the_op_may_catch_it_and_go_on(engine: weft.Engine) -> None:
    x, seen = engine.new_variable(), list[str]()

    def body() -> None:
        try:
            engine.wait_for_var(x)
        except errors.DeadlockError:
            seen.append("caught")

    engine.push(body, (), (x,))
    engine.wait_for_var(x, timeout=SOON)
    assert seen == ["caught"]


def test_a_cycle_of_two_ops(parallel: weft.Engine) -> None:
    x, y = parallel.new_variable("x"), parallel.new_variable("y")
    started, caught, ended = threading.Event(), list[errors.DeadlockError](), list[str]()

    def body(name: str, other: weft.Variable, ready: Callable[[], object]) -> None:
        ready()
        try:
            parallel.wait_for_var(other)
        except errors.DeadlockError as error:
            caught.append(error)
        ended.append(name)

    # ping starts its wait before or after pong runs: with one worker, the wait itself lets pong start.
    parallel.push(lambda: body("ping", y, lambda: started.wait(SOON)), (), (x,), name="ping")
    parallel.push(lambda: body("pong", x, lambda: None), (), (y,), name="pong")
    started.set()
    parallel.wait_for_var(x, timeout=SOON)
    parallel.wait_for_var(y, timeout=SOON)
    assert sorted(ended) == ["ping", "pong"]
    assert len(caught) == 1, "breaking the cycle in one place is enough"
    assert "ping" in str(caught[0])
    assert "pong" in str(caught[0])


def test_a_cycle_through_a_queue(parallel: weft.Engine) -> None:
    """The op waits for a variable whose writer, not yet started, must read what the op mutates."""
    x, y, pushed = parallel.new_variable("x"), parallel.new_variable("y"), threading.Event()

    def holder() -> None:
        pushed.wait(SOON)
        parallel.wait_for_var(y)

    parallel.push(holder, (), (x,), name="holder")
    parallel.push(lambda: None, (x,), (y,), name="queued")
    pushed.set()
    with pytest.raises(errors.DeadlockError, match="holder"):
        parallel.wait_for_var(x, timeout=SOON)
    with pytest.raises(errors.DeadlockError):
        parallel.wait_for_var(y, timeout=SOON)


def test_a_cycle_of_three_ops(parallel: weft.Engine) -> None:
    variables = [parallel.new_variable(name) for name in "abc"]
    caught, pushed = list[errors.DeadlockError](), threading.Event()

    def body(i: int) -> None:
        pushed.wait(SOON)
        try:
            parallel.wait_for_var(variables[(i + 1) % 3])
        except errors.DeadlockError as error:
            caught.append(error)

    for i, variable in enumerate(variables):
        parallel.push(lambda i=i: body(i), (), (variable,), name=f"op-{variable.name}")
    pushed.set()
    for variable in variables:
        parallel.wait_for_var(variable, timeout=SOON)
    assert len(caught) == 1
    assert all(f"op-{name}" in str(caught[0]) for name in "abc")


def test_no_false_alarm(parallel: weft.Engine) -> None:
    """Ops that wait for earlier ones that wait themselves, in one direction, all end."""
    variables, seen = [parallel.new_variable(str(i)) for i in range(30)], list[int]()
    pushed = threading.Event()

    def body(i: int) -> None:
        pushed.wait(SOON)
        if i:
            parallel.wait_for_var(variables[i - 1])
        seen.append(i)

    for i in reversed(range(30)):
        parallel.push(lambda i=i: body(i), (), (variables[i],), name=str(i))
    pushed.set()
    for variable in variables:
        parallel.wait_for_var(variable, timeout=SOON)
    assert seen == list(range(30))
