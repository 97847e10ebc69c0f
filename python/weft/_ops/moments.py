"""Means and variances: `mean`, `var`, `std`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._core import Native, NDArray
from weft._cuda.launch import Reduction
from weft._cuda.reductions import counted, total, where
from weft._ops.reductions import REDUCING, chosen, reducing, reduction
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shapes import Axis, Shape, axis_index, axis_tuple, is_index

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike, Operand

__all__ = ["mean", "std", "var"]


def averaging(x: Operand, *masks: Operand, axis: Axis = None, **rest: Any) -> dict[str, Any]:
    """Return the attributes as `reducing` does; AxisError for an axis of an array without axes, which sums let pass, as in NumPy."""
    known = reducing(x, *masks, axis=axis, **rest)
    if known["axis"] == () and is_index(axis):
        axis_index(axis, 0)
    return known


def mean_dtype(x: DType, given: DType | None) -> DType:
    return given if given is not None else x if x.kind in "fc" else np.dtype("f8")


def variance_dtype(x: DType, given: DType | None) -> DType:
    dtype = mean_dtype(x, given)
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _mean(
    out: Elements,
    x: Elements,
    *masks: Elements,
    axis: Shape | None = None,
    keepdims: bool = False,
    dtype: DType | None = None,
    **_: object,
) -> None:
    # np.mean warns of an empty slice through the warnings module; all threads share its state.
    count = _count(x, masks, axis, keepdims=keepdims)
    options = chosen(masks)
    total = np.add.reduce(x, axis=axis, dtype=_summed(out.dtype, dtype), keepdims=keepdims, **options)
    np.true_divide(total, count, out=out, casting="unsafe")


def variance(
    out: Elements,
    x: Elements,
    *masks: Elements,
    axis: Shape | None = None,
    keepdims: bool = False,
    correction: float = 0.0,
    **_: object,
) -> None:
    options = chosen(masks)
    count = _count(x, masks, axis, keepdims=keepdims)
    dtype = np.result_type(out.dtype, np.complex64) if x.dtype.kind == "c" else out.dtype
    total = np.add.reduce(x, axis=axis, dtype=dtype, keepdims=True, **options)
    off: Elements = x - np.true_divide(total, _count(x, masks, axis, keepdims=True), dtype=dtype)
    square = np.square(off.real) + np.square(off.imag) if dtype.kind == "c" else np.multiply(off, off)
    squares = np.add.reduce(square, axis=axis, dtype=out.dtype, keepdims=keepdims, **options)
    # If the correction leaves nothing, the standard asks for NaN; NumPy gives inf.
    divisor = np.where(count > correction, count - correction, np.nan).astype(out.dtype)
    np.true_divide(squares, divisor, out=out, casting="unsafe")


def _summed(result: DType, given: DType | None) -> DType:
    """Return the dtype of the sum for a mean: single precision for half, unless requested, as in NumPy."""
    return np.dtype(np.float32) if given is None and result == np.float16 else result


def _count(x: Elements, masks: tuple[Elements, ...], axis: Shape | None, *, keepdims: bool) -> Any:
    if masks:
        return np.count_nonzero(np.broadcast_to(masks[0], x.shape), axis=axis, keepdims=keepdims)
    return math.prod(x.shape[i] for i in axis_tuple(axis, x.ndim))


def _std(out: Elements, x: Elements, *masks: Elements, **attributes: Any) -> None:
    variance(out, x, *masks, **attributes)
    np.sqrt(out, out=out)


def mean_by_cupy(out: Any, x: Any, *masks: Any, axis: Shape | None = None, keepdims: bool = False, **_: object) -> None:
    whole = total(x, masks, axis, out.dtype, keepdims=keepdims)
    np.true_divide(whole, counted(x, masks, axis, keepdims=keepdims), out=out, casting="unsafe")


def variance_by_cupy(
    out: Any,
    x: Any,
    *masks: Any,
    axis: Shape | None = None,
    keepdims: bool = False,
    correction: float = 0.0,
    **_: object,
) -> None:
    complex_ = x.dtype.kind == "c"
    dtype = np.result_type(out.dtype, np.complex64) if complex_ else out.dtype
    mean = total(x, masks, axis, dtype, keepdims=True) / counted(x, masks, axis, keepdims=True)
    off = x - mean.astype(dtype, copy=False)
    square = np.square(off.real) + np.square(off.imag) if complex_ else np.square(off)
    count = counted(x, masks, axis, keepdims=keepdims)
    # If the correction leaves nothing, the standard asks for NaN.
    divisor: Any
    if masks:
        divisor = where(count > correction, count - correction, np.nan)
    else:
        divisor = count - correction if count > correction else np.nan
    np.true_divide(total(square, masks, axis, out.dtype, keepdims=keepdims), divisor, out=out, casting="unsafe")


def std_by_cupy(out: Any, x: Any, *masks: Any, **attributes: Any) -> None:
    variance_by_cupy(out, x, *masks, **attributes)
    np.sqrt(out, out=out)


_MEAN = register_op("mean", infer=reduction(mean_dtype))(_mean)
_VAR = register_op("var", infer=reduction(variance_dtype))(variance)
_STD = register_op("std", infer=reduction(variance_dtype))(_std)
state(_MEAN, layout="reduce", attribute_names=REDUCING, cupy=mean_by_cupy)
for _op, _by_cupy in ((_VAR, variance_by_cupy), (_STD, std_by_cupy)):
    state(_op, layout="reduce", attribute_names=(*REDUCING, "correction"), cupy=_by_cupy)
for _op in (_MEAN, _VAR, _STD):
    _op._prepare_by(averaging)
_MEAN._run_by(Native.reduce(np.add, "mean"))
_VAR._run_by(Native.reduce(np.add, "variance"))
_STD._run_by(Native.reduce(np.add, "deviation"))
_MEAN.set_attribute("kernels", Reduction("mean", "a + b", "(T)((u64)a + (u64)b)", divided=True))


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
    """Return the arithmetic mean along `axis`, in float64 for integers; NaN for no elements. Parameters as in `weft.sum`.

    Examples
    --------
    >>> import weft
    >>> weft.mean([[1.0, 2.0], [3.0, 4.0]], axis=0)
    NDArray([2., 3.])
    """
    if where is None or where is True:
        return one(_MEAN, x, out=out, axis=axis, dtype=dtype, keepdims=keepdims)
    return one(_MEAN, x, where, out=out, axis=axis, dtype=dtype, keepdims=keepdims)


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

    Further parameters are as in `weft.sum`; `ddof` is NumPy's name for `correction`. NaN if nothing is left to divide
    by.

    Examples
    --------
    >>> import weft
    >>> weft.var([1.0, 2.0, 3.0], correction=1).item()
    1.0
    """
    correction = correction if ddof is None else ddof
    if where is None or where is True:
        return one(_VAR, x, out=out, axis=axis, dtype=dtype, keepdims=keepdims, correction=correction)
    return one(_VAR, x, where, out=out, axis=axis, dtype=dtype, keepdims=keepdims, correction=correction)


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
    if where is None or where is True:
        return one(_STD, x, out=out, axis=axis, dtype=dtype, keepdims=keepdims, correction=correction)
    return one(_STD, x, where, out=out, axis=axis, dtype=dtype, keepdims=keepdims, correction=correction)
