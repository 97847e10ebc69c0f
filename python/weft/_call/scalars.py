"""Python scalars as elements: the value of a number in an array of a dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import ArgumentOverflowError, ArgumentTypeError

if TYPE_CHECKING:
    from weft._registry.avals import DType

_LARGEST = {np.dtype(kind).itemsize: float(np.finfo(kind).max) for kind in (np.float16, np.float32, np.float64)}
_PARTS: dict[int, DType] = {8: np.dtype(np.float32), 16: np.dtype(np.float64)}


def number(value: Any, dtype: DType) -> bool | int | float | complex:
    """Return a Python scalar as an element of `dtype` is written.

    Raises
    ------
    OverflowError
        If `dtype` is one of integers, and `value` is out of its range.

    Examples
    --------
    >>> import numpy
    >>> from weft._call.scalars import number
    >>> number(3, numpy.dtype("float32"))
    3.0
    """
    kind = dtype.kind
    if kind == "f":
        value = float(value)
        if abs(value) > _LARGEST[dtype.itemsize]:
            with np.errstate(all="ignore"):
                return float(dtype.type(value))  # to infinity, or just not
        return value  # type: ignore[no-any-return] # a float, just made
    if kind in "iu":
        value = int(value)
        bits = 8 * dtype.itemsize - (kind == "i")
        low = -(1 << bits) if kind == "i" else 0
        if not low <= value < 1 << bits:
            raise ArgumentOverflowError(f"Python integer {value} out of bounds for {dtype}")
        return value  # type: ignore[no-any-return] # an int, just made
    if kind == "b":
        return bool(value)
    value = complex(value)
    part = _PARTS[dtype.itemsize]
    return complex(number(value.real, part), number(value.imag, part))


def wrapped(value: Any, dtype: DType) -> Any:
    """Return an operand as an element of `dtype`, to which a Python integer is cast: the bits that do not fit are lost.

    Raises
    ------
    OverflowError
        If NumPy has no integers that are as large.

    Examples
    --------
    >>> import numpy
    >>> from weft._call.scalars import wrapped
    >>> wrapped(300, numpy.dtype("int8"))
    44
    """
    if value.__class__ is not int or dtype.kind not in "iu":
        return value
    if not -(1 << 63) <= value < 1 << 64:
        raise ArgumentOverflowError(f"Python integer {value} is larger than any integer of an array")
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def element(value: Any, dtype: DType) -> bool | int | float | complex:
    """Return a Python scalar as NumPy's assignment makes an element of `dtype` of it.

    Raises
    ------
    OverflowError
        If an integer is out of range.
    TypeError
        If a complex number is to become a real one.
    ValueError
        If NaN is to become an integer.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._call.scalars import element
    >>> element(1.5, np.dtype("int64"))
    1
    """
    if dtype.kind in "iufc" and isinstance(value, float) and (dtype.kind in "fc" or not math.isfinite(value)):
        return number(value, dtype) if dtype.kind in "fc" else int(value)  # int() raises
    if dtype.kind in "iuf" and isinstance(value, complex):
        raise ArgumentTypeError(f"cannot assign the complex number {value} to an array of {dtype}")
    return number(value, dtype)


def number_of(value: Any) -> Any:
    """Return a Python number for a number, a NumPy scalar, or an array of one element, which is waited for.

    Examples
    --------
    >>> import weft
    >>> from weft._call.scalars import number_of
    >>> number_of(weft.asarray([2]))
    2
    """
    found: Any = value.item() if hasattr(value, "item") else value
    if not isinstance(found, bool | int | float | complex):
        raise ArgumentTypeError(f"a number is needed, not {found.__class__.__name__}")
    return found
