"""Builders of reductions on CUDA devices, by calls that CuPy's functions take; ops state them by their attribute ``"cupy"``.

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

#: Its overloads know no arrays without a type.
where: Any = np.where


def by_function(function: Any, combine: np.ufunc, neutral: float | None, *, typed: bool = False) -> Callable[..., None]:
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
            x = where(masks[0], x, x.dtype.type(initial if neutral is None else neutral))
        options = {"dtype": out.dtype} if typed else {}
        function(x, axis=axis, out=out, keepdims=keepdims, **options)
        if initial is not None:
            combine(out, out.dtype.type(initial), out=out)

    return compute


def counted(x: Any, masks: tuple[Any, ...], axis: Shape | None, *, keepdims: bool) -> Any:
    """Return how many elements are reduced to one: a number, or with a mask an array."""
    if masks:
        return np.sum(np.broadcast_to(masks[0], x.shape), axis=axis, dtype=np.int64, keepdims=keepdims)
    return math.prod(x.shape[i] for i in axis_tuple(axis, x.ndim))


def total(x: Any, masks: tuple[Any, ...], axis: Shape | None, dtype: Any, *, keepdims: bool) -> Any:
    """Return the sum of elements, with a mask of those that it chooses."""
    if masks:
        x = where(masks[0], x, x.dtype.type(0))
    return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def past_nan(function: Any, least: float) -> Callable[..., None]:
    """Make a maximum or minimum past NaN: NaN where there is nothing else."""

    def compute(out: Any, x: Any, *, axis: Shape | None, keepdims: bool = False, **_: object) -> None:
        if x.dtype.kind != "f":
            function(x, axis=axis, out=out, keepdims=keepdims)
            return
        missing = np.isnan(x)
        function(where(missing, x.dtype.type(least), x), axis=axis, out=out, keepdims=keepdims)
        np.copyto(out, np.nan, where=np.all(missing, axis=axis, keepdims=keepdims))

    return compute


def without_nan(function: Callable[..., None]) -> Callable[..., None]:
    """Make a reduction past NaN, of one that takes masks."""

    def compute(out: Any, x: Any, **attributes: Any) -> None:
        present = ~np.isnan(x)
        # Zero, for NaN times nothing is NaN.
        function(out, where(present, x, x.dtype.type(0)), present, **attributes)

    return compute
