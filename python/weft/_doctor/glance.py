"""A glance at a trace: the habits that it can show, by a few numbers of its columns.

To read a trace and to look for habits takes longer than a short script does. Most traces show none, and a count is enough to know that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._trace.record import ACCESSES, OPS, Access, Kind, column, distinct

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

#: So often something is done before it is a habit.
TURNS = 5
#: The part of the time that is worth a word, and seconds.
SHARE, LEAST = 0.1, 5e-4
#: Calls of one line that are many, and seconds of a task that is short.
MANY, SHORT = 50, 5e-5
#: Seconds for which ops run beside each other, at least, before their threads are too many.
BESIDE = 1e-3


def habits_in(answer: Mapping[str, Any], workers: int) -> frozenset[str]:
    """Return the kinds of findings that a trace may show.

    Parameters
    ----------
    answer : mapping
        The core's answer to the end of the trace.
    workers : int
        Workers of its engine.
    """
    ops = answer["ops"]
    kind = column(OPS, ops, "kind")
    if len(kind) < TURNS:
        return frozenset()
    found: set[str] = set()
    is_wait, is_callable = kind == Kind.WAIT, kind == Kind.CALLABLE
    waits = np.count_nonzero(is_wait)
    if answer["duration"] >= 1e9 * LEAST and (
        waits >= TURNS or any(name.startswith("await ") for name in answer["names"])
    ):
        found.add("wait-in-loop")
    started, ended = column(OPS, ops, "started"), column(OPS, ops, "ended")
    ended = np.where(ended > 0, ended, answer["duration"])
    took = np.where(is_wait | (started <= 0), 0, ended - started)
    # A quarter of the calls of such a line is short.
    if np.count_nonzero(is_callable) >= MANY and 4 * np.count_nonzero(is_callable & (took <= 1e9 * SHORT)) >= MANY:
        found.add("short-task")
    if _overwrites(answer["accesses"]) >= TURNS:
        found.add("one-buffer")
    ran = took > 0
    if workers > 1 and took.sum() >= 2e9 * BESIDE and beside(started[ran], ended[ran])[0] >= BESIDE:
        found.add("too-many-threads")
    place = column(OPS, ops, "place").astype(np.int64)
    word = place << 32 | column(OPS, ops, "name")
    is_pushed = ~is_wait & (place > 0)
    often = _often(word[is_pushed])
    if len(often) and often[0] != often[-1] and len(_often(word[is_pushed & ~is_callable])):
        found.add("repeated-ops")
    return frozenset(found)


def _overwrites(accesses: Mapping[str, bytes]) -> int:
    """Return how many accesses overwrite what another one has used."""
    overwrites = column(ACCESSES, accesses, "kind") == Access.OVERWRITE
    if np.count_nonzero(overwrites) < TURNS:
        return 0
    first = distinct(column(ACCESSES, accesses, "variable"))[1]
    return int(np.count_nonzero(overwrites)) - int(np.count_nonzero(overwrites[first]))


def _often(word: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return words that come at two times `TURNS` times at least, in order, each at least once.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.glance import _often
    >>> _often(np.array([7] * 9 + [3] * 11)).tolist()
    [3, 3]
    """
    ordered, before = np.sort(word), 2 * TURNS - 1
    later = ordered[before:]
    found: npt.NDArray[np.int64] = later[later == ordered[: len(later)]]
    return found


def beside(begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> tuple[float, int]:
    """Return the seconds for which several of these stretches last at once, and how many do at most.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.glance import beside
    >>> beside(np.array([0, 10**9, 5 * 10**9]), np.array([2 * 10**9, 3 * 10**9, 6 * 10**9]))
    (1.0, 2)
    """
    times = np.concatenate((begins, ends))
    order = np.argsort(times, kind="stable")
    steps = np.concatenate((np.ones(len(begins), np.int64), -np.ones(len(ends), np.int64)))[order]
    running = np.cumsum(steps)
    lasting = np.diff(times[order], append=times.max(initial=0))
    return float(lasting[running > 1].sum()) / 1e9, int(running.max(initial=0))
