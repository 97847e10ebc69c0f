"""SINGA's names of functions that weft has under NumPy's: those of `weft.autograd`, and how those of `weft.tensor` are made.

A function takes its arguments by SINGA's names, and numbers of NumPy's as Python's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from weft._numpy import namespace
from weft._singa.elementwise import sum_of
from weft._singa.models.scalars import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._core import NDArray

#: A function under SINGA's name.
Function: TypeAlias = "Callable[..., NDArray]"

F = TypeVar("F", bound="Callable[..., Any]")

add_all = sum_of


def _named(name: str, text: str, function: F) -> F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {text}."
    return function


def _of_a(name: str, function: Callable[[Any], NDArray], text: str) -> Callable[[NDArray], NDArray]:
    def found(a: NDArray) -> NDArray:
        return function(a)

    return _named(name, text, found)


def _of_a_b(name: str, function: Callable[..., NDArray], text: str) -> Callable[..., NDArray]:
    def found(a: NDArray | float, b: NDArray | float) -> NDArray:
        return function(plain(a), plain(b))

    return _named(name, text, found)


def _of_x_y(name: str, function: Callable[..., NDArray], text: str) -> Callable[..., NDArray]:
    def found(x: NDArray | float, y: NDArray | float) -> NDArray:
        return function(plain(x), plain(y))

    return _named(name, text, found)


abs: Function = _of_a("abs", namespace.abs, "the absolute values")
exp: Function = _of_a("exp", namespace.exp, "the exponentials")
sign: Function = _of_a("sign", namespace.sign, "the signs: -1, 0 or 1")
add: Function = _of_a_b("add", namespace.add, "the sum")
sub: Function = _of_a_b("sub", namespace.subtract, "the difference")
mul: Function = _of_x_y("mul", namespace.multiply, "the product, element by element")
div: Function = _of_a_b("div", namespace.divide, "the quotient")
pow: Function = _of_a_b("pow", namespace.pow, "the power")


def _numbers(found: NDArray, *operands: Any) -> NDArray:
    """Return booleans as SINGA's comparisons have them: 0.0 and 1.0, in the operands' dtype if it is a floating-point one."""
    dtypes = {x.dtype for x in operands if getattr(getattr(x, "dtype", None), "kind", "") == "f"}
    return found.astype(dtypes.pop() if len(dtypes) == 1 else np.float32)


def _compared(name: str, function: Callable[..., NDArray], text: str) -> Callable[..., NDArray]:
    def found(x: NDArray | float, y: NDArray | float) -> NDArray:
        return _numbers(function(plain(x), plain(y)), x, y)

    return _named(name, f"1.0 {text}, and 0.0 elsewhere", found)


less: Function = _compared("less", namespace.less, "where the elements of `x` are less than those of `y`")
greater: Function = _compared("greater", namespace.greater, "where the elements of `x` are greater than those of `y`")
equal: Function = _compared("equal", namespace.equal, "where elements are equal")


def matmul(x: NDArray, w: NDArray) -> NDArray:
    """Return the product of matrices."""
    return namespace.matmul(x, w)


def nonzero(x: NDArray) -> NDArray:
    """Return the indices of elements that are not 0, a row for each axis, of int32; the values are waited for.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.nonzero(weft.asarray([0.0, 3.0])).tolist()
    [[1]]
    """
    return namespace.stack(list(namespace.nonzero(x))).astype(np.int32)


def of_t(name: str, function: Callable[[Any], NDArray], text: str) -> Callable[[NDArray], NDArray]:
    """Return SINGA's function of one tensor."""

    def found(t: NDArray) -> NDArray:
        return function(t)

    return _named(name, text, found)


def comparison(name: str, function: Callable[..., NDArray], text: str) -> Callable[..., NDArray]:
    """Return SINGA's comparison of a tensor with a number or another tensor, of numbers that can be added up."""

    def found(t: NDArray, x: NDArray | float) -> NDArray:
        return _numbers(function(t, plain(x)), t, x)

    return _named(name, f"1.0 {text}, and 0.0 elsewhere", found)


def into_ret(name: str, function: Callable[..., NDArray], text: str) -> Callable[..., NDArray]:
    """Return SINGA's function of two operands that may write into a third."""

    def found(lhs: NDArray | float, rhs: NDArray | float, ret: NDArray | None = None) -> NDArray:
        return function(plain(lhs), plain(rhs), out=ret)

    return _named(name, f"{text}: in `ret`, if it is given", found)
