"""Arrays of zeros in place of a call's arguments, for replays that only measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._ops.creation import zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import Engine
    from weft._engine.labels import Device


@dataclass(frozen=True, slots=True)
class Layout:
    """An argument's layout, and the argument that it shares memory with.

    Parameters
    ----------
    shape, strides : tuple of int
        As of the array.
    dtype : numpy.dtype
        The elements' type.
    owner : int
        The first argument on the same memory.
    distance : int
        Bytes from that one's first element to this one's.
    device : Device or None
        Its device, if it is not in the host's memory.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: int
    distance: int
    device: Device | None = None

    def reach(self) -> tuple[int, int]:
        """Return the range of its bytes, counted from its owner's first element."""
        if 0 in self.shape:
            return self.distance, self.distance
        ends = [(length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
        return self.distance + low, self.distance + high + self.dtype.itemsize


def layouts_of(leaves: Sequence[Any], overlaps: Sequence[tuple[int, int, int]]) -> tuple[Layout, ...]:
    """Return the layouts of a call's arrays; NumPy's are copied row after row."""
    shared = {other: (first, distance) for first, other, distance in overlaps}
    found: list[Layout] = []
    for number, leaf in enumerate(leaves):
        array = leaf if isinstance(leaf, NDArray) else np.empty_like(leaf, subok=False)
        owner, distance = shared.get(number, (number, 0))
        device = leaf.device if isinstance(leaf, NDArray) and leaf._elsewhere else None
        found.append(Layout(array.shape, array.strides, np.dtype(array.dtype), owner, distance, device))
    return tuple(found)


def blank(layouts: Sequence[Layout], engine: Engine) -> tuple[NDArray, ...]:
    """Make arrays of zeros of these layouts."""
    made: dict[int, tuple[NDArray, int]] = {}
    for owner in dict.fromkeys(layout.owner for layout in layouts):
        reaches = [layout.reach() for layout in layouts if layout.owner == owner]
        low, high = min(low for low, _ in reaches), max(high for _, high in reaches)
        device = layouts[owner].device
        made[owner] = zeros(high - low, dtype=np.uint8, device=device, engine=engine), low
    return tuple(
        made[layout.owner][0]._strided(
            layout.shape, layout.strides, layout.distance - made[layout.owner][1], layout.dtype
        )
        for layout in layouts
    )
