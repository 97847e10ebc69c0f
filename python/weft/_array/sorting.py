"""Sorting: `sort`, `argsort` and NumPy's `partition`, `argpartition`, `lexsort`. NaN sort to the end."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal, SupportsIndex

import numpy as np

from weft._array.calls import Elements, one
from weft._array.manipulation import ravel
from weft._array.operands import as_array
from weft._array.shapes import AnyShape, as_shape, axis_index, is_only_axis
from weft._core import NDArray
from weft.ops import Aval, register_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._array.operands import ArrayLike

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort"]

_INDEX = np.dtype(np.int64)


def _infer_sort(x: Aval, *, axis: int, **_: object) -> Aval:
    axis_index(axis, len(x.shape))
    return Aval(x.shape, x.dtype)


def _infer_argsort(x: Aval, *, axis: int, **_: object) -> Aval:
    axis_index(axis, len(x.shape))
    return Aval(x.shape, _INDEX)


def _order(x: Elements, axis: int, *, descending: bool, stable: bool) -> Elements:
    kind: Literal["stable"] | None = "stable" if stable else None
    if not descending:
        return np.argsort(x, axis=axis, kind=kind)
    # Sorting the reversed array and reading the result backwards keeps equal elements in their order.
    order = np.argsort(np.flip(x, axis), axis=axis, kind=kind)
    found: Elements = x.shape[axis] - 1 - np.flip(order, axis)
    return found


def shows_order(x: Elements) -> bool:
    """Return whether elements that are equal to a sort may differ in their bits, so that it shows if it is stable.

    Zeros of two signs do, and NaN of several kinds. Where nobody can see it, a stable sort is any sort, and others are
    many times faster.
    """
    if x.dtype.kind in "biu":
        return False
    if x.dtype.kind != "f" or bool(np.isnan(x).any()):
        return True
    zeros = x[x == 0]
    return zeros.size > 0 and bool(np.signbit(zeros).any())


@register_op("sort", infer=_infer_sort)
def _sort(out: Elements, x: Elements, *, axis: int, descending: bool = False, stable: bool = True) -> None:
    # Backwards both before and after: equal elements that differ in their bits, as 0.0 and -0.0, keep their order.
    np.copyto(out, np.flip(x, axis) if descending else x)
    out.sort(axis=axis, kind="stable" if stable and shows_order(out) else None)
    if descending:
        np.copyto(out, np.flip(out, axis).copy())


@register_op("argsort", infer=_infer_argsort)
def _argsort(out: Elements, x: Elements, *, axis: int, descending: bool = False, stable: bool = True) -> None:
    np.copyto(out, _order(x, axis, descending=descending, stable=stable))


def _infer_partition(x: Aval, *, kth: tuple[int, ...], axis: int) -> Aval:
    length = x.shape[axis_index(axis, len(x.shape))]
    if any(not -length <= k < length for k in kth):
        raise ValueError(f"kth={kth} is out of bounds for axis {axis} of shape {x.shape}")
    return Aval(x.shape, x.dtype)


def _infer_argpartition(x: Aval, *, kth: tuple[int, ...], axis: int) -> Aval:
    return Aval(_infer_partition(x, kth=kth, axis=axis).shape, _INDEX)


@register_op("partition", infer=_infer_partition)
def _partition(out: Elements, x: Elements, *, kth: tuple[int, ...], axis: int) -> None:
    np.copyto(out, np.partition(x, kth, axis))


@register_op("argpartition", infer=_infer_argpartition)
def _argpartition(out: Elements, x: Elements, *, kth: tuple[int, ...], axis: int) -> None:
    np.copyto(out, np.argpartition(x, kth, axis))


def _infer_lexsort(*keys: Aval, axis: int) -> Aval:
    if not keys:
        raise ValueError("lexsort needs at least one key")
    if any(key.shape != keys[0].shape for key in keys):
        raise ValueError(f"all keys have one shape, got {', '.join(str(key.shape) for key in keys)}")
    axis_index(axis, len(keys[0].shape))
    return Aval(keys[0].shape, _INDEX)


@register_op("lexsort", infer=_infer_lexsort)
def _lexsort(out: Elements, *keys: Elements, axis: int) -> None:
    np.copyto(out, np.lexsort(keys, axis))


def sort(x: ArrayLike, /, axis: SupportsIndex | None = -1, *, descending: bool = False, stable: bool = True) -> NDArray:
    """Return a sorted copy; with the axis None, of the flattened array.

    Examples
    --------
    >>> import weft
    >>> weft.sort([3, 1, 2], descending=True)
    NDArray([3, 2, 1])
    """
    x, at = _along(x, axis)
    return one(_sort, x, axis=at, descending=descending, stable=stable)


def argsort(
    x: ArrayLike, /, axis: SupportsIndex | None = -1, *, descending: bool = False, stable: bool = True
) -> NDArray:
    """Return the indices that sort along `axis`; with the axis None, of the flattened array.

    Examples
    --------
    >>> import weft
    >>> weft.argsort([3, 1, 2])
    NDArray([1, 2, 0])
    """
    x, at = _positions_along(x, axis)
    return one(_argsort, x, axis=at, descending=descending, stable=stable)


def partition(x: ArrayLike, kth: AnyShape, /, axis: SupportsIndex | None = -1) -> NDArray:
    """Return a copy whose elements at the places `kth` are those of the sorted array, smaller ones before them.

    Examples
    --------
    >>> import weft
    >>> weft.partition([3, 1, 2], 0)[0].item()
    1
    """
    x, at = _along(x, axis)
    return one(_partition, x, kth=as_shape(kth), axis=at)


def argpartition(x: ArrayLike, kth: AnyShape, /, axis: SupportsIndex | None = -1) -> NDArray:
    """Return the indices that `partition` would take the elements from.

    Examples
    --------
    >>> import weft
    >>> weft.argpartition([3, 1, 2], 0)[0].item()
    1
    """
    x, at = _positions_along(x, axis)
    return one(_argpartition, x, kth=as_shape(kth), axis=at)


def lexsort(keys: Sequence[ArrayLike], /, axis: SupportsIndex = -1) -> NDArray:
    """Return the indices that sort by the last key, by the one before it where that is equal, and so on.

    Examples
    --------
    >>> import weft
    >>> weft.lexsort([[2, 1, 3], [1, 1, 0]])
    NDArray([2, 1, 0])
    """
    like = next((key for key in keys if isinstance(key, NDArray)), None)
    return one(_lexsort, *(as_array(key, like) for key in keys), axis=operator.index(axis))


def _positions_along(x: ArrayLike, axis: SupportsIndex | None) -> tuple[NDArray, int]:
    x = as_array(x)
    return _along(x, None if is_only_axis(axis, x.ndim) else axis)


def _along(x: ArrayLike, axis: SupportsIndex | None) -> tuple[NDArray, int]:
    x = as_array(x)
    return (ravel(x), 0) if axis is None else (x, axis_index(axis, x.ndim))
