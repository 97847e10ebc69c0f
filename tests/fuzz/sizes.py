"""Numbers at the ends of integer types wherever a public function takes one: sizes, counts, repetitions, axes, shapes, strides.

Each case is a process of its own with little memory: it may not crash, and may raise errors of weft alone. What NumPy itself would
not survive is not called.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .cases import Generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

__all__ = ["GENERATOR", "NUMBERS", "attack"]

NUMBERS = tuple(
    sign * number + more for number in (2**31, 2**32, 2**62, 2**63, 2**64) for sign in (1, -1) for more in (-1, 0)
)
FORMS = ("{n}", "({n},)", "({n}, {n})", "(0, {n})", "[{n}]", "np.array([{n}])", "float({n})", "slice(0, {n})")


def attack(seconds: float, *rounds: tuple[int, str]) -> str | None:
    """Give these numbers in these forms to all functions, in a process; return what is wrong."""
    command = [sys.executable, "-X", "faulthandler", str(Path(__file__).with_name("extremes.py"))]
    for number, form in rounds:
        command += [str(number), form]
    environment = os.environ | {"WEFT_EXIT_STATUS": "0"}  # many calls fail here, and nobody asks for them
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=environment)
    except subprocess.TimeoutExpired as error:
        told = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        return f"a call does not end: {told.splitlines()[-1:]}"
    lines = done.stdout.splitlines()
    if done.returncode:
        return f"the process ended with {done.returncode}: {lines[-1:]}\n{done.stderr[-2000:]}"
    wrong = [line for line in lines if line.startswith("wrong")]
    return "\n".join(wrong) or None


@dataclass(frozen=True)
class Extreme:
    """Numbers and the forms in which they are given."""

    rounds: tuple[tuple[int, str], ...]

    def run(self) -> str | None:
        return attack(300.0, *self.rounds)

    def smaller(self) -> Iterator[Extreme]:
        if len(self.rounds) > 1:
            for at in range(len(self.rounds)):
                yield replace(self, rounds=(self.rounds[at],))

    def __str__(self) -> str:
        return "python tests/fuzz/extremes.py " + " ".join(f"{number} {form!r}" for number, form in self.rounds)


def make(random: Random) -> Extreme:
    rounds: Sequence[tuple[int, str]] = [(random.choice(NUMBERS), random.choice(FORMS)) for _ in range(2)]
    return Extreme(tuple(rounds))


GENERATOR = Generator("sizes", make, few=1)
