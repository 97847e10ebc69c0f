"""``await variable``: waiting without a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Literal

import pytest

import weft
from conftest import MOMENT, SOON, Gate

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine


def test_await_sees_the_value(engine: weft.Engine) -> None:
    x, cell = engine.new_variable(), list[int]()

    async def main() -> None:
        for i in range(100):
            engine.push(lambda i=i: cell.append(i), (), (x,))
            await asyncio.wait_for(wait_for(x), SOON)
            assert cell[-1] == i

    asyncio.run(main())


async def wait_for(x: weft.Variable | weft.NDArray) -> None:
    """As a coroutine, which asyncio's own functions take."""
    await x


def test_a_finished_variable_needs_no_loop_turn(engine: weft.Engine) -> None:
    async def main() -> None:
        x = engine.new_variable()
        await x
        engine.push(lambda: None, (), (x,))
        engine.wait_for_var(x)
        await x

    asyncio.run(main())


def test_the_loop_runs_on_meanwhile(parallel: weft.Engine, gate: Gate) -> None:
    async def main() -> list[str]:
        x, order = parallel.new_variable(), list[str]()
        gate.hold(parallel, mutate=(x,))

        async def waiter() -> None:
            await x
            order.append("variable")

        task = asyncio.create_task(waiter())
        for _ in range(10):
            await asyncio.sleep(0)
        order.append("loop")
        gate.open()
        await asyncio.wait_for(task, SOON)
        return order

    assert asyncio.run(main()) == ["loop", "variable"]


@pytest.mark.parametrize("on_limit", ["raise", "block"])
@pytest.mark.parametrize("what", ["variable", "array"])
def test_a_wait_takes_no_room(
    make_engine: MakeEngine, gate: Gate, on_limit: Literal["raise", "block"], what: str
) -> None:
    engine = make_engine(workers=2, max_pending_ops=2, on_limit=on_limit)
    x = weft.asarray([1.0], engine=engine) if what == "array" else engine.new_variable()

    async def main() -> None:
        gate.hold(engine, mutate=(x,))
        engine.push(lambda: None, (), (x,))
        task = asyncio.create_task(wait_for(x))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
        gate.open()  # by whom the loop still lets run
        await asyncio.wait_for(task, SOON)

    asyncio.run(main())


@pytest.mark.parametrize("what", ["variable", "array"])
def test_an_op_awaits_though_there_is_one_worker(make_engine: MakeEngine, what: str) -> None:
    engine, found = make_engine(workers=1), list[int]()
    results = [weft.asarray([1.0], engine=engine) if what == "array" else engine.new_variable() for _ in range(300)]

    async def main() -> None:
        for x in results:
            engine.push(lambda: found.append(len(found)), (), (x,))
        await asyncio.gather(*map(wait_for, results))

    engine.push(lambda: asyncio.run(main()))
    engine.wait_for_all(timeout=SOON)
    assert found == list(range(300))


def test_an_op_that_awaits_its_own_variable_fails(make_engine: MakeEngine) -> None:
    engine = make_engine(workers=1)
    x = engine.new_variable("own")
    engine.push(lambda: asyncio.run(wait_for(x)), (), (x,))
    with pytest.raises(weft.errors.DeadlockError, match="own"):
        engine.wait_for_var(x, timeout=SOON)


def test_raises_the_failure(engine: weft.Engine) -> None:
    x, error = engine.new_variable(), KeyError("mine")

    def fail() -> None:
        raise error

    async def main() -> None:
        engine.push(fail, (), (x,))
        for _ in range(2):
            with pytest.raises(KeyError) as caught:
                await x
            assert caught.value is error

    asyncio.run(main())


def test_gathers_many(parallel: weft.Engine) -> None:
    async def main() -> None:
        variables = [parallel.new_variable() for _ in range(500)]
        ran: list[int] = []
        for i, x in enumerate(variables):
            parallel.push(lambda i=i: ran.append(i), (), (x,))
        await asyncio.wait_for(asyncio.gather(*map(wait_for, variables)), SOON)
        assert sorted(ran) == list(range(500))

    asyncio.run(main())


def test_two_await_one_variable(parallel: weft.Engine, gate: Gate) -> None:
    async def main() -> None:
        x = parallel.new_variable()
        gate.hold(parallel, mutate=(x,))
        tasks = [asyncio.create_task(wait_for(x)) for _ in range(5)]
        await asyncio.sleep(0)
        gate.open()
        await asyncio.wait_for(asyncio.gather(*tasks), SOON)

    asyncio.run(main())


def test_cancelling_the_wait_cancels_no_op(parallel: weft.Engine, gate: Gate) -> None:
    async def main() -> None:
        x = parallel.new_variable()
        gate.hold(parallel, mutate=(x,))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait_for(x), MOMENT)
        assert not x.is_ready()
        gate.open()
        await asyncio.wait_for(wait_for(x), SOON)
        assert x.is_ready()

    asyncio.run(main())


def test_a_loop_that_ended_before_the_op_harms_nothing(parallel: weft.Engine, gates: Callable[[], Gate]) -> None:
    gate, x = gates(), parallel.new_variable()
    gate.hold(parallel, mutate=(x,))

    async def main() -> None:
        task = asyncio.create_task(wait_for(x))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(main())
    gate.open()
    parallel.wait_for_all(timeout=SOON)
    parallel.push(lambda: None, (), (x,))
    parallel.wait_for_var(x, timeout=SOON)


def test_loops_in_several_threads(parallel: weft.Engine, gate: Gate) -> None:
    x, done = parallel.new_variable(), [threading.Event() for _ in range(3)]
    gate.hold(parallel, mutate=(x,))
    for event in done:
        threading.Thread(target=lambda event=event: (asyncio.run(wait_for(x)), event.set()), daemon=True).start()
    gate.open()
    assert all(event.wait(SOON) for event in done)


def test_async_ops_and_awaits_meet(parallel: weft.Engine) -> None:
    """An op whose work is a coroutine on this very loop."""

    async def main() -> list[str]:
        loop, x, order = asyncio.get_running_loop(), parallel.new_variable(), list[str]()

        async def work(done: weft.Completion) -> None:
            order.append("work")
            done()

        def start(done: weft.Completion) -> None:
            asyncio.run_coroutine_threadsafe(work(done), loop)

        parallel.push_async(start, (), (x,))
        parallel.push(lambda: order.append("after"), (), (x,))
        await asyncio.wait_for(wait_for(x), SOON)
        return order

    assert asyncio.run(main()) == ["work", "after"]
