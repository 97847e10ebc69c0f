"""The numbers of running and of pending ops over the time of a run, and the bytes that the pending ones hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft._trace.measures import levels, thinned
from weft._trace.record import Kind

if TYPE_CHECKING:
    from weft._trace.measures import Times
    from weft._trace.record import Record

_POINTS = 20_000  # of a curve; longer ones are thinned out


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A level over time.

    Parameters
    ----------
    name : {"running", "pending", "bytes"}
        Which one.
    label : str
        The same in words.
    times : ndarray of int64
        Nanoseconds since the start of the trace; they increase.
    level : ndarray of int64
        The level from each time on.
    """

    name: str
    label: str
    times: Times
    level: Times


def curves(record: Record) -> list[Curve]:
    """Return the curves of a record; that of bytes only if ops held some."""
    ops = record.ops
    work = ~record.waits
    ran = work & record.began & (ops["kind"] != Kind.LANDING)
    start, end = record.work()
    pushed = ops["pushed"][work]
    settled = np.maximum(np.where(ops["settled"] > 0, ops["settled"], record.duration)[work], pushed)
    found = [
        ("running", "running ops", levels(start[ran], end[ran])),
        ("pending", "pending ops", levels(pushed, settled)),
    ]
    if ops["bytes"][work].any():
        found.append(("bytes", "pending bytes", levels(pushed, settled, ops["bytes"][work])))
    return [Curve(name, label, *thinned(*points, _POINTS)) for name, label, points in found]
