"""Medians, percentiles and quantiles, and reductions past NaN (`nansum` and its kin). NaN for slices of no elements."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._core import NDArray
from weft._cuda.reductions import past_nan, without_nan
from weft._ops.elementwise import divide
from weft._ops.moments import mean_by_cupy, mean_dtype, std_by_cupy, variance, variance_by_cupy, variance_dtype
from weft._ops.reductions import REDUCING, reduction, same_dtype, total_dtype
from weft._registry.avals import Aval, as_dtype
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shape_rules import reduced_shape
from weft._registry.shapes import Axis, Shape, axis_tuple, reduced_axes
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._registry.op import Op

__all__ = [
    "median", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd",
    "nansum", "nanvar", "percentile", "quantile",
]  # fmt: skip


@cache
def _quantile_dtype(x: DType, method: str, *, scalar: bool) -> DType:
    """Return NumPy's dtype, asked of NumPy; it raises for dtypes without quantiles."""
    q: Any = 0.5 if scalar else np.array([0.5])
    options: dict[str, Any] = {"method": method}
    found: DType = np.quantile(np.ones(1, x), q, **options).dtype
    return found


def _infer_quantile(
    x: Aval, *qs: Aval, axis: Shape, q: float | tuple[float, ...] | None, method: str, keepdims: bool, past_nan: bool
) -> Aval:
    del past_nan  # without influence on the shape
    count = qs[0].shape if qs else (len(q),) if isinstance(q, tuple) else ()
    dtype = _quantile_dtype(x.dtype, method, scalar=isinstance(q, float))
    return Aval((*count, *reduced_shape(x.shape, axis, keepdims=keepdims)), dtype)


@register_op("quantile", infer=_infer_quantile)
def _quantile(
    out: Elements,
    x: Elements,
    *qs: Elements,
    axis: Shape,
    q: float | tuple[float, ...] | None,
    method: str,
    keepdims: bool,
    past_nan: bool,
) -> None:
    wanted: Any = qs[0] if qs else q if isinstance(q, float) else np.array(q)
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims, "method": method}
    if past_nan:
        _past_nan(lambda filled: np.nanquantile(filled, wanted, **options), out, x, axis, keepdims=keepdims)
    elif 0 in (x.shape[i] for i in axis):
        out.fill(np.nan)
    else:
        np.copyto(out, np.quantile(x, wanted, **options))


@register_op("median", infer=reduction(mean_dtype))
def _median(out: Elements, x: Elements, *, axis: Shape, keepdims: bool = False) -> None:
    if 0 in (x.shape[i] for i in axis):
        out.fill(np.nan)
    else:
        np.copyto(out, np.median(x, axis=axis, keepdims=keepdims))


@register_op("nanmedian", infer=reduction(mean_dtype))
def _nanmedian(out: Elements, x: Elements, *, axis: Shape, keepdims: bool = False) -> None:
    _past_nan(lambda filled: np.nanmedian(filled, axis=axis, keepdims=keepdims), out, x, axis, keepdims=keepdims)


def _past_nan(
    function: Callable[[Elements], Elements], out: Elements, x: Elements, axis: Shape, *, keepdims: bool
) -> None:
    """Write `function` of `x`, and NaN for slices of NaN alone; NumPy would warn of these on every thread."""
    if 0 in (x.shape[i] for i in axis):
        out.fill(np.nan)
        return
    nothing = np.isnan(x).all(axis=axis, keepdims=True)
    np.copyto(out, function(np.where(nothing, x.dtype.type(0), x)))
    if x.dtype.kind in "fc":  # by the dtype: to look at values would wait for a device
        out[..., nothing if keepdims else nothing.reshape(reduced_shape(x.shape, axis, keepdims=False))] = np.nan


def _register_nan(name: str, function: Callable[..., None], rule: Callable[..., DType], *, identity: bool = True) -> Op:
    op = register_op(name, infer=reduction(rule, identity=identity))(function)
    state(op, batch="axis", attribute_names=(*REDUCING, "correction") if rule is variance_dtype else REDUCING)
    return op


def _nansum(out: Elements, x: Elements, *, axis: Shape, keepdims: bool = False, **_: object) -> None:
    np.nansum(x, axis=axis, dtype=out.dtype, out=out, keepdims=keepdims)


def _nanprod(out: Elements, x: Elements, *, axis: Shape, keepdims: bool = False, **_: object) -> None:
    np.nanprod(x, axis=axis, dtype=out.dtype, out=out, keepdims=keepdims)


def _nanmax(out: Elements, x: Elements, *, axis: Shape, keepdims: bool = False, **_: object) -> None:
    np.fmax.reduce(x, axis=axis, out=out, keepdims=keepdims)


def _nanmin(out: Elements, x: Elements, *, axis: Shape, keepdims: bool = False, **_: object) -> None:
    np.fmin.reduce(x, axis=axis, out=out, keepdims=keepdims)


def _nanmean(out: Elements, x: Elements, *, axis: Shape, keepdims: bool = False, **_: object) -> None:
    total = np.nansum(x, axis=axis, dtype=out.dtype, keepdims=keepdims)
    count = np.count_nonzero(~np.isnan(x), axis=axis, keepdims=keepdims)
    np.true_divide(total, np.asarray(count, out.dtype), out=out)


def _nanvar(out: Elements, x: Elements, **attributes: Any) -> None:
    variance(out, x, ~np.isnan(x), **attributes)


def _nanstd(out: Elements, x: Elements, **attributes: Any) -> None:
    variance(out, x, ~np.isnan(x), **attributes)
    np.sqrt(out, out=out)


_NANSUM = _register_nan("nansum", _nansum, total_dtype)
_NANPROD = _register_nan("nanprod", _nanprod, total_dtype)
_NANMAX = _register_nan("nanmax", _nanmax, same_dtype, identity=False)
_NANMIN = _register_nan("nanmin", _nanmin, same_dtype, identity=False)
_NANMEAN = _register_nan("nanmean", _nanmean, mean_dtype)
_NANVAR = _register_nan("nanvar", _nanvar, variance_dtype)
_NANSTD = _register_nan("nanstd", _nanstd, variance_dtype)
for _op in (_median, _nanmedian):
    state(_op, batch="axis")
state(_NANMAX, cupy=past_nan(np.max, -math.inf))
state(_NANMIN, cupy=past_nan(np.min, math.inf))
state(_NANMEAN, cupy=without_nan(mean_by_cupy))
state(_NANVAR, cupy=without_nan(variance_by_cupy))
state(_NANSTD, cupy=without_nan(std_by_cupy))


def median(x: ArrayLike, /, axis: Axis = None, out: NDArray | None = None, *, keepdims: bool = False) -> NDArray:
    """Return the median along `axis`, by default of all elements; NaN where there is one.

    Examples
    --------
    >>> import weft
    >>> weft.median([3.0, 1.0, 2.0]).item()
    2.0
    """
    x = as_array(x)
    return _call(_median, x, axis_tuple(axis, x.ndim), out, keepdims=keepdims)


def nanmedian(x: ArrayLike, /, axis: Axis = None, out: NDArray | None = None, *, keepdims: bool = False) -> NDArray:
    """Return the median along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanmedian([3.0, weft.nan, 1.0]).item()
    2.0
    """
    x = as_array(x)
    return _call(_nanmedian, x, axis_tuple(axis, x.ndim), out, keepdims=keepdims)


def quantile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> NDArray:
    """Return the `q`-th quantiles along `axis`, by default of all elements.

    Parameters
    ----------
    x : array_like
        The array, of real numbers.
    q : array_like
        From 0 to 1; its axes come first in the result. Values of an NDArray are looked at when the op runs.
    axis : int or tuple of int, optional
        The axes along which to look.
    out : NDArray, optional
        An array of the result's shape to write to.
    method : str, default: "linear"
        How to interpolate, one of the methods of `numpy.quantile`.
    keepdims : bool, default: False
        Whether the axes stay, with length 1.

    Examples
    --------
    >>> import weft
    >>> weft.quantile([1.0, 2.0, 3.0], 0.5).item()
    2.0
    """
    return _quantiles(x, q, 1, axis, out, method=method, keepdims=keepdims, past_nan=False)


def percentile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> NDArray:
    """Return the `q`-th percentiles along `axis`: `quantile` with `q` from 0 to 100.

    Examples
    --------
    >>> import weft
    >>> weft.percentile([1.0, 2.0, 3.0], 50).item()
    2.0
    """
    return _quantiles(x, q, 100, axis, out, method=method, keepdims=keepdims, past_nan=False)


def nanquantile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> NDArray:
    """Return `quantile` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanquantile([1.0, weft.nan, 3.0], 0.5).item()
    2.0
    """
    return _quantiles(x, q, 1, axis, out, method=method, keepdims=keepdims, past_nan=True)


def nanpercentile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> NDArray:
    """Return `percentile` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanpercentile([1.0, weft.nan, 3.0], 50).item()
    2.0
    """
    return _quantiles(x, q, 100, axis, out, method=method, keepdims=keepdims, past_nan=True)


def nansum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
) -> NDArray:
    """Return the sum along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nansum([1.0, weft.nan, 3.0]).item()
    4.0
    """
    return _call(_NANSUM, x, axis, out, keepdims=keepdims, dtype=dtype)


def nanprod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
) -> NDArray:
    """Return the product along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanprod([2.0, weft.nan, 3.0]).item()
    6.0
    """
    return _call(_NANPROD, x, axis, out, keepdims=keepdims, dtype=dtype)


def nanmax(x: ArrayLike, /, axis: Axis = None, out: NDArray | None = None, *, keepdims: bool = False) -> NDArray:
    """Return the largest element along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanmax([2.0, weft.nan, 3.0]).item()
    3.0
    """
    return _call(_NANMAX, x, axis, out, keepdims=keepdims)


def nanmin(x: ArrayLike, /, axis: Axis = None, out: NDArray | None = None, *, keepdims: bool = False) -> NDArray:
    """Return the smallest element along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanmin([2.0, weft.nan, 3.0]).item()
    2.0
    """
    return _call(_NANMIN, x, axis, out, keepdims=keepdims)


def nanmean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
) -> NDArray:
    """Return the mean along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanmean([1.0, weft.nan, 3.0]).item()
    2.0
    """
    return _call(_NANMEAN, x, axis, out, keepdims=keepdims, dtype=dtype)


def nanvar(
    x: ArrayLike, /, axis: Axis = None, *, out: NDArray | None = None, correction: float = 0.0, keepdims: bool = False
) -> NDArray:
    """Return the variance along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanvar([1.0, weft.nan, 3.0]).item()
    1.0
    """
    return _call(_NANVAR, x, axis, out, keepdims=keepdims, correction=correction)


def nanstd(
    x: ArrayLike, /, axis: Axis = None, *, out: NDArray | None = None, correction: float = 0.0, keepdims: bool = False
) -> NDArray:
    """Return the standard deviation along `axis` past NaN.

    Examples
    --------
    >>> import weft
    >>> weft.nanstd([1.0, weft.nan, 3.0]).item()
    1.0
    """
    return _call(_NANSTD, x, axis, out, keepdims=keepdims, correction=correction)


def _call(
    op: Op,
    x: ArrayLike,
    axis: Axis,
    out: NDArray | None,
    *,
    dtype: DTypeLike | None = None,
    **attributes: Any,
) -> NDArray:
    x = as_array(x)
    if dtype is not None:
        attributes["dtype"] = as_dtype(dtype)
    return one(op, x, out=out, axis=reduced_axes(axis, x.ndim), **attributes)


def _quantiles(
    x: ArrayLike,
    q: ArrayLike,
    whole: int,
    axis: Axis,
    out: NDArray | None,
    **options: Any,
) -> NDArray:
    x = as_array(x)
    options["axis"] = axis_tuple(axis, x.ndim)
    if isinstance(q, NDArray):
        return one(_quantile, x, q if whole == 1 else divide(q, whole), out=out, q=None, **options)
    parts = np.asarray(q, np.float64) / whole
    if not ((parts >= 0) & (parts <= 1)).all():
        raise ArgumentValueError(f"quantiles lie from 0 to {whole}, got {q}")
    if parts.ndim > 1:
        return one(_quantile, x, parts, out=out, q=None, **options)
    return one(_quantile, x, out=out, q=parts.item() if parts.ndim == 0 else tuple(parts.tolist()), **options)
