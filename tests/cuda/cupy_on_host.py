"""Stands in for CuPy where memory of devices is the host's: NumPy arrays on it. Tests save it as ``cupy.py``."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

#: Streams that were current, innermost last, and all that ever were.
current: list[tuple[int, int]] = []
seen: list[tuple[int, int]] = []


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


class cuda:  # noqa: N801 - CuPy's name
    """The part of ``cupy.cuda`` that is used."""

    ExternalStream = _Stream
    UnownedMemory = _Memory
    MemoryPointer = staticmethod(lambda memory, offset: (memory, offset))


def ndarray(shape: tuple[int, ...], dtype: Any, memptr: Any, strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array on device memory."""
    memory, offset = memptr
    buffer = (ctypes.c_char * memory.size).from_address(memory.pointer)
    buffer.owner = memory.owner
    return np.ndarray(shape, dtype, buffer, offset, strides)
