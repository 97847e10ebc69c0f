"""Reductions and cumulative functions: `sum`, `mean`, `all`, `cumulative_sum`, `diff` and their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

from weft._array.calls import one
from weft._array.joining import concat
from weft._array.manipulation import broadcast_to, ravel
from weft._array.operands import as_array
from weft._array.reductions import (
    ALL,
    ANY,
    CUMULATIVE_PROD,
    CUMULATIVE_SUM,
    DIFF,
    MAX,
    MEAN,
    MIN,
    PROD,
    PTP,
    STD,
    SUM,
    VAR,
)
from weft._array.shapes import Axis, axis_index, axis_tuple
from weft.ops import as_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from weft._array.operands import ArrayLike
    from weft._core import NDArray
    from weft.ops import Op

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def sum(  # noqa: A001 - the standard's name
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Add up the elements along `axis`.

    Parameters
    ----------
    x : array_like
        The array.
    axis : int or tuple of int, optional
        The axes along which the elements are added, by default all.
    dtype : dtype, optional
        The result's dtype: by default int64 or uint64 for integers and bool, otherwise that of `x`.
    out : NDArray, optional
        An array of the result's shape to write to.
    keepdims : bool, default: False
        Whether the axes stay, with length 1.
    initial : scalar, optional
        What the sum starts from.
    where : array_like of bool, optional
        Which elements to add; it broadcasts to the shape of `x`.

    Examples
    --------
    >>> import weft
    >>> weft.sum([[1, 2], [3, 4]], axis=0)
    NDArray([4, 6])
    """
    return _call(SUM, x, axis, out, where, dtype=dtype, keepdims=keepdims, initial=initial)


def prod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Multiply the elements along `axis`; parameters as in `sum`.

    Examples
    --------
    >>> import weft
    >>> weft.prod([[1, 2], [3, 4]], axis=0)
    NDArray([3, 8])
    """
    return _call(PROD, x, axis, out, where, dtype=dtype, keepdims=keepdims, initial=initial)


def max(  # noqa: A001 - the standard's name
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return the largest elements along `axis`, NaN where there is one; parameters as in `sum`.

    Examples
    --------
    >>> import weft
    >>> weft.max([[1, 4], [3, 2]], axis=0)
    NDArray([3, 4])
    """
    return _call(MAX, x, axis, out, where, keepdims=keepdims, initial=initial)


def min(  # noqa: A001 - the standard's name
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return the smallest elements along `axis`, NaN where there is one; parameters as in `sum`.

    Examples
    --------
    >>> import weft
    >>> weft.min([[1, 4], [3, 2]], axis=0)
    NDArray([1, 2])
    """
    return _call(MIN, x, axis, out, where, keepdims=keepdims, initial=initial)


amax = max
amin = min


def ptp(x: ArrayLike, /, axis: Axis = None, out: NDArray | None = None, *, keepdims: bool = False) -> NDArray:
    """Return the difference of the largest and the smallest element along `axis`.

    Examples
    --------
    >>> import weft
    >>> weft.ptp([1, 4, 2]).item()
    3
    """
    return _call(PTP, x, axis, out, None, keepdims=keepdims)


def all(  # noqa: A001 - the standard's name
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return whether all elements along `axis` are true, that is, not zero.

    Examples
    --------
    >>> import weft
    >>> weft.all([[True, False], [True, True]], axis=1)
    NDArray([False,  True])
    """
    return _call(ALL, x, axis, out, where, keepdims=keepdims)


def any(  # noqa: A001 - the standard's name
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return whether any element along `axis` is true, that is, not zero.

    Examples
    --------
    >>> import weft
    >>> weft.any([[True, False], [False, False]], axis=1)
    NDArray([ True, False])
    """
    return _call(ANY, x, axis, out, where, keepdims=keepdims)


def mean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return the arithmetic mean along `axis`, in float64 for integers; NaN for no elements. Parameters as in `sum`.

    Examples
    --------
    >>> import weft
    >>> weft.mean([[1.0, 2.0], [3.0, 4.0]], axis=0)
    NDArray([2., 3.])
    """
    return _call(MEAN, x, axis, out, where, dtype=dtype, keepdims=keepdims)


def var(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return the variance along `axis`: the sum of squares about the mean divided by the count less `correction`.

    Further parameters are as in `sum`; `ddof` is NumPy's name for `correction`. NaN where nothing is left to divide by.

    Examples
    --------
    >>> import weft
    >>> weft.var([1.0, 2.0, 3.0], correction=1).item()
    1.0
    """
    correction = correction if ddof is None else ddof
    return _call(VAR, x, axis, out, where, dtype=dtype, keepdims=keepdims, correction=correction)


def std(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return the standard deviation along `axis`, the square root of `var`.

    Examples
    --------
    >>> import weft
    >>> weft.std([1.0, 2.0, 3.0], correction=1).item()
    1.0
    """
    correction = correction if ddof is None else ddof
    return _call(STD, x, axis, out, where, dtype=dtype, keepdims=keepdims, correction=correction)


def cumulative_sum(
    x: ArrayLike, /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> NDArray:
    """Return the sums of the elements up to each along `axis`, which may be left out for one axis only.

    Integers and bool are added in 64 bits; `include_initial` puts the sum of nothing, 0, in front.

    Examples
    --------
    >>> import weft
    >>> weft.cumulative_sum([1, 2, 3], include_initial=True)
    NDArray([0, 1, 3, 6])
    """
    return _accumulate(CUMULATIVE_SUM, x, axis, dtype, include_initial=include_initial)


def cumulative_prod(
    x: ArrayLike, /, *, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> NDArray:
    """Return the products of the elements up to each along `axis`, which may be left out for one axis only.

    Integers and bool are multiplied in 64 bits; `include_initial` puts the product of nothing, 1, in front.

    Examples
    --------
    >>> import weft
    >>> weft.cumulative_prod([1, 2, 3])
    NDArray([1, 2, 6])
    """
    return _accumulate(CUMULATIVE_PROD, x, axis, dtype, include_initial=include_initial)


def cumsum(
    x: ArrayLike, /, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: NDArray | None = None
) -> NDArray:
    """Return the sums of the elements up to each along `axis`; without one, those of the flattened array.

    Examples
    --------
    >>> import weft
    >>> weft.cumsum([[1, 2], [3, 4]])
    NDArray([ 1,  3,  6, 10])
    """
    return _accumulate(CUMULATIVE_SUM, ravel(x) if axis is None else x, axis, dtype, out)


def cumprod(
    x: ArrayLike, /, axis: SupportsIndex | None = None, dtype: DTypeLike | None = None, out: NDArray | None = None
) -> NDArray:
    """Return the products of the elements up to each along `axis`; without one, those of the flattened array.

    Examples
    --------
    >>> import weft
    >>> weft.cumprod([[1, 2], [3, 4]])
    NDArray([ 1,  2,  6, 24])
    """
    return _accumulate(CUMULATIVE_PROD, ravel(x) if axis is None else x, axis, dtype, out)


def diff(
    x: ArrayLike,
    /,
    *,
    axis: SupportsIndex = -1,
    n: int = 1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> NDArray:
    """Return the differences of neighbours along `axis`, taken `n` times.

    `prepend` and `append` are laid before and after the elements first; without axes they stand for one value each.

    Examples
    --------
    >>> import weft
    >>> weft.diff([1, 4, 9, 16], n=2)
    NDArray([2, 2])
    """
    x = as_array(x)
    at = axis_index(axis, x.ndim)
    ends = [None if end is None else as_array(end, x) for end in (prepend, append)]
    slim = (*x.shape[:at], 1, *x.shape[at + 1 :])
    first, last = [end if end is None or end.ndim else broadcast_to(end, slim) for end in ends]
    parts = [part for part in (first, x, last) if part is not None]
    return one(DIFF, concat(parts, axis=at) if len(parts) > 1 else x, n=n, axis=at)


def _call(
    op: Op,
    x: ArrayLike,
    axis: Axis,
    out: NDArray | None,
    where: ArrayLike | None,
    *,
    dtype: DTypeLike | None = None,
    **attributes: Any,  # noqa: ANN401 - the op's own
) -> NDArray:
    x = as_array(x)
    masks = () if where is None or where is True else (as_array(where, x),)
    if dtype is not None:
        attributes["dtype"] = as_dtype(dtype)
    return one(op, x, *masks, out=out, axis=axis_tuple(axis, x.ndim), **attributes)


def _accumulate(
    op: Op,
    x: ArrayLike,
    axis: SupportsIndex | None,
    dtype: DTypeLike | None,
    out: NDArray | None = None,
    *,
    include_initial: bool = False,
) -> NDArray:
    x = as_array(x)
    if axis is None and x.ndim != 1:
        if x.ndim:
            raise ValueError(f"an axis is needed for an array of shape {x.shape}")
        x = ravel(x)
    at = 0 if axis is None else axis_index(axis, x.ndim)
    given = None if dtype is None else as_dtype(dtype)
    return one(op, x, out=out, axis=at, dtype=given, include_initial=include_initial)
