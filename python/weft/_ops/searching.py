"""Searching and counting: `argmax`, `where`, `nonzero`, `searchsorted`, `count_nonzero` and their kin.

Functions with a result whose shape depends on values wait for their operands: `nonzero`, `argwhere`, `flatnonzero`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from weft._call.blocking import eager
from weft._call.calls import Elements, call, one
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._call.scalars import wrapped
from weft._core import Native, NDArray
from weft._cuda.launch import Launch
from weft._ops.manipulation import ravel, reshape
from weft._registry.avals import Aval, result_dtype
from weft._registry.defaults import state
from weft._registry.gradients import no_gradient
from weft._registry.op import register_op
from weft._registry.shape_rules import shaped_by
from weft._registry.shapes import Axis, axis_index, is_only_axis, reduced_axes
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import DType
    from weft._call.operands import ArrayLike
    from weft._registry.op import Op

__all__ = [
    "argmax", "argmin", "argwhere", "count_nonzero", "flatnonzero", "nanargmax", "nanargmin", "nonzero",
    "searchsorted", "where",
]  # fmt: skip

_INDEX = np.dtype(np.int64)


def _index(_x: Aval, *, axis: object, keepdims: bool = False) -> DType:
    """Return the dtype of positions and counts."""
    del axis, keepdims  # without influence
    return _INDEX


def _register_arg(name: str, function: Callable[..., Any]) -> Op:
    @register_op(name, infer=shaped_by("extremum", _index))
    def op(out: Elements, x: Elements, *, axis: int | None, keepdims: bool = False) -> None:
        np.copyto(out, function(x, axis=axis, keepdims=keepdims))

    def for_all(size: int, operands: list[Any], _: list[bool], attributes: dict[str, Any]) -> Any:
        x, axis = operands[0], attributes["axis"]
        if axis is not None:
            return call(op, x, **{**attributes, "axis": axis + 1 if axis >= 0 else axis})
        found = call(op, reshape(x, (size, -1)), axis=1)
        return reshape(found, (size, *(1 for _ in x.shape[1:]))) if attributes.get("keepdims") else found

    state(op, layout="reduce", batch=for_all)
    op._prepare_by(_searching)
    return op


def _searching(x: Any, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> dict[str, Any]:
    """Return the attributes of a search along an axis in the form that its rule knows."""
    found = None if axis is None or is_only_axis(axis, x.ndim) else axis_index(axis, x.ndim)
    return {"axis": found, "keepdims": keepdims}


_ARGMAX = _register_arg("argmax", np.argmax)
_ARGMIN = _register_arg("argmin", np.argmin)
_ARGMAX._run_by(Native.search(largest=True))
_ARGMIN._run_by(Native.search(largest=False))
_NANARGMAX = _register_arg("nanargmax", np.nanargmax)
_NANARGMIN = _register_arg("nanargmin", np.nanargmin)


@register_op("count_nonzero", infer=shaped_by("reduce", _index))
def _count_nonzero(out: Elements, x: Elements, *, axis: tuple[int, ...], keepdims: bool = False) -> None:
    np.copyto(out, np.count_nonzero(x, axis=axis, keepdims=keepdims))


def _count_nonzero_by_cupy(out: Any, x: Any, *, axis: tuple[int, ...], keepdims: bool = False) -> None:
    np.sum(x != x.dtype.type(0), axis=axis, dtype=out.dtype, out=out, keepdims=keepdims)


state(_count_nonzero, cupy=_count_nonzero_by_cupy)


def _chosen(_condition: Aval, x1: Aval, x2: Aval) -> DType:
    return result_dtype(x1, x2)


@register_op("where", infer=shaped_by("broadcast", _chosen))
def _where(out: Elements, condition: Elements, x1: Elements, x2: Elements) -> None:
    np.copyto(out, wrapped(x2, out.dtype), casting="unsafe")
    np.copyto(out, wrapped(x1, out.dtype), casting="unsafe", where=condition.astype(np.bool_, copy=False))


def _where_on_cuda(out: NDArray, condition: NDArray, x1: Any, x2: Any) -> Launch:
    values = (wrapped(x, out.dtype) for x in (x1, x2))
    return Launch("where", "a ? b : c", (condition, *values), (np.dtype(np.bool_), out.dtype, out.dtype))


_where.set_attribute("kernels", _where_on_cuda)

_where._run_by(Native.choose())


def _infer_searchsorted(x1: Aval, x2: Aval, *sorters: Aval, side: str) -> Aval:
    if side not in ("left", "right"):
        raise ArgumentValueError(f"side is 'left' or 'right', got {side!r}")
    if len(x1.shape) != 1:
        raise ArgumentValueError(f"searchsorted looks in an array of 1 axis, got shape {x1.shape}")
    for sorter in sorters:
        if sorter.dtype.kind not in "iu":
            raise ArgumentTypeError(f"sorter holds integers, got dtype {sorter.dtype}")
        if sorter.shape != x1.shape:
            raise ArgumentValueError(f"sorter of shape {sorter.shape} does not fit an array of shape {x1.shape}")
    return Aval(x2.shape, _INDEX)


state(_count_nonzero, layout="reduce")
state(_where, elementwise=True, places=(0,))
no_gradient("argmax", "argmin", "nanargmax", "nanargmin", "count_nonzero")


@register_op("searchsorted", infer=_infer_searchsorted)
def _searchsorted(
    out: Elements, x1: Elements, x2: Elements, *sorters: Elements, side: Literal["left", "right"]
) -> None:
    np.copyto(out, np.searchsorted(x1, x2, side, sorters[0] if sorters else None))


no_gradient("searchsorted")


def _answer_count(x: Elements, *, axis: tuple[int, ...], keepdims: bool = False) -> Any:
    if len(axis) == x.ndim and not keepdims:
        return np.count_nonzero(x)
    return np.count_nonzero(x, axis=axis, keepdims=keepdims)


def _answer_places(x1: Elements, x2: Elements, *, side: Literal["left", "right"]) -> Elements:
    if x1.ndim != 1:
        raise ArgumentValueError("searchsorted looks in an array of 1 axis")
    return x1.searchsorted(x2, side)


answers(_count_nonzero, _answer_count, exact=True)
answers(_searchsorted, _answer_places, exact=True)


def argmax(
    x: ArrayLike, /, axis: SupportsIndex | None = None, out: NDArray | None = None, *, keepdims: bool = False
) -> NDArray:
    """Return the index of the first largest element along `axis`; without one, in the flattened array.

    Examples
    --------
    >>> import weft
    >>> weft.argmax([[1, 5], [7, 2]], axis=1)
    NDArray([1, 0])
    """
    return one(_ARGMAX, x, out=out, axis=axis, keepdims=keepdims)


def argmin(
    x: ArrayLike, /, axis: SupportsIndex | None = None, out: NDArray | None = None, *, keepdims: bool = False
) -> NDArray:
    """Return the index of the first smallest element along `axis`; without one, in the flattened array.

    Examples
    --------
    >>> import weft
    >>> weft.argmin([[1, 5], [7, 2]], axis=1)
    NDArray([0, 1])
    """
    return one(_ARGMIN, x, out=out, axis=axis, keepdims=keepdims)


def nanargmax(
    x: ArrayLike, /, axis: SupportsIndex | None = None, out: NDArray | None = None, *, keepdims: bool = False
) -> NDArray:
    """Return `argmax` past NaN; a slice of NaN alone is a ValueError, raised by the wait.

    Examples
    --------
    >>> import weft
    >>> weft.nanargmax([1.0, weft.nan, 3.0]).item()
    2
    """
    return one(_NANARGMAX, x, out=out, axis=axis, keepdims=keepdims)


def nanargmin(
    x: ArrayLike, /, axis: SupportsIndex | None = None, out: NDArray | None = None, *, keepdims: bool = False
) -> NDArray:
    """Return `argmin` past NaN; a slice of NaN alone is a ValueError, raised by the wait.

    Examples
    --------
    >>> import weft
    >>> weft.nanargmin([weft.nan, 2.0, 1.0]).item()
    2
    """
    return one(_NANARGMIN, x, out=out, axis=axis, keepdims=keepdims)


def count_nonzero(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> NDArray:
    """Return the number of elements along `axis` that are not zero.

    Examples
    --------
    >>> import weft
    >>> weft.count_nonzero([[1, 0], [2, 3]], axis=0)
    NDArray([2, 1])
    """
    x = as_array(x)
    return one(_count_nonzero, x, axis=reduced_axes(axis, x.ndim, by_rule=True), keepdims=keepdims)


def nonzero(x: ArrayLike, /) -> tuple[NDArray, ...]:
    """Return the indices of the elements that are not zero, one array per axis. Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> rows, columns = weft.nonzero([[0, 1], [2, 0]])
    >>> print(rows, columns)
    [0 1] [1 0]
    """
    x = as_array(x)
    if x.ndim == 0:
        raise ArgumentValueError("an array without axes has no indices: call nonzero on atleast_1d(x)")
    found: tuple[NDArray, ...] = eager("nonzero", np.nonzero, x)
    return found


def argwhere(x: ArrayLike, /) -> NDArray:
    """Return the indices of the elements that are not zero, one row for each. Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> print(weft.argwhere([[0, 1], [2, 0]]))
    [[0 1]
     [1 0]]
    """
    found: NDArray = eager("argwhere", np.argwhere, x)
    return found


def flatnonzero(x: ArrayLike, /) -> NDArray:
    """Return the indices, in the flattened array, of the elements that are not zero. Waits for `x`.

    Examples
    --------
    >>> import weft
    >>> weft.flatnonzero([0, 1, 2])
    NDArray([1, 2])
    """
    return nonzero(ravel(x))[0]


def where(
    condition: ArrayLike, x1: ArrayLike | None = None, x2: ArrayLike | None = None, /
) -> NDArray | tuple[NDArray, ...]:
    """Choose elements of `x1` where `condition` is true and of `x2` elsewhere; all three broadcast.

    Python scalars take the dtype of the other array; integers that are out of its range wrap. With the condition alone
    it is `nonzero`, and waits.

    Examples
    --------
    >>> import weft
    >>> weft.where([True, False, True], weft.asarray([1, 2, 3]), 0)
    NDArray([1, 0, 3])
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ArgumentValueError("where takes both x1 and x2, or neither")
    if condition.__class__ is not NDArray:
        condition = as_array(condition, x1 if isinstance(x1, NDArray) else x2 if isinstance(x2, NDArray) else None)
    return one(_where, condition, x1, x2)


def searchsorted(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    side: Literal["left", "right"] = "left",
    sorter: ArrayLike | None = None,
) -> NDArray:
    """Return the indices at which `x2` would have to go into the sorted `x1` to keep it sorted.

    Parameters
    ----------
    x1 : array_like
        An array of one axis in ascending order, by itself or by `sorter`.
    x2 : array_like
        The values to place, of any shape.
    side : {"left", "right"}
        Whether before or after elements that are equal.
    sorter : array_like of int, optional
        The indices that sort `x1`, as `argsort` returns them.

    Examples
    --------
    >>> import weft
    >>> weft.searchsorted([1, 3, 5], [0, 3, 6])
    NDArray([0, 1, 3])
    """
    x1 = as_array(x1, x2 if isinstance(x2, NDArray) else None)
    sorters = () if sorter is None else (as_array(sorter, x1),)
    return one(_searchsorted, x1, as_array(x2, x1), *sorters, side=side)
