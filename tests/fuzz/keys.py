"""Keys, against NumPy: integers, slices, new axes, empty and full Ellipses, arrays of integers and masks, reads and writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import weft

from .cases import Generator
from .source import compare, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]


@dataclass(frozen=True)
class Keyed:
    """A shape, and the parts of a key as source: arrays are of weft where `native` says so."""

    shape: tuple[int, ...]
    parts: tuple[str, ...]
    native: tuple[bool, ...]
    scalar: bool

    def key(self, *, native: bool) -> Any:
        found = []
        for part, ours in zip(self.parts, self.native, strict=True):
            value = eval(part, {"np": np})
            found.append(weft.asarray(value) if native and ours and isinstance(value, np.ndarray) else value)
        return tuple(found)

    def run(self) -> str | None:
        host = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        ours, theirs = self.key(native=True), self.key(native=False)
        if beyond_empty(host, theirs):
            return None
        array = weft.asarray(host)
        wanted = outcome(lambda: host[theirs])
        problem = compare(outcome(lambda: array[ours]), wanted, close=False)
        if problem is not None or isinstance(wanted, Exception):
            return problem
        values = 7 if self.scalar else np.arange(wanted.size).reshape(wanted.shape) + 1000
        changed = host.copy()
        changed[theirs] = values
        array[ours] = values
        problem = compare(outcome(lambda: array), changed, close=False)
        return None if problem is None else f"a write, {problem}"

    def smaller(self) -> Iterator[Keyed]:
        for at in range(len(self.parts)):
            yield replace(
                self, parts=self.parts[:at] + self.parts[at + 1 :], native=self.native[:at] + self.native[at + 1 :]
            )

    def __str__(self) -> str:
        parts = [
            f"weft.asarray({part})" if ours and part.startswith("np.") else part
            for part, ours in zip(self.parts, self.native, strict=True)
        ]
        return f"weft.arange({int(np.prod(self.shape))}).reshape({self.shape})[{', '.join(parts)},]"


def beyond_empty(host: np.ndarray, key: tuple[Any, ...]) -> bool:
    """Return whether a key has positions that do not exist, and names no element: NumPy says that it will raise, as weft does."""
    try:
        if host[key].size:
            return False
    except IndexError:
        return False
    axis = 0
    for part in key:
        if part is None or (part is not Ellipsis and np.asarray(part).dtype == bool and np.ndim(part) == 0):
            continue
        if part is Ellipsis:
            return True  # which axis comes next need not be known: left out
        if isinstance(part, np.ndarray | list) and np.asarray(part).dtype.kind in "iu" and np.size(part):
            positions = np.asarray(part)
            if not -host.shape[axis] <= positions.min() <= positions.max() < host.shape[axis]:
                return True
        axis += np.ndim(part) if np.asarray(part).dtype == bool else 1
    return False


def make(random: Random) -> Keyed:
    shape = tuple(random.choice((0, 1, 2, 3, 3, 4)) for _ in range(random.randrange(5)))
    count = random.randrange(1, len(shape) + 3)
    parts = tuple(part(random, shape) for _ in range(count))
    return Keyed(shape, parts, tuple(random.random() < 0.4 for _ in parts), random.random() < 0.3)


def part(random: Random, shape: tuple[int, ...]) -> str:
    """Return a part of a key, which need not fit."""
    length = random.choice(shape) if shape else 1
    kind = random.randrange(6)
    if kind == 0:
        return str(random.randint(-length - (random.random() < 0.05), max(length - 1, 0)))
    if kind == 1:
        ends = [random.choice((None, random.randint(-6, 6))) for _ in range(2)]
        return f"slice({ends[0]}, {ends[1]}, {random.choice((None, 1, -1, 2, -2))})"
    if kind == 2:
        return random.choice(("None", "...", "..."))
    if kind == 3:
        first = random.randrange(max(1, len(shape)))
        lengths = [random.choice((n, n, n, 0)) for n in shape[first : first + random.randrange(3)]]
        values = [random.random() < 0.5 for _ in range(int(np.prod(lengths)))]
        return f"np.array({values}, bool).reshape({tuple(lengths)})"
    least = min((n for n in shape if n), default=1)
    lengths = random.choice(((2,), (2,), (1,), (2, 1), (0,), (3, 2)))
    values = [random.randint(-least, least - 1) for _ in range(int(np.prod(lengths)))]
    return f"np.array({values}, int).reshape({lengths})" if kind < 5 else str(values)


GENERATOR = Generator("keys", make, few=1500)
