"""SINGA's names of functions that weft has under NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import weft
from weft._ops.namespace import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    floor,
    log,
    negative,
    reciprocal,
    round as rounde,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from weft._singa.elementwise import sum_of
from weft._singa.models.scalars import plain

if TYPE_CHECKING:
    from weft._core import NDArray

__all__ = [
    "abs_",
    "acos",
    "acosh",
    "add",
    "add_all",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "div",
    "equal",
    "exp",
    "floor",
    "greater",
    "less",
    "log",
    "matmul",
    "mul",
    "negative",
    "nonzero",
    "pow_",
    "reciprocal",
    "rounde",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "sub",
    "tan",
    "tanh",
]

add_all = sum_of


def abs_(a: NDArray) -> NDArray:
    """Return the absolute values."""
    return weft.abs(a)


def exp(a: NDArray) -> NDArray:
    """Return the exponentials."""
    return weft.exp(a)


def sign(a: NDArray) -> NDArray:
    """Return the signs: -1, 0 or 1."""
    return weft.sign(a)


def add(a: NDArray | float, b: NDArray | float) -> NDArray:
    """Return the sum."""
    return weft.add(plain(a), plain(b))


def sub(a: NDArray | float, b: NDArray | float) -> NDArray:
    """Return the difference."""
    return weft.subtract(plain(a), plain(b))


def mul(x: NDArray | float, y: NDArray | float) -> NDArray:
    """Return the product, element by element."""
    return weft.multiply(plain(x), plain(y))


def div(a: NDArray | float, b: NDArray | float) -> NDArray:
    """Return the quotient."""
    return weft.divide(plain(a), plain(b))


def pow_(a: NDArray | float, b: NDArray | float) -> NDArray:
    """Return the power."""
    return weft.pow(plain(a), plain(b))


def matmul(x: NDArray, w: NDArray) -> NDArray:
    """Return the product of matrices."""
    return weft.matmul(x, w)


def less(x: NDArray | float, y: NDArray | float) -> NDArray:
    """Return where the elements of `x` are less than those of `y`."""
    return weft.less(plain(x), plain(y))


def greater(x: NDArray | float, y: NDArray | float) -> NDArray:
    """Return where the elements of `x` are greater than those of `y`."""
    return weft.greater(plain(x), plain(y))


def equal(x: NDArray | float, y: NDArray | float) -> NDArray:
    """Return where elements are equal."""
    return weft.equal(plain(x), plain(y))


def nonzero(x: NDArray) -> NDArray:
    """Return the indices of elements that are not 0, a row for each axis, of int32; the values are waited for.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.nonzero(weft.asarray([0.0, 3.0])).tolist()
    [[1]]
    """
    return weft.stack(list(weft.nonzero(x))).astype(np.int32)
