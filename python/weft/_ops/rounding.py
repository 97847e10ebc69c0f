"""Element-wise functions that move numbers to others near them: `clip`, `round`, `nan_to_num`; and `isclose`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.calls import one
from weft._call.inline import answers
from weft._call.operands import as_array, is_host
from weft._call.scalars import number_of
from weft._core import Native, NDArray
from weft._cuda.launch import PARTS, Launch, copying
from weft._ops.derivatives import CONSTANT
from weft._ops.elementwise import greater, isfinite, less, logical_and, logical_not, logical_or
from weft._ops.unbroadcast import cast_like, fit
from weft._registry.avals import Aval, broadcast_same_dtype, broadcast_shapes, like_first
from weft._registry.defaults import state
from weft._registry.gradients import give, gradient_of, needs, no_gradient
from weft._registry.op import get_op, register_op
from weft._registry.shapes import as_index
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from weft._call.operands import ArrayLike

__all__ = ["around", "clip", "isclose", "nan_to_num", "round"]


@register_op("clip", infer=broadcast_same_dtype)
def _clip(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], low: Any, high: Any) -> None:
    np.clip(x, low, high, out=out)


_clip._run_by(Native.clip())


def _clip_on_cuda(out: NDArray, x: Any, low: Any, high: Any) -> Launch:
    body = "lesser(larger(a, b), c)"
    if out.dtype.kind == "c":
        body = "(a = nan_(a) || at_least(a, b) ? a : b), nan_(a) || at_least(c, a) ? a : c"
    return Launch("clip", body, (x, low, high), (out.dtype,) * 3)


_clip.set_attribute("kernels", _clip_on_cuda)


@gradient_of("clip", inputs=[0, 1, 2])
def _of_clip(node: Any, grads: Any) -> Any:
    """For clip(x, low, high) = minimum(maximum(x, low), high): the operand equal to the result has the gradient."""
    x, low, high = node.inputs
    g = grads[0]
    capped = greater(low, high) if _is_array(low) or _is_array(high) else low > high
    above = logical_or(greater(x, high), capped)
    below = logical_and(less(x, low), logical_not(above))
    inside = logical_not(logical_or(above, below))
    return tuple(
        fit(g * cast_like(mask, g), each) if needs(node, at) else None
        for at, (mask, each) in enumerate(zip((inside, below, above), (x, low, high), strict=True))
    )


def _is_array(x: Any) -> bool:
    """Return whether `x` is not a Python number."""
    return not isinstance(x, bool | int | float | complex)


@register_op("round", infer=like_first, aliases=("around",))
def _round(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, decimals: int) -> None:
    out[...] = np.round(x, decimals)  # not by `out=`, which rounds integers in floating point


def _answer_round(x: np.ndarray[Any, Any], *, decimals: int) -> np.ndarray[Any, Any]:
    return x.round(decimals)


def _isclose_rule(*avals: Aval, **_attributes: object) -> Aval:
    broadcast_same_dtype(*avals)
    return Aval(broadcast_shapes(*(aval.shape for aval in avals)), np.dtype(np.bool_))


@register_op("isclose", infer=_isclose_rule)
def _isclose(out: np.ndarray[Any, Any], x1: Any, x2: Any, *, rtol: float, atol: float, equal_nan: bool) -> None:
    out[...] = np.isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)


@register_op("nan_to_num", infer=like_first)
def _nan_to_num(
    out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, nan: float, posinf: float | None, neginf: float | None
) -> None:
    np.copyto(out, x)
    np.nan_to_num(out, copy=False, nan=nan, posinf=posinf, neginf=neginf)


_round._run_by(Native.round())
for _op in (_clip, _isclose):
    state(_op, batch="broadcast")
for _op in (_round, _nan_to_num):
    state(_op, infer_shape="like_first", elementwise=True)
answers(_round, _answer_round)
answers(_isclose, np.isclose)


def _round_on_cuda(out: NDArray, x: NDArray, *, decimals: int) -> Launch | None:
    dtype = out.dtype
    if dtype.kind in "biu":
        return copying(x, dtype) if decimals >= 0 and dtype.kind != "b" else None
    real = PARTS.get(dtype, dtype)
    scaled = "{0} * b" if decimals > 0 else "{0} / b"
    if dtype == np.dtype(np.float16):
        scaled = f"(float)(Half)({scaled})"  # NumPy rounds each step to half precision, too
    part = "rint({0})" if decimals == 0 else f"rint({scaled}) {'/' if decimals > 0 else '*'} b"
    body = part.format("a") if dtype.kind == "f" else f"made({part.format('a.re')}, {part.format('a.im')})"
    name = ("round", "round_after", "round_before")[(decimals > 0) - (decimals < 0)]
    return Launch(name, body, (x, 10.0 ** abs(decimals)), (dtype, real))


_round.set_attribute("kernels", _round_on_cuda)


def _isclose_on_cuda(_: NDArray, x1: Any, x2: Any, *, rtol: float, atol: float, equal_nan: bool) -> Launch | None:
    arrays = [x for x in (x1, x2) if isinstance(x, NDArray)]
    dtype = np.result_type(*(x.dtype for x in arrays), *(x for x in (x1, x2) if not isinstance(x, NDArray)))
    if dtype.kind == "c":
        return None
    computed = dtype if dtype.kind == "f" else np.dtype(np.float64)
    body = "(b - b == b - b && fabs(a - b) <= d + c * fabs(b)) || a == b"
    if equal_nan:
        body += " || (a != a && b != b)"
    name = "isclose_nan" if equal_nan else "isclose"
    return Launch(name, body, (x1, x2, rtol, atol), (computed,) * 4, result=np.dtype(np.bool_))


_isclose.set_attribute("kernels", _isclose_on_cuda)


def _nan_to_num_on_cuda(out: NDArray, x: NDArray, *, nan: float, posinf: float | None, neginf: float | None) -> Launch:
    dtype = out.dtype
    if dtype.kind not in "fc":
        return copying(x, dtype)
    real = PARTS.get(dtype, dtype)
    limits = np.finfo(real)
    top, bottom = float(limits.max) if posinf is None else posinf, float(limits.min) if neginf is None else neginf
    part = "({0} != {0} ? b : {0} - {0} == {0} - {0} ? {0} : {0} > 0 ? c : d)"
    body = part.format("a") if dtype.kind == "f" else f"made({part.format('a.re')}, {part.format('a.im')})"
    return Launch("nan_to_num", body, (x, nan, top, bottom), (dtype, real, real, real))


_nan_to_num.set_attribute("kernels", _nan_to_num_on_cuda)
give(_round, *CONSTANT)
no_gradient("isclose")


@gradient_of("nan_to_num", inputs=[0])
def _of_nan_to_num(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    return (grads[0] * cast_like(isfinite(x), grads[0]),)


def clip(
    x: ArrayLike,
    /,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Return each element brought into an interval.

    Parameters
    ----------
    x : array-like
        The operand.
    min, max : array-like, optional
        The interval's ends; None leaves it open. If `min` exceeds `max`, the result is `max`.
    out : NDArray, optional
        An array for the result.

    Returns
    -------
    NDArray
        The result, of the broadcast shape and the dtype to which all promote.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import weft
    >>> weft.clip(weft.asarray([-1, 5, 12]), 0, 10)
    NDArray([ 0,  5, 10])
    """
    if min is not None and max is not None:
        return one(_clip, x, min, max, out=out)
    min, max = _limits(x, min, max)
    if min is None and max is None:
        if out is None:
            x = as_array(x)
            return one(get_op("positive"), x) if x.dtype.kind != "b" else one(get_op("logical_or"), x, x)
        return one(_clip, x, x, x, out=out)
    name, limit = ("minimum", max) if min is None else ("maximum", min)
    return one(get_op(name), x, limit, out=out)


def _limits(x: ArrayLike, low: ArrayLike | None, high: ArrayLike | None) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Return the ends of an interval without integers past which the dtype of `x` has none: they leave it open."""
    if not (type(low) is int or type(high) is int) or not (isinstance(x, NDArray) or is_host(x) or is_symbol(x)):
        return low, high
    dtype: np.dtype[Any] = x.dtype  # what is left has one
    if dtype.kind not in "iu":
        return low, high
    limits = np.iinfo(dtype)
    return (
        None if type(low) is int and low <= limits.min else low,
        None if type(high) is int and high >= limits.max else high,
    )


def round(x: ArrayLike, /, decimals: SupportsIndex = 0, out: NDArray | None = None) -> NDArray:
    """Return each element rounded, to the even one of two equally near.

    Parameters
    ----------
    x : array-like
        The operand.
    decimals : int, default: 0
        The number of decimals; negative ones round before the point.
    out : NDArray, optional
        An array for the result.

    Returns
    -------
    NDArray
        The result, of the operand's shape and dtype.

    Examples
    --------
    >>> import weft
    >>> weft.round(weft.asarray([0.5, 1.5, 2.4]))
    NDArray([0., 2., 2.])
    """
    x = as_array(x)
    places = as_index(decimals, "decimals")
    if places == 0 and x.dtype.kind in "fc":
        return one(get_op("rint"), x, out=out)
    if x.dtype.kind == "b":
        raise ArgumentTypeError("round() takes no array of dtype bool")
    return one(_round, x, decimals=places, out=out)


around = round


def isclose(
    x1: ArrayLike, x2: ArrayLike, /, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> NDArray:
    """Return whether the elements are equal within a tolerance.

    Parameters
    ----------
    x1, x2 : array-like
        The operands.
    rtol, atol : float
        The tolerance is ``atol + rtol * abs(x2)``.
    equal_nan : bool, default: False
        Whether NaN is close to NaN.

    Returns
    -------
    NDArray
        The answers, of the broadcast shape.

    Examples
    --------
    >>> import weft
    >>> weft.isclose(weft.asarray([1.0, 2.0]), 1.0 + 1e-9)
    NDArray([ True, False])
    """
    return one(_isclose, x1, x2, rtol=_tolerance(rtol), atol=_tolerance(atol), equal_nan=equal_nan)


def _tolerance(given: Any) -> float:
    if isinstance(given, NDArray) and given.size != 1:
        raise ArgumentTypeError(f"isclose() takes numbers as tolerances, not an array of shape {given.shape}")
    found: float = number_of(given) if isinstance(given, NDArray) else given
    return found


def nan_to_num(
    x: ArrayLike,
    /,
    *,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Return the elements with NaN and the infinities replaced by numbers.

    Parameters
    ----------
    x : array-like
        The operand.
    nan : float, default: 0.0
        The number in place of NaN.
    posinf, neginf : float, optional
        The numbers in place of the infinities; by default the greatest and the least finite number of the dtype.
    out : NDArray, optional
        An array for the result.

    Returns
    -------
    NDArray
        The result, of the operand's shape and dtype.

    Examples
    --------
    >>> import weft
    >>> weft.nan_to_num(weft.asarray([1.0, float("nan")]))
    NDArray([1., 0.])
    """
    return one(_nan_to_num, as_array(x), nan=nan, posinf=posinf, neginf=neginf, out=out)
