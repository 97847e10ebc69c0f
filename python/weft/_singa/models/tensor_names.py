"""Functions that weft has under NumPy's names and arguments, under SINGA's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._ops import namespace as weft
from weft._singa.models.scalars import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray

__all__ = [
    "abs",
    "add",
    "ceil",
    "concatenate",
    "div",
    "einsum",
    "eltwise_mult",
    "eq",
    "exp",
    "ge",
    "gt",
    "le",
    "log",
    "lt",
    "ones_like",
    "repeat",
    "reshape",
    "sign",
    "sqrt",
    "square",
    "sub",
    "tanh",
    "tensordot",
    "zeros_like",
]


def abs(t: NDArray) -> NDArray:  # noqa: A001 - SINGA's
    """Return the absolute values."""
    return weft.abs(t)


def ceil(t: NDArray) -> NDArray:
    """Return the smallest integers that are not below the elements."""
    return weft.ceil(t)


def exp(t: NDArray) -> NDArray:
    """Return the exponentials."""
    return weft.exp(t)


def log(t: NDArray) -> NDArray:
    """Return the natural logarithms."""
    return weft.log(t)


def sign(t: NDArray) -> NDArray:
    """Return the signs: -1, 0 or 1."""
    return weft.sign(t)


def sqrt(t: NDArray) -> NDArray:
    """Return the square roots."""
    return weft.sqrt(t)


def square(t: NDArray) -> NDArray:
    """Return the squares."""
    return weft.square(t)


def tanh(t: NDArray) -> NDArray:
    """Return the hyperbolic tangents."""
    return weft.tanh(t)


def lt(t: NDArray, x: NDArray | float) -> NDArray:
    """Return where the elements of `t` are less than those of `x`."""
    return weft.less(t, plain(x))


def le(t: NDArray, x: NDArray | float) -> NDArray:
    """Return where the elements of `t` are at most those of `x`."""
    return weft.less_equal(t, plain(x))


def gt(t: NDArray, x: NDArray | float) -> NDArray:
    """Return where the elements of `t` are greater than those of `x`."""
    return weft.greater(t, plain(x))


def ge(t: NDArray, x: NDArray | float) -> NDArray:
    """Return where the elements of `t` are at least those of `x`."""
    return weft.greater_equal(t, plain(x))


def eq(t: NDArray, x: NDArray | float) -> NDArray:
    """Return where elements are equal."""
    return weft.equal(t, plain(x))


def add(lhs: NDArray | float, rhs: NDArray | float, ret: NDArray | None = None) -> NDArray:
    """Return the sum: in `ret`, if it is given."""
    return weft.add(plain(lhs), plain(rhs), out=ret)


def sub(lhs: NDArray | float, rhs: NDArray | float, ret: NDArray | None = None) -> NDArray:
    """Return the difference: in `ret`, if it is given."""
    return weft.subtract(plain(lhs), plain(rhs), out=ret)


def eltwise_mult(lhs: NDArray | float, rhs: NDArray | float, ret: NDArray | None = None) -> NDArray:
    """Return the product, element by element: in `ret`, if it is given."""
    return weft.multiply(plain(lhs), plain(rhs), out=ret)


def div(lhs: NDArray | float, rhs: NDArray | float, ret: NDArray | None = None) -> NDArray:
    """Return the quotient: in `ret`, if it is given."""
    return weft.divide(plain(lhs), plain(rhs), out=ret)


def zeros_like(t: NDArray) -> NDArray:
    """Return zeros, as many and of the same dtype."""
    return weft.zeros_like(t)


def ones_like(t: NDArray) -> NDArray:
    """Return ones, as many and of the same dtype."""
    return weft.ones_like(t)


def reshape(tensor: NDArray, shape: int | Sequence[int]) -> NDArray:
    """Return the elements in another shape."""
    return weft.reshape(tensor, shape)


def concatenate(tensors: Sequence[NDArray], axis: int) -> NDArray:
    """Return arrays as one, one after another along an axis."""
    return weft.concatenate(tensors, axis=axis)


def repeat(t: NDArray, repeats: int | Sequence[int], axis: int | None = None) -> NDArray:
    """Return each element several times in a row."""
    return weft.repeat(t, repeats, axis=axis)


def tensordot(A: NDArray, B: NDArray, axes: Any = 2) -> NDArray:  # noqa: N803 - a number or lists; SINGA's names
    """Return sums of products over axes of both."""
    return weft.tensordot(A, B, axes=axes)


def einsum(ops: str, *args: NDArray) -> NDArray:
    """Return sums of products, as Einstein's notation tells."""
    return weft.einsum(ops, *args)
