"""Each file planned several times, in turns with a peer."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._command.running import CommandError
from weft.bench.samples import VerificationError
from weft.errors import PlanError
from weft.graph import plan_offsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from weft.bench.plan.instances import Instance


@dataclass(slots=True)
class Planned:
    """The results of one file. Times are seconds, one for each repetition."""

    name: str
    intervals: int
    peak: int
    capacity: int
    #: The memory that the placement by rule takes, and that of the search; None where it found none.
    by_rule: int = 0
    searched: int | None = None
    rule_seconds: list[float] = field(default_factory=list)
    search_seconds: list[float] = field(default_factory=list)
    peer_seconds: list[float] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """Return everything as JSON has it, with minima and medians."""
        times = {name: values for name, values in asdict(self).items() if name.endswith("_seconds") and values}
        summary = {name: {"min": min(values), "median": median(values)} for name, values in times.items()}
        return {**asdict(self), "times": summary}


def measure(instance: Instance, capacity: int | None, seconds: float, reps: int, peer: Path | None) -> Planned:
    """Plan a file by rule, then by search within its capacity; then let the peer, if there is one.

    The capacity is the one given, or the one that the file's name tells, or else the peak of live bytes.

    Raises
    ------
    VerificationError
        If two intervals that are live together share a byte.
    """
    within = capacity or instance.capacity or instance.peak
    found = Planned(instance.name, len(instance.size), instance.peak, within)
    columns = instance.lower, instance.upper, instance.size
    for _ in range(reps):
        offsets, elapsed = _timed(lambda: plan_offsets(*columns, alignment=1))
        found.rule_seconds.append(elapsed)
        found.by_rule = verify(instance, offsets)
        try:
            offsets, elapsed = _timed(lambda: plan_offsets(*columns, alignment=1, capacity=within, seconds=seconds))
        except PlanError:
            found.searched = None
        else:
            found.search_seconds.append(elapsed)
            found.searched = verify(instance, offsets)
            if found.searched > within:
                raise VerificationError(f"{instance.name}: {found.searched} bytes of {within}")
        if peer is not None:
            found.peer_seconds.append(_peer(peer, instance, within))
    return found


def verify(instance: Instance, offsets: NDArray[np.int64]) -> int:
    """Return the memory that a placement takes.

    Raises
    ------
    VerificationError
        If two intervals that are live together share a byte.
    """
    ends = offsets + instance.size
    for index in range(len(offsets)):
        together = (instance.lower < instance.upper[index]) & (instance.lower[index] < instance.upper)
        shared = (offsets < ends[index]) & (offsets[index] < ends)
        both = np.flatnonzero(together & shared)
        if both.size > 1 or (both.size and both[0] != index):
            raise VerificationError(f"{instance.name}: intervals {both.tolist()} share bytes")
    return int(ends.max(initial=0))


def _timed(plan: Callable[[], NDArray[np.int64]]) -> tuple[NDArray[np.int64], float]:
    start = perf_counter()
    offsets = plan()
    return offsets, perf_counter() - start


def _peer(program: Path, instance: Instance, capacity: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "offsets.csv"
        command = [str(program), f"--capacity={capacity}", f"--input={instance.path}", f"--output={output}"]
        start = perf_counter()
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - the program that was named
        except (OSError, subprocess.CalledProcessError) as error:
            raise CommandError(f"{program}: {error}") from error
        return perf_counter() - start
