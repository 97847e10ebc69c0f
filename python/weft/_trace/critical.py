"""The longest chain of ops that had to wait for each other: no number of workers makes the run shorter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft._trace.record import NO_OP, Record

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """A chain of ops.

    Parameters
    ----------
    ops : ndarray of int64
        Indices of the ops, first to last.
    length : int
        Nanoseconds that the chain takes if nothing else runs.
    """

    ops: npt.NDArray[np.int64]
    length: int


def critical_path(record: Record, pairs: npt.NDArray[np.int64]) -> CriticalPath:
    """Return the critical path of a record.

    An op that was pushed inside another one also waits for the part of that one before the push.

    Parameters
    ----------
    record : Record
        The record.
    pairs : ndarray
        Its dependencies, as `dependencies` returns them.

    Returns
    -------
    CriticalPath
        Empty if no op ran.

    Notes
    -----
    One pass over ops and dependencies, in the order of pushes, which is a topological one.
    """
    took = record.durations()
    if not took.any():
        return CriticalPath(np.empty(0, np.int64), 0)
    parents = record.ops["parent"]
    inside = np.nonzero((parents != NO_OP) & (took > 0))[0]
    # The time that the parent ran before the push; unknown for a parent that was not kept.
    lead: dict[int, int] = dict(zip(inside.tolist(), _leads(record, inside).tolist(), strict=True))
    parent: list[int] = parents.tolist()
    bounds: list[int] = np.searchsorted(pairs[:, 1], np.arange(len(took) + 1)).tolist()
    before: list[int] = pairs[:, 0].tolist()
    ends: list[int] = took.tolist()  # the earliest possible end of each op
    previous = [NO_OP] * len(ends)
    own = took.tolist()
    for op, began in enumerate(bounds[:-1]):
        start, chosen = 0, NO_OP
        for at in before[began : bounds[op + 1]]:
            if ends[at] > start:
                start, chosen = ends[at], at
        if op in lead:
            pushed = ends[parent[op]] - own[parent[op]] + lead[op]
            if pushed > start:
                start, chosen = pushed, parent[op]
        ends[op], previous[op] = start + own[op], chosen
    last = int(np.argmax(np.array(ends)))
    length = ends[last]
    chain: list[int] = []
    while last != NO_OP:
        chain.append(last)
        last = previous[last]
    return CriticalPath(np.array(chain[::-1], np.int64), length)


def _leads(record: Record, inside: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Return how long the parents of the ops `inside` had run when these were pushed."""
    ops = record.ops
    parents = ops["parent"][inside]
    since: npt.NDArray[np.int64] = ops["pushed"][inside] - ops["started"][parents]
    return np.clip(since, 0, record.durations()[parents])
