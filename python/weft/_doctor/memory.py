"""Regions of memory, known by name to the engine or a callable, and fingerprints of their bytes."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft._core import NDArray, _fingerprint
from weft._doctor.guards import is_host
from weft._engine.owners import owner_of, weakly_referenceable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Regions that are looked at; more are counted.
REGIONS = 2048

#: Addresses: the first byte and the one behind the last.
Span: TypeAlias = tuple[int, int]
#: Of one region at one moment; None where the memory cannot be read.
Fingerprint: TypeAlias = "tuple[int, ...] | None"


class Region:
    """Memory of one owner.

    Parameters
    ----------
    array : ndarray or NDArray
        An array on it. It is not kept alive.
    path : str
        An expression that reaches it.
    file : str
        The file of that expression.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_owner",
        "dtype",
        "file",
        "is_known",
        "made",
        "path",
        "shape",
        "span",
        "votes",
        "writers",
    )

    def __init__(self, array: Any, path: str, file: str) -> None:
        owner = _owner(array)
        self._owner = weakref.ref(owner)
        self._array = weakref.ref(array) if weakly_referenceable(array) else self._owner
        if is_host(owner):
            self._array = self._owner
        self.path, self.file = path, file
        #: Where it was seen first: the same in each run; empty if that is not known.
        self.made = ""
        self.shape, self.dtype = array.shape, array.dtype
        self.span = span_of(array)
        #: Whether the engine has a variable of its own for it.
        self.is_known = isinstance(array, NDArray)
        #: Keys of the ops that write to it and say so.
        self.writers: set[object] = set()
        #: Of variables made by hand, how often ops that use the memory name them.
        self.votes: Counter[tuple[int, int]] = Counter()

    @property
    def array(self) -> Any:
        """An array on the memory, or None if that is gone."""
        return self._array() if self._owner() is not None else None

    def is_of(self, owner: object) -> bool:
        """Return whether an object owns it."""
        return self._owner() is owner

    def fingerprint(self, without: Iterable[Span] = ()) -> Fingerprint:
        """Return numbers that tell its bytes from others, but for those of some spans; None if they cannot be read."""
        array = self.array
        if array is None:
            return None
        try:
            flat = _bytes_of(array)
            if flat is None:
                return None
            start = self.span[0]
            pieces = _without((start, start + flat.size), without)
            return tuple(_fingerprint(flat[first - start : end - start]) for first, end in pieces)
        except Exception:  # noqa: BLE001 - a failed array, memory that is gone, an exporter that refuses
            return None

    @property
    def is_array(self) -> bool:
        """Whether ops of weft's own may write to it."""
        return isinstance(self.array, NDArray)

    def version(self) -> int | None:
        """Return how often ops of weft's own have written to it."""
        array = self.array
        return array.version if isinstance(array, NDArray) else None


def _owner(array: Any) -> Any:
    return array if isinstance(array, NDArray) else owner_of(array)


def host_of(array: Any) -> Any:
    """Return a NumPy array on the memory of an array; None of memory that the host does not reach."""
    if isinstance(array, NDArray):
        return None if array._elsewhere or array._recording is not None else array._storage()
    return np.asarray(array)


def _bytes_of(array: Any) -> Any:
    """Return the bytes of an array in the order of memory; None if there are gaps, or objects."""
    host = host_of(array)
    if host is None or host.dtype.hasobject:
        return None
    if host.size == 0:
        return np.empty(0, np.uint8)
    for one in (host, host.T):
        if one.flags.c_contiguous:
            return one.reshape(-1).view(np.uint8)
    return None


def span_of(array: Any) -> Span:
    """Return the addresses of an array; an empty span if they are not known."""
    try:
        host = host_of(array)
    except Exception:  # noqa: BLE001 - a failed array
        return 0, 0
    if host is None:
        return 0, 0
    start: int = host.__array_interface__["data"][0]
    if host.flags.c_contiguous:
        return start, start + host.nbytes
    steps = [stride * (length - 1) for stride, length in zip(host.strides, host.shape, strict=True) if length]
    below, above = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
    return start + below, start + above + host.itemsize


def _without(span: Span, taken: Iterable[Span]) -> Iterator[Span]:
    """Yield the rest of a span without others.

    Examples
    --------
    >>> from weft._doctor.memory import _without
    >>> list(_without((0, 10), [(2, 4), (8, 20)]))
    [(0, 2), (4, 8)]
    """
    first, end = span
    for start, stop in sorted(taken):
        if stop <= first or start >= end:
            continue
        if start > first:
            yield first, start
        first = max(first, stop)
    if first < end:
        yield first, end


def covered(span: Span, by: Iterable[Span]) -> bool:
    """Return whether all of a span lies in others."""
    return next(_without(span, by), None) is None


class Regions:
    """All regions that are known, by their owners."""

    def __init__(self) -> None:
        self._regions: dict[int, Region] = {}
        self.left_out = 0
        #: The place that is looked at, as each run has it.
        self.at = ""
        self._new = 0

    def look_at(self, place: str) -> None:
        """Go to a place: regions that are new are made there."""
        self.at, self._new = place, 0

    def __iter__(self) -> Iterator[Region]:
        """Yield the regions that are still in memory."""
        for key, region in [*self._regions.items()]:
            if region.array is None:
                self._regions.pop(key, None)
            else:
                yield region

    def of(self, array: Any, path: str = "", file: str = "") -> Region | None:
        """Return the region of an array, a new one at the first call; None if it can have none."""
        owner = _owner(array)
        region = self._regions.get(id(owner))
        if region is not None and region._owner() is owner:
            if not region.path or (region.file != file and not region.path.isidentifier() and path.isidentifier()):
                region.path, region.file = path or region.path, file or region.file
            return region
        if len(self._regions) >= REGIONS and sum(1 for _ in self) >= REGIONS:
            self.left_out += 1
            return None
        if not weakly_referenceable(owner):
            return None
        if is_host(owner):
            array = owner
        elif isinstance(array, memoryview):
            return None
        region = Region(array, path, file)
        if self.at:
            region.made = f"{self.at}.{self._new}"
            self._new += 1
        self._regions[id(owner)] = region
        return region
