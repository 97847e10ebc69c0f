"""Running sums and products, and the differences that undo them: `cumulative_sum`, `cumulative_prod`, `diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from weft._call.calls import one
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._ops.joining import concat
from weft._ops.manipulation import broadcast_to, flattened, ravel
from weft._ops.reductions import total_dtype
from weft._registry.avals import Aval, as_dtype
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shapes import as_index, axis_index, is_only_axis
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._registry.op import Op

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff"]


def _infer_cumulative(x: Aval, *, axis: int, dtype: DType | None = None, include_initial: bool = False) -> Aval:
    at = axis_index(axis, len(x.shape))
    shape = (*x.shape[:at], x.shape[at] + include_initial, *x.shape[at + 1 :])
    return Aval(shape, total_dtype(x.dtype, dtype))


def _cumulative(ufunc: np.ufunc) -> Callable[..., None]:
    def compute(out: Elements, x: Elements, *, axis: int, include_initial: bool = False, **_: object) -> None:
        along = out
        if include_initial:
            before = (slice(None),) * (axis % out.ndim)
            out[(*before, slice(0, 1))] = ufunc.identity
            along = out[(*before, slice(1, None))]
        ufunc.accumulate(x, axis=axis, dtype=out.dtype, out=along)

    return compute


def _answer_cumulative(op: Op, ufunc: np.ufunc) -> None:
    def answer(x: Elements, *, axis: int, dtype: DType | None = None, include_initial: bool = False) -> Elements:
        if include_initial:
            raise ArgumentValueError("by `compute` alone")
        found: Elements = ufunc.accumulate(x, axis=axis, dtype=total_dtype(x.dtype, dtype))
        return found

    answers(op, answer)


_CUMULATIVE_SUM = register_op("cumulative_sum", infer=_infer_cumulative, aliases=("cumsum",))(_cumulative(np.add))
_CUMULATIVE_PROD = register_op("cumulative_prod", infer=_infer_cumulative, aliases=("cumprod",))(
    _cumulative(np.multiply)
)


_answer_cumulative(_CUMULATIVE_SUM, np.add)
_answer_cumulative(_CUMULATIVE_PROD, np.multiply)


def _infer_diff(x: Aval, *, n: int, axis: int) -> Aval:
    at = axis_index(axis, len(x.shape))
    if n < 0:
        raise ArgumentValueError(f"the order of differences cannot be negative, got {n}")
    return Aval((*x.shape[:at], max(x.shape[at] - n, 0), *x.shape[at + 1 :]), x.dtype)


def _diff(out: Elements, x: Elements, *, n: int, axis: int) -> None:
    np.copyto(out, np.diff(x, n=n, axis=axis))


_DIFF = register_op("diff", infer=_infer_diff)(_diff)
answers(_DIFF, np.diff)


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
    return _accumulate(_CUMULATIVE_SUM, x, axis, dtype, include_initial=include_initial)


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
    return _accumulate(_CUMULATIVE_PROD, x, axis, dtype, include_initial=include_initial)


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
    return _accumulate(_CUMULATIVE_SUM, flattened(x) if axis is None else x, axis, dtype, out)


for _op in (_CUMULATIVE_SUM, _CUMULATIVE_PROD, _DIFF):
    state(_op, batch="axis")


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
    return _accumulate(_CUMULATIVE_PROD, flattened(x) if axis is None else x, axis, dtype, out)


#: Differences of differences at most; after more of them nothing is left of most arrays.
_MANY = 64


def diff(
    x: ArrayLike,
    /,
    n: int = 1,
    axis: SupportsIndex = -1,
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
    whole = concat(parts, axis=at) if len(parts) > 1 else x
    order = as_index(n, "n")
    if order > _MANY:
        order = min(order, whole.shape[at])  # then nothing is left: NumPy takes one difference after the other
    return one(_DIFF, whole, n=order, axis=at)


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
            raise ArgumentValueError(f"an axis is needed for an array of shape {x.shape}")
        x = ravel(x)
    if is_only_axis(axis, x.ndim):
        x, axis = ravel(x), 0
    at = 0 if axis is None else axis_index(axis, x.ndim)
    given = None if dtype is None else as_dtype(dtype)
    return one(op, x, out=out, axis=at, dtype=given, include_initial=include_initial)
