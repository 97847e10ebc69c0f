"""Figures about stretches of time: unions, intersections of two sets, the number at each moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Times: TypeAlias = "npt.NDArray[np.int64]"


def covered(start: Times, end: Times) -> int:
    """Return the total time with at least one of the stretches from `start` to `end`.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._trace.measures import covered
    >>> covered(np.array([0, 5, 20]), np.array([10, 15, 21]))
    16
    """
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    began = np.concatenate(([start[0]], np.maximum(start[1:], end[:-1])))
    return int(np.maximum(end - began, 0).sum())


def shared(one: tuple[Times, Times], other: tuple[Times, Times]) -> int:
    """Return the total time with a stretch of `one` and a stretch of `other` together.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._trace.measures import shared
    >>> shared((np.array([0]), np.array([10])), (np.array([4, 8]), np.array([6, 30])))
    4
    """
    start, end = (np.concatenate(parts) for parts in zip(one, other, strict=True))
    return covered(*one) + covered(*other) - covered(start, end)


def levels(start: Times, end: Times, weight: Times | None = None) -> tuple[Times, Times]:
    """Return the number of stretches over time, as times of change and the level after each.

    Parameters
    ----------
    start, end : ndarray of int64
        The stretches.
    weight : ndarray of int64, optional
        The weight of each; by default 1.

    Returns
    -------
    times, level : ndarray of int64
        Times strictly increase.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._trace.measures import levels
    >>> times, level = levels(np.array([0, 2]), np.array([5, 5]))
    >>> times.tolist(), level.tolist()
    ([0, 2, 5], [1, 2, 0])
    """
    weight = np.ones(len(start), np.int64) if weight is None else weight.astype(np.int64)
    moments = np.concatenate((start, end))
    change = np.concatenate((weight, -weight))
    order = np.argsort(moments, kind="stable")
    moments, level = moments[order], np.cumsum(change[order])
    last = np.append(moments[1:] != moments[:-1], np.True_)[: len(moments)]
    moments, level = moments[last], level[last]
    changed = np.diff(level, prepend=0) != 0
    return moments[changed], level[changed]


def thinned(times: Times, level: Times, points: int) -> tuple[Times, Times]:
    """Return at most `points` points of a level: the highest of each stretch of time, at its own time.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._trace.measures import thinned
    >>> times, level = thinned(np.arange(100), np.arange(100) % 7, 10)
    >>> len(times), int(level.min())
    (10, 6)
    """
    if len(times) <= points:
        return times, level
    stretch = (times - times[0]) * points // (times[-1] - times[0] + 1)
    order = np.lexsort((level, stretch))
    highest = order[np.append(np.diff(stretch[order]) > 0, np.True_)]
    return times[highest], level[highest]
