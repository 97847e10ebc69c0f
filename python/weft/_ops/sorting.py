"""Sorting: `sort`, `argsort` and NumPy's `partition`, `argpartition`, `lexsort`. NaN sort to the end."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from weft._call.calls import DType, Elements, one
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._core import Kernel, NDArray, kernel_sort
from weft._ops.manipulation import ravel
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import no_gradient
from weft._registry.op import register_op
from weft._registry.shape_rules import dtype_of_first, shaped_by
from weft._registry.shapes import AnyShape, as_index, as_shape, axis_index, is_only_axis
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._call.operands import ArrayLike

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort"]

_INDEX = np.dtype(np.int64)
#: Shorter vectors are sorted by the pushing thread.
_LONG = 1 << 12
#: For vectors up to this length a stable sort is faster than to put equal elements back.
_SHORT = 1 << 6
#: Dtypes whose places NumPy sorts faster if equal elements may change theirs.
_FAST = frozenset(map(np.dtype, ("int32", "uint32", "int64", "uint64", "float32", "float64")))


def _index(_x: Aval, **_: object) -> DType:
    return _INDEX


def _order(x: Elements, *, axis: int, descending: bool = False, stable: bool = True) -> Elements:
    """Return the places of the elements along an axis in order."""
    kind: Literal["stable"] | None = "stable" if stable else None
    if not descending:
        if stable and x.ndim == 1 and x.size >= _LONG and x.dtype in _FAST:
            return _order_stably(x)
        return np.argsort(x, axis=axis, kind=kind)  # not by the method, which takes no kind in CuPy
    # Sorting the reversed array and reading the result backwards keeps equal elements in their order.
    order = np.argsort(np.flip(x, axis), axis=axis, kind=kind)
    found: Elements = x.shape[axis] - 1 - np.flip(order, axis)
    return found


def _order_stably(x: Elements) -> Elements:
    """Return the stable order of a vector, by a much faster unstable sort and an ordering of equal elements' places."""
    if bool((x[:-1] <= x[1:]).all()):
        return np.arange(x.size, dtype=_INDEX)
    order = np.argsort(x)
    ordered = x[order]
    equal = ordered[:-1] == ordered[1:]
    if x.dtype.kind == "f" and np.isnan(ordered[-1]):
        equal |= np.isnan(ordered[:-1])  # they are the last ones, and count as equal
    if equal.any():
        first = np.zeros(x.size, _INDEX)
        np.cumsum(~equal, out=first[1:])
        first *= x.size
        order += first
        order.sort()
        order -= first
    return order


def _is_zero(x: Elements) -> Elements:
    found: Elements = x == 0
    return found


def is_stable(kind: str) -> bool:
    """Return whether a sort of this kind is stable; the kinds are NumPy's, which knows them by their first letters.

    Examples
    --------
    >>> from weft._ops.sorting import is_stable
    >>> is_stable("mergesort"), is_stable("quicksort")
    (True, False)
    """
    first = kind[:1].lower()
    if first not in {"q", "h", "m", "s"}:
        raise ArgumentValueError(
            f"the kind of a sort is 'quicksort', 'heapsort', 'mergesort' or 'stable', not {kind!r}"
        )
    return first in {"m", "s"}


def sort_values(x: Elements, axis: int) -> None:
    """Sort in place, equal elements in any order."""
    if x.dtype == np.float16:  # besides NaN and signed zeros, NumPy leaves some of them out of place
        x[...] = np.sort(x.astype(np.float32), axis=axis)
    else:
        x.sort(axis=axis)


def sort_stably(x: Elements, axis: int) -> None:
    """Sort in place; equal elements that differ in their bits keep their order.

    Such floats are the zeros of two signs and the kinds of NaN. To sort by values and then put those back is many times
    faster than a stable sort.
    """
    if x.dtype.kind != "f":
        x.sort(axis=axis, kind=None if x.dtype.kind in "biu" else "stable")
        return
    lanes = np.moveaxis(x, axis, -1)  # a mask takes elements lane by lane
    kept = [(test, lanes[test(lanes)]) for test in (np.isnan, _is_zero)]
    sort_values(x, axis)
    for test, elements in kept:
        if elements.size:
            lanes[test(lanes)] = elements


def _put_back(out: Elements, x: Elements) -> None:
    """Give the equal elements of a sorted vector of floats their order in `x`, its input."""
    first, last = (int(np.searchsorted(out, np.zeros((), out.dtype), side)) for side in ("left", "right"))
    if last - first > 1:
        out[first:last] = x[x == 0]
    if out.size and np.isnan(out[-1]):
        nan = np.isnan(x)
        out[out.size - np.count_nonzero(nan) :] = x[nan]


@register_op("sort", infer=shaped_by("along", dtype_of_first))
def _sort(out: Elements, x: Elements, *, axis: int, descending: bool = False, stable: bool = True) -> None:
    # Reversed before and after: equal elements that differ in their bits, as 0.0 and -0.0, keep their order.
    x = np.flip(x, axis) if descending else x
    np.copyto(out, x)
    if not stable:
        sort_values(out, axis)
    elif out.ndim == 1 and out.size <= _SHORT:
        out.sort(kind="stable")
    elif out.ndim == 1 and out.dtype.kind == "f":
        sort_values(out, 0)
        _put_back(out, x)
    else:
        sort_stably(out, axis)
    if descending:
        np.copyto(out, np.flip(out, axis).copy())


def _sort_by_cupy(out: Any, x: Any, *, axis: int, descending: bool = False, **_: object) -> None:
    # Not in place, because CuPy sorts only contiguous arrays in place; reversed as on the CPU.
    found = np.sort(np.flip(x, axis) if descending else x, axis=axis)
    np.copyto(out, np.flip(found, axis) if descending else found)


state(_sort, cupy=_sort_by_cupy)


@lru_cache(maxsize=64)
def _kernel(dtype: DType, count: int) -> Kernel | None:
    return kernel_sort("sort", dtype, count)


def _push_sort(
    outputs: tuple[NDArray],
    operands: tuple[NDArray],
    *,
    axis: int,  # noqa: ARG001 - there is one
    descending: bool = False,
    stable: bool = True,  # noqa: ARG001 - it always is
) -> bool:
    """Sort a long vector by NumPy's loop; an idle worker may take a part."""
    (out,), (x,) = outputs, operands
    if x.ndim != 1 or descending or x.size < _LONG or x.dtype != out.dtype or not (x._contiguous and out._contiguous):
        return False
    kernel = _kernel(x.dtype, x.size)
    if kernel is None:
        return False
    kernel.push((out,), (x,))
    return True


_sort.set_attribute("push", _push_sort)


@register_op("argsort", infer=shaped_by("along", _index))
def _argsort(out: Elements, x: Elements, *, axis: int, descending: bool = False, stable: bool = True) -> None:
    np.copyto(out, _order(x, axis=axis, descending=descending, stable=stable))


def _answer_sort(x: Elements, *, axis: int, descending: bool = False, stable: bool = True) -> Elements:
    found = np.empty(x.shape, x.dtype)
    _sort.compute["cpu"](found, x, axis=axis, descending=descending, stable=stable)
    return found


answers(_sort, _answer_sort, exact=True)
answers(_argsort, _order, exact=True)


def _infer_partition(x: Aval, *, kth: tuple[int, ...], axis: int) -> Aval:
    length = x.shape[axis_index(axis, len(x.shape))]
    if 0 not in x.shape and any(not -length <= k < length for k in kth):
        raise ArgumentValueError(f"kth={kth} is out of bounds for axis {axis} of shape {x.shape}")
    return Aval(x.shape, x.dtype)


def _infer_argpartition(x: Aval, *, kth: tuple[int, ...], axis: int) -> Aval:
    return Aval(_infer_partition(x, kth=kth, axis=axis).shape, _INDEX)


@register_op("partition", infer=_infer_partition)
def _partition(out: Elements, x: Elements, *, kth: tuple[int, ...], axis: int) -> None:
    np.copyto(out, np.partition(x, kth, axis))


@register_op("argpartition", infer=_infer_argpartition)
def _argpartition(out: Elements, x: Elements, *, kth: tuple[int, ...], axis: int) -> None:
    np.copyto(out, np.argpartition(x, kth, axis))


answers(_partition, np.partition, exact=True)
answers(_argpartition, np.argpartition, exact=True)


def _infer_lexsort(*keys: Aval, axis: int) -> Aval:
    if not keys:
        raise ArgumentValueError("lexsort needs at least one key")
    if any(key.shape != keys[0].shape for key in keys):
        raise ArgumentValueError(f"all keys have one shape, got {', '.join(str(key.shape) for key in keys)}")
    if not is_only_axis(axis, len(keys[0].shape)):
        axis_index(axis, len(keys[0].shape))
    return Aval(keys[0].shape, _INDEX)


@register_op("lexsort", infer=_infer_lexsort)
def _lexsort(out: Elements, *keys: Elements, axis: int) -> None:
    np.copyto(out, np.lexsort(keys, axis))


def _lexsort_by_cupy(out: Any, *keys: Any, axis: int) -> None:
    order = np.argsort(keys[0], axis=axis, kind="stable")
    for key in keys[1:]:
        again = np.argsort(np.take_along_axis(key, order, axis=axis), axis=axis, kind="stable")
        order = np.take_along_axis(order, again, axis=axis)
    np.copyto(out, order)


state(_lexsort, cupy=_lexsort_by_cupy)
for _op in (_sort, _argsort, _partition, _argpartition):
    state(_op, batch="axis")


no_gradient("argsort", "argpartition", "lexsort")


def _answer_lexsort(*keys: Elements, axis: int) -> Elements:
    return np.lexsort(keys, axis)


answers(_lexsort, _answer_lexsort, exact=True)


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
    """Return a copy with the elements of the sorted array at the places `kth`, and smaller ones before them.

    Examples
    --------
    >>> import weft
    >>> weft.partition([3, 1, 2], 0)[0].item()
    1
    """
    x, at = _along(x, axis)
    return one(_partition, x, kth=as_shape(kth), axis=at)


def argpartition(x: ArrayLike, kth: AnyShape, /, axis: SupportsIndex | None = -1) -> NDArray:
    """Return the indices from which `partition` would take the elements.

    Examples
    --------
    >>> import weft
    >>> weft.argpartition([3, 1, 2], 0)[0].item()
    1
    """
    x, at = _positions_along(x, axis)
    return one(_argpartition, x, kth=as_shape(kth), axis=at)


def lexsort(keys: Sequence[ArrayLike], /, axis: SupportsIndex = -1) -> NDArray:
    """Return the indices that sort by the last key, ties by the one before it, and so on.

    Examples
    --------
    >>> import weft
    >>> weft.lexsort([[2, 1, 3], [1, 1, 0]])
    NDArray([2, 1, 0])
    """
    like = next((key for key in keys if isinstance(key, NDArray)), None)
    return one(_lexsort, *(as_array(key, like) for key in keys), axis=as_index(axis, "axis"))


def _positions_along(x: ArrayLike, axis: SupportsIndex | None) -> tuple[NDArray, int]:
    x = as_array(x)
    return _along(x, None if is_only_axis(axis, x.ndim) else axis)


def _along(x: ArrayLike, axis: SupportsIndex | None) -> tuple[NDArray, int]:
    x = as_array(x)
    return (ravel(x), 0) if axis is None else (x, axis_index(axis, x.ndim))
