"""Array programs give what NumPy gives, and the same bits under every policy and worker count: see `array_programs`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest
from array_programs import LARGE, SHAPES, Seen, Step, by_numpy, by_weft, check, long_program, programs
from hypothesis import HealthCheck, given, settings

import weft
from conftest import SHUFFLED, SOON, background

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = [
    ("serial", 1),
    SHUFFLED,
    *((policy, workers) for policy in ("work_stealing", "per_device") for workers in (1, 2, 4)),
]


@contextmanager
def default_engine(policy: str, workers: int) -> Iterator[weft.Engine]:
    """An engine that is the default one in the block."""
    previous = weft.get_engine()
    with weft.Engine(workers, policy) as engine:
        weft.set_engine(engine)
        try:
            yield engine
        finally:
            weft.set_engine(previous)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("policy", "workers"), SETTINGS)
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(steps=programs)
def test_small_programs(policy: str, workers: int, steps: list[Step]) -> None:
    numpy = by_numpy(steps)
    with default_engine("serial", 1):
        serial = by_weft(steps)
    with default_engine(policy, workers):
        check(by_weft(steps), numpy, serial)


@lru_cache(maxsize=2)  # the settings of a seed come one after the other
def known(
    seed: int, length: int, shapes: tuple[tuple[int, ...], ...] = SHAPES
) -> tuple[list[Step], list[Seen], list[Seen]]:
    """A long program, and what NumPy and the serial policy give."""
    steps = long_program(seed, length)
    with default_engine("serial", 1):
        return steps, by_numpy(steps, shapes), by_weft(steps, shapes)


SEEDS = range(int(os.environ.get("WEFT_ORACLE_SEEDS", "3")))


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("policy", "workers"), SETTINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_long_programs(policy: str, workers: int, seed: int) -> None:
    steps, numpy, serial = known(seed, 600)
    with default_engine(policy, workers):
        for _ in range(2):
            check(by_weft(steps), numpy, serial)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("policy", "workers"), SETTINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_programs_of_large_arrays(policy: str, workers: int, seed: int) -> None:
    """Arrays that are worth splitting over workers, or reusing in place."""
    steps, numpy, serial = known(1000 + seed, 150, LARGE)
    with default_engine(policy, workers):
        check(by_weft(steps, LARGE), numpy, serial)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("policy", "workers"), SETTINGS)
def test_threads_with_arrays_of_their_own(policy: str, workers: int) -> None:
    programs_of_threads = [long_program(2000 + i, 150) for i in range(4)]
    numpy = [by_numpy(steps) for steps in programs_of_threads]
    with default_engine("serial", 1):
        serial = [by_weft(steps) for steps in programs_of_threads]
    with default_engine(policy, workers):
        threads = [background(lambda steps=steps: by_weft(steps)) for steps in programs_of_threads]
        for thread, wanted, first in zip(threads, numpy, serial, strict=True):
            check(thread.result(3 * SOON), wanted, first)
