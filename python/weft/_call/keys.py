"""Index keys: the meaning of ``x[key]`` for a shape, before any element is touched. Needs no engine."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard, cast

import numpy as np

from weft._call.operands import is_host, listed
from weft._core import NDArray
from weft._registry.avals import broadcast_shapes
from weft._registry.symbol_hook import Composing, is_symbol
from weft.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import EllipsisType

Index: TypeAlias = "int | slice | NDArray | np.ndarray[Any, Any] | EllipsisType | None"


class Basic(NamedTuple):
    """A key of integers, slices and new axes: it names a view."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Advanced(NamedTuple):
    """A key with arrays in it: it selects single elements.

    `entries` has one entry for each axis of the indexed array, with two exceptions: boolean arrays take several axes,
    None and an Ellipsis take none. An Ellipsis stays only if it covers no axes; it still separates the arrays on its
    two sides. `shape` is that of the indexed elements, or None if a boolean NDArray decides it.
    """

    entries: tuple[Index, ...]
    shape: tuple[int, ...] | None


def parse(key: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Basic | Advanced:
    """Return the meaning of a key for an array of a shape and strides.

    Raises
    ------
    IndexError
        If there are too many indices, one is out of bounds or invalid, or arrays do not broadcast.

    Examples
    --------
    >>> from weft._call.keys import parse
    >>> parse((1, slice(None, None, 2)), (3, 5), (40, 8))
    Basic(shape=(3,), strides=(16,), offset=40)
    """
    entries = [_entry(each) for each in listed(key)]
    entries = _expand(entries, shape)
    axis = 0
    for position, entry in enumerate(entries):
        if _is_array(entry):
            if entry.dtype.kind == "b":
                _check_mask(entry.shape, shape, axis)
                axis += entry.ndim
                continue
            if is_host(entry):
                check_bounds(entry, axis, shape[axis])
        elif isinstance(entry, int):
            entries[position] = _normal(entry, axis, shape[axis])
        axis += _takes(entry)
    if any(map(_is_array, entries)):
        return Advanced(tuple(entries), _shape_of(entries, shape))
    return _basic([entry for entry in entries if entry is not Ellipsis], shape, strides)


def _entry(index: Any) -> Any:
    """Return an index as an int, a slice, None, Ellipsis, an NDArray or a NumPy array."""
    kind = index.__class__
    if kind is int or kind is slice or index is None or index is Ellipsis:
        return index
    if kind is bool or kind is np.bool_:
        return np.asarray(bool(index))
    if is_host(index) and index.ndim == 0 and index.dtype.kind in "iu":
        return int(index)
    if is_symbol(index):
        raise Composing
    if not _is_array(index) and hasattr(index, "__index__"):
        return operator.index(index)
    if isinstance(index, NDArray):
        found: Any = index
    elif isinstance(index, str | bytes):
        found = None
    else:
        found = np.array(cast("Any", index))  # a copy: the caller may change it
        if found.size == 0 and not is_host(index):
            found = found.astype(np.intp)
    if found is None or found.dtype.kind not in "biu":
        raise ArgumentIndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices, not "
            + (index.__class__.__name__ if found is None else f"an array of dtype {found.dtype}")
        )
    return found


def _is_array(entry: object) -> TypeGuard[NDArray | np.ndarray[Any, Any]]:
    return isinstance(entry, NDArray | np.ndarray)


def _takes(entry: Any) -> int:
    """Return the number of axes that an entry indexes."""
    if entry is None or entry is Ellipsis:
        return 0
    if _is_array(entry) and entry.dtype.kind == "b":
        return entry.ndim
    return 1


def _expand(entries: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Return the entries with slices in place of an ellipsis, or at the end; an ellipsis that covers no axes stays."""
    taken = sum(map(_takes, entries))
    ndim = len(shape)
    if taken > ndim:
        raise ArgumentIndexError(
            f"too many indices for array: array is {ndim}-dimensional with shape {shape}, but {taken} were indexed"
        )
    at = [position for position, entry in enumerate(entries) if entry is Ellipsis]
    if len(at) > 1:
        raise ArgumentIndexError("an index can only have a single ellipsis ('...')")
    where = at[0] if at else len(entries)
    covered: list[Any] = [slice(None)] * (ndim - taken)
    return [*entries[:where], *(covered or entries[where : where + 1]), *entries[where + 1 :]]


def _normal(index: int, axis: int, size: int) -> int:
    if not -size <= index < size:
        raise ArgumentIndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index + size if index < 0 else index


def check_bounds(indices: np.ndarray[Any, Any], axis: int, size: int) -> None:
    """Raise IndexError if one of `indices` is out of bounds."""
    if indices.size:
        for extreme in (int(indices.min()), int(indices.max())):
            _normal(extreme, axis, size)


def _check_mask(mask: tuple[int, ...], shape: tuple[int, ...], axis: int) -> None:
    for position, size in enumerate(mask):
        if size and shape[axis + position] != size:  # NumPy lets an axis of truth values of length 0 pass
            raise ArgumentIndexError(
                f"boolean index did not match indexed array along axis {axis + position}; size of axis is "
                f"{shape[axis + position]} but size of corresponding boolean axis is {size}"
            )


def _basic(entries: list[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Basic:
    lengths: list[int] = []
    steps: list[int] = []
    offset = axis = 0
    for entry in entries:
        if entry is None:
            lengths.append(1)
            steps.append(0)
            continue
        stride = strides[axis]
        if isinstance(entry, int):
            offset += entry * stride
        else:
            start, stop, step = _span(entry, shape[axis])
            length = len(range(start, stop, step))
            if length:
                offset += start * stride
            lengths.append(length)
            steps.append(step * stride)
        axis += 1
    return Basic(tuple(lengths), tuple(steps), 0 if 0 in lengths else offset)


def _shape_of(entries: list[Any], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that an advanced key selects.

    The arrays' common shape takes their place if they are adjacent, and stands in front otherwise.
    """
    kept: list[int] = []
    arrays: list[tuple[int, ...]] = []
    places: list[int] = []  # of the arrays and integers among the entries
    before = axis = 0
    for position, (entry, each) in enumerate(_with_shapes(entries)):
        if each is None and isinstance(entry, NDArray):
            return None
        if each is not None:
            if not places:
                before = len(kept)
            places.append(position)
            arrays.append(each)
        elif entry is None:
            kept.append(1)
        elif entry is not Ellipsis:
            kept.append(len(range(*_span(entry, shape[axis]))))
        axis += _takes(entry)
    try:
        common = broadcast_shapes(*arrays)
    except ValueError:
        listed = " ".join(str(each).replace(" ", "") for each in arrays)
        raise ArgumentIndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed}"
        ) from None
    together = places[-1] - places[0] == len(places) - 1
    at = before if together else 0
    return (*kept[:at], *common, *kept[at:])


def _with_shapes(entries: list[Any]) -> Iterator[tuple[Any, tuple[int, ...] | None]]:
    """Yield each entry with the shape that it adds to the arrays' common one; None for a slice and a new axis."""
    for entry in entries:
        if isinstance(entry, int):
            yield entry, ()
        elif isinstance(entry, NDArray):
            yield entry, None if entry.dtype.kind == "b" else entry.shape
        elif is_host(entry):
            yield entry, (int(np.count_nonzero(entry)),) if entry.dtype.kind == "b" else entry.shape
        else:
            yield entry, None


def _span(entry: slice, length: int) -> tuple[int, int, int]:
    """Return start, stop and step of a slice of an axis."""
    try:
        return entry.indices(length)
    except TypeError as error:
        raise ArgumentTypeError(f"{error}: {entry}") from None
    except ValueError as error:
        raise ArgumentValueError(f"{error}: {entry}") from None
