"""Conversions and recordings of a run, as they happen."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import _fingerprint
from weft._doctor.findings import Finding
from weft._doctor.glance import TURNS
from weft._doctor.guards import is_host
from weft._engine.observers import caller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Bytes of an array that are compared from turn to turn.
_SAMPLE = 1 << 15
#: Conversions that are remembered.
_CONVERSIONS = 4096


class Habits:
    """Conversions and recordings of a run, as they happen."""

    def __init__(self) -> None:
        self._converted: dict[tuple[str, int, tuple[int, ...]], list[Any]] = {}
        self._recorded: dict[tuple[str, str, int], list[Any]] = {}

    def converted(self, array: Any) -> None:
        """Note that the values of a NumPy array become an array's."""
        if not is_host(array) or array.nbytes == 0:
            return
        key = (*caller(), array.shape)  # and not where it lies: it may be made anew with the same values
        known = self._converted.get(key)
        if known is None:
            if len(self._converted) < _CONVERSIONS:
                self._converted[key] = [array.nbytes, Counter({_sample(array): 1})]
        elif len(known[1]) < _CONVERSIONS:
            known[1][_sample(array)] += 1

    def recorded(self, name: str, why: Callable[[], str]) -> None:
        """Note that a function was recorded."""
        key = (name, *caller())
        known = self._recorded.setdefault(key, [0, ""])
        known[0] += 1
        known[1] = why()

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each step that is done again and again."""
        for (file, line, shape), (nbytes, seen) in self._converted.items():
            value, count = seen.most_common(1)[0]
            if count >= TURNS and value is not None:
                seconds = (count - 1) * _copy_time(nbytes)
                yield Finding(
                    "copied-each-turn",
                    file,
                    line,
                    f"a NumPy array of shape {shape} is converted {count:,} times, and its values are the same each time",
                    "convert it once, before the loop: `x = weft.asarray(a)`, and use `x` in it",
                    count=count,
                    seconds=seconds,
                )
        for (name, file, line), (count, why) in self._recorded.items():
            if count >= TURNS:
                yield Finding(
                    "recording-storm",
                    file,
                    line,
                    f"`{name}` was recorded {count} times: {why}",
                    "pass a changing value as an array (`weft.asarray(...)`) instead of a number, or pad arrays to one shape",
                    count=count,
                )


def _sample(array: Any) -> int | None:
    """Return a number of some of an array's bytes."""
    if array.dtype.hasobject:
        return None
    flat = (
        array.reshape(-1)
        if array.flags.c_contiguous
        else np.ascontiguousarray(array[tuple([slice(0, 64)] * array.ndim)]).reshape(-1)
    )
    count = max(1, _SAMPLE // max(1, array.itemsize))
    return hash((_fingerprint(flat[:count].view(np.uint8)), _fingerprint(flat[-count:].view(np.uint8))))


def _copy_time(nbytes: int) -> float:
    """Return the seconds that a copy of so many bytes takes, measured once."""
    source = np.zeros(min(nbytes, 1 << 22), np.uint8)
    begun = time.perf_counter()
    for _ in range(3):
        source.copy()
    return (time.perf_counter() - begun) / 3 * max(1.0, nbytes / source.size) + 1e-6
