"""The bytes that pending tasks hold by their arguments: each array counts once, for the first pending task that has it."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from weft._core import NDArray
from weft._engine.owners import owner_of

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Smaller arrays are not worth the look.
_SMALL = 1 << 12
_pending: dict[int, int] = {}  # calls that hold the memory, by the identity of its owner, which they keep alive
_lock = threading.RLock()  # reentrant: the collector may end a `Held` under it


def holding(arrays: list[Any]) -> Held | None:
    """Return a hold on the arrays of a call, None if all are small: most are, and the look is paid by each call."""
    for array in arrays:
        if array.nbytes >= _SMALL:
            return Held(arrays)
    return None


class Held:
    """Memory that one pending call holds, until this object goes with the call.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._engine.task_bytes import Held
    >>> batch = np.zeros(1000)
    >>> first, second = Held([batch]), Held([batch, batch[:500]])
    >>> first.nbytes, second.nbytes
    (8000, 0)
    """

    __slots__ = ("_owners", "nbytes")

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._owners: set[int] = set()
        self.nbytes = 0
        for array in arrays:
            if array.nbytes < _SMALL:
                continue
            key = id(array if isinstance(array, NDArray) else owner_of(array))
            with _lock:
                if key in self._owners:
                    continue
                self._owners.add(key)
                holders = _pending.get(key, 0)
                _pending[key] = holders + 1
            if not holders:
                self.nbytes += array.nbytes

    def __del__(self) -> None:
        """Give the memory back to the count."""
        with _lock:
            for key in self._owners:
                left = _pending.get(key, 1) - 1
                if left:
                    _pending[key] = left
                else:
                    _pending.pop(key, None)


def _after_fork_child() -> None:
    """Give the child a lock that no vanished thread holds."""
    global _lock  # noqa: PLW0603 - a module's lock is a global
    _lock = threading.RLock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_child)
