"""Tables A and B: ops with dependencies that do nothing, as far as Python pushes them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from weft.bench.patterns import State, make_program, serial_digest
from weft.bench.samples import Job, VerificationError, timed, watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.bench.runners import Runner
    from weft.bench.settings import Settings

_NANOSECONDS = 1
_MICROSECONDS = 1000


def native_jobs(runners: Sequence[Runner], settings: Settings) -> list[Job]:
    """Verify each runner of native ops on each pattern, and return the jobs of table A that time them."""
    return _jobs("A", runners, settings, _NANOSECONDS)


def callable_jobs(runners: Sequence[Runner], settings: Settings) -> list[Job]:
    """Verify each runner of callables on each pattern, and return the jobs of table B that time them."""
    return _jobs("B", runners, settings, _MICROSECONDS)


def _jobs(table: str, runners: Sequence[Runner], settings: Settings, unit: int) -> list[Job]:
    jobs: list[Job] = []
    patterns = dict.fromkeys(pattern for runner in runners for pattern in runner.patterns)
    for pattern in patterns:
        for runner in runners:
            if pattern in runner.patterns:
                with watched():
                    _verify(runner, pattern, settings.verify_ops)
                    run = runner.prepare(make_program(pattern, settings.callable_ops), None)
                    run()
                jobs.append(Job(table, pattern, runner.name, partial(timed, run, settings.callable_ops * unit)))
    return jobs


def _verify(runner: Runner, pattern: str, ops: int) -> None:
    """Run a pattern with order-sensitive ops and compare with the serial digest.

    Raises
    ------
    VerificationError
        When the values differ.
    """
    program = make_program(pattern, ops)
    state = State(program)
    runner.prepare(program, state)()
    if state.digest() != serial_digest(pattern, ops):
        raise VerificationError(f"{runner.name}, {pattern}: not in serial order")
