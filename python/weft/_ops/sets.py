"""Sets of values: `unique_*` and NumPy's set functions. The number of values decides the shapes, so all wait.

NaN are distinct from each other and complex numbers are ordered by their real parts first, as the standard asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weft._call.blocking import eager
from weft._call.calls import Elements, one
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._core import NDArray
from weft._registry.gradients import no_gradient
from weft._registry.op import register_op
from weft._registry.shape_rules import shaped_by

if TYPE_CHECKING:
    from weft._call.calls import DType
    from weft._call.operands import ArrayLike
    from weft._registry.avals import Aval

__all__ = [
    "UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "intersect1d", "isin", "setdiff1d", "setxor1d",
    "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: NDArray
    indices: NDArray
    inverse_indices: NDArray
    counts: NDArray


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: NDArray
    counts: NDArray


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: NDArray
    inverse_indices: NDArray


def _truth(_x: Aval, _values: Aval, *, invert: bool = False) -> DType:  # noqa: ARG001 - an attribute of the op
    return np.dtype(np.bool_)


@register_op("isin", infer=shaped_by("like_first", _truth))
def _isin(out: Elements, x: Elements, values: Elements, *, invert: bool = False) -> None:
    np.copyto(out, np.isin(x, values, invert=invert))


no_gradient("isin")


answers(_isin, np.isin)


def unique_all(x: ArrayLike, /) -> UniqueAllResult:
    """Return the values in order, the index of each one's first place, where each element is among them, and counts.

    Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> weft.unique_all([5, 3, 5]).counts
    NDArray([1, 2])
    """
    return UniqueAllResult(*eager("unique_all", np.unique_all, x))


def unique_counts(x: ArrayLike, /) -> UniqueCountsResult:
    """Return the values in order and the count of each. Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> weft.unique_counts([5, 3, 5]).values
    NDArray([3, 5])
    """
    return UniqueCountsResult(*eager("unique_counts", np.unique_counts, x))


def unique_inverse(x: ArrayLike, /) -> UniqueInverseResult:
    """Return the values in order and, in the shape of `x`, where each element is among them. Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> weft.unique_inverse([5, 3, 5]).inverse_indices
    NDArray([1, 0, 1])
    """
    return UniqueInverseResult(*eager("unique_inverse", np.unique_inverse, x))


def unique_values(x: ArrayLike, /) -> NDArray:
    """Return the values in order, each once. Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> weft.unique_values([5, 3, 5])
    NDArray([3, 5])
    """
    found: NDArray = eager("unique_values", _sorted_values, x)
    return found


def unique(
    x: ArrayLike,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> NDArray | tuple[NDArray, ...]:
    """Return the values in order as `numpy.unique` does, and further arrays on request. Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> weft.unique([5, 3, 5])
    NDArray([3, 5])
    """
    found: NDArray | tuple[NDArray, ...] = eager(
        "unique",
        np.unique,
        x,
        return_index=return_index,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=axis,
        equal_nan=equal_nan,
    )
    return found


def isin(x: ArrayLike, values: ArrayLike, /, *, invert: bool = False) -> NDArray:
    """Return for each element of `x` whether it is among `values`; `invert` asks whether it is not. Does not wait.

    Examples
    --------
    >>> import weft
    >>> weft.isin([1, 2, 3], [2, 3])
    NDArray([False,  True,  True])
    """
    x = as_array(x, values if isinstance(values, NDArray) else None)
    return one(_isin, x, as_array(values, x), invert=invert)


def union1d(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return the values of both arrays in order, each once. Waits for them.

    Examples
    --------
    >>> import weft
    >>> weft.union1d([3, 1], [2, 3])
    NDArray([1, 2, 3])
    """
    found: NDArray = eager("union1d", np.union1d, x1, x2)
    return found


def intersect1d(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return the values that both arrays have, in order. Waits for them.

    Examples
    --------
    >>> import weft
    >>> weft.intersect1d([3, 1], [2, 3])
    NDArray([3])
    """
    found: NDArray = eager("intersect1d", np.intersect1d, x1, x2)
    return found


def setdiff1d(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return the values of `x1` that are not in `x2`, in order. Waits for them.

    Examples
    --------
    >>> import weft
    >>> weft.setdiff1d([3, 1], [2, 3])
    NDArray([1])
    """
    found: NDArray = eager("setdiff1d", np.setdiff1d, x1, x2)
    return found


def setxor1d(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return the values that just one of both arrays has, in order. Waits for them.

    Examples
    --------
    >>> import weft
    >>> weft.setxor1d([3, 1], [2, 3])
    NDArray([1, 2])
    """
    found: NDArray = eager("setxor1d", np.setxor1d, x1, x2)
    return found


def _sorted_values(x: Elements) -> Elements:
    # np.unique_values may leave them unsorted; equal results in every run and NumPy version are worth a sort.
    return np.unique(x, equal_nan=False)
