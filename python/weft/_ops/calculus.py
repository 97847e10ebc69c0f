"""Samples of functions: `interp`, `gradient`, `convolve`, `trapezoid`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from weft._call.calls import Elements, one
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._ops.cumulative import diff
from weft._ops.dtypes import astype
from weft._ops.elementwise import equal, greater, less, maximum, minimum
from weft._ops.indexing import take
from weft._ops.joining import concat
from weft._ops.manipulation import reshape
from weft._ops.manipulation_gradients import pad_axis
from weft._ops.reductions import sum as total
from weft._ops.searching import searchsorted, where
from weft._ops.sorting import argsort
from weft._ops.unbroadcast import apply, cast_like, conjugate, shape_of, stand_in
from weft._registry.avals import Aval, result_dtype
from weft._registry.defaults import state
from weft._registry.gradients import ALL_INPUTS, give, gradient_of, needs
from weft._registry.hooks import vjp
from weft._registry.op import get_op, register_op
from weft._registry.shapes import axis_index, axis_tuple
from weft.errors import ArgumentTypeError, ArgumentValueError, GradientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._registry.shapes import Axis

__all__ = ["convolve", "gradient", "interp", "trapezoid"]

#: An alias, because its overloads do not allow options to be passed on.
_interpolated: Callable[..., Elements] = np.interp
_DOUBLE, _COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


def _infer_interp(x: Aval, xp: Aval, fp: Aval, **_: object) -> Aval:
    if len(xp.shape) != 1 or xp.shape != fp.shape or not xp.shape[0]:
        raise ArgumentValueError(
            f"interp() takes points and values of one axis and one length, not {xp.shape} and {fp.shape}"
        )
    return Aval(x.shape, _COMPLEX if fp.dtype.kind == "c" else _DOUBLE)


@register_op("interp", infer=_infer_interp)
def _interp(out: Elements, x: Elements, xp: Elements, fp: Elements, **options: Any) -> None:
    np.copyto(out, _interpolated(x, xp, fp, **options))


def _answer_interp(x: Elements, xp: Elements, fp: Elements, **options: Any) -> Elements:
    if xp.ndim != 1:
        raise ArgumentValueError("interp() takes points of one axis")
    return _interpolated(x, xp, fp, **options)


state(_interp, attribute_names=("left", "right", "period"), superlinear=True)
answers(_interp, _answer_interp)


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    /,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> NDArray:
    """Return the values at `x` of the lines that join the points (`xp`, `fp`).

    Parameters
    ----------
    x : array-like
        The points to evaluate at.
    xp, fp : array-like
        The points, `xp` increasing unless there is a `period`, and the values there.
    left, right : number, optional
        The values outside of the points; by default those of the outermost ones.
    period : float, optional
        The period of the values.

    Raises
    ------
    ValueError
        If `xp` and `fp` have not one axis each, of one length.

    Examples
    --------
    >>> import weft
    >>> weft.interp([0.5, 1.5], [0, 1, 2], [10, 20, 40])
    NDArray([15., 30.])
    """
    x = as_array(x)
    return one(_interp, x, as_array(xp, x), as_array(fp, x), left=left, right=right, period=period)


def _infer_gradient(x: Aval, *spacing: Aval, axis: int, edge_order: int, **_: object) -> Aval:
    if edge_order not in (1, 2):
        raise ArgumentValueError(f"edge_order is 1 or 2, not {edge_order}")
    if x.shape[axis] < edge_order + 1:
        raise ArgumentValueError(
            f"a gradient of order {edge_order} needs {edge_order + 1} elements: axis {axis} of {x.shape}"
        )
    for each in spacing:
        if each.shape not in ((), (x.shape[axis],)):
            raise ArgumentValueError(f"positions of shape {each.shape} do not fit axis {axis} of shape {x.shape}")
    return Aval(x.shape, x.dtype if x.dtype.kind in "fc" else _DOUBLE)


@register_op("gradient", infer=_infer_gradient)
def _gradient(out: Elements, x: Elements, *spacing: Any, axis: int, edge_order: Literal[1, 2]) -> None:
    np.copyto(out, np.gradient(x, *spacing, axis=axis, edge_order=edge_order))


def gradient(
    x: ArrayLike, /, *varargs: ArrayLike, axis: Axis = None, edge_order: int = 1
) -> NDArray | tuple[NDArray, ...]:
    """Return the derivatives along each axis, by central differences inside and one-sided ones at the ends.

    Parameters
    ----------
    x : array-like
        Samples of a function.
    *varargs : float or array-like
        The distance of the samples, one for all axes or one for each, or their positions.
    axis : int or tuple of int, optional
        Along which axes; by default all.
    edge_order : {1, 2}, default: 1
        The order of the differences at the ends.

    Returns
    -------
    NDArray or tuple of NDArray
        One array of the shape of `x` for each axis; a tuple of them unless there is one axis.

    Examples
    --------
    >>> import weft
    >>> weft.gradient([1.0, 4.0, 9.0, 16.0])
    NDArray([3., 4., 6., 7.])
    """
    x = as_array(x)
    axes = axis_tuple(axis, x.ndim)
    steps = varargs * len(axes) if len(varargs) == 1 else varargs
    if steps and len(steps) != len(axes):
        raise ArgumentTypeError(
            f"gradient() takes one distance for all axes or one for each: {len(varargs)} for {len(axes)}"
        )
    found = [
        one(_gradient, x, *(_spacing(steps[at]) if steps else ()), axis=each, edge_order=edge_order)
        for at, each in enumerate(axes)
    ]
    return found[0] if len(found) == 1 else tuple(found)


def _spacing(step: ArrayLike) -> tuple[ArrayLike]:
    return (float(step) if isinstance(step, int | float) else as_array(step),)


_MODES = ("full", "same", "valid")


def _infer_convolve(x1: Aval, x2: Aval, *, mode: str) -> Aval:
    if len(x1.shape) != 1 or len(x2.shape) != 1 or not x1.shape[0] or not x2.shape[0]:
        raise ArgumentValueError(
            f"convolve() takes arrays of one axis with elements, not of shapes {x1.shape} and {x2.shape}"
        )
    if mode not in _MODES:
        raise ArgumentValueError(f"mode is 'full', 'same' or 'valid', not {mode!r}")
    short, long = sorted((x1.shape[0], x2.shape[0]))
    return Aval(((long + short - 1, long, long - short + 1)[_MODES.index(mode)],), result_dtype(x1, x2))


@register_op("convolve", infer=_infer_convolve)
def _convolve(out: Elements, x1: Elements, x2: Elements, *, mode: Literal["full", "same", "valid"]) -> None:
    np.copyto(out, np.convolve(x1, x2, mode))


state(_convolve, superlinear=True)


def convolve(x1: ArrayLike, x2: ArrayLike, /, mode: str = "full") -> NDArray:
    """Return the discrete convolution of two arrays of one axis.

    Parameters
    ----------
    x1, x2 : array-like
        The arrays.
    mode : {"full", "same", "valid"}, default: "full"
        Wherever they overlap; as many elements as the longer has; or where they overlap completely.

    Examples
    --------
    >>> import weft
    >>> weft.convolve([1, 2, 3], [0, 1])
    NDArray([0, 1, 2, 3])
    """
    x1 = as_array(x1)
    return one(_convolve, x1, as_array(x2, x1), mode=mode)


def trapezoid(y: ArrayLike, /, x: ArrayLike | None = None, dx: float = 1.0, axis: SupportsIndex = -1) -> NDArray:
    """Return the integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : array-like
        The values.
    x : array-like, optional
        The positions of the values; by default `dx` apart.
    dx : float, default: 1.0
        The distance of the values, if `x` is not given.
    axis : int, default: -1
        The axis.

    Examples
    --------
    >>> import weft
    >>> weft.trapezoid([1.0, 2.0, 3.0]).item()
    4.0
    """
    y = as_array(y)
    at = axis_index(axis, len(y.shape))
    step: NDArray | float = dx
    if x is not None:
        positions = as_array(x, y)
        if positions.ndim == 1:
            steps = diff(positions)
            step = reshape(steps, [steps.size if i == at else 1 for i in range(y.ndim)])
        else:
            step = diff(positions, axis=at)
    before, after = (y[(slice(None),) * at + (part,)] for part in (slice(None, -1), slice(1, None)))
    return total((before + after) / 2.0 * step, axis=at)


@gradient_of("interp", inputs=[0, 1, 2])
def _of_interp(node: Any, grads: Any) -> Any:
    whole = [each.dtype.kind not in "fc" for each in node.inputs]
    given = [astype(each, "float64") if is_whole else each for each, is_whole in zip(node.inputs, whole, strict=True)]
    answer: tuple[Any, ...] = vjp(partial(_lines, **node.attributes), *given)[1](grads[0])
    return tuple(None if is_whole else each for each, is_whole in zip(answer, whole, strict=True))


def _lines(
    x: NDArray,
    xp: NDArray,
    fp: NDArray,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> NDArray:
    """Interpolate with functions that have gradients."""
    if period is not None:
        period = abs(period)
        x, xp = x % period, xp % period
        order = argsort(xp)
        xp, fp = take(xp, order, axis=0), take(fp, order, axis=0)
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
        left = right = None
    last = xp.shape[0] - 1
    at = maximum(minimum(searchsorted(xp, x, side="right") - 1, last - 1), 0)
    low, high = take(xp, at, axis=0), take(xp, minimum(at + 1, last), axis=0)
    first, second = take(fp, at, axis=0), take(fp, minimum(at + 1, last), axis=0)
    width = where(equal(high, low), 1, high - low)
    found: Any = first + (second - first) * ((x - low) / width)
    found = where(less(x, xp[:1]), fp[:1] if left is None else left, found)
    found = where(greater(x, xp[last:]), fp[last:] if right is None else right, found)
    return found * 1.0  # type: ignore[no-any-return] # an array


def _infer_adjoint(g: Aval, like: Aval, *spacing: Aval, axis: int, edge_order: int) -> Aval:
    del spacing, axis, edge_order
    return Aval(like.shape, g.dtype)


@register_op("gradient_adjoint", infer=_infer_adjoint)
def _adjoint(out: Elements, g: Elements, like: Elements, *spacing: Any, axis: int, edge_order: int) -> None:
    options: Any = {"axis": 0, "edge_order": edge_order}
    matrix: Any = np.gradient(np.eye(like.shape[axis]), *spacing, **options)
    out[...] = np.moveaxis(np.tensordot(matrix, g, axes=((0,), (axis,))), 0, axis)


get_op("gradient_adjoint").set_attribute("ignores", (1,))


def _of_differences(other: str, *, likes: int) -> Any:
    """Return the rule of `gradient`, or of its adjoint: each is the other's."""

    def rule(node: Any, grads: Any) -> Any:
        x, *rest = node.inputs
        spacing = rest[likes:]
        known = getattr(node, "needs", None)
        if known is not None and any(known[1:]):
            raise GradientError(
                "gradient() has no gradient by the distances of the samples: compute them by weft.autograd.stop_gradient()"
            )
        like = [] if likes else [stand_in(x)]
        found = get_op(other)(grads[0], *like, *spacing, **node.attributes)
        return (cast_like(found, x), *(None,) * len(rest))

    return rule


give(get_op("gradient"), _of_differences("gradient_adjoint", likes=0), ALL_INPUTS & ~1)
give(get_op("gradient_adjoint"), _of_differences("gradient", likes=1), ALL_INPUTS & ~3)


@gradient_of("convolve", each=(2, 1))
def _of_convolve(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    (n1,), (n2,) = shape_of(x1), shape_of(x2)
    mode, g, short = node.attributes["mode"], grads[0], min(n1, n2)
    start = {"full": 0, "same": short - 1 - short // 2, "valid": short - 1}[mode]
    length = {"full": n1 + n2 - 1, "same": max(n1, n2), "valid": max(n1, n2) - short + 1}[mode]
    full = pad_axis(g, 0, start, n1 + n2 - 1 - start - length)
    found: list[Any] = []
    for at, (x, other) in enumerate(((x1, x2), (x2, x1))):
        if not needs(node, at):
            found.append(None)
            continue
        turned = apply("flip", conjugate(other), axes=(0,))
        found.append(cast_like(get_op("convolve")(full, turned, mode="valid"), x))
    return tuple(found)
