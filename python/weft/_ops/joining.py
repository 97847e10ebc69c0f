"""Functions that join, split and repeat arrays. Splits are views; joins copy each part into its own slice of the result.

The slices of a join are disjoint, so the copies run side by side, each as soon as its part is ready.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, cast

import numpy as np

from weft._call.calls import Elements, one, over
from weft._call.copies import copy_cast
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._call.views import Places, register_view, view
from weft._core import Native, NDArray
from weft._ops.manipulation import (
    _selected,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    expand_dims,
    flattened,
    ravel,
    unstack,
)
from weft._registry.avals import Aval, as_dtype, result_dtype
from weft._registry.brief import brief
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shape_rules import shaped_by
from weft._registry.shapes import AnyShape, Shape, as_index, as_shape, axis_index, is_index, is_only_axis
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike

    from weft._call.operands import ArrayLike, Operand
    from weft._registry.op import Op

__all__ = [
    "append", "array_split", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack", "pad",
    "repeat", "split", "stack", "tile", "vsplit", "vstack",
]  # fmt: skip


#: Repetitions up to which sizes of small arrays are far below 2**64.
_MANY = 1 << 24


def _copy_narrowed(x: Elements, *, axis: int, start: int, length: int) -> Elements:
    return np.take(x, np.arange(start, start + length), axis)


@register_view("narrow", _copy_narrowed, batch="axis")
def _narrowed(_shape: Shape, strides: Shape, /, *, axis: int, start: int, length: int) -> Places:
    del length  # the rule has it
    return Places(strides, start * strides[axis])


def _joined_dtype(*parts: Aval, axis: int, dtype: DTypeLike | None = None) -> np.dtype[Any]:
    """Return the dtype of a join: the requested one, to which all parts cast by "same_kind", as in NumPy's joins."""
    del axis  # without influence
    if dtype is None:
        return result_dtype(*parts)
    wanted = as_dtype(dtype)
    for part in parts:
        if not np.can_cast(part.dtype, wanted, "same_kind"):
            raise ArgumentTypeError(f"cannot cast from {part.dtype} to {wanted} by the rule 'same_kind': use astype()")
    return wanted


@register_op("concat", infer=shaped_by("concat", _joined_dtype), aliases=("concatenate",))
def _concat(out: Elements, *parts: Elements, axis: int, dtype: DTypeLike | None = None) -> None:
    del dtype  # the result has it
    np.concatenate(parts, axis=axis, out=out)


@register_op("stack", infer=shaped_by("stack", _joined_dtype))
def _stack(out: Elements, *parts: Elements, axis: int, dtype: DTypeLike | None = None) -> None:
    del dtype  # as above
    np.stack(parts, axis=axis, out=out)


def _push_concat(outputs: tuple[NDArray], parts: tuple[NDArray, ...], *, axis: int, **_: object) -> bool:
    """Copy each part, cast, into its slice of the result."""
    result, start = outputs[0], 0
    at = axis_index(axis, result.ndim)
    strides = result.strides
    for part in parts:
        shape = part.shape
        if part.size:
            copy_cast(view(result, shape, strides, start * strides[at]), part)
        start += shape[at]
    return True


def _push_stack(outputs: tuple[NDArray], parts: tuple[NDArray, ...], *, axis: int, **_: object) -> bool:
    """Copy each part, cast, into its place in the result."""
    result = outputs[0]
    at = axis_index(axis, result.ndim)
    for index, part in enumerate(parts):
        copy_cast(_selected(result, axis=at, index=index), part)
    return True


def _joining(*parts: Operand, axis: SupportsIndex, dtype: DTypeLike | None = None) -> dict[str, Any]:
    """Return the attributes of a join in the form that its rule knows."""
    del parts  # the rule counts axes
    return {"axis": as_index(axis, "axis"), "dtype": dtype}


for _op, _push in ((_concat, _push_concat), (_stack, _push_stack)):
    _op.set_attribute("push", _push)
    _op._prepare_by(_joining)
    _op._run_by(Native.join(stacked=_op is _stack))


#: Classes of sequences that are joined without a check.
_LISTS: frozenset[type[Any]] = frozenset([list, tuple])
_ARRAYS: frozenset[type[Any]] = frozenset([NDArray])


def _infer_tile(x: Aval, *, repetitions: Shape) -> Aval:
    if any(n < 0 for n in repetitions):
        raise ArgumentValueError(f"repetitions cannot be negative, got {repetitions}")
    ndim = max(len(repetitions), len(x.shape))
    counts = (*(1,) * (ndim - len(repetitions)), *repetitions)
    lengths = (*(1,) * (ndim - len(x.shape)), *x.shape)
    return Aval(tuple(map(operator.mul, counts, lengths)), x.dtype)


def _join_for_all(op: Op) -> Callable[..., Any]:
    """Return how a join goes for many examples: parts that all share are spread."""

    def rule(size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
        arrays = [as_array(x) for x in operands]
        parts = [
            x if is_mapped else broadcast_to(x, (size, *x.shape)) for x, is_mapped in zip(arrays, mapped, strict=True)
        ]
        axis = attributes["axis"]
        return one(op, *parts, **{**attributes, "axis": axis + 1 if axis >= 0 else axis})

    return rule


state(_concat, layout="concat", batch=_join_for_all(_concat))
state(_stack, batch=_join_for_all(_stack))


@register_op("tile", infer=_infer_tile)
def _tile(out: Elements, x: Elements, *, repetitions: Shape) -> None:
    np.copyto(out, np.tile(x, repetitions))


def _answer_tile(x: Elements, *, repetitions: Shape) -> Elements:
    if any(not 0 <= n <= _MANY for n in repetitions):
        raise ArgumentValueError("the rule says whether there can be so many")  # NumPy counts them modulo 2**64
    return np.tile(x, repetitions)


answers(_tile, _answer_tile, exact=True)


def _infer_repeat(x: Aval, *, repeats: Shape, axis: int) -> Aval:
    at = axis_index(axis, len(x.shape))
    if any(n < 0 for n in repeats):
        raise ArgumentValueError(f"repeats cannot be negative, got {repeats}")
    if len(repeats) not in (1, x.shape[at]):
        raise ArgumentValueError(f"{len(repeats)} repeats do not fit axis {at} of shape {x.shape}")
    length = repeats[0] * x.shape[at] if len(repeats) == 1 else sum(repeats)
    if length > sys.maxsize:
        raise ArgumentValueError(f"repeat: repeats of {max(repeats)} make axis {at} of shape {x.shape} too long")
    return Aval((*x.shape[:at], length, *x.shape[at + 1 :]), x.dtype)


@register_op("repeat", infer=_infer_repeat)
def _repeat(out: Elements, x: Elements, *, repeats: Shape, axis: int) -> None:
    np.copyto(out, np.repeat(x, repeats, axis))


def _answer_repeat(x: Elements, *, repeats: Shape, axis: int) -> Elements:
    if max(repeats, default=0) > _MANY:
        raise ArgumentValueError("the rule says whether there can be so many")  # NumPy counts them modulo 2**64
    return x.repeat(repeats, axis)


answers(_repeat, _answer_repeat, exact=True)
state(_repeat, batch="axis")


PadMode = Literal[
    "constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"
]  # fmt: skip
#: Options in nodes of graphs: immutable.
Options: TypeAlias = "tuple[tuple[str, Any], ...]"


def _infer_pad(x: Aval, *, widths: tuple[tuple[int, int], ...], mode: str, options: Options) -> Aval:
    if any(n < 0 for pair in widths for n in pair):
        raise ArgumentValueError(f"pad widths cannot be negative, got {widths}")
    # NumPy checks the mode and its options before it reads the values, so an array without any is enough.
    try:
        np.pad(np.empty((1,) * len(x.shape), x.dtype), 0, mode, **dict(options))  # type: ignore[call-overload]
    except ValueError as error:
        raise ArgumentValueError(f"pad: {error}") from None
    shape = tuple(before + n + after for n, (before, after) in zip(x.shape, widths, strict=True))
    if mode not in ("constant", "empty") and any(n == 0 and m for n, m in zip(x.shape, shape, strict=True)):
        raise ArgumentValueError(f"cannot extend an empty axis of shape {x.shape} by mode {mode!r}: only by constants")
    return Aval(shape, x.dtype)


@register_op("pad", infer=_infer_pad)
def _pad(out: Elements, x: Elements, *, widths: tuple[tuple[int, int], ...], mode: PadMode, options: Options) -> None:
    np.copyto(out, np.pad(x, widths, mode, **dict(options)))


def _answer_pad(x: Elements, *, widths: tuple[tuple[int, int], ...], mode: PadMode, options: Options) -> Elements:
    return np.pad(x, widths, mode, **dict(options))


answers(_pad, _answer_pad)


def _pad_for_all(_: int, operands: list[Any], __: list[bool], attributes: dict[str, Any]) -> Any:
    if any(isinstance(each, tuple | list) for _, each in attributes["options"]):
        return None  # a value for each axis
    given: dict[str, Any] = {**attributes, "widths": ((0, 0), *attributes["widths"])}
    return one(_pad, operands[0], **given)


state(_pad, batch=_pad_for_all)


def concat(
    arrays: Sequence[ArrayLike], /, axis: SupportsIndex | None = 0, *, dtype: DTypeLike | None = None
) -> NDArray:
    """Lay arrays end to end along `axis`; None flattens them first.

    Parameters
    ----------
    arrays : sequence of array_like
        Arrays whose shapes agree except along `axis`.
    axis : int, optional
        The axis along which they are joined.
    dtype : dtype, optional
        The result's dtype, by default the one that all promote to.

    Examples
    --------
    >>> import weft
    >>> print(weft.concat([weft.asarray([1, 2]), weft.asarray([3])]))
    [1 2 3]
    """
    given: Any = arrays
    if isinstance(axis, NDArray):
        raise ArgumentTypeError("concat() takes the arrays as one list: write weft.concat([x, y], axis=0)")
    parts: Any = given if given.__class__ in _LISTS and _ARRAYS.issuperset(map(type, given)) else _as_arrays(given)
    if axis is None:
        parts, axis = [ravel(part) for part in parts], 0
    return over(_concat, parts, axis=axis, dtype=dtype)


concatenate = concat


def stack(arrays: Sequence[ArrayLike], /, axis: SupportsIndex = 0, *, dtype: DTypeLike | None = None) -> NDArray:
    """Join arrays of one shape along a new axis, at the place `axis` of the result.

    Examples
    --------
    >>> import weft
    >>> print(weft.stack([weft.asarray([1, 2]), weft.asarray([3, 4])], axis=1))
    [[1 3]
     [2 4]]
    """
    given: Any = arrays
    parts: Any = given if given.__class__ in _LISTS and _ARRAYS.issuperset(map(type, given)) else _as_arrays(given)
    return over(_stack, parts, axis=axis, dtype=dtype)


def hstack(arrays: Sequence[ArrayLike], /, *, dtype: DTypeLike | None = None) -> NDArray:
    """Join arrays along the second axis; those with one axis, along that.

    Examples
    --------
    >>> import weft
    >>> print(weft.hstack([[1, 2], [3]]))
    [1 2 3]
    """
    parts = _at_least(1, atleast_1d, arrays)
    return concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1, dtype=dtype)


def vstack(arrays: Sequence[ArrayLike], /, *, dtype: DTypeLike | None = None) -> NDArray:
    """Join arrays along the first axis; those with one axis become rows.

    Examples
    --------
    >>> import weft
    >>> print(weft.vstack([[1, 2], [3, 4]]))
    [[1 2]
     [3 4]]
    """
    if dtype is None and _are_alike_rows(arrays):
        return stack(arrays)
    return concat(_at_least(2, atleast_2d, arrays), axis=0, dtype=dtype)


def dstack(arrays: Sequence[ArrayLike], /) -> NDArray:
    """Join arrays along the third axis, which those with fewer axes are given.

    Examples
    --------
    >>> import weft
    >>> print(weft.dstack([[1, 2], [3, 4]]))
    [[[1 3]
      [2 4]]]
    """
    return concat([_single(atleast_3d(x)) for x in arrays], axis=2)


def column_stack(arrays: Sequence[ArrayLike], /) -> NDArray:
    """Join arrays along the second axis; those with one axis become columns.

    Examples
    --------
    >>> import weft
    >>> print(weft.column_stack([[1, 2], [3, 4]]))
    [[1 3]
     [2 4]]
    """
    if _are_alike_rows(arrays):
        return stack(arrays, axis=1)
    parts = _at_least(1, atleast_1d, arrays)
    return concat([expand_dims(part, axis=1) if part.ndim == 1 else part for part in parts], axis=1)


def append(x: ArrayLike, values: ArrayLike, /, axis: SupportsIndex | None = None) -> NDArray:
    """Lay `values` behind `x` along `axis`; without an axis both are flattened.

    Examples
    --------
    >>> import weft
    >>> print(weft.append([1, 2], [3]))
    [1 2 3]
    """
    flat = axis is None and x.__class__ is NDArray and values.__class__ is NDArray and x.ndim == values.ndim == 1
    return concat([x, values], axis=0 if flat else axis)


def array_split(
    x: ArrayLike, /, indices_or_sections: SupportsIndex | Sequence[SupportsIndex], axis: SupportsIndex = 0
) -> list[NDArray]:
    """Split into views along `axis`: so many of nearly equal length, or cut at the indices given.

    Examples
    --------
    >>> import weft
    >>> [part.size for part in weft.array_split(weft.arange(7), 3)]
    [3, 2, 2]
    """
    x = as_array(x)
    at = axis_index(axis, x.ndim)
    length = x.shape[at]
    if is_index(indices_or_sections):
        sections = as_index(indices_or_sections, "indices_or_sections")
        if sections <= 0:
            raise ArgumentValueError(f"the number of sections must be positive, got {sections}")
        each, longer = divmod(length, sections)
        cuts = [i * each + min(i, longer) for i in range(sections + 1)]
        spans = list(pairwise(cuts))
    else:
        bounds = [None, *(operator.index(i) for i in indices_or_sections), None]
        spans = [slice(a, b).indices(length)[:2] for a, b in pairwise(bounds)]
    return [_narrowed(x, axis=at, start=start, length=max(stop - start, 0)) for start, stop in spans]


def split(
    x: ArrayLike, /, indices_or_sections: SupportsIndex | Sequence[SupportsIndex], axis: SupportsIndex = 0
) -> list[NDArray]:
    """Split into views along `axis`: so many of equal length, or cut at the indices given.

    Examples
    --------
    >>> import weft
    >>> [part.size for part in weft.split(weft.arange(6), [1, 3])]
    [1, 2, 3]
    """
    x = as_array(x)
    if is_index(indices_or_sections):
        length, sections = x.shape[axis_index(axis, x.ndim)], as_index(indices_or_sections, "indices_or_sections")
        if sections > 0 and length % sections:
            raise ArgumentValueError(
                f"axis {as_index(axis, 'axis')} of shape {x.shape} has no {sections} equal sections"
            )
    return array_split(x, indices_or_sections, axis)


def hsplit(x: ArrayLike, /, indices_or_sections: SupportsIndex | Sequence[SupportsIndex]) -> list[NDArray]:
    """Split into views along the second axis, or the only one.

    Examples
    --------
    >>> import weft
    >>> [part.shape for part in weft.hsplit(weft.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = as_array(x)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(x: ArrayLike, /, indices_or_sections: SupportsIndex | Sequence[SupportsIndex]) -> list[NDArray]:
    """Split an array of two or more axes into views along the first.

    Examples
    --------
    >>> import weft
    >>> [part.shape for part in weft.vsplit(weft.zeros((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    x = as_array(x)
    if x.ndim < 2:  # rows need columns
        raise ArgumentValueError(f"vsplit needs an array of at least 2 axes, got shape {x.shape}")
    return split(x, indices_or_sections, 0)


def dsplit(x: ArrayLike, /, indices_or_sections: SupportsIndex | Sequence[SupportsIndex]) -> list[NDArray]:
    """Split an array of three or more axes into views along the third.

    Examples
    --------
    >>> import weft
    >>> [part.shape for part in weft.dsplit(weft.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return split(x, indices_or_sections, 2)


def tile(x: ArrayLike, repetitions: AnyShape, /) -> NDArray:
    """Repeat the whole array so many times along each axis, the last ones if fewer are given.

    Examples
    --------
    >>> import weft
    >>> print(weft.tile([1, 2], (2,)))
    [1 2 1 2]
    """
    return one(_tile, as_array(x), repetitions=as_shape(repetitions))


def repeat(x: ArrayLike, repeats: ArrayLike, /, axis: SupportsIndex | None = None) -> NDArray:
    """Repeat each element along `axis` so many times; without an axis the array is flattened first.

    Repeats given as an NDArray decide the result's shape: they are waited for.

    Examples
    --------
    >>> import weft
    >>> print(weft.repeat([1, 2], 2))
    [1 1 2 2]
    """
    x = as_array(x)
    counts = np.asarray(repeats)
    if counts.ndim > 1 or counts.dtype.kind not in "biu":
        raise ArgumentTypeError(
            f"repeats are integers in at most 1 axis, got shape {counts.shape} and dtype {counts.dtype}"
        )
    if axis is None or is_only_axis(axis, x.ndim):
        x, axis = flattened(x), 0
    return one(_repeat, x, repeats=tuple(counts.reshape(-1).tolist()), axis=as_index(axis, "axis"))


def pad(x: ArrayLike, pad_width: Any, /, mode: PadMode = "constant", **options: Any) -> NDArray:
    """Extend the axes at both ends, by constants or by elements of the array.

    Parameters
    ----------
    x : array_like
        The array.
    pad_width : int, pair of int, sequence of pairs or dict
        How many elements to put before and after each axis, in the forms of `numpy.pad`.
    mode : str
        One of NumPy's modes: "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
        "symmetric", "wrap" or "empty".
    **options
        The mode's options in `numpy.pad`: `constant_values`, `end_values`, `stat_length`, `reflect_type`.

    Examples
    --------
    >>> import weft
    >>> print(weft.pad([1, 2], (1, 2)))
    [0 1 2 0 0]
    """
    x = as_array(x)
    if isinstance(pad_width, dict):
        named = cast("dict[SupportsIndex, Any]", pad_width)
        by_axis = {axis_index(axis, x.ndim): value for axis, value in named.items()}
        pad_width = [by_axis.get(i, 0) for i in range(x.ndim)]
        pad_width = [(n, n) if is_index(n) else tuple(n) for n in pad_width]
    counts = np.asarray(pad_width)
    if counts.dtype.kind not in "iu":
        raise ArgumentTypeError(f"pad widths are integers, got dtype {counts.dtype}")
    widths = tuple((int(a), int(b)) for a, b in np.broadcast_to(counts, (x.ndim, 2)))
    return one(
        _pad, x, widths=widths, mode=mode, options=tuple((name, _frozen(each)) for name, each in options.items())
    )


def _frozen(value: Any) -> Any:
    """Return numbers in tuples, and all else as it is."""
    if value is None or isinstance(value, str):
        return value
    numbers: Any = np.asarray(value)
    return tuple(map(_frozen, numbers)) if numbers.ndim else numbers.item()


def _as_arrays(arrays: Sequence[ArrayLike] | NDArray) -> list[NDArray]:
    """Return the operands of a join as arrays on one engine: that of the first array among them."""
    if isinstance(arrays, NDArray):
        return list(unstack(arrays))
    if not isinstance(arrays, Iterable):
        raise ArgumentTypeError(f"a list or a tuple of arrays is joined, and {brief(arrays)} was given")
    for x in arrays:
        if not isinstance(x, NDArray):
            break
    else:
        return [*arrays]
    like = next((x for x in arrays if isinstance(x, NDArray)), None)
    return [as_array(x, like) for x in arrays]


def _at_least(ndim: int, raised: Callable[..., NDArray | list[NDArray]], arrays: Sequence[ArrayLike]) -> list[NDArray]:
    """Return arrays of at least `ndim` axes: `raised` adds missing ones."""
    return [x if x.__class__ is NDArray and x.ndim >= ndim else _single(raised(x)) for x in arrays]


def _are_alike_rows(arrays: Sequence[ArrayLike]) -> bool:
    """Return whether these are arrays of one axis and one length: to join them as rows is to stack them."""
    if arrays.__class__ not in (list, tuple) or not arrays or arrays[0].__class__ is not NDArray:
        return False
    shape = arrays[0].shape
    return len(shape) == 1 and all(x.__class__ is NDArray and x.shape == shape for x in arrays)


def _single(x: NDArray | list[NDArray]) -> NDArray:
    return x[0] if isinstance(x, list) else x
