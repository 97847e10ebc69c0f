"""Efficiency over the length of tasks, and METG: where it falls to a half.

As in Task Bench a task's *granularity* is its share of the machine's time, with the cost of its scheduling: elapsed
time, times workers, over tasks. *Efficiency* is the work done in that time, over the work of the same threads with
nothing to schedule. At an efficiency of a half a task of METG computes for half of its granularity.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Point:
    """Tasks of one length.

    Attributes
    ----------
    granularity : float
        Nanoseconds of one worker for a task.
    efficiency : float
        Of the peak.
    """

    granularity: float
    efficiency: float


def points_of(elapsed: Mapping[int, float], peak: float, workers: int) -> list[Point]:
    """Return the points of a curve, shortest tasks first.

    Parameters
    ----------
    elapsed : mapping of int to float
        Nanoseconds for a task, push to wait, by the length of its kernel.
    peak : float
        Of that length, how much one of the threads does in a nanosecond with nothing to schedule.
    workers : int
        How many threads there are.
    """
    return [Point(each * workers, length / (each * workers * peak)) for length, each in sorted(elapsed.items())]


def metg(points: Sequence[Point], efficiency: float = 0.5) -> float | None:
    """Return the least granularity with at least this efficiency, or None where none has it.

    Between two points it is read off a line on two logarithmic axes. Where the shortest tasks measured are efficient
    enough, it is theirs: METG is at most that.

    Parameters
    ----------
    points : sequence of Point
        The shortest first.
    efficiency : float, default: 0.5
        The efficiency to look for.

    Examples
    --------
    >>> from weft.bench.metg.curve import Point, metg
    >>> metg([Point(100.0, 0.25), Point(400.0, 1.0)])
    200.0
    """
    at = next((number for number, point in enumerate(points) if point.efficiency >= efficiency), None)
    if at is None:
        return None
    above = points[at]
    if at == 0 or above.efficiency == efficiency:
        return above.granularity
    below = points[at - 1]
    share = log(efficiency / below.efficiency) / log(above.efficiency / below.efficiency)
    return round(exp(log(below.granularity) + share * log(above.granularity / below.granularity)), 6)
