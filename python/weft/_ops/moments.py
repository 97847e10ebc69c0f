"""Means and variances: `mean`, `var`, `std`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray, beside, fresh_reduction
from weft._cuda.launch import Reduction
from weft._cuda.reductions import counted, total, where
from weft._ops.reductions import REDUCING, ROOTED, chosen, loop_of, reduce_by_loop, reduced, reduction, root_of
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shapes import Axis, Shape, axis_tuple, reduced_shape

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike

__all__ = ["mean", "std", "var"]


def mean_dtype(x: DType, given: DType | None) -> DType:
    return given if given is not None else x if x.kind in "fc" else np.dtype("f8")


def variance_dtype(x: DType, given: DType | None) -> DType:
    dtype = mean_dtype(x, given)
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _mean(
    out: Elements, x: Elements, *masks: Elements, axis: Shape | None = None, keepdims: bool = False, **_: object
) -> None:
    # np.mean warns of an empty slice through the warnings module, whose state all threads share.
    count = _count(x, masks, axis, keepdims=keepdims)
    options = chosen(masks)
    total = np.add.reduce(x, axis=axis, dtype=_summed(out.dtype), keepdims=keepdims, **options)
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
    # Where nothing is left after the correction the standard asks for NaN; NumPy gives inf there.
    divisor = np.where(count > correction, count - correction, np.nan).astype(out.dtype)
    np.true_divide(squares, divisor, out=out, casting="unsafe")


def _summed(dtype: DType) -> DType:
    """Return the dtype of the sum that a mean is made of: single precision for half, as in NumPy."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _count(x: Elements, masks: tuple[Elements, ...], axis: Shape | None, *, keepdims: bool) -> Any:
    if masks:
        return np.count_nonzero(np.broadcast_to(masks[0], x.shape), axis=axis, keepdims=keepdims)
    return math.prod(x.shape[i] for i in axis_tuple(axis, x.ndim))


def _std(out: Elements, x: Elements, *masks: Elements, **attributes: Any) -> None:
    variance(out, x, *masks, **attributes)
    np.sqrt(out, out=out)


def _push_mean(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:
    """Push the sum and the division of it, both by inner loops."""
    result, x = outputs[0], operands[0]
    divide = loop_of(np.true_divide, result.dtype) if _summed(result.dtype) == result.dtype else None
    if divide is None or len(operands) > 1 or not reduce_by_loop(np.add, result, x, **attributes):
        return False
    count = math.prod(x.shape[i] for i in axis_tuple(attributes["axis"], x.ndim))
    divide.push((result,), (result, complex(count) if result.dtype.kind == "c" else float(count)))
    return True


def _push_variance(
    outputs: tuple[NDArray],
    operands: tuple[NDArray, ...],
    *,
    root: bool = False,
    **attributes: Any,
) -> bool:
    """Push what `variance` does with real numbers in rows, step by step, by inner loops."""
    result, x = outputs[0], operands[0]
    axes = axis_tuple(attributes["axis"], x.ndim)
    plain = len(operands) == 1 and x._contiguous and x.dtype in ROOTED and result.dtype == x.dtype
    if not plain or not axes or x.size == 0:
        return False
    add, multiply, subtract, divide = (loop_of(each, x.dtype) for each in _STEPS)
    sqrt = root_of(x.dtype)
    if add is None or multiply is None or subtract is None or divide is None or sqrt is None:
        return False
    count, correction = math.prod(x.shape[i] for i in axes), attributes.get("correction", 0.0)
    middle = beside(x, reduced_shape(x.shape, axes, keepdims=True), x.dtype)
    off = beside(x, x.shape, x.dtype)
    add.reduce(middle, x, axes)
    divide.push((middle,), (middle, float(count)))
    subtract.push((off,), (x, middle))
    multiply.push((off,), (off, off))
    reduce_by_loop(np.add, result, off, axis=axes, keepdims=attributes.get("keepdims", False))
    divide.push((result,), (result, float(count - correction) if count > correction else math.nan))
    if root:
        sqrt.push((result,), (result,))
    return True


def _push_std(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:
    return _push_variance(outputs, operands, root=True, **attributes)


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
    # Where nothing is left after the correction the standard asks for NaN.
    divisor: Any
    if masks:
        divisor = where(count > correction, count - correction, np.nan)
    else:
        divisor = count - correction if count > correction else np.nan
    np.true_divide(total(square, masks, axis, out.dtype, keepdims=keepdims), divisor, out=out, casting="unsafe")


def std_by_cupy(out: Any, x: Any, *masks: Any, **attributes: Any) -> None:
    variance_by_cupy(out, x, *masks, **attributes)
    np.sqrt(out, out=out)


_STEPS = (np.add, np.multiply, np.subtract, np.true_divide)

_MEAN = register_op("mean", infer=reduction(mean_dtype))(_mean)
_VAR = register_op("var", infer=reduction(variance_dtype))(variance)
_STD = register_op("std", infer=reduction(variance_dtype))(_std)
state(_MEAN, infer_shape="reduce", attribute_names=REDUCING, cupy=mean_by_cupy)
for _op, _by_cupy in ((_VAR, variance_by_cupy), (_STD, std_by_cupy)):
    state(_op, infer_shape="reduce", attribute_names=(*REDUCING, "correction"), cupy=_by_cupy)
_MEAN.set_attribute("push", _push_mean)
_VAR.set_attribute("push", _push_variance)
_STD.set_attribute("push", _push_std)
#: Dtypes whose sums, and quotients of these, are their own.
_DIVIDED = frozenset(map(np.dtype, ("f4", "f8", "c8", "c16")))
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
    if x.__class__ is NDArray and dtype is None and out is None and where is None and not _MEAN.replaced:
        loop = loop_of(np.add, x.dtype) if x.dtype in _DIVIDED else None
        found = None if loop is None else fresh_reduction(loop, x, axis, keepdims, _MEAN, mean=True)
        if found is not None:
            return found
    return reduced(_MEAN, x, axis, out, where, dtype=dtype, keepdims=keepdims)


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

    Further parameters are as in `weft.sum`; `ddof` is NumPy's name for `correction`. NaN where nothing is left to divide by.

    Examples
    --------
    >>> import weft
    >>> weft.var([1.0, 2.0, 3.0], correction=1).item()
    1.0
    """
    correction = correction if ddof is None else ddof
    return reduced(_VAR, x, axis, out, where, dtype=dtype, keepdims=keepdims, correction=correction)


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
    return reduced(_STD, x, axis, out, where, dtype=dtype, keepdims=keepdims, correction=correction)
