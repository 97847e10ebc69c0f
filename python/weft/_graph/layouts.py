"""`layout_transform`: the op that brings blocked layouts of axes into others, as `correct_layout` inserts it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft._core import layout_axes
from weft._registry.avals import Aval
from weft._registry.op import get_op, register_op
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Axis(NamedTuple):
    """An axis of a layout: which one, and for the inner part of a blocked one how long the blocks are."""

    name: str
    block: int | None


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


def _lengths(shape: Sequence[int], layout: str) -> dict[str, int]:
    """Return how long each axis is, its blocks taken together."""
    axes = axes_of(layout)
    if len(axes) != len(shape):
        raise ShapeError(f"layout_transform(): an array of shape {tuple(shape)} has not the axes of layout {layout!r}")
    lengths: dict[str, int] = {}
    for axis, length in zip(axes, shape, strict=True):
        if axis.block not in (None, length):
            raise ShapeError(
                f"layout_transform(): blocks of {axis.block} along {axis.name} are said by {layout!r}, and shape {tuple(shape)} has {length}"
            )
        lengths[axis.name] = lengths.get(axis.name, 1) * length
    return lengths


def _shape(lengths: dict[str, int], layout: str) -> tuple[int, ...]:
    """Return the shape of axes that are so long in a layout."""
    axes = axes_of(layout)
    if {axis.name for axis in axes} != set(lengths):
        raise ShapeError(f"layout_transform(): layout {layout!r} has other axes than {''.join(lengths)}")
    blocks = {axis.name: axis.block for axis in axes if axis.block is not None}
    shape: list[int] = []
    for axis in axes:
        block = blocks.get(axis.name)
        if axis.block is not None or block is None:
            shape.append(lengths[axis.name] if axis.block is None else axis.block)
        elif lengths[axis.name] % block:
            raise ShapeError(
                f"layout_transform(): {lengths[axis.name]} along {axis.name} do not divide into blocks of {block}"
            )
        else:
            shape.append(lengths[axis.name] // block)
    return tuple(shape)


def _infer(x: Aval, *, src_layout: str, dst_layout: str) -> Aval:
    return Aval(_shape(_lengths(x.shape, src_layout), dst_layout), x.dtype)


def _order(layout: str, names: Sequence[str]) -> list[int]:
    """Return the axes of a layout, those of each name together and outer ones first."""
    axes = axes_of(layout)
    return sorted(range(len(axes)), key=lambda at: (names.index(axes[at].name), axes[at].block is not None))


@register_op("layout_transform", infer=_infer)
def _transform(out: NDArray[Any], x: NDArray[Any], *, src_layout: str, dst_layout: str) -> None:
    lengths = _lengths(x.shape, src_layout)
    names = tuple(lengths)
    plain = x.transpose(_order(src_layout, names)).reshape(tuple(lengths.values()))
    order = _order(dst_layout, names)
    split = plain.reshape([out.shape[at] for at in order])
    np.copyto(out, split.transpose(np.argsort(order)))


def _back(node: Any, grads: Any) -> Any:
    given = node.attributes
    back = {"src_layout": given["dst_layout"], "dst_layout": given["src_layout"]}
    return (get_op("layout_transform")(grads[0], **back),)


def _cost(_attributes: Any, shapes: Any, dtypes: Any) -> tuple[float, float]:
    size = math.prod(shapes[0]) * (4 if dtypes[0] is None else dtypes[0].itemsize)
    return 0.0, 2.0 * size


_transform.set_attribute("gradient", _back)
_transform.set_attribute("infer_type", "same")
_transform.set_attribute("cost", _cost)
