"""Functions that show the same elements in another shape or order. All but `roll` and some `reshape` return views."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from weft._call.calls import Elements, one
from weft._call.operands import as_array
from weft._call.views import Places, register_view, view
from weft._core import Native, NDArray, copy_elements, tape_hear_view
from weft._registry.avals import broadcast_shapes as joined
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shape_rules import dtype_of_first, resolved_shape, shaped_by
from weft._registry.shapes import (
    AnyShape,
    Axis,
    Shape,
    as_shape,
    axes_in_order,
    axis_index,
    axis_tuple,
    contiguous_strides,
    reduced_axes,
    reshape_strides,
)
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._call.operands import ArrayLike, Operand

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims",
    "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "roll", "rot90",
    "squeeze", "swapaxes", "transpose", "unstack",
]  # fmt: skip


#: The order of indices for the elements, in NumPy's words.
Order: TypeAlias = Literal["C", "F", "A", "K"]


def _permuted_for_all(_: int, operands: list[Any], __: list[bool], attributes: dict[str, Any]) -> Any:
    x, axes = operands[0], attributes["axes"]
    last = range(1, x.ndim)
    own = reversed(last) if axes is None else (last[axis] for axis in axes_in_order(axes, len(last), "axes"))
    return _permuted(x, axes=(0, *own))


@register_view("permute_dims", np.transpose, aliases=("transpose",), batch=_permuted_for_all)
def _permuted(_shape: Shape, strides: Shape, *, axes: Shape | None) -> Places:
    return Places(strides[::-1] if axes is None else tuple([strides[i] for i in axes]))


def _copy_expanded(x: Elements, *, axes: Shape) -> Elements:
    return np.expand_dims(x, axes)


def _copy_squeezed(x: Elements, *, axes: Shape) -> Elements:
    return np.squeeze(x, axes)


def _copy_flipped(x: Elements, *, axes: Shape) -> Elements:
    return np.flip(x, axes)


def _copy_selected(x: Elements, *, axis: int, index: int) -> Elements:
    return np.asarray(np.take(x, index, axis))


@register_view("expand_dims", _copy_expanded, batch="axis")
def _expanded(_shape: Shape, strides: Shape, *, axes: Shape) -> Places:
    ndim = len(strides) + len(axes)
    new = {i % ndim for i in axes}
    old = iter(strides)
    return Places(tuple([0 if i in new else next(old) for i in range(ndim)]))


@register_view("squeeze", _copy_squeezed, batch="axis")
def _squeezed(_shape: Shape, strides: Shape, *, axes: Shape) -> Places:
    gone = {i % len(strides) for i in axes}
    return Places(tuple([stride for i, stride in enumerate(strides) if i not in gone]))


def _flip_for_all(_: int, operands: list[Any], __: list[bool], attributes: dict[str, Any]) -> Any:
    x, axes = operands[0], attributes["axes"]
    return _flipped(x, axes=tuple(1 + axis for axis in axis_tuple(axes, x.ndim - 1)))


@register_view("flip", _copy_flipped, batch=_flip_for_all)
def _flipped(shape: Shape, strides: Shape, *, axes: Shape | None) -> Places:
    turned = {i % len(strides) for i in (range(len(strides)) if axes is None else axes)}
    offset = sum([(shape[i] - 1) * strides[i] for i in turned])
    return Places(tuple([-stride if i in turned else stride for i, stride in enumerate(strides)]), offset)


def _broadcast_for_all(size: int, operands: list[Any], _: list[bool], attributes: dict[str, Any]) -> Any:
    x, shape = operands[0], attributes["shape"]
    more = len(shape) + 1 - x.ndim
    if more < 0:
        raise ArgumentValueError(f"an array of shape {x.shape[1:]} does not broadcast to {shape}")
    if more:
        x = expand_dims(x, tuple(range(1, 1 + more)))
    return _broadcast(x, shape=(size, *shape))


@register_view("broadcast_to", np.broadcast_to, batch=_broadcast_for_all)
def _broadcast(old: Shape, strides: Shape, *, shape: Shape) -> Places:
    lead = len(shape) - len(old)
    inner = [0 if n == 1 and m != 1 else s for n, s, m in zip(old, strides, shape[lead:], strict=True)]
    return Places((*(0,) * lead, *inner))


def _copy_matrices(x: Elements) -> Elements:
    return np.swapaxes(x, -1, -2)


@register_view("matrix_transpose", _copy_matrices, batch="stack")
def _matrix_transposed(_shape: Shape, strides: Shape) -> Places:
    return Places((*strides[:-2], strides[-1], strides[-2]))


@register_view("select", _copy_selected, batch="axis")
def _selected(_shape: Shape, strides: Shape, *, axis: int, index: int) -> Places:
    return Places((*strides[:axis], *strides[axis + 1 :]), index * strides[axis])


@register_op("reshape", infer=shaped_by("reshape", dtype_of_first))
def _reshape(out: Elements, x: Elements, *, shape: AnyShape) -> None:
    del shape  # the result has it
    np.copyto(out, x.reshape(out.shape))


def _push_reshape(outputs: tuple[NDArray], operands: tuple[NDArray], **_: object) -> bool:
    result, x = outputs[0], operands[0]
    if result.strides != contiguous_strides(result.shape, result.itemsize):
        return False
    copy_elements(view(result, x.shape, contiguous_strides(x.shape, x.itemsize)), x)
    return True


_reshape.set_attribute("push", _push_reshape)


def _reshape_for_all(size: int, operands: list[Any], _: list[bool], attributes: dict[str, Any]) -> Any:
    x = operands[0]
    own = x.shape[1:]
    return reshape(x, (size, *resolved_shape(own, attributes["shape"])))


state(_reshape, identity="like", batch=_reshape_for_all)


@register_op("roll", infer=shaped_by("along", dtype_of_first))
def _roll(out: Elements, x: Elements, *, shift: Shape, axes: Shape | None) -> None:
    np.copyto(out, np.roll(x, shift if axes is not None else sum(shift), axes))


def _rolling(x: Operand, *, shift: AnyShape, axes: AnyShape | None) -> dict[str, Any]:
    """Return the attributes of a roll in the form that its rule knows."""
    del x  # the rule counts axes
    shifts = as_shape(shift)
    if axes is None:
        return {"shift": shifts, "axes": None}
    along = as_shape(axes)
    joined((len(shifts),), (len(along),))
    return {"shift": shifts, "axes": along}


state(_roll, batch="axis")
_roll._prepare_by(_rolling)
_roll._run_by(Native.roll())


def reshape(x: ArrayLike, /, shape: AnyShape, order: Order = "C", *, copy: bool | None = None) -> NDArray:
    """Give the elements another shape: a view if the layout in memory allows it, a copy otherwise.

    Parameters
    ----------
    x : array_like
        The array.
    shape : int or tuple of int
        The new shape with as many elements; one length may be -1 and is then found from the others.
    order : {"C", "F", "A"}, default: "C"
        Which index changes fastest, in both shapes: the last, the first, or the first if so the elements lie in memory.
    copy : bool, optional
        True always copies, False never does and raises ValueError if only a copy is possible; None copies if it must.

    Examples
    --------
    >>> import weft
    >>> print(weft.reshape(weft.arange(6), (2, -1)))
    [[0 1 2]
     [3 4 5]]
    """
    if type(x) is NDArray and order == "C" and copy is None:
        return x.reshape(shape)  # the core finds most views
    return reshaped(as_array(x), shape, order, copy)


def reshaped(x: NDArray, shape: AnyShape, order: Order, copy: bool | None) -> NDArray:
    """Return the elements in another shape: `reshape` in every case."""
    if order != "C" and is_first_fastest(x, order):
        return transpose(reshape(transpose(x), as_shape(shape)[::-1], copy=copy))
    if is_symbol(x):
        return one(_reshape, x, shape=as_shape(shape))
    new = resolved_shape(x.shape, as_shape(shape))
    if copy:
        strides = None
    elif x._contiguous:
        strides = contiguous_strides(new, x.itemsize)
    else:
        strides = reshape_strides(x.shape, x.strides, x.itemsize, new)
    if strides is not None:
        result = view(x, new, strides)
        if x._heard:
            tape_hear_view(_reshape, x, result, {"shape": new})
        return result
    if copy is False:
        raise ArgumentValueError(f"an array of shape {x.shape} and strides {x.strides} has no view of shape {new}")
    return one(_reshape, x, shape=new)


def is_first_fastest(x: NDArray, order: str) -> bool:
    """Return whether `order`, one of NumPy's, means that the first index of `x` changes fastest.

    Raises
    ------
    ValueError
        If it is none of them.

    Examples
    --------
    >>> import weft
    >>> from weft._ops.manipulation import is_first_fastest
    >>> x = weft.ones((2, 3))
    >>> is_first_fastest(x, "A"), is_first_fastest(x.T, "A"), is_first_fastest(x, "F")
    (False, True, True)
    """
    if order not in ("C", "F", "A", "K"):
        raise ArgumentValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if order in ("C", "F") or is_symbol(x):
        return order == "F"
    return not x._contiguous and view(x, x.shape[::-1], x.strides[::-1])._contiguous


def ravel(x: ArrayLike, /, order: Order = "C") -> NDArray:
    """Return the elements in one axis, in C order or another: a view if the layout allows it.

    Examples
    --------
    >>> import weft
    >>> print(weft.ravel([[1, 2], [3, 4]]))
    [1 2 3 4]
    """
    x = as_array(x)
    if order != "C" and is_first_fastest(x, order):
        x = transpose(x)
    elif order == "K" and not is_symbol(x):
        x = permute_dims(x, sorted(range(x.ndim), key=lambda axis: -builtins.abs(x.strides[axis])))
    return reshape(x, -1 if is_symbol(x) else x.size)


def flattened(x: ArrayLike) -> NDArray:
    """Return the elements in one axis; an array of one axis as it is."""
    return x if x.__class__ is NDArray and x.ndim == 1 else ravel(x)


def permute_dims(x: ArrayLike, /, axes: Sequence[SupportsIndex]) -> NDArray:
    """Return a view whose axis `i` is axis `axes[i]` of `x`.

    Examples
    --------
    >>> import weft
    >>> weft.permute_dims(weft.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permuted(as_array(x), axes=as_shape(axes))


def transpose(x: ArrayLike, /, axes: Sequence[SupportsIndex] | None = None) -> NDArray:
    """Return a view with the axes in the order `axes`, by default reversed.

    Examples
    --------
    >>> import weft
    >>> weft.transpose(weft.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    x = as_array(x)
    if is_symbol(x) and axes is None:
        return _permuted(x, axes=None)
    return _permuted(x, axes=tuple(reversed(range(x.ndim))) if axes is None else as_shape(axes))


def matrix_transpose(x: ArrayLike, /) -> NDArray:
    """Return a view with the last two axes swapped.

    Examples
    --------
    >>> import weft
    >>> weft.matrix_transpose(weft.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = as_array(x)
    if x.ndim < 2:  # a matrix has two axes
        raise ArgumentValueError(f"a matrix, or a stack of them, has at least 2 axes; got shape {x.shape}")
    return swapaxes(x, -1, -2)


def swapaxes(x: ArrayLike, axis1: SupportsIndex, axis2: SupportsIndex, /) -> NDArray:
    """Return a view with two axes exchanged.

    Examples
    --------
    >>> import weft
    >>> weft.swapaxes(weft.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_array(x)
    order = list(range(x.ndim))
    i, j = axis_index(axis1, x.ndim), axis_index(axis2, x.ndim)
    order[i], order[j] = j, i
    return _permuted(x, axes=tuple(order))


def moveaxis(x: ArrayLike, source: AnyShape, destination: AnyShape, /) -> NDArray:
    """Return a view with the axes `source` at the places `destination`, the others in their order.

    Examples
    --------
    >>> import weft
    >>> weft.moveaxis(weft.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(x)
    old = axes_in_order(as_shape(source), x.ndim, "source")
    new = axes_in_order(as_shape(destination), x.ndim, "destination")
    if len(old) != len(new):
        raise ArgumentValueError(
            f"as many axes must leave as arrive, got source={source} and destination={destination}"
        )
    order = [i for i in range(x.ndim) if i not in old]
    for at, axis in sorted(zip(new, old, strict=True)):
        order.insert(at, axis)
    return _permuted(x, axes=tuple(order))


def expand_dims(x: ArrayLike, /, axis: AnyShape = 0) -> NDArray:
    """Return a view with new axes of length 1 at the places `axis` of the result.

    Examples
    --------
    >>> import weft
    >>> weft.expand_dims(weft.zeros((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    return _expanded(as_array(x), axes=as_shape(axis))


def squeeze(x: ArrayLike, /, axis: Axis = None) -> NDArray:
    """Return a view without the axes `axis`, which must have length 1; by default without all such axes.

    Examples
    --------
    >>> import weft
    >>> weft.squeeze(weft.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = as_array(x)
    if is_symbol(x) and axis is not None:
        return _squeezed(x, axes=as_shape(axis))
    axes = tuple(i for i, n in enumerate(x.shape) if n == 1) if axis is None else reduced_axes(axis, x.ndim)
    return _squeezed(x, axes=axes)


def flip(x: ArrayLike, /, axis: Axis = None) -> NDArray:
    """Return a view with the elements in reverse order along `axis`, by default along all axes.

    Examples
    --------
    >>> import weft
    >>> print(weft.flip([1, 2, 3]))
    [3 2 1]
    """
    x = as_array(x)
    if is_symbol(x):
        return _flipped(x, axes=None if axis is None else as_shape(axis))
    return _flipped(x, axes=axis_tuple(axis, x.ndim))


def flipud(x: ArrayLike, /) -> NDArray:
    """Return a view with the first axis reversed.

    Examples
    --------
    >>> import weft
    >>> print(weft.flipud([1, 2, 3]))
    [3 2 1]
    """
    return flip(x, axis=0)


def fliplr(x: ArrayLike, /) -> NDArray:
    """Return a view with the second axis reversed.

    Examples
    --------
    >>> import weft
    >>> print(weft.fliplr([[1, 2, 3]]))
    [[3 2 1]]
    """
    return flip(x, axis=1)


def rot90(x: ArrayLike, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> NDArray:
    """Return a view turned by `k` quarters in the plane of two axes, from the first towards the second.

    Examples
    --------
    >>> import weft
    >>> print(weft.rot90([[1, 2], [3, 4]]))
    [[2 4]
     [1 3]]
    """
    x = as_array(x)
    first, second = axes_in_order(axes, x.ndim, "axes")
    quarters = k % 4
    if quarters == 2:  # half a turn
        return flip(x, axis=(first, second))
    if quarters == 1:
        return swapaxes(flip(x, axis=second), first, second)
    return flip(swapaxes(x, first, second), axis=second) if quarters else x


def broadcast_to(x: ArrayLike, /, shape: AnyShape) -> NDArray:
    """Return a view that repeats the elements over a larger shape.

    Many elements of the view are the same memory: a write to one shows in all of them.

    Examples
    --------
    >>> import weft
    >>> print(weft.broadcast_to([1, 2], (2, 2)))
    [[1 2]
     [1 2]]
    """
    return _broadcast(as_array(x), shape=as_shape(shape))


def broadcast_arrays(*arrays: ArrayLike) -> list[NDArray]:
    """Return views of all arrays in the shape that they broadcast to.

    Examples
    --------
    >>> import weft
    >>> [x.shape for x in weft.broadcast_arrays([[1], [2]], [1, 2, 3])]
    [(2, 3), (2, 3)]
    """
    converted = [as_array(x) for x in arrays]
    shape = joined(*(x.shape for x in converted))
    return [_broadcast(x, shape=shape) for x in converted]


def broadcast_shapes(*shapes: AnyShape) -> Shape:
    """Return the shape that arrays of these shapes broadcast to.

    Examples
    --------
    >>> import weft
    >>> weft.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return joined(*(as_shape(shape) for shape in shapes))


def unstack(x: ArrayLike, /, *, axis: SupportsIndex = 0) -> tuple[NDArray, ...]:
    """Return the views of `x` at each index along `axis`, without that axis.

    Examples
    --------
    >>> import weft
    >>> first, second = weft.unstack([[1, 2], [3, 4]])
    >>> print(second)
    [3 4]
    """
    x = as_array(x)
    at = axis_index(axis, x.ndim)
    return tuple(_selected(x, axis=at, index=i) for i in range(x.shape[at]))


def roll(x: ArrayLike, /, shift: AnyShape, axis: AnyShape | None = None) -> NDArray:
    """Return a copy with the elements moved by `shift` along `axis`; those that leave come back at the other end.

    Without an axis the elements move in C order, whatever the shape.

    Examples
    --------
    >>> import weft
    >>> print(weft.roll([1, 2, 3, 4], 1))
    [4 1 2 3]
    """
    return one(_roll, x, shift=shift, axes=axis)


def atleast_1d(*arrays: ArrayLike) -> NDArray | list[NDArray]:
    """Return views with at least one axis.

    Examples
    --------
    >>> import weft
    >>> weft.atleast_1d(1.0).shape
    (1,)
    """
    return _at_least(arrays, lambda shape: shape or (1,))


def atleast_2d(*arrays: ArrayLike) -> NDArray | list[NDArray]:
    """Return views with at least two axes; new ones come first.

    Examples
    --------
    >>> import weft
    >>> weft.atleast_2d([1, 2, 3]).shape
    (1, 3)
    """
    return _at_least(arrays, lambda shape: (*(1,) * (2 - len(shape)), *shape))


def atleast_3d(*arrays: ArrayLike) -> NDArray | list[NDArray]:
    """Return views with at least three axes, as NumPy places them.

    Examples
    --------
    >>> import weft
    >>> weft.atleast_3d([1, 2, 3]).shape
    (1, 3, 1)
    """
    padded: dict[int, Callable[[Shape], Shape]] = {
        0: lambda _: (1, 1, 1),
        1: lambda shape: (1, *shape, 1),
        2: lambda shape: (*shape, 1),
    }
    return _at_least(arrays, lambda shape: padded.get(len(shape), tuple)(shape))


def _at_least(arrays: tuple[ArrayLike, ...], new_shape: Callable[[Shape], Shape]) -> NDArray | list[NDArray]:
    views = [reshape(x, new_shape(x.shape)) for x in map(as_array, arrays)]
    return views[0] if len(views) == 1 else views
