"""Shapes, axes and strides: the pure arithmetic that inference rules and views share. Knows no arrays."""

from __future__ import annotations

import math
import operator
from functools import cache
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from weft._registry.brief import brief
from weft._registry.symbol_hook import UnknownFactError, UnknownRank
from weft.errors import ArgumentOverflowError, ArgumentTypeError, ArgumentValueError, AxisError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import TypeIs

Shape: TypeAlias = tuple[int, ...]
AnyShape: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
Axis: TypeAlias = "SupportsIndex | Sequence[SupportsIndex] | None"


def is_index(x: object) -> TypeIs[SupportsIndex]:
    """Return whether `x` is one integer, of any class; a protocol's `isinstance` takes microseconds to say so.

    Arrays have the method, too: those with axes are sequences.
    """
    return x.__class__ is int or (
        x.__class__ is not tuple and hasattr(type(x), "__index__") and not getattr(x, "ndim", 0)
    )


def as_index(value: SupportsIndex, name: str) -> int:
    """Return a whole number that an argument of this name is given; ArgumentTypeError if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{name} is an integer, not the {type(value).__name__} {brief(value)}") from None


def as_number(value: SupportsFloat | SupportsIndex, name: str) -> float:
    """Return a real number that an argument of this name is given; ArgumentTypeError if it is none."""
    try:
        return float(value)
    except TypeError:
        raise ArgumentTypeError(f"{name} is a real number, not the {type(value).__name__} {brief(value)}") from None
    except OverflowError as error:
        raise ArgumentOverflowError(f"{name}: {error}") from None


def as_shape(shape: AnyShape) -> Shape:
    """Return a shape given as an integer or a sequence of them, as a tuple."""
    try:
        if is_index(shape):
            return (operator.index(shape),)
        return tuple([operator.index(n) for n in shape])
    except TypeError:
        raise ArgumentTypeError(
            f"a shape is an integer or a sequence of integers, not the {type(shape).__name__} {brief(shape)}"
        ) from None


def axis_index(axis: SupportsIndex, ndim: int | UnknownRank) -> int:
    """Return the axis counted from the front; AxisError if there is none."""
    try:
        index = operator.index(axis)
    except TypeError:
        raise ArgumentTypeError(f"an axis is an integer, not the {type(axis).__name__} {brief(axis)}") from None
    if isinstance(ndim, UnknownRank):
        return index
    try:
        return normalize_axis_index(index, ndim)
    except np.exceptions.AxisError as error:
        raise _no_axis(error) from None


def axes_in_order(axes: int | Iterable[int], ndim: int, name: str | None = None) -> Shape:
    """Return the axes counted from the front, in the order given; AxisError if one is not there, ArgumentValueError if twice."""
    try:
        return normalize_axis_tuple(axes, ndim, name)
    except np.exceptions.AxisError as error:
        raise _no_axis(error) from None
    except UnknownFactError:
        raise
    except ValueError as error:
        raise ArgumentValueError(f"{error}: {axes}") from None
    except TypeError:
        raise ArgumentTypeError(
            f"{name or 'axes'} are an integer or several of them, not the {type(axes).__name__} {brief(axes)}"
        ) from None


def _no_axis(error: np.exceptions.AxisError) -> AxisError:
    if error.axis is None or error.ndim is None:
        return AxisError(str(error))
    return AxisError(error.axis, error.ndim, getattr(error, "_msg", None))


@cache
def _every(ndim: int) -> Shape:
    return tuple(range(ndim))


def axis_tuple(axis: Axis, ndim: int | UnknownRank) -> Shape:
    """Return the axes counted from the front, sorted; all of them for None."""
    if isinstance(ndim, UnknownRank):
        if axis is None or min(as_shape(axis), default=0) < 0:
            raise UnknownFactError(f"axes are counted from the end, and {ndim}")
        return as_shape(axis)
    if axis is None:
        return _every(ndim)
    if is_index(axis):
        return (axis_index(axis, ndim),)
    if axis.__class__ is tuple and axis == _every(ndim):  # given by an earlier call of this
        return _every(ndim)
    try:
        found = [operator.index(each) for each in axis]
    except TypeError:
        raise ArgumentTypeError(
            f"axes are an integer or several of them, not the {type(axis).__name__} {brief(axis)}"
        ) from None
    return tuple(sorted(axes_in_order(found, ndim)))


def is_only_axis(axis: object, ndim: int) -> bool:
    """Return whether `axis` is 0 or -1 and the array has no axes: NumPy's reductions take such an array for one of one element."""
    return ndim == 0 and is_index(axis) and operator.index(axis) in (0, -1)


def reduced_axes(axis: Axis, ndim: int, *, by_rule: bool = False) -> Shape:
    """Return the axes of a reduction, as `axis_tuple`; those of a symbol `by_rule`, which counts from the end as well."""
    if by_rule and isinstance(ndim, UnknownRank):
        return cast("Shape", None if axis is None else as_shape(axis))
    return () if is_only_axis(axis, ndim) else axis_tuple(axis, ndim)


def contiguous_strides(shape: Shape, itemsize: int) -> Shape:
    """Return the strides in bytes of a C-ordered array."""
    if len(shape) == 1:
        return (itemsize,)
    strides: list[int] = []
    step = itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def reshape_strides(shape: Shape, strides: Shape, itemsize: int, new: Shape) -> Shape | None:
    """Return the strides that show the same elements in the shape `new`, or None where only a copy can.

    Runs of axes of both shapes with equally many elements are matched, as in NumPy's `_attempt_nocopy_reshape`: such a
    run can be cut anew only if its axes follow each other in memory without a gap.
    """
    if 0 in new:
        return contiguous_strides(new, itemsize)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    i = j = 0
    while i < len(old) and j < len(new):
        first, (have, step) = i, old[i]
        cut, want = j, new[j]
        while have != want:
            if want < have:
                j += 1
                want *= new[j]
            else:
                i += 1
                have *= old[i][0]
                step = old[i][1]
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(first, i)):
            return None
        result.extend(step * math.prod(new[k + 1 : j + 1]) for k in range(cut, j + 1))
        i, j = i + 1, j + 1
    # The rest of `new` has length 1, where any stride will do.
    return (*result, *(itemsize,) * (len(new) - len(result)))
