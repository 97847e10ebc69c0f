"""Pictures in other sizes, by products with matrices of weights: one for each axis."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import LINEAR
from weft._mxnet.operator import operator
from weft._mxnet.settings import Settings, choice, flag, integer, number, optional, shape
from weft._numpy import namespace
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes

_MODES = ("size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up")


def _grown(s: Any, length: int | None, at: int, like: int | None) -> int | None:
    """Return the new length of an axis: 0 is the height, 1 the width."""
    mode, scale = s.mode, (s.scale_height, s.scale_width)[at]
    if mode == "like":
        return like
    if mode == "size" and scale is None:
        given: int | None = (s.height, s.width)[at]
        return given
    if length is None:
        return None
    if mode == "size":
        return int(scale * length)
    if mode == "odd_scale":
        return int(length * (scale or 1)) if length % 2 == 0 else int((length - 1) * (scale or 1)) + 1
    is_wrong = length % 2 == (1 if "even" in mode else 0)
    return length + ((1 if mode.endswith("up") else -1) if is_wrong else 0)


def _resized_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    if len(known) != 4:  # (n, c, h, w)
        raise ShapeError(f"BilinearResize2D takes data (n, c, h, w), and got {known}")
    like = (ins.length(1, 2), ins.length(1, 3)) if s.mode == "like" else (None, None)
    outs.learn(0, (*known[:2], *(_grown(s, known[2 + at], at, like[at]) for at in range(2))))


@cache
def _between(length: int, made: int, *, corners: bool) -> np.ndarray[Any, Any]:
    """Return the weights of elements, one row for each that is made between two."""
    at = np.arange(made)
    if corners:
        places = at * ((length - 1) / (made - 1) if made > 1 else 0.0)
    else:
        places = np.maximum((at + 0.5) * (length / made) - 0.5, 0)
    low = np.minimum(places.astype(int), length - 1)
    part = places - low
    found = np.zeros((made, length))
    found[at, low] += 1 - part
    found[at, np.minimum(low + 1, length - 1)] += part
    return found


@cache
def _means(length: int, made: int) -> np.ndarray[Any, Any]:
    """Return the weights of elements, one row for each mean of those from a part's floor to its ceiling."""
    found = np.zeros((made, length))
    for at in range(made):
        first, last = at * length // made, -(-(at + 1) * length // made)
        found[at, first:last] = 1 / (last - first)
    return found


def _weighed(data: Any, high: np.ndarray[Any, Any], wide: np.ndarray[Any, Any]) -> Any:
    """Return rows and columns of pictures weighed by matrices."""
    rows = namespace.asarray(high.astype(data.dtype), engine=data.engine)
    columns = namespace.asarray(np.ascontiguousarray(wide.T).astype(data.dtype), engine=data.engine)
    return rows @ (data @ columns)


@operator(
    "_contrib_BilinearResize2D",
    settings=Settings(
        height=(integer, 1),
        width=(integer, 1),
        scale_height=(optional(number), None),
        scale_width=(optional(number), None),
        mode=(choice(*_MODES), "size"),
        align_corners=(flag, True),
    ),
    inputs=lambda s: ("data", "like") if s.mode == "like" else ("data",),
    shapes=_resized_shapes,
    gradient=LINEAR,
)
def _resize(s: Any, data: Any, like: Any = None) -> Any:
    wanted: Any = (None, None) if like is None else like.shape[2:]
    sizes = [_grown(s, data.shape[2 + at], at, wanted[at]) for at in range(2)]
    high, wide = (_between(data.shape[2 + at], each or 0, corners=s.align_corners) for at, each in enumerate(sizes))
    return _weighed(data, high, wide)


def _sides(s: Any) -> tuple[int, int]:
    """Return height and width: one number is both."""
    sides: tuple[int, ...] = s.output_size or (1,)
    return sides[0], sides[-1]


def _adaptive_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        if len(known) != 4:  # (n, c, h, w)
            raise ShapeError(f"AdaptiveAvgPooling2D takes data (n, c, h, w), and got {known}")
        outs.learn(0, (*known[:2], *_sides(s)))


@operator(
    "_contrib_AdaptiveAvgPooling2D",
    settings=Settings(output_size=(shape, ())),
    shapes=_adaptive_shapes,
    gradient=LINEAR,
)
def _adaptive(s: Any, data: Any) -> Any:
    height, width = _sides(s)
    return _weighed(data, _means(data.shape[2], height), _means(data.shape[3], width))
