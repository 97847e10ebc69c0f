"""Table B: Python no-op callables with dependencies."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

from harness.native import VerificationError
from harness.patterns import State, make_program, serial_digest
from harness.samples import Job, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.runners import Runner
    from harness.settings import Settings


def callable_jobs(runners: Sequence[Runner], settings: Settings) -> list[Job]:
    """Verify each runner on each pattern, and return the jobs that time them."""
    jobs = []
    patterns = dict.fromkeys(pattern for runner in runners for pattern in runner.patterns)
    for pattern in patterns:
        for runner in runners:
            if pattern in runner.patterns:
                with watched():
                    verify(runner, pattern, settings.verify_ops)
                    run = runner.prepare(make_program(pattern, settings.callable_ops), None)
                    run()
                jobs.append(Job("B", pattern, runner.name, per_op(run, settings.callable_ops)))
    return jobs


def verify(runner: Runner, pattern: str, ops: int) -> None:
    """Run a pattern with order-sensitive callables and compare with the serial digest.

    Raises
    ------
    VerificationError
        When the values differ.
    """
    program = make_program(pattern, ops)
    state = State(program)
    runner.prepare(program, state)()
    if state.digest() != serial_digest(pattern, ops):
        message = f"{runner.name}, {pattern}: not in serial order"
        raise VerificationError(message)


def per_op(run: Callable[[], None], ops: int) -> Callable[[], list[float]]:
    """Return a repetition that times ``run`` in microseconds per op."""

    def repetition() -> list[float]:
        start = perf_counter_ns()
        run()
        return [(perf_counter_ns() - start) / 1000 / ops]

    return repetition
