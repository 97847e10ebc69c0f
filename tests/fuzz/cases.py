"""What a generator makes: cases, which can be run, made smaller, and written as a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

__all__ = ["Case", "Generator", "without_each"]


class Case(Protocol):
    """One attack, made of plain data."""

    def run(self) -> str | None:
        """Return what is wrong, or None; an exception is wrong, too."""
        ...

    def smaller(self) -> Iterator[Case]:
        """Yield cases that are shorter by a little: those that are wrong as well take its place."""
        ...

    def __str__(self) -> str:
        """Return a script that does the same."""
        ...


@dataclass(frozen=True)
class Generator:
    """A kind of case.

    Attributes
    ----------
    name : str
        The name, from which the random numbers of its cases follow.
    make : callable
        Makes a case of a random generator.
    few : int
        How many cases pytest runs.
    missing : callable
        Returns why there can be none on this machine, or None.
    without : callable
        Returns what its cases are not compared with on this machine, and why, or None.
    """

    name: str
    make: Callable[[Random], Case]
    few: int
    missing: Callable[[], str | None] = lambda: None
    without: Callable[[], str | None] = lambda: None


def without_each(lines: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the lines without half of them, without a quarter, and without each single one."""
    width = len(lines) // 2
    while width:
        for start in range(0, len(lines), width):
            yield lines[:start] + lines[start + width :]
        width //= 2
