"""Runs cases of generators, makes those that fail shorter, and keeps how far it has come."""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .cases import Case, Generator

__all__ = ["Found", "Progress", "fuzz", "run_case"]

#: Shorter cases that are tried at most for one that fails.
TRIES = 300
#: Seconds that a generator runs before the next one has its turn.
TURN = 2.0


@dataclass(frozen=True)
class Found:
    """A case that fails, as short as it was made."""

    seed: int
    name: str
    number: int
    problem: str
    case: Case

    def __str__(self) -> str:
        """Return the report: how to have it again, what is wrong, and the shortest script."""
        again = f"python -m tests.fuzz --seed {self.seed} --only {self.name} --start {self.number} --cases 1"
        return f"{self.name} {self.number}, again by `{again}`\n{self.problem}\n\n{self.case}\n"


class Progress:
    """The number of each generator's next case, in a file if there is one.

    The case under way is noted, too: a process that ended in the middle of one is told of, and goes on behind it.
    """

    def __init__(self, seed: int, start: int, path: Path | None) -> None:
        self.seed, self.start, self._path = seed, start, path
        self._next: dict[str, int] = {}
        self.crashed: tuple[str, int] | None = None
        if path is not None and path.exists():
            kept: dict[str, Any] = json.loads(path.read_text())
            if kept["seed"] != seed:
                raise SystemExit(f"{path} is of seed {kept['seed']}, not of {seed}")
            self._next = kept["next"]
            if kept["running"] is not None:
                self.crashed = (kept["running"], self._next[kept["running"]])
                self._next[kept["running"]] += 1

    def next(self, name: str) -> int:
        return self._next.get(name, self.start)

    def begin(self, name: str, number: int) -> None:
        self._next[name] = number
        self._write(name)

    def end(self, name: str, number: int) -> None:
        self._next[name] = number + 1

    def close(self) -> None:
        self._write(None)

    def _write(self, running: str | None) -> None:
        if self._path is not None:
            self._path.write_text(json.dumps({"seed": self.seed, "next": self._next, "running": running}))


def make_case(generator: Generator, seed: int, number: int) -> Case:
    """Return a case, which follows from these alone."""
    return generator.make(Random(f"{seed}/{generator.name}/{number}"))


def run_case(case: Case) -> str | None:
    """Return what is wrong with a case."""
    try:
        return case.run()
    except Exception:  # noqa: BLE001 - whatever comes out
        return traceback.format_exc(limit=-4)


def shortest(case: Case, problem: str) -> tuple[Case, str]:
    """Return a case that fails and of which no shorter one was found that does."""
    tries, kind = TRIES, _kind(problem)
    while tries > 0:
        for smaller in case.smaller():
            tries -= 1
            found = run_case(smaller)
            if found is not None and _kind(found) == kind:
                case, problem = smaller, found
                break
            if tries <= 0:
                break
        else:
            break
    return case, problem


def _kind(problem: str) -> str:
    """Return what two problems share that are the same: how they begin, or what was raised."""
    lines = problem.strip().splitlines() or [""]
    return (lines[-1] if lines[0].startswith("Traceback") else lines[0]).partition(":")[0]


def fuzz(
    generators: Sequence[Generator],
    progress: Progress,
    *,
    seconds: float | None,
    cases: int | None,
    tell: Callable[[Found], object],
) -> dict[str, int]:
    """Run generators in turn, for so long or so many cases each; return how many cases of each have run."""
    end = None if seconds is None else time.monotonic() + seconds
    left = {each.name: cases for each in generators}
    ran = dict.fromkeys(left, 0)
    waiting = list(generators)
    while waiting and (end is None or time.monotonic() < end):
        generator = waiting.pop(0)
        turn = time.monotonic() + TURN
        rest = left[generator.name]
        while rest != 0 and time.monotonic() < min(turn, end or turn):
            number = progress.next(generator.name)
            progress.begin(generator.name, number)
            case = make_case(generator, progress.seed, number)
            problem = run_case(case)
            if problem is not None:
                case, problem = shortest(case, problem)
                tell(Found(progress.seed, generator.name, number, problem, case))
            progress.end(generator.name, number)
            ran[generator.name] += 1
            rest = None if rest is None else rest - 1
        left[generator.name] = rest
        if rest != 0:
            waiting.append(generator)
    progress.close()
    return ran
