"""Python scalars as elements: the value of a number in an array of a dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.errors import ArgumentOverflowError, ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._registry.avals import DType

_LARGEST = {np.dtype(kind).itemsize: float(np.finfo(kind).max) for kind in (np.float16, np.float32, np.float64)}
_PARTS: dict[int, DType] = {8: np.dtype(np.float32), 16: np.dtype(np.float64)}


def number(value: Any, dtype: DType) -> bool | int | float | complex:
    """Return a Python scalar in the form of an element of `dtype`.

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
                return float(dtype.type(value))  # infinity, or the largest finite number
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
    """Return an operand cast to `dtype`; a Python integer loses the bits that do not fit.

    Raises
    ------
    OverflowError
        If NumPy has no integers of this size.

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
    """Return a Python scalar as an element of `dtype` by the rules of NumPy's assignment.

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
    if dtype.kind in "iu" and isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ArgumentValueError(f"cannot assign NaN to an array of {dtype}")
        raise ArgumentOverflowError(f"cannot assign {value} to an array of {dtype}")
    if dtype.kind in "iuf" and isinstance(value, complex):
        raise ArgumentTypeError(f"cannot assign the complex number {value} to an array of {dtype}")
    return number(value, dtype)


def assigned(value: Any, dtype: DType) -> bool | int | float | complex | None:
    """Return the element that a scalar is written as through a view, or None for what is cast as an array is.

    NumPy asks its own numbers for Python's where elements are signed integers: what `dtype` has not is an error there, though
    an array of it is cast, and so is the same number among unsigned integers.

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
    >>> from weft._call.scalars import assigned
    >>> assigned(np.float32(2.5), np.dtype("int8"))
    2
    """
    if isinstance(value, np.generic):
        number = cast("Any", value)
        if dtype.kind != "i" or number.dtype.kind not in "iuf":
            return None
        return element(int(number) if np.isfinite(number) else float(number), dtype)
    return element(value, dtype) if isinstance(value, bool | int | float | complex) else None


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
