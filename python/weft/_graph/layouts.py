"""`layout_transform`: the op that brings blocked layouts of axes into others, as `correct_layout` inserts it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from weft._core import layout_axes
from weft._ops.manipulation import permute_dims, reshape
from weft._ops.unbroadcast import apply
from weft._registry.avals import Aval
from weft._registry.op import get_op, register_op
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: A shape: None for an unknown length, or in the place of all.
Partial: TypeAlias = "tuple[int | None, ...] | None"


class Axis(NamedTuple):
    """An axis of a layout: which one, and for the inner part of a blocked one how long the blocks are."""

    name: str
    block: int | None


@lru_cache(maxsize=1024)
def axes_of(layout: str) -> tuple[Axis, ...]:
    """Return the axes of a layout: a capital for each, a number and a small letter for the inside of blocks.

    Raises
    ------
    ArgumentValueError
        If the text is no layout.

    Examples
    --------
    >>> from weft._graph.layouts import axes_of
    >>> [axis.block for axis in axes_of("NCHW16c")]
    [None, None, None, None, 16]
    """
    return tuple(Axis(name, block) for name, block in layout_axes(layout))


def outer(layout: str) -> str:
    """Return the layout of the same axes in this order, without blocks.

    Examples
    --------
    >>> from weft._graph.layouts import outer
    >>> outer("NCHW16c")
    'NCHW'
    """
    return "".join(axis.name for axis in axes_of(layout) if axis.block is None)


def along(layout: str, name: str) -> str:
    """Return the part of a layout that is about one axis: that of a vector along it.

    Examples
    --------
    >>> from weft._graph.layouts import along
    >>> along("NCHW16c", "C"), along("NHWC", "C")
    ('C16c', 'C')
    """
    return "".join(_text(axis) for axis in axes_of(layout) if axis.name == name)


def _text(axis: Axis) -> str:
    return axis.name if axis.block is None else f"{axis.block}{axis.name.lower()}"


def _lengths(shape: Sequence[int | None], layout: str) -> dict[str, int | None]:
    """Return how long each axis is, its blocks taken together; None where it is not known."""
    axes = axes_of(layout)
    if len(axes) != len(shape):
        raise ShapeError(f"an array of shape {tuple(shape)} has not the axes of layout {layout!r}")
    lengths: dict[str, int | None] = {}
    for axis, given in zip(axes, shape, strict=True):
        length = given if axis.block is None else axis.block
        if given not in (None, length):
            raise ShapeError(
                f"blocks of {axis.block} along {axis.name} are said by {layout!r}, and shape {tuple(shape)} has {given}"
            )
        known = lengths.get(axis.name, 1)
        lengths[axis.name] = None if known is None or length is None else known * length
    return lengths


def _shape(lengths: dict[str, int | None], layout: str) -> tuple[int | None, ...]:
    """Return the shape of axes that are so long in a layout."""
    axes = axes_of(layout)
    if {axis.name for axis in axes} != set(lengths):
        raise ShapeError(f"layout {layout!r} has other axes than {''.join(lengths)}")
    blocks = {axis.name: axis.block for axis in axes if axis.block is not None}
    shape: list[int | None] = []
    for axis in axes:
        length, block = lengths[axis.name], blocks.get(axis.name, 1)
        if axis.block is not None:
            shape.append(axis.block)
        elif length is None:
            shape.append(None)
        elif length % block:
            raise ShapeError(f"layout {layout!r}: {length} along {axis.name} do not divide into blocks of {block}")
        else:
            shape.append(length // block)
    return tuple(shape)


def relaid(shape: Partial, src_layout: str, dst_layout: str) -> Partial:
    """Return the shape of an array in another layout, as far as it is known.

    Raises
    ------
    ShapeError
        If the shape or the other layout has other axes, or a length does not divide into its blocks.

    Examples
    --------
    >>> from weft._graph.layouts import relaid
    >>> relaid((None, 32, 5, 5), "NCHW", "NCHW16c")
    (None, 2, 5, 5, 16)
    """
    return None if shape is None else _shape(_lengths(shape, src_layout), dst_layout)


def _joined(known: Partial, follows: Partial) -> Partial:
    """Return the facts of both shapes of one array."""
    if known is None or follows is None:
        return follows if known is None else known
    pairs = list(zip(known, follows, strict=False))
    if len(known) != len(follows) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise ShapeError(f"an array of shape {known} is to have {follows} in this layout")
    return tuple(other if one is None else one for one, other in pairs)


def _infer(x: Aval, *, src_layout: str, dst_layout: str) -> Aval:
    return Aval(_shape(_lengths(x.shape, src_layout), dst_layout), x.dtype)  # type: ignore[arg-type] # all are known


def _shapes(attributes: dict[str, Any], ins: Any, outs: Any) -> tuple[list[Partial], list[Partial]]:
    """Infer both ways."""
    src, dst = attributes["src_layout"], attributes["dst_layout"]
    given = _joined(ins[0], relaid(outs[0], dst, src))
    return [given], [_joined(outs[0], relaid(given, src, dst))]


def _order(layout: str, names: Sequence[str]) -> list[int]:
    """Return the axes of a layout, those of each name together and outer ones first."""
    axes = axes_of(layout)
    return sorted(range(len(axes)), key=lambda at: (names.index(axes[at].name), axes[at].block is not None))


class _Way(NamedTuple):
    """How elements of a shape get from one layout into another: permuted, in another shape, and permuted."""

    first: tuple[int, ...]
    plain: tuple[int, ...]
    split: tuple[int, ...]
    last: tuple[int, ...]


@lru_cache(maxsize=1024)
def _way(shape: tuple[int, ...], src_layout: str, dst_layout: str) -> _Way:
    lengths = _lengths(shape, src_layout)
    wanted: Any = _shape(lengths, dst_layout)
    plain: Any = tuple(lengths.values())
    order = _order(dst_layout, tuple(lengths))
    return _Way(
        tuple(_order(src_layout, tuple(lengths))),
        plain,
        tuple(wanted[at] for at in order),
        tuple(sorted(range(len(order)), key=order.__getitem__)),
    )


@register_op("layout_transform", infer=_infer)
def _transform(out: NDArray[Any], x: NDArray[Any], *, src_layout: str, dst_layout: str) -> None:
    way = _way(x.shape, src_layout, dst_layout)
    np.copyto(out, x.transpose(way.first).reshape(way.plain).reshape(way.split).transpose(way.last))


def _show(x: Any, *, src_layout: str, dst_layout: str) -> Any:
    """Return a view where there is one, and else one copy."""
    way = _way(x.shape, src_layout, dst_layout)
    return permute_dims(reshape(reshape(permute_dims(x, way.first), way.plain), way.split), way.last)


def brought(x: Any, src_layout: str, dst_layout: str) -> Any:
    """Return an array, or a symbol, in another layout.

    Raises
    ------
    ShapeError
        As for `relaid`.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.layouts import brought
    >>> brought(weft.zeros((1, 4, 3, 3)), "NCHW", "NCHW2c").shape
    (1, 2, 3, 3, 2)
    """
    if src_layout == dst_layout:
        return x
    own, wanted = axes_of(src_layout), axes_of(dst_layout)
    if len(own) == len(wanted) and not any(axis.block for axis in (*own, *wanted)):
        return apply("permute_dims", x, axes=tuple(own.index(axis) for axis in wanted))
    return apply("layout_transform", x, src_layout=src_layout, dst_layout=dst_layout)


def _back(node: Any, grads: Any) -> Any:
    given = node.attributes
    back = {"src_layout": given["dst_layout"], "dst_layout": given["src_layout"]}
    return (get_op("layout_transform")(grads[0], **back),)


def _layouts(attributes: dict[str, Any], ins: Any, last: Any, outs: Any) -> tuple[list[str], list[str]]:
    del ins, last, outs
    return [attributes["src_layout"]], [attributes["dst_layout"]]


def _cost(_attributes: Any, shapes: Any, dtypes: Any) -> tuple[float, float]:
    size = math.prod(shapes[0]) * (4 if dtypes[0] is None else dtypes[0].itemsize)
    return 0.0, 2.0 * size


for _key, _value in {
    "gradient": _back,
    "infer_shape": _shapes,
    "infer_type": "same",
    "layout": _layouts,
    "view": _show,
    "shares_memory": True,
    "cost": _cost,
}.items():
    _transform.set_attribute(_key, _value)
