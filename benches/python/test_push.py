"""What 1,000 pushes and their run cost, by shape of the accesses and kind of payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    import weft

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
