"""Questions about the classes of values, with answers that type checkers understand."""

from __future__ import annotations

import collections
import itertools
from typing import Any, TypeGuard

import numpy as np

from weft._core import NDArray


def is_host(value: object) -> TypeGuard[np.ndarray[Any, Any]]:
    """Return whether a value is a NumPy array."""
    return isinstance(value, np.ndarray)


def is_memory(value: object) -> TypeGuard[Any]:
    """Return whether a value shows memory of the host."""
    return isinstance(value, (np.ndarray, memoryview))


def is_array(value: object) -> TypeGuard[Any]:
    """Return whether a value is an array, NumPy's or weft's."""
    return isinstance(value, (np.ndarray, NDArray))


def is_row(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a list or a tuple."""
    return isinstance(value, (list, tuple))


def as_row(value: object, items: int) -> list[Any] | None:
    """Return the first items of a list, a tuple, a deque or a set; None for anything else."""
    if isinstance(value, (list, tuple)):
        return [*value[:items]]
    if isinstance(value, (collections.deque, set, frozenset)):
        held: Any = value.copy()  # pyright: ignore[reportUnknownVariableType]
        return [*itertools.islice(held, items)]
    return None


def is_mapping(value: object) -> TypeGuard[dict[Any, Any]]:
    """Return whether a value is a dict."""
    return isinstance(value, dict)


def is_scalar(value: object) -> TypeGuard[Any]:
    """Return whether a representation says all about a value: a number, a text, bytes, None."""
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic))


def is_real(value: object) -> TypeGuard[Any]:
    """Return whether a value is a number that may be not finite."""
    return isinstance(value, (float, complex, np.inexact))


def is_number(value: object) -> TypeGuard[Any]:
    """Return whether a value is a number, and no truth value."""
    return isinstance(value, (int, float, complex, np.number)) and not isinstance(value, bool)
