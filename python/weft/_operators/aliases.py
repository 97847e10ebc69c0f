"""SINGA's names of functions that weft has under NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import weft
from weft._array import namespace
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

abs_ = namespace.abs
acos = namespace.acos
acosh = namespace.acosh
add = namespace.add
add_all = sum_of
asin = namespace.asin
asinh = namespace.asinh
atan = namespace.atan
atanh = namespace.atanh
ceil = namespace.ceil
cos = namespace.cos
cosh = namespace.cosh
div = namespace.divide
equal = namespace.equal
exp = namespace.exp
floor = namespace.floor
greater = namespace.greater
less = namespace.less
log = namespace.log
matmul = namespace.matmul
mul = namespace.multiply
negative = namespace.negative
pow_ = namespace.pow
reciprocal = namespace.reciprocal
rounde = namespace.round
sign = namespace.sign
sin = namespace.sin
sinh = namespace.sinh
sqrt = namespace.sqrt
sub = namespace.subtract
tan = namespace.tan
tanh = namespace.tanh


def nonzero(x: NDArray) -> NDArray:
    """Return the indices of elements that are not 0, a row for each axis, of int32; the values are waited for.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.nonzero(weft.asarray([0.0, 3.0])).tolist()
    [[1]]
    """
    return weft.stack(list(weft.nonzero(x))).astype(np.int32)
