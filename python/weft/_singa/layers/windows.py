"""Sizes of kernels and windows, and the zeros around images."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias, cast

from weft._registry.brief import brief
from weft.errors import ArgumentTypeError, ArgumentValueError

Pair: TypeAlias = "int | Sequence[int]"
#: For rows and for columns: how many before, and how many behind.
Sides: TypeAlias = "tuple[tuple[int, int], tuple[int, int]]"


def pair(name: str, value: Pair, least: int = 1) -> tuple[int, int]:
    """Return a number for rows and one for columns, each of at least so much.

    Examples
    --------
    >>> from weft._singa.layers.windows import pair
    >>> pair("stride", 2), pair("stride", (1, 2))
    ((2, 2), (1, 2))
    """
    given: object = (value, value) if isinstance(value, int) else value
    whole = not isinstance(given, str) and isinstance(given, Sequence) and len(given) == 2  # rows and columns
    if not whole or not all(isinstance(each, SupportsIndex) for each in cast("Sequence[object]", given)):
        raise ArgumentTypeError(f"{name} is a number, or one for rows and one for columns, not {brief(value)}")
    rows, columns = map(operator.index, cast("Sequence[SupportsIndex]", given))
    if min(rows, columns) < least:
        raise ArgumentValueError(f"{name} is at least {least}, not {brief(value)}")
    return rows, columns


def padding_of(value: Pair) -> Sides:
    """Return padding given as a number, for rows and columns, or as (above, below, left, right).

    Examples
    --------
    >>> from weft._singa.layers.windows import padding_of
    >>> padding_of(1), padding_of([0, 1, 2, 3])
    (((1, 1), (1, 1)), ((0, 1), (2, 3)))
    """
    several = isinstance(cast("object", value), Sequence)
    if several and not isinstance(value, int | str) and len(value) == 4:  # the sides of an image
        return (value[0], value[1]), (value[2], value[3])
    rows, columns = pair("padding", value, 0)
    return (rows, rows), (columns, columns)


def check_mode(mode: str) -> str:
    """Return a pad mode; ArgumentValueError for any other word."""
    if mode not in {"NOTSET", "SAME_UPPER", "SAME_LOWER"}:
        raise ArgumentValueError(f"pad_mode is 'NOTSET', 'SAME_UPPER' or 'SAME_LOWER', not {mode!r}")
    return mode


def same_padding(
    mode: str, size: Sequence[int], kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int] = (1, 1)
) -> Sides:
    """Return the padding that gives results of the images' size, divided by the stride and rounded up.

    Examples
    --------
    >>> from weft._singa.layers.windows import same_padding
    >>> same_padding("SAME_UPPER", (5, 6), (2, 3), (1, 2))
    ((0, 1), (0, 1))
    """
    found: list[tuple[int, int]] = []
    for length, window, step, apart in zip(size, kernel, stride, dilation, strict=True):
        whole = max((-(-length // step) - 1) * step + (window - 1) * apart + 1 - length, 0)
        less, more = whole // 2, whole - whole // 2
        found.append((less, more) if mode == "SAME_UPPER" else (more, less))
    return found[0], found[1]
