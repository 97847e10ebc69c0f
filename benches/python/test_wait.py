"""What a wait costs: on a finished variable, and after one push."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    import weft


def no_op() -> None:
    """Do nothing."""


def test_wait_for_a_finished_variable(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """No worker is needed."""
    engine.push(no_op, (), (variables[0],))
    engine.wait_for_var(variables[0])
    benchmark(engine.wait_for_var, variables[0])
    assert variables[0].is_ready()


def test_wait_for_all_of_nothing(benchmark: BenchmarkFixture, engine: weft.Engine) -> None:
    """An idle engine answers at once."""
    benchmark(engine.wait_for_all)
    assert engine.pending == 0


def test_push_and_wait_of_a_callable(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """A round trip through a worker that needs the GIL."""

    def run() -> None:
        engine.push(no_op, (), (variables[0],))
        engine.wait_for_var(variables[0])

    benchmark(run)
    assert variables[0].completed_version == variables[0].version


def test_push_and_wait_of_a_native_op(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable], native_no_op: int
) -> None:
    """The waiting thread may run the op itself."""

    def run() -> None:
        engine.push_native(native_no_op, 0, (), (variables[0],))
        engine.wait_for_var(variables[0])

    benchmark(run)
    assert variables[0].completed_version == variables[0].version


def test_wait_to_write(benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]) -> None:
    """Waits for the reads too."""

    def run() -> None:
        engine.push(no_op, (variables[0],))
        engine.wait_to_write(variables[0])

    benchmark(run)
    assert variables[0].version == 0


def test_wait_inside_an_op(benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]) -> None:
    """A worker that waits is replaced by a spare."""

    def wait() -> None:
        engine.push(no_op, (), (variables[0],))
        engine.wait_for_var(variables[0])

    def run() -> None:
        engine.push(wait, (), (variables[1],))
        engine.wait_for_var(variables[1])

    benchmark(run)
    assert variables[0].version == variables[1].version


def test_await_in_asyncio(benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]) -> None:
    """A round trip through the event loop."""

    async def awaited() -> None:
        engine.push(no_op, (), (variables[0],))
        await variables[0]

    with asyncio.Runner() as runner:
        benchmark(lambda: runner.run(awaited()))
    assert variables[0].completed_version == variables[0].version
