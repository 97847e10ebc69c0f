"""SINGA's names of functions that weft has under NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import weft
from weft._array.namespace import (
    abs as abs_,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    divide as div,
    equal,
    exp,
    floor,
    greater,
    less,
    log,
    matmul,
    multiply as mul,
    negative,
    pow as pow_,
    reciprocal,
    round as rounde,
    sign,
    sin,
    sinh,
    sqrt,
    subtract as sub,
    tan,
    tanh,
)
from weft._operators.elementwise import sum_of

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


def nonzero(x: NDArray) -> NDArray:
    """Return the indices of elements that are not 0, a row for each axis, of int32; the values are waited for.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.nonzero(weft.asarray([0.0, 3.0])).tolist()
    [[1]]
    """
    return weft.stack(list(weft.nonzero(x))).astype(np.int32)
