"""Stands in for CuPy where memory of devices is the host's: NumPy arrays on it. Tests save it as ``cupy.py``."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Streams that were current, innermost last, and all that ever were.
current: list[tuple[int, int]] = []
seen: list[tuple[int, int]] = []
#: Pools from which is allocated, innermost last, and all that ever were.
allocators: list[MemoryPool] = []
pools: list[MemoryPool] = []


class _Stream:
    def __init__(self, pointer: int, device: int) -> None:
        self._key = pointer, device

    def __enter__(self) -> None:
        current.append(self._key)
        seen.append(self._key)

    def __exit__(self, *_: object) -> None:
        assert current.pop() == self._key


class _Memory:
    def __init__(self, pointer: int, size: int, owner: object, device: int) -> None:
        assert device in (0, 1)
        self.pointer, self.size, self.owner = pointer, size, owner


class MemoryPool:
    """Whose name is all that counts."""

    def malloc(self, size: int) -> int:
        """Allocate."""
        return size


@contextmanager
def _using_allocator(malloc: Any) -> Iterator[None]:
    allocators.append(malloc.__self__)
    pools.append(malloc.__self__)
    yield
    allocators.pop()


class cuda:  # noqa: N801 - CuPy's name
    """The part of ``cupy.cuda`` that is used."""

    ExternalStream = _Stream
    UnownedMemory = _Memory
    MemoryPool = MemoryPool
    using_allocator = staticmethod(_using_allocator)
    MemoryPointer = staticmethod(lambda memory, offset: (memory, offset))


def ndarray(shape: tuple[int, ...], dtype: Any, memptr: Any, strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array on device memory."""
    memory, offset = memptr
    buffer = (ctypes.c_char * memory.size).from_address(memory.pointer)
    buffer.owner = memory.owner
    return np.ndarray(shape, dtype, buffer, offset, strides)
