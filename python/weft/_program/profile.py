"""The times of a program's ops."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from weft._engine.recorder import Trace
from weft._program.summary import aligned
from weft._trace.record import NO_OP
from weft._trace.units import seconds
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import os

    from weft._core import NDArray
    from weft._program.program import Program


@dataclass(frozen=True, slots=True)
class OpTime:
    """The ops of one name, in one replay on average.

    Parameters
    ----------
    name : str
        The ops' name.
    count : float
        How many run in a replay; a large one that falls into parts is one.
    seconds : float
        How long they take together, on all threads.
    share : float
        Of the time of all ops.
    """

    name: str
    count: float
    seconds: float
    share: float


class Profile:
    """The measurements of `Program.profile`.

    Attributes
    ----------
    replays : int
        The number of timed replays.
    seconds : float
        The time of one replay, with the wait.
    ops : list of OpTime
        The ops by name, those with the longest time first.
    """

    def __init__(self, name: str, replays: int, took: float, ops: list[OpTime]) -> None:
        self._name, self.replays, self.seconds, self.ops = name, replays, took, ops

    def __str__(self) -> str:
        """Return a table."""
        rows: list[tuple[str, ...]] = [("op", "count", "time", "share")]
        rows += [(op.name, f"{op.count:g}", seconds(op.seconds * 1e9), f"{op.share:.0%}") for op in self.ops]
        head = f"program {self._name!r}: {seconds(self.seconds * 1e9)} for a replay, mean of {self.replays}"
        return f"{head}\n{aligned(rows)}"

    __repr__ = __str__


def profile(program: Program, replays: int, warmup: int, inputs: tuple[NDArray, ...]) -> Profile:
    """Replay a program and time its ops; those of the first `warmup` replays are not counted."""
    for name, number, least in (("replays", replays, 1), ("warmup", warmup, 0)):
        if type(number) is not int:
            raise ArgumentTypeError(f"profile: {name} is an int, not {type(number).__name__}")
        if number < least:
            raise ArgumentValueError(f"profile: {name} is at least {least}, not {number}")
    engine = program._compiled.engine
    for _ in range(warmup):
        program.replay(arguments=inputs)
    engine.wait_for_all()
    start = perf_counter()
    for _ in range(replays):
        program.replay(arguments=inputs)
    engine.wait_for_all()
    took = (perf_counter() - start) / replays
    with Trace(engine=engine) as trace:
        for _ in range(replays):
            program.replay(arguments=inputs)
    return Profile(program.name, replays, took, _op_times(program, trace, replays))


def _op_times(program: Program, trace: Trace, replays: int) -> list[OpTime]:
    """Return the times inside the replays, by name."""
    counts, totals = Counter[str](), Counter[str]()
    for op in trace.summary().ops:
        counts[op.name] += op.count
        totals[op.name] += op.total
    # A replay lasts from its first step to its last: it is not work of its own.
    entries = trace.ops
    outer = np.unique(entries["parent"][entries["parent"] != NO_OP])
    for entry in entries[outer]:
        if trace.names[entry["name"]] == program.name:
            counts[program.name] -= 1
            totals[program.name] -= int(entry["ended"] - entry["started"])
    # A step in parts has an entry for each. Small calls run ops as recorded, each whole.
    known = Counter(program._compiled.names)
    if not known.keys() <= counts.keys():
        known.clear()
    total = sum(totals.values()) or 1
    return [
        OpTime(name, known.get(name, counts[name] / replays), spent / replays / 1e9, spent / total)
        for name, spent in totals.most_common()
        if counts[name] > 0
    ]


def timeline(program: Program, path: str | os.PathLike[str], inputs: tuple[NDArray, ...]) -> None:
    """Record one replay, and draw it."""
    engine = program._compiled.engine
    program.replay(arguments=inputs)
    engine.wait_for_all()
    with Trace(path, engine=engine):
        program.replay(arguments=inputs)
