"""Indexing: ``x[key]``, ``x[key] = value``, `take` and `take_along_axis`.

- Integers, slices, None and ``...`` name a view: no op, no wait. Integers alone name an element, which is copied.
- Arrays of integers are gathered by an op. Indices in NumPy arrays or lists are checked at the call; those in
  NDArrays when the op runs, so that a bad one fails the result with IndexError.
- A boolean NDArray decides the result's shape: reading with one waits for it (for the mask only). Writing never waits.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.calls import one
from weft._call.copies import choose_loop
from weft._call.filling import check_assigned, fill
from weft._call.inline import GATHERED, answers
from weft._call.keys import Advanced, Basic, check_bounds, parse
from weft._call.listening import hear_write
from weft._call.operands import ArrayLike, as_array, is_host, listed, values
from weft._call.outputs import check_writable
from weft._call.scalars import assigned
from weft._call.views import view
from weft._core import (
    NDArray,
    beside,
    change_here,
    compute_here,
    copy_elements,
    push_compute,
    set_indexing,
    tape_hear_part,
    tape_hear_view,
    tape_hears,
    tape_note_fresh,
)
from weft._ops.manipulation import broadcast_to, flattened, moveaxis, reshape
from weft._registry import hooks
from weft._registry.avals import Aval, broadcast_shapes
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shape_rules import shaped_by
from weft._registry.shapes import axis_index, is_only_axis
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._call.calls import DType
    from weft._call.keys import Index
    from weft._call.operands import Operand

__all__ = ["take", "take_along_axis"]

_ARRAY = object()  # the place of the next array in a key
_INDEX = "array"  # the same in an attribute, which is written to files
_INDICES = ((1 << 32) - 1) & ~3  # the reads of the rule of `setitem`: neither the array nor the value


def _get_item(x: NDArray, key: Any) -> NDArray:
    """Return ``x[key]`` for keys that the core does not read: those with ``...``, with array-likes, and refused ones."""
    if x.__class__ is not NDArray:
        x = x._now
    if is_symbol(key) or (key.__class__ is tuple and any(map(is_symbol, key))):
        return hooks.index(x, key)  # type: ignore[no-any-return]
    return _get_meant(x, key, parse(key, x.shape, x.strides))


def _get_meant(x: NDArray, key: Any, found: Basic | Advanced) -> NDArray:
    """Return what a key names that the core does not know."""
    if isinstance(found, Basic):
        shown = view(x, found.shape, found.strides, found.offset)
        if not found.shape and _is_of_integers(key):
            shown = _value(shown)
        if x._heard:
            tape_hear_view(_getitem, x, shown, {"key": encode(key, x.ndim)})
        return shown
    found = _positioned(x, found)
    result = _gathered(x, found)
    if x._known and tape_hears((x,)):
        indices, spec = _split(found.entries)
        tape_note_fresh(_getitem, {"key": spec}, (x, *indices), (result,))
    return result


def _positioned(x: NDArray, found: Advanced) -> Advanced:
    """Return a key with arrays in it, with positions in place of masks."""
    if found.shape is None:
        known = parse(tuple(map(_positions, found.entries)), x.shape, x.strides)
        assert isinstance(known, Advanced)  # it has arrays in it
        found = known
    return found


def _gathered(x: NDArray, found: Advanced) -> NDArray:
    """Push the copy of the elements that a key with arrays in it selects."""
    assert found.shape is not None  # masks have become positions
    result = beside(x, found.shape, x.dtype)
    arrays = tuple(entry for entry in found.entries if isinstance(entry, NDArray))
    run, read = partial(_gather, _template(found.entries)), (x, *arrays)
    if x._elsewhere or not compute_here(run, (result,), read, "getitem", GATHERED):
        push_compute(run, (result,), read, name="getitem")
    return result


def _set_item(x: NDArray, key: Any, value: Any) -> None:
    """Push ``x[key] = value`` where the core does not: other keys, casts, writes that the tape hears, and refused ones."""
    if x.__class__ is not NDArray:
        x = x._now
    check_writable(x)
    part = x._part(key)
    found = parse(key, x.shape, x.strides) if part is None else None
    # A scalar of NumPy's goes to a view as a number, and beside arrays of indices as an array. May raise: nothing is pushed yet.
    cast = isinstance(found, Advanced) and isinstance(value, np.generic)
    scalar = None if cast else assigned(value, x.dtype)
    source: NDArray | None = None
    if scalar is None:
        source = as_array(value, x, dtype=x.dtype if isinstance(value, list | tuple) else None)
    if part is not None:
        if x._heard:
            tape_hear_part(_getitem, x, part, key)
        fill(part, scalar if source is None else source)
        return
    if isinstance(found, Basic):
        target = view(x, found.shape, found.strides, found.offset)
        if x._heard:
            tape_hear_view(_getitem, x, target, {"key": encode(key, x.ndim)})
        fill(target, scalar if source is None else source)
        return
    assert found is not None  # it has arrays in it
    if tape_hears((x, source)):
        _hear_scatter(x, found.entries, scalar if source is None else source)
        return
    mask = _mask_of(x, found.entries, source)
    if mask is not None:
        value_of: Any = scalar if source is None else source
        choose_loop(x.dtype).push((x,), (mask, value_of, x))
        return
    if source is not None and found.shape is not None:
        check_assigned(x.dtype, found.shape, source)
    _scattered(x, found.entries, scalar if source is None else source)


def _scattered(x: NDArray, entries: tuple[Index, ...], value: Any) -> None:
    """Push the write of a value to the elements that a key with arrays in it selects."""
    source = (value,) if isinstance(value, NDArray) else ()
    read = (*(entry for entry in entries if isinstance(entry, NDArray)), *source)
    run = partial(_scatter, _template(entries), None if source else value)
    if x._elsewhere or not change_here(run, x, read, "setitem", GATHERED):
        push_compute(run, (), read, (x,), name="setitem")


def _mask_of(x: NDArray, entries: tuple[Index, ...], source: NDArray | None) -> NDArray | None:
    """Return the mask of the shape of `x` for a number that a loop can write, or None."""
    mask = entries[0]
    if len(entries) > 1 or not isinstance(mask, NDArray) or mask.dtype.kind != "b" or mask.shape != x.shape:
        return None
    plain = source is None or (not source.shape and source.dtype == x.dtype)
    return mask if plain and not x._elsewhere else None


def _hear_scatter(x: NDArray, entries: tuple[Index, ...], value: Any) -> None:
    indices, spec = _split(entries)
    known = decode(spec, indices)
    hear_write(_setitem, x, (x, value, *indices), {"key": spec}, lambda: _set_item(x, known, value), _INDICES)


def _split(entries: tuple[Index, ...]) -> tuple[tuple[NDArray, ...], tuple[Any, ...]]:
    """Return the arrays of an advanced key, masks as positions, and the key with marks in their places."""
    indices: list[NDArray] = []
    spec: list[Any] = []
    like = next((entry for entry in entries if isinstance(entry, NDArray)), None)
    for entry in entries:
        known: Any = _positions(entry)
        if is_host(known) and known.dtype.kind == "b":
            for positions in np.nonzero(known) if known.ndim else (np.zeros(int(known), np.intp),):
                indices.append(as_array(positions, like))
                spec.append(_INDEX)
            if not known.ndim:
                spec.insert(-1, None)  # a mask without axes adds one
        elif isinstance(known, NDArray) or is_host(known):
            indices.append(as_array(known, like))
            spec.append(_INDEX)
        else:
            spec.append(_ends(known) if known.__class__ is slice else known)
    return tuple(indices), tuple(spec)


def encode(key: Any, ndim: int) -> tuple[Any, ...]:
    """Return a key of integers, slices and new axes as an attribute of an op: slices as (start, stop, step)."""
    entries: tuple[Any, ...] = listed(key)
    taken = sum(each is not None and each is not Ellipsis for each in entries)
    found: list[Any] = []
    for each in entries if any(entry is Ellipsis for entry in entries) else (*entries, Ellipsis):
        if each is Ellipsis:
            found.extend([(None, None, None)] * (ndim - taken))
        elif each.__class__ is slice:
            found.append(tuple(map(_number, _ends(each))))
        else:
            found.append(_number(each))
    return tuple(found)


def _ends(entry: Any) -> tuple[Any, Any, Any]:
    return entry.start, entry.stop, entry.step


def _number(entry: Any) -> int | None:
    return None if entry is None else operator.index(entry)


def decode(key: tuple[Any, ...], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the key of an attribute, with `arrays` at its marks.

    Examples
    --------
    >>> from weft._ops.indexing import decode
    >>> decode((0, (1, None, 2), "array"), ["x"])
    (0, slice(1, None, 2), 'x')
    """
    rest = iter(arrays)
    return tuple(next(rest) if each == _INDEX else _slice(each) for each in key)


def _slice(entry: Any) -> Any:
    return slice(entry[0], entry[1], entry[2]) if entry.__class__ is tuple else entry


def _getitem_rule(x: Aval, *indices: Aval, key: tuple[Any, ...]) -> Aval:
    # Shapes alone count: the op checks positions when it runs.
    if any(each.dtype.kind == "b" for each in indices):
        raise ArgumentIndexError(
            "a mask takes as many elements as are true in it, which is not known: index by positions"
        )
    places = [np.broadcast_to(np.intp(0), each.shape) for each in indices]
    return Aval(np.broadcast_to(np.int8(0), x.shape)[decode(key, places)].shape, x.dtype)


@register_op("getitem", infer=_getitem_rule)
def _getitem(
    out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *indices: np.ndarray[Any, Any], key: tuple[Any, ...]
) -> None:
    out[...] = x[decode(key, indices)]


def _setitem_rule(x: Aval, value: Aval, *indices: Aval, key: tuple[Any, ...]) -> Aval:
    place = _getitem_rule(x, *indices, key=key)
    broadcast_shapes(place.shape, value.shape)
    return Aval(x.shape, x.dtype)


@register_op("setitem", infer=_setitem_rule)
def _setitem(
    out: np.ndarray[Any, Any],
    x: np.ndarray[Any, Any],
    value: Any,
    *indices: np.ndarray[Any, Any],
    key: tuple[Any, ...],
) -> None:
    np.copyto(out, x)
    out[decode(key, indices)] = value


set_indexing(_getitem, _get_item, _set_item)


def _is_of_integers(key: Any) -> bool:
    """Return whether a key selects an element by integers alone: ``...`` in it asks for a view."""
    parts: tuple[Any, ...] = key  # if it is a tuple
    return key is not Ellipsis and not (isinstance(key, tuple) and any(each is Ellipsis for each in parts))


def _value(x: NDArray) -> NDArray:
    """Return one element as an array of its own, like NumPy's scalars: later writes do not change it."""
    result = beside(x, (), x.dtype)
    copy_elements(result, x)
    return result


def _positions(entry: Index) -> Any:
    """Return a boolean NDArray, waited for, as NumPy's; anything else as it is."""
    if isinstance(entry, NDArray) and entry.dtype.kind == "b":
        return values(entry).copy()
    return entry


def _template(entries: tuple[Index, ...]) -> tuple[Any, ...]:
    return tuple(_ARRAY if isinstance(entry, NDArray) else entry for entry in entries)


def _key(template: tuple[Any, ...], arrays: tuple[np.ndarray[Any, Any], ...]) -> tuple[Any, ...]:
    rest = iter(arrays)
    return tuple(next(rest) if entry is _ARRAY else entry for entry in template)


def _gather(
    template: tuple[Any, ...], out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *arrays: np.ndarray[Any, Any]
) -> None:
    out[...] = x[_key(template, arrays)]


def _scatter(template: tuple[Any, ...], scalar: object, x: np.ndarray[Any, Any], *arrays: np.ndarray[Any, Any]) -> None:
    with np.errstate(all="ignore"):
        if scalar is not None:
            x[_key(template, arrays)] = scalar
        else:
            x[_key(template, arrays[:-1])] = arrays[-1]


#: Bytes that are copied faster than indices are checked.
_COPIED = 1 << 12


def _taken(x: Aval, _indices: Aval, *, axis: int) -> DType:
    del axis  # without influence
    return x.dtype


@register_op("take", infer=shaped_by("take", _taken))
def _take(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], *, axis: int) -> None:
    if out.nbytes <= _COPIED:
        out[...] = x.take(indices, axis=axis)
    elif _is_within(indices, x.shape[axis]):
        np.take(x, indices, axis=axis, out=out, mode="wrap")  # straight into `out`, which "raise" does not write to
    else:
        out[...] = np.take(x, indices, axis=axis)


def _answer_take(x: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], *, axis: int) -> object:
    return x.take(indices, axis=axis)


def _taking(x: Operand, indices: Operand, *, axis: SupportsIndex) -> dict[str, Any]:
    """Return the attributes of a call of `take` in the form that its rule knows."""
    if isinstance(indices, NDArray) and indices.dtype.kind not in "iu":
        raise ArgumentTypeError(f"take() takes indices of an integer dtype, not {indices.dtype}")
    return {"axis": axis_index(axis, x.ndim) if isinstance(x, NDArray) else axis}


_take._prepare_by(_taking)
answers(_take, _answer_take, exact=True)


def _is_within(indices: Any, size: int) -> bool:
    """Return whether NumPy's `indices` are all positions on an axis of that size, from either end."""
    known = isinstance(indices, np.ndarray) and indices.size > 0  # a device's array would be waited for
    return known and -size <= int(indices.min()) and int(indices.max()) < size


def _along_rule(x: Aval, indices: Aval, *, axis: int) -> Aval:
    at = axis_index(axis, len(x.shape))
    shapes = [(*aval.shape[:at], 1, *aval.shape[at + 1 :]) for aval in (x, indices)]
    shape = broadcast_shapes(*shapes)
    return Aval((*shape[:at], indices.shape[at], *shape[at + 1 :]), x.dtype)


@register_op("take_along_axis", infer=_along_rule)
def _take_along_axis(
    out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], *, axis: int
) -> None:
    out[...] = np.take_along_axis(x, indices, axis=axis)


answers(_take_along_axis, np.take_along_axis, exact=True)


def _take_for_all(size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    x, indices = operands
    axis = axis_index(attributes["axis"], x.ndim - mapped[0])
    if not mapped[1]:
        return one(_take, x, indices, axis=axis + 1)
    if not mapped[0]:
        return moveaxis(one(_take, x, indices, axis=axis), axis, 0)
    return _picked(x, [indices], [True], (*((None, None, None) for _ in range(axis)), _INDEX), size)


def _along_for_all(size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    x, indices = (
        x if is_mapped else broadcast_to(x, (size, *x.shape)) for x, is_mapped in zip(operands, mapped, strict=True)
    )
    return one(_take_along_axis, x, indices, axis=1 + axis_index(attributes["axis"], x.ndim - 1))


def _getitem_for_all(size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    x, *indices = operands
    key: tuple[Any, ...] = attributes["key"]
    if not any(mapped[1:]):
        found = x[(slice(None), *decode(key, indices))]
        return moveaxis(found, max(len(each.shape) for each in indices), 0) if indices and _is_apart(key) else found
    if not mapped[0]:
        x = broadcast_to(x, (size, *x.shape))
    return _picked(x, indices, mapped[1:], key, size)


def _picked(x: Any, indices: list[Any], mapped: list[bool], key: tuple[Any, ...], size: int) -> Any:
    """Return the elements at positions that differ from example to example: the number of the example is one more."""
    own = [len(each.shape) - is_mapped for each, is_mapped in zip(indices, mapped, strict=True)]
    most = max(own)
    places = [
        reshape(each, (size, *(1,) * (most - axes), *each.shape[1:])) if is_mapped and axes < most else each
        for each, axes, is_mapped in zip(indices, own, mapped, strict=True)
    ]
    example = np.arange(size).reshape(size, *(1,) * most)
    found = x[(as_array(example, engine=x.engine), *decode(key, places))]
    # NumPy lays the axes of the arrays first; in an example they lie where its first array stands.
    before = 0
    if not _is_apart(key):
        first = next(at for at, each in enumerate(key) if _is_position(each))
        ahead = key[:first]
        taken = sum(each is not None and each is not Ellipsis for each in key)
        before = sum(x.ndim - 1 - taken if each is Ellipsis else 1 for each in ahead)
    return moveaxis(found, tuple(range(1, 1 + most)), tuple(range(1 + before, 1 + before + most)))


def _is_position(entry: Any) -> bool:
    return entry == _INDEX or (entry is not None and entry is not Ellipsis and entry.__class__ is not tuple)


def _is_apart(key: tuple[Any, ...]) -> bool:
    """Return whether positions in a key are parted by others, so that their axes come first."""
    places = [at for at, each in enumerate(key) if _is_position(each)]
    return bool(places) and places[-1] - places[0] + 1 > len(places)


for _op, _rule, _places in (
    (_take, _take_for_all, (1,)),
    (_take_along_axis, _along_for_all, (1,)),
    (_getitem, _getitem_for_all, tuple(range(1, 65))),
):
    state(_op, batch=_rule, places=_places)


def take(x: ArrayLike, indices: ArrayLike, /, axis: SupportsIndex | None = None, out: NDArray | None = None) -> NDArray:
    """Return the elements, or the slices along an axis, at given positions.

    Parameters
    ----------
    x : array-like
        The array.
    indices : array-like of int
        The positions; negative ones count from the end.
    axis : int, optional
        The axis; by default `x` is taken as flat.
    out : NDArray, optional
        An array for the result.

    Returns
    -------
    NDArray
        The result, with the shape of `indices` in place of the axis.

    Raises
    ------
    TypeError
        If `indices` are no integers.
    AxisError
        If there is no such axis.
    IndexError
        When the op runs, if an index is out of bounds: the result fails with it.

    Examples
    --------
    >>> import weft
    >>> weft.take(weft.asarray([10, 20, 30]), weft.asarray([2, 0]), axis=0)
    NDArray([30, 10])
    """
    if x.__class__ is NDArray and x.ndim and indices.__class__ is NDArray and axis is not None:
        return one(_take, x, indices, axis=axis, out=out)
    x, positions = _operands("take", x, indices)
    if axis is None or is_only_axis(axis, x.ndim):
        x, axis = flattened(x), 0
    axis = axis_index(axis, x.ndim)
    if not isinstance(indices, NDArray) and not is_symbol(positions):
        known = values(positions)
        check_bounds(known, axis, x.shape[axis])  # known now, so that the call can raise
        if is_symbol(x):
            return one(_take, x, known, axis=axis, out=out)  # a node makes a constant of it
    return one(_take, x, positions, axis=axis, out=out)


def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: SupportsIndex = -1) -> NDArray:
    """Return the elements at positions given for each one-dimensional slice along an axis.

    Parameters
    ----------
    x : array-like
        The array.
    indices : array-like of int
        The positions, of as many dimensions; the other axes broadcast against those of `x`.
    axis : int, default: -1
        The axis.

    Returns
    -------
    NDArray
        The result.

    Raises
    ------
    TypeError
        If `indices` are no integers.
    ValueError
        If the numbers of dimensions differ, or the shapes do not broadcast.
    IndexError
        When the op runs, if an index is out of bounds: the result fails with it.

    Examples
    --------
    >>> import weft
    >>> x = weft.asarray([[3, 1, 2]])
    >>> weft.take_along_axis(x, weft.asarray([[1, 2, 0]]))
    NDArray([[1, 2, 3]])
    """
    x, positions = _operands("take_along_axis", x, indices)
    if x.ndim != positions.ndim:
        raise ArgumentValueError(
            "`indices` and `arr` must have the same number of dimensions: their shapes are "
            f"{positions.shape} and {x.shape}"
        )
    return one(_take_along_axis, x, positions, axis=axis_index(axis, x.ndim))


def _operands(name: str, x: ArrayLike, indices: ArrayLike) -> tuple[NDArray, NDArray]:
    like = x if isinstance(x, NDArray) else indices if isinstance(indices, NDArray) else None
    found, positions = as_array(x, like), as_array(indices, like)
    if positions.dtype.kind not in "iu":
        if positions.size or isinstance(indices, NDArray):
            raise ArgumentTypeError(f"{name}() takes indices of an integer dtype, not {positions.dtype}")
        positions = as_array(np.zeros(positions.shape, np.int64), positions)  # an empty list has no dtype of its own
    return found, positions
