"""``weft.Executor``: concurrent.futures over an engine."""

from __future__ import annotations

import asyncio
import concurrent.futures
import concurrent.futures.thread
import functools
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from conftest import MOMENT, SOON, Gate, background, still_waits
from weft.errors import ArgumentTypeError, ArgumentValueError, WaitTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine, RunScript


def test_submit(engine: weft.Engine) -> None:
    with weft.Executor(engine) as executor:
        assert isinstance(executor, concurrent.futures.Executor)
        futures = [executor.submit(pow, base, exp=3) for base in range(100)]
        assert [future.result(SOON) for future in futures] == [base**3 for base in range(100)]
    assert not engine.closed, "the engine belongs to whoever made it"
    engine.push(lambda: None)
    engine.wait_for_all()


def test_map_keeps_the_order(engine: weft.Engine) -> None:
    with weft.Executor(engine) as executor:
        assert list(executor.map(pow, range(50), [2] * 50)) == [i * i for i in range(50)]
        with pytest.raises(ZeroDivisionError):
            list(executor.map(lambda x: 1 / x, [1, 0, 2]))


def test_an_exception_belongs_to_its_future_alone(engine: weft.Engine) -> None:
    error = KeyError("mine")

    def body() -> None:
        raise error

    with weft.Executor(engine) as executor:
        future = executor.submit(body)
        assert future.exception(SOON) is error
        assert executor.submit(int, "7").result(SOON) == 7
    engine.wait_for_all()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_base_exceptions_too(engine: weft.Engine, error: BaseException) -> None:
    def body() -> None:
        raise error

    with weft.Executor(engine) as executor:
        assert executor.submit(body).exception(SOON) is error
        assert executor.submit(int).result(SOON) == 0


def test_runs_at_once(many: weft.Engine) -> None:
    meet = threading.Barrier(2)
    with weft.Executor(many) as executor:
        futures = [executor.submit(meet.wait, SOON) for _ in range(2)]
        assert sorted(future.result(SOON) for future in futures) == [0, 1]


def test_of_its_own_workers() -> None:
    with weft.Executor(workers=3) as executor:
        meet = threading.Barrier(3)
        assert sorted(executor.map(lambda _: meet.wait(SOON), range(3))) == [0, 1, 2]


@pytest.mark.usefixtures("default_engine")
def test_alone() -> None:
    with weft.Executor() as executor:
        assert executor.submit(sum, [1, 2]).result(SOON) == 3


def test_callbacks_and_as_completed(parallel: weft.Engine) -> None:
    called = threading.Event()
    with weft.Executor(parallel) as executor:
        future = executor.submit(int)
        future.add_done_callback(lambda _: called.set())
        assert called.wait(SOON)
        futures = {executor.submit(int, i) for i in range(20)}
        assert {future.result() for future in concurrent.futures.as_completed(futures, SOON)} == set(range(20))


def test_a_future_cancelled_before_it_started_never_runs(single: weft.Engine, gate: Gate) -> None:
    ran: list[int] = []
    with weft.Executor(single) as executor:
        running = executor.submit(gate)
        assert gate.entered.wait(SOON)
        future = executor.submit(ran.append, 1)
        assert future.cancel()
        assert not running.cancel()
        gate.open()
    assert future.cancelled()
    assert ran == []
    single.wait_for_all()


def test_shutdown_waits(parallel: weft.Engine, gate: Gate) -> None:
    executor = weft.Executor(parallel)
    future = executor.submit(gate)
    closer = background(executor.shutdown)
    assert still_waits(closer)
    gate.open()
    closer.result(SOON)
    assert future.done()
    with pytest.raises(RuntimeError):
        executor.submit(int)
    executor.shutdown()


def test_shutdown_may_leave_at_once(parallel: weft.Engine, gate: Gate) -> None:
    executor = weft.Executor(parallel)
    future = executor.submit(gate)
    executor.shutdown(wait=False)
    with pytest.raises(concurrent.futures.TimeoutError):
        future.result(MOMENT)
    gate.open()
    future.result(SOON)


def test_shutdown_may_cancel(single: weft.Engine, gate: Gate) -> None:
    ran: list[int] = []
    executor = weft.Executor(single)
    executor.submit(gate)
    assert gate.entered.wait(SOON)
    futures = [executor.submit(ran.append, i) for i in range(10)]
    executor.shutdown(wait=False, cancel_futures=True)
    gate.open()
    executor.shutdown()
    assert all(future.cancelled() for future in futures)
    assert ran == []


def test_waits_for_its_own_ops_only(many: weft.Engine, gates: Callable[[], Gate]) -> None:
    gate = gates()
    gate.hold(many)
    with weft.Executor(many) as executor:
        future = executor.submit(int)
    assert future.done()
    gate.open()


def test_submitting_from_inside(engine: weft.Engine) -> None:
    with weft.Executor(engine) as executor:
        outer = executor.submit(lambda: executor.submit(int, "5"))
        assert outer.result(SOON).result(SOON) == 5


def test_in_asyncio(parallel: weft.Engine) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        with weft.Executor(parallel) as executor:
            return await asyncio.gather(*(loop.run_in_executor(executor, pow, i, 2) for i in range(20)))

    assert asyncio.run(main()) == [i * i for i in range(20)]


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError):
        weft.Executor("engine")
    with pytest.raises(ValueError, match="workers"):
        weft.Executor(workers=0)
    with weft.Executor(workers=1) as executor, pytest.raises(TypeError):
        executor.submit(5)


def test_calls_go_by_the_names_of_their_functions(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    with weft.trace(engine=engine) as trace, weft.Executor(engine) as executor:
        assert executor.submit(len, "ab").result(SOON) == 2
        assert executor.submit(functools.partial(len, "abc")).result(SOON) == 3
    assert {"len", "partial"} <= set(trace.names)
    assert not any("_Call" in name for name in trace.names)


@pytest.mark.parametrize(
    "make", [lambda: weft.Executor(2), lambda: weft.Executor(max_workers=2), lambda: weft.Executor(workers=2)]
)
def test_a_number_of_workers_as_for_a_pool_of_threads(make: Callable[[], weft.Executor]) -> None:
    with make() as executor:
        assert executor.submit(pow, 2, 5).result(SOON) == 32
        assert executor._engine.workers == 2


@pytest.mark.parametrize("count", [0, -1])
def test_a_wrong_number_is_refused_in_the_words_of_a_pool_of_threads(count: int) -> None:
    with pytest.raises(ValueError, match="max_workers must be greater than 0"):
        weft.Executor(max_workers=count)


@pytest.mark.parametrize("fresh", [False, True])
def test_nothing_is_submitted_when_the_process_has_run_what_was_pushed(script: RunScript, fresh: bool) -> None:
    done = script(
        f"""
        import atexit

        @atexit.register  # before weft's own, so it runs after that
        def submit():
            late = weft.Executor(1) if {fresh} else executor
            late.submit(id, None)

        import weft

        executor = weft.Executor(max_workers=2)
        executor.submit(id, 42).result()
        """
    )
    assert "RuntimeError: cannot schedule new futures after interpreter shutdown" in done.stderr


def test_one_number_of_workers() -> None:
    for wrong in ({"engine": 2, "workers": 2}, {"workers": 2, "max_workers": 2}, {"max_workers": 0}):
        with pytest.raises(weft.errors.ArgumentValueError):
            weft.Executor(**wrong)  # type: ignore[arg-type]


def test_threads_begin_with_an_initializer_and_a_name() -> None:
    begun: list[tuple[str, int]] = []
    with weft.Executor(
        2,
        thread_name_prefix="files",
        initializer=lambda n: begun.append((threading.current_thread().name, n)),
        initargs=(7,),
    ) as executor:
        barrier = threading.Barrier(2)

        def name() -> str:
            barrier.wait(SOON)
            return threading.current_thread().name

        for _ in range(3):
            names = [future.result(SOON) for future in [executor.submit(name) for _ in range(2)]]
            assert sorted(names) == ["files_0", "files_1"]
    assert sorted(begun) == [("files_0", 7), ("files_1", 7)]


def test_an_executor_whose_initializer_fails_is_broken() -> None:
    error, submitted = OSError("no licence"), threading.Event()

    def begin() -> None:
        submitted.wait(SOON)
        raise error

    with weft.Executor(1, initializer=begin) as executor:
        ran: list[int] = []
        futures = [executor.submit(ran.append, 1) for _ in range(3)]
        submitted.set()
        for future in futures:
            with pytest.raises(concurrent.futures.thread.BrokenThreadPool, match="initializer failed") as caught:
                future.result(SOON)
            assert caught.value.__cause__ is error
        with pytest.raises(concurrent.futures.thread.BrokenThreadPool, match="not usable anymore"):
            executor.submit(print)
        assert ran == []


def test_what_belongs_to_an_engine_of_its_own(engine: weft.Engine) -> None:
    with pytest.raises(ArgumentValueError, match="belong to an engine that the executor makes"):
        weft.Executor(engine, thread_name_prefix="x")
    with pytest.raises(ArgumentTypeError, match="initializer is a callable, not int"):
        weft.Executor(1, initializer=3)  # type: ignore[arg-type]
    begun: list[int] = []
    with weft.Executor(engine, initializer=begun.append, initargs=(1,)) as executor:
        list(executor.map(abs, range(100)))
    assert 1 <= len(begun) <= 100


def test_a_timeout_names_what_runs(default_engine: weft.Engine, gate: Gate) -> None:
    x = np.ones(3)

    @weft.task
    def fill(x: weft.Mutate[np.ndarray]) -> None:
        gate()
        x += 1

    fill(x)
    assert gate.entered.wait(SOON)
    said = r"^'ndarray \(3,\) float64' was not finished after .*: op 'fill' \(pushed at .*test_executor.py:\d+\) runs$"
    with pytest.raises(WaitTimeoutError, match=said):
        weft.wait(x, timeout=0.01)
    gate.open()
    default_engine.wait_for_all()
