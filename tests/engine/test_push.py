"""``push``: every op runs once, in its order, beside what it does not depend on."""

from __future__ import annotations

import collections
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from conftest import SOON, Gate

if TYPE_CHECKING:
    from collections.abc import Callable

    import weft


def test_runs_once_without_arguments(engine: weft.Engine) -> None:
    calls: list[str] = []
    x = engine.new_variable("x")
    engine.push(lambda: calls.append("ran"), (), (x,), name="append")
    engine.wait_for_var(x)
    engine.wait_for_all()
    assert calls == ["ran"]


def test_answers_nothing_and_drops_what_the_callable_returns(engine: weft.Engine) -> None:
    def answer() -> int:
        return 42

    push: Callable[..., object] = engine.push
    assert push(answer) is None
    assert engine.wait_for_all() is None


def test_op_without_variables_runs(engine: weft.Engine) -> None:
    ran = threading.Event()
    engine.push(ran.set)
    assert ran.wait(SOON)


def test_runs_on_a_worker(parallel: weft.Engine) -> None:
    threads: list[int] = []
    for _ in range(100):
        parallel.push(lambda: threads.append(threading.get_ident()))
    parallel.wait_for_all()
    assert len(threads) == 100
    assert threading.get_ident() not in threads


def test_at_most_as_many_run_at_once_as_there_are_workers(make_engine: Callable[..., weft.Engine]) -> None:
    engine = make_engine(3)
    lock = threading.Lock()
    running = most = 0
    together = threading.Barrier(3)

    def body() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(SOON)
        with lock:
            running -= 1

    for _ in range(30):
        engine.push(body)
    engine.wait_for_all()
    assert most == 3


def test_pushes_return_while_workers_are_busy(parallel: weft.Engine, gate: Gate) -> None:
    ran: list[int] = []
    x = parallel.new_variable()
    gate.hold(parallel, mutate=(x,))
    for i in range(1000):
        parallel.push(lambda i=i: ran.append(i), (), (x,))
    assert ran == []
    assert parallel.pending == 1001
    gate.open()
    parallel.wait_for_var(x)
    assert ran == list(range(1000))


def test_ops_on_different_variables_run_at_once(many: weft.Engine) -> None:
    meet = threading.Barrier(2)
    for name in "xy":
        many.push(lambda: meet.wait(SOON), (), (many.new_variable(name),))
    many.wait_for_all()


def test_chain_runs_in_order(engine: weft.Engine) -> None:
    seen: list[int] = []
    x = engine.new_variable()
    for i in range(20_000):
        engine.push(lambda i=i: seen.append(i), (), (x,))
    engine.wait_for_var(x)
    assert seen == list(range(20_000))


def test_hundred_thousand_readers_need_no_recursion(parallel: weft.Engine, gate: Gate) -> None:
    x, seen = parallel.new_variable(), collections.deque[None]()
    body = lambda: seen.append(None)  # noqa: E731 - one callable shared by all
    gate.hold(parallel, mutate=(x,))
    for _ in range(100_000):
        parallel.push(body, (x,))
    gate.open()
    parallel.wait_to_write(x)
    assert len(seen) == 100_000


@pytest.mark.parametrize("sequence", [list, tuple, collections.deque, collections.UserList])
def test_takes_any_sequence_of_variables(
    engine: weft.Engine, sequence: Callable[[list[weft.Variable]], list[weft.Variable]]
) -> None:
    x, y, z = (engine.new_variable(name) for name in "xyz")
    engine.push(lambda: None, sequence([x]), sequence([y]), overwrite_vars=sequence([z]))
    engine.wait_for_all()
    assert (x.version, y.version, z.version) == (0, 1, 1)


def test_hundred_variables_in_one_push(engine: weft.Engine) -> None:
    variables = [engine.new_variable(str(i)) for i in range(100)]
    for _ in range(20):
        engine.push(lambda: None, variables[:50], variables[50:])
        engine.push(lambda: None, variables[50:], variables[:50])
    engine.wait_for_all()
    assert {v.completed_version for v in variables} == {20}


def test_an_op_pushes_further_ops(engine: weft.Engine) -> None:
    seen: list[str] = []
    x, y = engine.new_variable(), engine.new_variable()

    def outer() -> None:
        seen.append("outer")
        engine.push(lambda: seen.append("inner"), (x,), (y,))

    engine.push(outer, (), (x,))
    engine.wait_for_var(x)
    engine.wait_for_var(y)
    assert seen == ["outer", "inner"]


def test_an_op_pushes_onto_its_own_variable(engine: weft.Engine) -> None:
    """The inner op waits for the outer one, under every policy: it must not see a half-done mutation."""
    seen: list[str] = []
    x = engine.new_variable()

    def outer() -> None:
        engine.push(lambda: seen.append("inner"), (), (x,))
        seen.append("outer")

    engine.push(outer, (), (x,))
    engine.wait_for_var(x)
    engine.wait_for_all()
    assert seen == ["outer", "inner"]
    assert x.completed_version == 2


def test_nested_pushes_go_deep(engine: weft.Engine) -> None:
    """Each op pushes the next one, ten thousand deep: serial too must not recurse."""
    x, done = engine.new_variable(), threading.Event()
    left = 10_000

    def step() -> None:
        nonlocal left
        left -= 1
        if left:
            engine.push(step, (), (x,))
        else:
            done.set()

    engine.push(step, (), (x,))
    assert done.wait(SOON)
    assert left == 0


def test_many_threads_push(engine: weft.Engine) -> None:
    counts = [0] * 4
    variables = [engine.new_variable() for _ in counts]

    def add(i: int) -> None:
        counts[i] += 1

    def pusher(i: int) -> None:
        for _ in range(5000):
            engine.push(lambda: add(i), (), (variables[i],))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(pusher, range(4)))
    engine.wait_for_all()
    assert counts == [5000] * 4


def test_lets_go_of_a_callable_that_ran(engine: weft.Engine) -> None:
    class Ephemeral:  # a class of its own: functions are kept alive by their frames
        def __call__(self) -> None:
            pass

    gone = threading.Event()
    body = Ephemeral()
    weakref.finalize(body, gone.set)
    engine.push(body)
    engine.wait_for_all()
    del body
    assert gone.wait(SOON)


def test_a_callable_may_push_when_it_is_freed(engine: weft.Engine) -> None:
    """Destructors run wherever the last reference goes, and may call the engine again."""
    x, freed = engine.new_variable(), collections.deque[None]()

    class Restless:
        def __call__(self) -> None:
            pass

        def __del__(self) -> None:
            engine.push(lambda: freed.append(None), (), (x,))
            engine.stats()
            x.exception()

    for _ in range(2000):
        engine.push(Restless(), (x,))
    while len(freed) < 2000:
        engine.wait_for_all(timeout=SOON)
    assert len(freed) == 2000


def test_stats_count_what_was_pushed(engine: weft.Engine) -> None:
    x = engine.new_variable()
    for _ in range(10):
        engine.push(lambda: None, (), (x,))
    engine.wait_for_all()
    stats = engine.stats()
    assert stats["pushed"] == stats["completed"] == 10
    assert stats["pending"] == stats["running"] == stats["failed"] == stats["skipped"] == stats["pending_bytes"] == 0
    assert stats["variables"] == 1
    assert (stats["policy"], stats["workers"]) == (engine.policy, engine.workers)
    assert engine.pending == 0
