"""Whole arrays compared: `allclose` and `array_equal`; and one array chosen from several: `select`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import as_array
from weft._core import NDArray
from weft._ops.dtypes import astype
from weft._ops.elementwise import equal, isnan, logical_and, logical_or
from weft._ops.reductions import all as every
from weft._ops.rounding import isclose
from weft._ops.searching import where
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._call.operands import ArrayLike

__all__ = ["allclose", "array_equal", "select"]

#: Python's numbers, which take the dtype of the arrays beside them.
_WEAK = frozenset([int, float, complex])


def allclose(
    x1: ArrayLike, x2: ArrayLike, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> NDArray:
    """Return whether all elements are close to each other, as an array: the wait comes when its value is used.

    Parameters
    ----------
    x1, x2 : array-like
        The arrays; they are broadcast.
    rtol, atol : float
        As for `isclose`: the largest distance, relative to `x2` and absolute.
    equal_nan : bool, default: False
        Whether two NaN are close.

    Examples
    --------
    >>> import weft
    >>> bool(weft.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]))
    True
    """
    return every(isclose(x1, x2, rtol, atol, equal_nan=equal_nan))


def array_equal(x1: ArrayLike, x2: ArrayLike, /, *, equal_nan: bool = False) -> NDArray:
    """Return whether two arrays have the same shape and elements, as an array: the wait comes when its value is used.

    Examples
    --------
    >>> import weft
    >>> bool(weft.array_equal([1, 2], [1, 2])), bool(weft.array_equal([1, 2], [[1, 2]]))
    (True, False)
    """
    x1 = as_array(x1)
    x2 = as_array(x2, x1)
    if x1.shape != x2.shape:
        return as_array(False, x1)
    same = equal(x1, x2)
    if equal_nan and x1.dtype.kind in "fc" and x2.dtype.kind in "fc":
        same = logical_or(same, logical_and(isnan(x1), isnan(x2)))
    return every(same)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> NDArray:
    """Return each element from the first of several arrays whose condition holds there.

    Parameters
    ----------
    condlist : sequence of array-like of bool
        The conditions.
    choicelist : sequence of array-like
        The arrays, one for each condition; all are broadcast.
    default : array-like, default: 0
        The value for places where no condition holds.

    Raises
    ------
    ValueError
        If there are not as many arrays as conditions, or none.
    TypeError
        If a condition is not of bool.

    Examples
    --------
    >>> import weft
    >>> x = weft.arange(5)
    >>> weft.select([x < 2, x > 3], [-x, x * 10], 7)
    NDArray([ 0, -1,  7,  7, 40])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentValueError(
            f"select() takes one array for each condition: {len(choicelist)} for {len(condlist)} given"
        )
    conditions = [as_array(each) for each in condlist]
    for each in conditions:
        if each.dtype.kind != "b":
            raise ArgumentTypeError(f"select() takes conditions of bool, not of {each.dtype}")
    given: list[Any] = [x if type(x) in _WEAK else as_array(x, conditions[0]) for x in (*choicelist, default)]
    if not any(map(is_symbol, given)):
        common = np.result_type(*[x.dtype if isinstance(x, NDArray) else x for x in given])
        given = [astype(x, common) if isinstance(x, NDArray) and x.dtype != common else x for x in given]
    *choices, result = given
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return as_array(result)
