"""Arrays that are repeated, turned round, or broadcast."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import LINEAR
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import place
from weft._mxnet.settings import REQUIRED, Settings, integer, optional, shape
from weft._numpy import namespace
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Lengths, Shapes


def _tile_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if any(each < 0 for each in s.reps):
        raise GraphError(f"tile: reps={s.reps} says how often each axis is repeated, and no number is negative")
    if known is not None:
        rank = max(len(known), len(s.reps))
        lengths = (1,) * (rank - len(known)) + known
        times = (1,) * (rank - len(s.reps)) + s.reps
        outs.learn(0, tuple(None if each is None else each * by for each, by in zip(lengths, times, strict=True)))


@operator("tile", "_npi_tile", settings=Settings(reps=(shape, REQUIRED)), shapes=_tile_shapes, gradient=LINEAR)
def _tile(s: Any, data: Any) -> Any:
    return namespace.tile(data, s.reps)


def _repeat_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    if s.axis is None:
        total: int | None = s.repeats
        for each in known:
            total = None if total is None or each is None else total * each
        outs.learn(0, (total,))
        return
    at = place(s.axis, len(known))
    length = known[at]
    outs.learn(0, (*known[:at], None if length is None else length * s.repeats, *known[at + 1 :]))


@operator(
    "repeat",
    "_np_repeat",
    settings=Settings(repeats=(integer, REQUIRED), axis=(optional(integer), None)),
    shapes=_repeat_shapes,
    gradient=LINEAR,
)
def _repeat(s: Any, data: Any) -> Any:
    return namespace.repeat(data, s.repeats, axis=s.axis)


@operator("reverse", "flip", "_npi_flip", settings=Settings(axis=(shape, REQUIRED)), gradient=LINEAR)
def _reverse(s: Any, data: Any) -> Any:
    return namespace.flip(data, axis=s.axis)


def _to_lengths(s: Any, known: Lengths) -> list[Any]:
    if len(known) != len(s.shape):
        raise ShapeError(f"broadcast_to shape={s.shape} takes as many axes as data of shape {known} has")
    return [each or own for own, each in zip(known, s.shape, strict=True)]


def _to_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, _to_lengths(s, known))


@operator("broadcast_to", settings=Settings(shape=(shape, ())), shapes=_to_shapes, gradient=LINEAR)
def _broadcast_to(s: Any, data: Any) -> Any:
    return namespace.broadcast_to(data, tuple(_to_lengths(s, data.shape)))


def _along_lengths(s: Any, known: Lengths) -> list[Any]:
    found: list[Any] = list(known)
    for axis, size in zip(s.axis, s.size, strict=True):
        at = place(axis, len(known))
        if known[at] not in (1, None):
            raise ShapeError(f"broadcast_axis: axis {axis} of data of shape {known} is not of length 1")
        found[at] = size
    return found


def _along_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, _along_lengths(s, known))


@operator(
    "broadcast_axis",
    "broadcast_axes",
    settings=Settings(axis=(shape, ()), size=(shape, ())),
    shapes=_along_shapes,
    gradient=LINEAR,
)
def _broadcast_axis(s: Any, data: Any) -> Any:
    return namespace.broadcast_to(data, tuple(_along_lengths(s, data.shape)))


def _lengths_like(s: Any, known: Lengths, like: Lengths) -> Lengths:
    """Return a shape with the lengths of the other one, along all axes or along those that are named."""
    if s.lhs_axes is None or s.rhs_axes is None:
        if len(known) != len(like):
            raise ShapeError(f"broadcast_like: data of shape {known} has not the axes of one of shape {like}")
        return tuple(own if other is None else other for own, other in zip(known, like, strict=True))
    if not s.lhs_axes or len(s.lhs_axes) != len(s.rhs_axes):
        raise ShapeError(f"broadcast_like: lhs_axes {s.lhs_axes} and rhs_axes {s.rhs_axes} are no pairs of axes")
    found = list(known)
    for own, other in zip(s.lhs_axes, s.rhs_axes, strict=True):
        at = place(own, len(known))
        if known[at] not in (1, None):
            raise ShapeError(f"broadcast_like: axis {own} of data of shape {known} is not of length 1")
        found[at] = like[place(other, len(like))]
    return tuple(found)


def _like_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known, like = ins[0], ins[1]
    if known is not None and like is not None:
        outs.learn(0, _lengths_like(s, known, like))


@operator(
    "broadcast_like",
    settings=Settings(lhs_axes=(optional(shape), None), rhs_axes=(optional(shape), None)),
    inputs=("lhs", "rhs"),
    shapes=_like_shapes,
    gradient=LINEAR,
)
def _broadcast_like(s: Any, data: Any, like: Any) -> Any:
    wanted: Any = _lengths_like(s, data.shape, like.shape)
    return namespace.broadcast_to(data, wanted)
