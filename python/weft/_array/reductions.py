"""The ops behind `weft._array.statistical`: their inference rules, NumPy's loops where they fit, and the fallbacks.

Where NumPy has an inner loop for exactly the dtype of operand and result, a reduction runs that loop on a worker without
the GIL; everything else calls NumPy's function.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._array.shapes import Shape, axis_index, axis_tuple, reduced_shape
from weft._array.views import view
from weft._core import Loop
from weft.ops import Aval, broadcast_shapes, register_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._array.calls import DType, Elements
    from weft._core import NDArray
    from weft.ops import Op

__all__ = [
    "ALL",
    "ANY",
    "CUMULATIVE_PROD",
    "CUMULATIVE_SUM",
    "DIFF",
    "MAX",
    "MEAN",
    "MIN",
    "PROD",
    "PTP",
    "STD",
    "SUM",
    "VAR",
    "mean_dtype",
    "reduction",
    "same_dtype",
    "total_dtype",
    "variance",
    "variance_dtype",
]


def total_dtype(x: DType, given: DType | None) -> DType:
    """Return 64 bits for sums and products of small integers, as the standard asks."""
    if given is not None:
        return given
    return np.dtype({"b": "i8", "i": "i8", "u": "u8"}.get(x.kind, x))


def mean_dtype(x: DType, given: DType | None) -> DType:
    return given if given is not None else x if x.kind in "fc" else np.dtype("f8")


def variance_dtype(x: DType, given: DType | None) -> DType:
    dtype = mean_dtype(x, given)
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def reduction(rule: Callable[[DType, DType | None], DType], *, identity: bool = True) -> Callable[..., Aval]:
    """Make the inference rule of a reduction; without an identity it needs elements or an `initial` value."""

    def infer(
        x: Aval,
        *masks: Aval,
        axis: Shape | None = None,
        dtype: DType | None = None,
        keepdims: bool = False,
        initial: complex | None = None,
        **_: object,
    ) -> Aval:
        axes = axis_tuple(axis, len(x.shape))
        for mask in masks:
            if mask.dtype != np.bool_:
                raise TypeError(f"where= takes an array of bool, got dtype {mask.dtype}")
            if broadcast_shapes(mask.shape, x.shape) != x.shape:
                raise ValueError(f"where= of shape {mask.shape} does not broadcast to the array's shape {x.shape}")
        if not identity and initial is None:
            if masks:
                raise ValueError("a maximum or minimum with where= needs initial=: nothing may be left to compare")
            if any(x.shape[i] == 0 for i in axes):
                raise ValueError(f"no maximum or minimum of no elements: shape {x.shape} along axes {axes}")
        return Aval(reduced_shape(x.shape, axes, keepdims=keepdims), rule(x.dtype, dtype))

    return infer


def same_dtype(x: DType, given: DType | None = None) -> DType:
    """Return the dtype of the operand."""
    del given  # such reductions have no dtype=
    return x


def _truth(x: DType, given: DType | None = None) -> DType:
    del x, given  # of no influence
    return np.dtype(np.bool_)


def _ufunc_reduction(
    name: str,
    ufunc: np.ufunc,
    rule: Callable[[DType, DType | None], DType],
    *,
    identity: bool = True,
    aliases: tuple[str, ...] = (),
) -> Op:
    """Register a reduction by one of NumPy's binary ufuncs."""
    typed = ufunc in (np.add, np.multiply)

    def compute(
        out: Elements,
        x: Elements,
        *masks: Elements,
        axis: Shape | None = None,
        keepdims: bool = False,
        initial: complex | None = None,
        **_: object,
    ) -> None:
        options: dict[str, Any] = {"where": masks[0]} if masks else {}
        if initial is not None:
            options["initial"] = initial
        if typed:
            options["dtype"] = out.dtype
        ufunc.reduce(x, axis=axis, out=out, keepdims=keepdims, **options)

    op = register_op(name, infer=reduction(rule, identity=identity), aliases=aliases)(compute)

    def push(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:  # noqa: ANN401 - the op's
        return (
            len(operands) == 1
            and attributes.get("initial") is None
            and _reduce(ufunc, outputs[0], operands[0], **attributes)
        )

    op.set_attribute("push", push)
    return op


@cache
def _loop(ufunc: np.ufunc, dtype: DType) -> Loop | None:
    return Loop.of(ufunc, (dtype, dtype, dtype))


def _reduce(
    ufunc: np.ufunc, result: NDArray, x: NDArray, *, axis: Shape | None = None, keepdims: bool = False, **_: object
) -> bool:
    """Push NumPy's inner loop over `axis` if there is one for just this dtype; return whether it was pushed."""
    axes = axis_tuple(axis, x.ndim)
    if not axes or x.size == 0 or x.dtype != result.dtype:
        return False
    loop = _loop(ufunc, x.dtype)
    if loop is None:
        return False
    if not keepdims:
        strides = iter(result.strides)
        layout = [(1, x.itemsize) if i in axes else (n, next(strides)) for i, n in enumerate(x.shape)]
        result = view(result, [n for n, _ in layout], [s for _, s in layout])
    loop.reduce(result, x, axes)
    return True


SUM = _ufunc_reduction("sum", np.add, total_dtype)
PROD = _ufunc_reduction("prod", np.multiply, total_dtype)
MAX = _ufunc_reduction("max", np.maximum, same_dtype, identity=False, aliases=("amax",))
MIN = _ufunc_reduction("min", np.minimum, same_dtype, identity=False, aliases=("amin",))
ALL = _ufunc_reduction("all", np.logical_and, _truth)
ANY = _ufunc_reduction("any", np.logical_or, _truth)


def _ptp(out: Elements, x: Elements, *, axis: Shape | None = None, keepdims: bool = False, **_: object) -> None:
    np.ptp(x, axis=axis, out=out, keepdims=keepdims)


def _mean(
    out: Elements, x: Elements, *masks: Elements, axis: Shape | None = None, keepdims: bool = False, **_: object
) -> None:
    # np.mean warns of an empty slice through the warnings module, whose state all threads share.
    count = _count(x, masks, axis, keepdims=keepdims)
    options: dict[str, Any] = {"where": masks[0]} if masks else {}
    total = np.add.reduce(x, axis=axis, dtype=out.dtype, keepdims=keepdims, **options)
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
    options: dict[str, Any] = {"where": masks[0]} if masks else {}
    count = _count(x, masks, axis, keepdims=keepdims)
    dtype = np.result_type(out.dtype, np.complex64) if x.dtype.kind == "c" else out.dtype
    total = np.add.reduce(x, axis=axis, dtype=dtype, keepdims=True, **options)
    off: Elements = x - np.true_divide(total, _count(x, masks, axis, keepdims=True), dtype=dtype)
    square = np.square(off.real) + np.square(off.imag) if dtype.kind == "c" else np.multiply(off, off)
    squares = np.add.reduce(square, axis=axis, dtype=out.dtype, keepdims=keepdims, **options)
    # Where nothing is left after the correction the standard asks for NaN; NumPy gives inf there.
    divisor = np.where(count > correction, count - correction, np.nan).astype(out.dtype)
    np.true_divide(squares, divisor, out=out, casting="unsafe")


def _count(x: Elements, masks: tuple[Elements, ...], axis: Shape | None, *, keepdims: bool) -> Any:  # noqa: ANN401
    if masks:
        return np.count_nonzero(np.broadcast_to(masks[0], x.shape), axis=axis, keepdims=keepdims)
    return math.prod(x.shape[i] for i in axis_tuple(axis, x.ndim))


VAR = register_op("var", infer=reduction(variance_dtype))(variance)


def _std(out: Elements, x: Elements, *masks: Elements, **attributes: Any) -> None:  # noqa: ANN401
    variance(out, x, *masks, **attributes)
    np.sqrt(out, out=out)


def _push_mean(outputs: tuple[NDArray], operands: tuple[NDArray, ...], **attributes: Any) -> bool:  # noqa: ANN401 - the op's
    """Push the sum and the division of it, both by inner loops."""
    result, x = outputs[0], operands[0]
    divide = _loop(np.true_divide, result.dtype)
    if divide is None or len(operands) > 1 or not _reduce(np.add, result, x, **attributes):
        return False
    count = math.prod(x.shape[i] for i in axis_tuple(attributes["axis"], x.ndim))
    divide.push((result,), (result, complex(count) if result.dtype.kind == "c" else float(count)))
    return True


PTP = register_op("ptp", infer=reduction(same_dtype, identity=False))(_ptp)
MEAN = register_op("mean", infer=reduction(mean_dtype))(_mean)
STD = register_op("std", infer=reduction(variance_dtype))(_std)
MEAN.set_attribute("push", _push_mean)


def _infer_cumulative(x: Aval, *, axis: int, dtype: DType | None = None, include_initial: bool = False) -> Aval:
    at = axis_index(axis, len(x.shape))
    shape = (*x.shape[:at], x.shape[at] + include_initial, *x.shape[at + 1 :])
    return Aval(shape, total_dtype(x.dtype, dtype))


def _cumulative(ufunc: np.ufunc) -> Callable[..., None]:
    def compute(out: Elements, x: Elements, *, axis: int, include_initial: bool = False, **_: object) -> None:
        along = np.moveaxis(out, axis, 0)
        if include_initial:
            along[0] = ufunc.identity
            along = along[1:]
        ufunc.accumulate(np.moveaxis(x, axis, 0), axis=0, dtype=out.dtype, out=along)

    return compute


CUMULATIVE_SUM = register_op("cumulative_sum", infer=_infer_cumulative, aliases=("cumsum",))(_cumulative(np.add))
CUMULATIVE_PROD = register_op("cumulative_prod", infer=_infer_cumulative, aliases=("cumprod",))(
    _cumulative(np.multiply)
)


def _infer_diff(x: Aval, *, n: int, axis: int) -> Aval:
    at = axis_index(axis, len(x.shape))
    if n < 0:
        raise ValueError(f"the order of differences cannot be negative, got {n}")
    return Aval((*x.shape[:at], max(x.shape[at] - n, 0), *x.shape[at + 1 :]), x.dtype)


def _diff(out: Elements, x: Elements, *, n: int, axis: int) -> None:
    np.copyto(out, np.diff(x, n=n, axis=axis))


DIFF = register_op("diff", infer=_infer_diff)(_diff)
