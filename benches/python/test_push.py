"""What 1,000 pushes and their run cost, by shape of the accesses and kind of payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import weft

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

PUSHES = 1_000


def no_op() -> None:
    """Do nothing."""


def test_callables_in_a_chain(benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]) -> None:
    """Every op mutates one variable."""
    mutates = (variables[0],)

    def run() -> None:
        for _ in range(PUSHES):
            engine.push(no_op, (), mutates)
        engine.wait_for_all()

    before = variables[0].version
    benchmark(run)
    assert variables[0].completed_version == variables[0].version
    assert (variables[0].version - before) % PUSHES == 0


def test_callables_on_distinct_variables(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """Ops go round sixteen variables."""
    mutates = [(variable,) for variable in variables] * (PUSHES // len(variables) + 1)

    def run() -> None:
        for own in mutates[:PUSHES]:
            engine.push(no_op, (), own)
        engine.wait_for_all()

    benchmark(run)
    assert all(variable.is_ready() for variable in variables)


def test_callables_with_three_accesses(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """Two reads and a mutation per op."""
    reads, mutates = (variables[0], variables[1]), (variables[2],)

    def run() -> None:
        for _ in range(PUSHES):
            engine.push(no_op, reads, mutates)
        engine.wait_for_all()

    benchmark(run)
    assert variables[0].version == 0


def test_native_ops_in_a_chain(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable], native_no_op: int
) -> None:
    """Native ops never touch the GIL."""
    mutates = (variables[0],)

    def run() -> None:
        for _ in range(PUSHES):
            engine.push_native(native_no_op, 0, (), mutates)
        engine.wait_for_all()

    benchmark(run)
    assert variables[0].completed_version == variables[0].version


def test_operator_pushed_again(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """An operator's accesses were checked once."""
    operator = engine.new_operator(no_op, (variables[0],), (variables[1],))

    def run() -> None:
        for _ in range(PUSHES):
            operator.push()
        engine.wait_for_all()

    benchmark(run)
    assert variables[1].completed_version == variables[1].version


def test_callables_with_priorities(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """Ready ops go through a queue in order of priority."""
    mutates = [(variable,) for variable in variables]

    def run() -> None:
        for i in range(PUSHES):
            engine.push(no_op, (), mutates[i % len(mutates)], priority=i % 4)
        engine.wait_for_all()

    benchmark(run)
    assert all(variable.is_ready() for variable in variables)


def test_async_ops_completed_at_once(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """Each is handed a completion token and calls it."""
    mutates = (variables[0],)

    def complete(token: weft.Completion) -> None:
        token()

    def run() -> None:
        for _ in range(PUSHES):
            engine.push_async(complete, (), mutates)
        engine.wait_for_all()

    benchmark(run)
    assert variables[0].completed_version == variables[0].version


def test_pushes_from_inside_an_op(
    benchmark: BenchmarkFixture, engine: weft.Engine, variables: list[weft.Variable]
) -> None:
    """One op pushes the others."""
    mutates = (variables[0],)

    def push_all() -> None:
        for _ in range(PUSHES):
            engine.push(no_op, (), mutates)

    def run() -> None:
        engine.push(push_all)
        engine.wait_for_all()  # for the op that pushes
        engine.wait_for_all()  # for what it pushed

    before = variables[0].version
    benchmark(run)
    assert (variables[0].version - before) % PUSHES == 0


def test_calls_of_a_task(benchmark: BenchmarkFixture, default_engine: weft.Engine) -> None:
    """The accesses stand in the signature; each call finds the variables of its arguments."""
    x, y = np.zeros(1), np.zeros(1)

    @weft.task
    def add(out: weft.Mutate[np.ndarray], other: weft.Read[np.ndarray]) -> None:
        """Do nothing: the call is what is timed."""

    def run() -> None:
        for _ in range(PUSHES):
            add(x, y)
        default_engine.wait_for_all()

    before = default_engine.variable_of(x).version
    benchmark(run)
    assert (default_engine.variable_of(x).version - before) % PUSHES == 0


def test_executor_submissions(benchmark: BenchmarkFixture, engine: weft.Engine) -> None:
    """`weft.Executor` makes a future for each."""
    with weft.Executor(engine) as executor:

        def run() -> int:
            futures = [executor.submit(int, 1) for _ in range(PUSHES)]
            return sum(future.result() for future in futures)

        assert benchmark(run) == PUSHES
