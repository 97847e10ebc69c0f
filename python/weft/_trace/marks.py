"""Marks: errors found at lines of this process's program, for the timelines that show their ops."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft._trace.record import Record


class Mark(NamedTuple):
    """A finding.

    Parameters
    ----------
    file, line
        The line.
    text : str
        Its kind and its message.
    """

    file: str
    line: int
    text: str


_marks: list[Mark] = []


def set_marks(marks: Iterable[Mark]) -> None:
    """Show these marks from now on, in place of the previous ones."""
    _marks[:] = marks


def marks_of(record: Record) -> dict[int, str]:
    """Return the text of each marked op.

    The mark of a line goes to its first op that has begun.
    """
    found: dict[int, str] = {}
    for mark in _marks:
        place = f"{Path(mark.file).resolve()}:{mark.line}"
        numbers = [at for at, each in enumerate(record.places) if each and _resolved(each) == place]
        ops = [op for number in numbers for op in (record.ops["place"] == number).nonzero()[0].tolist()]
        first = next((op for op in sorted(ops) if record.began[op]), None)
        if first is not None:
            found[first] = mark.text
    return found


def _resolved(place: str) -> str:
    file, _, line = place.rpartition(":")
    return f"{Path(file).resolve()}:{line}"
