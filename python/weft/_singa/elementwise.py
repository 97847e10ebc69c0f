"""SINGA's operators on elements."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._singa.models.scalars import plain
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft._core import NDArray


def relu(x: NDArray) -> NDArray:
    """Return the positive elements, and 0 for the others.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.relu(weft.asarray([-1.0, 2.0]))
    NDArray([0., 2.])
    """
    return nn.relu(x)


def leakyrelu(x: NDArray, a: float = 0.01) -> NDArray:
    """Return the elements, those below 0 times `a`."""
    return nn.leaky_relu(x, a)


def prelu(x: NDArray, slope: NDArray) -> NDArray:
    """Return the elements, those below 0 times a slope that is broadcast, and can be learned."""
    return nn.relu(x) + slope * namespace.minimum(x, 0)


def elu(x: NDArray, alpha: float = 1.0) -> NDArray:
    """Return the elements, and ``alpha * (exp(x) - 1)`` below 0."""
    return nn.elu(x, alpha)


def selu(x: NDArray, alpha: float = 1.67326, gamma: float = 1.0507) -> NDArray:
    """Return ``gamma`` times the elements, and ``gamma * alpha * (exp(x) - 1)`` below 0."""
    return plain(gamma) * nn.elu(x, alpha)


def sigmoid(x: NDArray) -> NDArray:
    """Return ``1 / (1 + exp(-x))``."""
    return nn.sigmoid(x)


def hardsigmoid(x: NDArray, alpha: float = 0.2, gamma: float = 0.5) -> NDArray:
    """Return ``alpha * x + gamma``, limited to between 0 and 1."""
    return namespace.clip(plain(alpha) * x + plain(gamma), 0, 1)


def softplus(x: NDArray) -> NDArray:
    """Return ``log(1 + exp(x))``."""
    return nn.softplus(x)


def softsign(x: NDArray) -> NDArray:
    """Return ``x / (1 + abs(x))``."""
    return x / (1 + namespace.abs(x))


def clip(x: NDArray, min: float | None = None, max: float | None = None) -> NDArray:
    """Return the elements, limited to a range; None is no limit."""
    return identity(x) if min is None and max is None else namespace.clip(x, min, max)


def identity(x: NDArray) -> NDArray:
    """Return the elements in an array of its own."""
    return x.copy()


def round_up(x: NDArray) -> NDArray:
    """Return the nearest whole numbers, halves away from 0.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.round(weft.asarray([0.5, -2.5, 1.2]))
    NDArray([ 1., -3.,  1.])
    """
    return namespace.sign(x) * namespace.floor(namespace.abs(x) + 0.5)


def cast(x: NDArray, to: npt.DTypeLike) -> NDArray:
    """Return the elements in another dtype."""
    return x.astype(to)


def where(x: NDArray, y: NDArray, condition: npt.ArrayLike | NDArray) -> NDArray:
    """Return elements of `x` where a condition holds, or is not 0, and of `y` otherwise.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.where(weft.asarray([1.0, 2.0]), weft.asarray([3.0, 4.0]), [True, False])
    NDArray([1., 4.])
    """
    given = namespace.asarray(condition)
    return chosen(given if given.dtype.kind == "b" else given != 0, x, y)


def chosen(condition: NDArray, x: Any, y: Any) -> NDArray:
    """Return `x` where a condition holds, and `y` elsewhere.

    Examples
    --------
    >>> import weft
    >>> from weft._singa.elementwise import chosen
    >>> chosen(weft.asarray([True, False]), weft.ones(2), 0)
    NDArray([1., 0.])
    """
    found = namespace.where(condition, x, y)
    assert not isinstance(found, tuple)  # three arguments give an array
    return found


def logical_and(a: NDArray, b: NDArray) -> NDArray:
    """Return 1 where both elements are not 0, and 0 elsewhere, in the dtype of the first."""
    return namespace.logical_and(a, b).astype(a.dtype)


def logical_or(a: NDArray, b: NDArray) -> NDArray:
    """Return 1 where one of both elements is not 0, and 0 elsewhere, in the dtype of the first."""
    return namespace.logical_or(a, b).astype(a.dtype)


def logical_xor(a: NDArray, b: NDArray) -> NDArray:
    """Return 1 where just one of both elements is not 0, and 0 elsewhere, in the dtype of the first."""
    return namespace.logical_xor(a, b).astype(a.dtype)


def logical_not(x: NDArray) -> NDArray:
    """Return 1 where the element is 0, and 0 elsewhere, in its dtype."""
    return namespace.logical_not(x).astype(x.dtype)


def sum_of(*arrays: NDArray) -> NDArray:
    """Return the sum of arrays, element by element.

    Examples
    --------
    >>> import weft
    >>> x = weft.ones(2)
    >>> weft.autograd.sum(x, x, x)
    NDArray([3., 3.])
    """
    return _folded(namespace.add, arrays)


def mean_of(*arrays: NDArray) -> NDArray:
    """Return the mean of arrays, element by element."""
    return sum_of(*arrays) / len(arrays)


def min_of(*arrays: NDArray) -> NDArray:
    """Return the least of arrays, element by element."""
    return _folded(namespace.minimum, arrays)


def max_of(*arrays: NDArray) -> NDArray:
    """Return the greatest of arrays, element by element."""
    return _folded(namespace.maximum, arrays)


def _folded(function: Callable[[NDArray, NDArray], NDArray], arrays: tuple[NDArray, ...]) -> NDArray:
    if not arrays:
        raise ArgumentTypeError("at least one array is needed, and none was given")
    return identity(arrays[0]) if len(arrays) == 1 else functools.reduce(function, arrays)
