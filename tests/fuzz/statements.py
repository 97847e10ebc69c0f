"""Statements on arrays that share memory: the programs of the array tests, of NumPy, of one worker and of several."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import array_programs as programs

import weft

from .cases import Generator, without_each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]


@contextmanager
def default_engine(policy: str, workers: int) -> Iterator[None]:
    """Let an engine be the default one."""
    previous = weft.get_engine()
    with weft.Engine(workers, policy) as engine:
        weft.set_engine(engine)
        try:
            yield
        finally:
            weft.set_engine(previous)


@dataclass(frozen=True)
class Statements:
    """Steps as the array tests have them."""

    steps: tuple[programs.Step, ...]

    def run(self) -> str | None:
        steps = list(self.steps)
        numpy = programs.by_numpy(steps)
        with default_engine("serial", 1):
            serial = programs.by_weft(steps)
        with default_engine("work_stealing", 2):
            programs.check(programs.by_weft(steps), numpy, serial)
        return None

    def smaller(self) -> Iterator[Statements]:
        for steps in without_each(self.steps):
            if steps:
                yield Statements(steps)

    def __str__(self) -> str:
        return "\n".join(("from array_programs import *", f"print(by_weft({list(self.steps)}))"))


def make(random: Random) -> Statements:
    return Statements(tuple(programs.long_program(random.randrange(1 << 30), random.randrange(3, 60))))


GENERATOR = Generator("statements", make, few=60)
