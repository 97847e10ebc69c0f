"""Slices put in and taken out along an axis: `insert` and `delete`; a copy: `copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.operands import as_array
from weft._core import beside
from weft._ops.dtypes import astype
from weft._ops.indexing import take
from weft._ops.joining import concat
from weft._ops.manipulation import broadcast_to, moveaxis, ravel, reshape
from weft._ops.searching import flatnonzero
from weft._registry.shapes import axis_index, is_index
from weft.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._call.operands import ArrayLike
    from weft._core import NDArray

__all__ = ["compress", "copy", "delete", "extract", "insert"]


def copy(x: ArrayLike, /) -> NDArray:
    """Return a new array of the same values, without waiting.

    Examples
    --------
    >>> import weft
    >>> x = weft.asarray([1, 2])
    >>> y = weft.copy(x)
    >>> x[0] = 7
    >>> y
    NDArray([1, 2])
    """
    x = as_array(x)
    return astype(x, x.dtype)


def extract(condition: ArrayLike, x: ArrayLike, /) -> NDArray:
    """Return the elements of the flattened array where a condition holds. Waits for the condition.

    Examples
    --------
    >>> import weft
    >>> weft.extract([True, False, True], [1, 2, 3])
    NDArray([1, 3])
    """
    x = as_array(x)
    return take(ravel(x), flatnonzero(as_array(condition, x)))


def compress(condition: ArrayLike, x: ArrayLike, /, axis: SupportsIndex | None = None) -> NDArray:
    """Return the slices of an axis where a condition, of one axis, holds. Waits for the condition.

    Examples
    --------
    >>> import weft
    >>> weft.compress([False, True], [[1, 2], [3, 4]], axis=0)
    NDArray([[3, 4]])
    """
    x, at = _along(x, axis)
    chosen = as_array(condition, x)
    if chosen.ndim != 1:
        raise ArgumentValueError(f"condition must be a 1-d array, got shape {chosen.shape}")
    return take(x, flatnonzero(chosen), axis=at)


def delete(x: ArrayLike, obj: slice | npt.ArrayLike, /, axis: SupportsIndex | None = None) -> NDArray:
    """Return a copy without the slices at some places of an axis; without an axis, of the flattened array.

    Parameters
    ----------
    x : array-like
        The array.
    obj : int, slice or array-like of int or bool
        The places; they decide the shape, so an NDArray is waited for.
    axis : int, optional
        The axis.

    Raises
    ------
    IndexError
        If a place is out of bounds.

    Examples
    --------
    >>> import weft
    >>> weft.delete([10, 20, 30, 40], [0, 2])
    NDArray([20, 40])
    """
    x, at = _along(x, axis)
    places: Any = obj if isinstance(obj, slice) else np.asarray(obj)
    if not isinstance(obj, slice | np.ndarray) and places.size == 0:
        places = places.astype(np.intp)  # an empty list has no dtype of its own
    kept = np.delete(np.arange(x.shape[at], dtype=np.int64), places)
    return take(x, kept, axis=at)


def insert(
    x: ArrayLike, obj: slice | npt.ArrayLike, values: ArrayLike, /, axis: SupportsIndex | None = None
) -> NDArray:
    """Return a copy with values put in before some places of an axis; without an axis, of the flattened array.

    Parameters
    ----------
    x : array-like
        The array.
    obj : int, slice or array-like of int or bool
        The places, counted before anything is put in; they decide the shape, so an NDArray is waited for.
    values : array-like
        The values; they are broadcast, and cast to the dtype of `x`.
    axis : int, optional
        The axis.

    Raises
    ------
    IndexError
        If a place is out of bounds.

    Examples
    --------
    >>> import weft
    >>> weft.insert([1, 2, 3], 1, 9)
    NDArray([1, 9, 2, 3])
    """
    x, at = _along(x, axis)
    length = x.shape[at]
    places: np.ndarray[Any, Any] = np.arange(length, dtype=np.int64)[obj] if isinstance(obj, slice) else np.asarray(obj)
    single = places.ndim == 0
    if places.dtype.kind == "b":
        places, single = np.flatnonzero(places), False
    places = np.atleast_1d(places).astype(np.int64)
    if places.size and (int(places.min()) < -length or int(places.max()) > length):
        raise ArgumentIndexError(f"a place of {places.tolist()} is out of bounds for axis {at} with size {length}")
    places = np.where(places < 0, places + length, places)
    # Python's numbers must fit, as in an assignment; elements of an array are cast.
    given = as_array(values, x, dtype=None if hasattr(values, "dtype") else x.dtype)
    if single and given.ndim:  # one place takes all values along the axis, as NumPy's does
        whole = reshape(given, (*(1,) * (x.ndim - given.ndim), *given.shape))
        given = moveaxis(whole, 0, at)
    count = given.shape[at] if single and given.ndim else 1
    if single and given.dtype == x.dtype:
        index, before = int(places[0]), (slice(None),) * at
        block = broadcast_to(given, (*x.shape[:at], count, *x.shape[at + 1 :]))
        return concat([x[(*before, slice(index))], block, x[(*before, slice(index, None))]], axis=at)
    places = np.repeat(places, count) if single else places
    order = places.argsort(kind="stable")
    spread = places.copy()
    spread[order] += np.arange(len(places))
    old = np.ones(length + len(places), np.bool_)
    old[spread] = False
    result = beside(x, (*x.shape[:at], len(old), *x.shape[at + 1 :]), x.dtype)
    before = (slice(None),) * at
    result[(*before, np.flatnonzero(old))] = x
    result[(*before, spread)] = given
    return result


def _along(x: ArrayLike, axis: SupportsIndex | None) -> tuple[NDArray, int]:
    x = as_array(x)
    if axis is None:
        return ravel(x), 0
    if not is_index(axis):
        raise ArgumentTypeError(f"an axis is an integer, not {type(axis).__name__}")
    return x, axis_index(axis, x.ndim)
