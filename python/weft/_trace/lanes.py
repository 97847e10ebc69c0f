"""The rows of ops in a timeline: a lane for each thread, each device stream, and for async ops.

Within a lane ops that overlap get rows of their own: an inner op lies below the outer one. All pictures and the trace
events take their rows from here, so that they agree.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft._trace.record import NONE, Kind, Record

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Lane:
    """A band of a timeline.

    Parameters
    ----------
    label : str
        The label beside it.
    kind : {"thread", "worker", "stream", "async"}
        The thread or stream.
    depth : int
        How many rows it has.
    """

    label: str
    kind: str
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The spans of a timeline: stretches of time in lanes, in order of lane, row and start.

    Parameters
    ----------
    lanes : list of Lane
        Top to bottom.
    op : ndarray of int64
        The op of each span. One that was launched on a device has two spans: the launch, and the run.
    lane, row : ndarray of int64
        Its lane and row.
    start, end : ndarray of int64
        Nanoseconds since the start of the trace.
    """

    lanes: list[Lane]
    op: npt.NDArray[np.int64]
    lane: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


def spans(record: Record) -> Spans:
    """Return the spans of a record.

    Parameters
    ----------
    record : Record
        The record.

    Returns
    -------
    Spans
        Of every op and wait that began.
    """
    ops = record.ops
    ends = record.ends()
    thread = np.where(ops["worker"] == NONE, ops["pusher"], ops["worker"]).astype(np.int64)
    host = np.nonzero(record.began)[0]
    key = np.where(np.isin(ops["kind"], (Kind.ASYNC, Kind.LANDING)), len(record.threads), thread)[host]
    device = np.nonzero((ops["stream"] != NONE) & record.on_device)[0]
    op = np.concatenate((host, device))
    key = np.concatenate((key, ops["stream"][device] + len(record.threads) + 1))
    start = np.concatenate((ops["started"][host], ops["device_started"][device]))
    end = np.concatenate((ends[host], ops["device_ended"][device]))

    lanes: list[Lane] = []
    lane, row = np.zeros_like(op), np.zeros_like(op)
    for kind, label, value in sorted(_titles(record, np.unique(key)), key=_order):
        members = np.nonzero(key == value)[0]
        members = members[np.lexsort((-end[members], start[members]))]
        rows = _rows(start[members], end[members])
        lane[members], row[members] = len(lanes), rows
        lanes.append(Lane(label, kind, int(rows.max()) + 1))
    order = np.lexsort((start, row, lane))
    return Spans(lanes, *(column[order] for column in (op, lane, row, start, end)))


def _titles(record: Record, keys: npt.NDArray[np.int64]) -> list[tuple[str, str, int]]:
    """Return kind, label and number of the lanes in use."""
    threads = record.threads
    found: list[tuple[str, str, int]] = []
    used: list[int] = keys.tolist()
    for key in used:
        if key < len(threads):
            found.append((threads[key]["kind"], threads[key]["name"], key))
        elif key == len(threads):
            found.append(("async", "async", key))
        else:
            found.append(("stream", record.stream(key - len(threads) - 1), key))
    return found


def _order(title: tuple[str, str, int]) -> tuple[int, list[tuple[int, str]]]:
    """Sort threads before workers, streams and async ops; by name, numbers as numbers."""
    kind, label, _ = title
    parts = re.findall(r"\d+|\D+", label)
    natural = [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
    return ["thread", "worker", "stream", "async"].index(kind), natural


def _rows(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the first free row for each span, so that none overlap; spans are sorted by start."""
    rows = np.zeros(len(start), np.int64)
    until = np.maximum.accumulate(end)
    if (start[1:] >= until[:-1]).all():
        return rows
    free: list[int] = []
    busy: list[tuple[int, int]] = []  # the end of its last span, and the row
    used = 0
    chosen: list[int] = []
    for left, right in zip(start.tolist(), end.tolist(), strict=True):
        while busy and busy[0][0] <= left:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, used = used, used + 1
        heapq.heappush(busy, (right, row))
        chosen.append(row)
    rows[:] = chosen
    return rows
