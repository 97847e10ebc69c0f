"""Reductions on CUDA devices, by calls that CuPy's functions take.

CuPy reduces by functions and not by methods of its ufuncs, which take neither ``where`` nor ``initial``; it counts with
an axis but without ``keepdims``. So masked elements are replaced by the identity. Nothing here looks at values: that
would make a worker wait for the device.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._registry.shapes import Shape, axis_tuple

if TYPE_CHECKING:
    from collections.abc import Callable

#: Whose overloads know no arrays without a type.
_where: Any = np.where


def _reduction(function: Any, combine: np.ufunc, neutral: float | None, *, typed: bool = False) -> Callable[..., None]:
    """Make a reduction; without a neutral number, those with a mask have an initial one."""

    def compute(
        out: Any,
        x: Any,
        *masks: Any,
        axis: Shape | None = None,
        keepdims: bool = False,
        initial: complex | None = None,
        **_: object,
    ) -> None:
        if initial is not None and x.size == 0:
            out[...] = initial
            return
        if masks:
            x = _where(masks[0], x, x.dtype.type(initial if neutral is None else neutral))
        options = {"dtype": out.dtype} if typed else {}
        function(x, axis=axis, out=out, keepdims=keepdims, **options)
        if initial is not None:
            combine(out, out.dtype.type(initial), out=out)

    return compute


def _counted(x: Any, masks: tuple[Any, ...], axis: Shape | None, *, keepdims: bool) -> Any:
    """Return how many elements are reduced to one: a number, or with a mask an array."""
    if masks:
        return np.sum(np.broadcast_to(masks[0], x.shape), axis=axis, dtype=np.int64, keepdims=keepdims)
    return math.prod(x.shape[i] for i in axis_tuple(axis, x.ndim))


def _total(x: Any, masks: tuple[Any, ...], axis: Shape | None, dtype: Any, *, keepdims: bool) -> Any:
    if masks:
        x = _where(masks[0], x, x.dtype.type(0))
    return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _mean(out: Any, x: Any, *masks: Any, axis: Shape | None = None, keepdims: bool = False, **_: object) -> None:
    total = _total(x, masks, axis, out.dtype, keepdims=keepdims)
    np.true_divide(total, _counted(x, masks, axis, keepdims=keepdims), out=out, casting="unsafe")


def _variance(
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
    mean = _total(x, masks, axis, dtype, keepdims=True) / _counted(x, masks, axis, keepdims=True)
    off = x - mean.astype(dtype, copy=False)
    square = np.square(off.real) + np.square(off.imag) if complex_ else np.square(off)
    count = _counted(x, masks, axis, keepdims=keepdims)
    # Where nothing is left after the correction the standard asks for NaN.
    divisor: Any
    if masks:
        divisor = _where(count > correction, count - correction, np.nan)
    else:
        divisor = count - correction if count > correction else np.nan
    np.true_divide(_total(square, masks, axis, out.dtype, keepdims=keepdims), divisor, out=out, casting="unsafe")


def _deviation(out: Any, x: Any, *masks: Any, **attributes: Any) -> None:
    _variance(out, x, *masks, **attributes)
    np.sqrt(out, out=out)


def _count_nonzero(out: Any, x: Any, *, axis: Shape | None, keepdims: bool = False) -> None:
    np.sum(x != x.dtype.type(0), axis=axis, dtype=out.dtype, out=out, keepdims=keepdims)


def _past_nan(function: Any, least: float) -> Callable[..., None]:
    """Make a maximum or minimum past NaN: NaN where there is nothing else."""

    def compute(out: Any, x: Any, *, axis: Shape | None, keepdims: bool = False, **_: object) -> None:
        if x.dtype.kind != "f":
            function(x, axis=axis, out=out, keepdims=keepdims)
            return
        missing = np.isnan(x)
        function(_where(missing, x.dtype.type(least), x), axis=axis, out=out, keepdims=keepdims)
        np.copyto(out, np.nan, where=np.all(missing, axis=axis, keepdims=keepdims))

    return compute


def _without_nan(function: Callable[..., None]) -> Callable[..., None]:
    def compute(out: Any, x: Any, **attributes: Any) -> None:
        present = ~np.isnan(x)
        # Zero, for NaN times nothing is NaN.
        function(out, _where(present, x, x.dtype.type(0)), present, **attributes)

    return compute


#: By the op's name.
COMPUTES: dict[str, Callable[..., None]] = {
    "sum": _reduction(np.sum, np.add, 0, typed=True),
    "prod": _reduction(np.prod, np.multiply, 1, typed=True),
    "max": _reduction(np.max, np.maximum, None),
    "min": _reduction(np.min, np.minimum, None),
    "all": _reduction(np.all, np.logical_and, 1),
    "any": _reduction(np.any, np.logical_or, 0),
    "mean": _mean,
    "var": _variance,
    "std": _deviation,
    "count_nonzero": _count_nonzero,
    "nanmax": _past_nan(np.max, -math.inf),
    "nanmin": _past_nan(np.min, math.inf),
    "nanmean": _without_nan(_mean),
    "nanvar": _without_nan(_variance),
    "nanstd": _without_nan(_deviation),
}
