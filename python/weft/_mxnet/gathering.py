"""Elements by indices in several axes, blocks as channels, diagonals, numbers in the shape of data."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import LINEAR, NONE, Backward
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import data_dtype, place
from weft._mxnet.settings import REQUIRED, Settings, axes, flag, integer, number, optional, shape
from weft._numpy import namespace
from weft.errors import ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._mxnet.partial_shapes import Shapes


def _rows(indices: Any) -> tuple[Any, ...]:
    """Return the indices of each axis."""
    found = namespace.astype(indices, "int64")
    return tuple(found[at] for at in range(found.shape[0]))


def _gather_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    data, indices = ins[0], ins[1]
    if data is None or not indices or indices[0] is None:
        return
    if indices[0] > len(data):
        raise ShapeError(f"gather_nd: indices of shape {indices} name {indices[0]} axes of data of shape {data}")
    outs.learn(0, (*indices[1:], *data[indices[0] :]))


@operator("gather_nd", "_npx_gather_nd", inputs=("data", "indices"), shapes=_gather_shapes, dtypes=data_dtype)
def _gather(s: Any, data: Any, indices: Any) -> Any:
    del s
    return data[_rows(indices)]


def _scatter_back(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del s, outputs
    return [grads[0][_rows(inputs[1])], None]


@operator(
    "scatter_nd",
    settings=Settings(shape=(shape, REQUIRED)),
    inputs=("data", "indices"),
    shapes=lambda s, ins, outs: outs.learn(0, s.shape),
    dtypes=data_dtype,
    gradient=Backward(_scatter_back),
)
def _scatter(s: Any, data: Any, indices: Any) -> Any:
    found = namespace.zeros(s.shape, dtype=data.dtype, engine=data.engine)
    found[_rows(indices)] = data
    return found


def _batch_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = ins[0]
    if known is not None:
        outs.learn(0, known[:-1])
    outs.learn(0, ins[1])
    ins.learn(1, outs[0])


@operator("batch_take", inputs=("a", "indices"), shapes=_batch_shapes, dtypes=data_dtype)
def _batch_take(s: Any, data: Any, indices: Any) -> Any:
    del s
    rows = namespace.clip(namespace.astype(indices, "int64"), 0, data.shape[-1] - 1)
    return namespace.take_along_axis(data, namespace.expand_dims(rows, -1), axis=-1)[..., 0]


def _like_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, known if s.axis is None else (known[place(s.axis, len(known))],))


@operator(
    "_contrib_arange_like",
    "_npx_arange_like",
    settings=Settings(
        ("ctx",),
        start=(number, 0.0),
        step=(number, 1.0),
        repeat=(integer, 1),
        axis=(optional(integer), None),
    ),
    shapes=_like_shapes,
    gradient=NONE,
)
def _arange_like(s: Any, data: Any) -> Any:
    lengths = data.shape if s.axis is None else (data.shape[s.axis],)
    count = math.prod(lengths)
    found = (s.start + np.repeat(np.arange(-(-count // s.repeat)), s.repeat)[:count] * s.step).astype(data.dtype)
    return namespace.asarray(found.reshape(lengths), engine=data.engine)


def _blocks_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    by = s.block_size
    known = ins[0]
    if known is None:
        return
    n, c, h, w = _blocked(by, known)
    if c is not None and c % (by * by):
        raise ShapeError(f"depth_to_space: {c} channels are not blocks of {by} by {by}")
    outs.learn(0, (n, None if c is None else c // by**2, *(None if each is None else each * by for each in (h, w))))


def _blocked(by: int, known: Any) -> Any:
    """Return the lengths of batch, channels, rows and columns, to cut into blocks."""
    if by < 1:
        raise ArgumentValueError(f"block_size is 1 or more, not {by}")
    if len(known) != 4 or 0 in known:  # (n, c, h, w)
        raise ShapeError(f"data has the axes (n, c, h, w), none of them empty, and its shape is {known}")
    return known


_BLOCKS = Settings(block_size=(integer, REQUIRED))


@operator("depth_to_space", settings=_BLOCKS, shapes=_blocks_shapes, gradient=LINEAR)
def _depth_to_space(s: Any, data: Any) -> Any:
    by, (n, c, h, w) = s.block_size, data.shape
    parts = data.reshape((n, by, by, c // by**2, h, w))
    return namespace.permute_dims(parts, (0, 3, 4, 1, 5, 2)).reshape((n, c // by**2, h * by, w * by))


def _channels_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    by = s.block_size
    known = ins[0]
    if known is None:
        return
    n, c, h, w = _blocked(by, known)
    if any(each is not None and each % by for each in (h, w)):
        raise ShapeError(f"space_to_depth: data of shape {known} is not made of blocks of {by} by {by}")
    outs.learn(0, (n, None if c is None else c * by**2, *(None if each is None else each // by for each in (h, w))))


@operator("space_to_depth", settings=_BLOCKS, shapes=_channels_shapes, gradient=LINEAR)
def _space_to_depth(s: Any, data: Any) -> Any:
    by, (n, c, h, w) = s.block_size, data.shape
    parts = data.reshape((n, c, h // by, by, w // by, by))
    return namespace.permute_dims(parts, (0, 3, 5, 1, 2, 4)).reshape((n, c * by**2, h // by, w // by))


def _diag_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    if len(known) == 1:
        side = None if known[0] is None else known[0] + abs(s.k)
        outs.learn(0, (side, side))
        return
    one, other = place(s.axis1, len(known)), place(s.axis2, len(known))
    a, b = known[one], known[other]
    rest = tuple(each for at, each in enumerate(known) if at not in {one, other})
    length = None if a is None or b is None else min(a + min(s.k, 0), b - max(s.k, 0))
    if length is not None and length < 0:
        raise ShapeError(f"diag: data of shape {known} has no diagonal {s.k}")
    outs.learn(0, (*rest, length))


@operator(
    "diag",
    settings=Settings(k=(integer, 0), axis1=(integer, 0), axis2=(integer, 1)),
    shapes=_diag_shapes,
    gradient=LINEAR,
)
def _diag(s: Any, data: Any) -> Any:
    if data.ndim == 1:
        return namespace.diag(data, s.k)
    return namespace.diagonal(data, s.k, s.axis1, s.axis2)


def _parts_of(s: Any) -> int:
    return s.sections or len(_starts(s))


def _starts(s: Any) -> tuple[int, ...]:
    """Return where parts begin: MXNet's files begin with 0."""
    given = tuple(int(each) for each in s.indices if each is not None)
    return given if given[:1] == (0,) else (0, *given)


def _bounds(s: Any, length: int) -> list[tuple[int, int]]:
    if s.sections:
        if length % s.sections:
            raise ShapeError(f"an axis of {length} does not divide into {s.sections} sections")
        each = length // s.sections
        return [(at * each, (at + 1) * each) for at in range(s.sections)]
    starts = _starts(s)
    return list(zip(starts, (*starts[1:], length), strict=True))


def _parts_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    at = place(s.axis, len(known))
    length = known[at]
    for part in range(len(outs)):
        first, last = (0, 0) if length is None else _bounds(s, length)[part]
        own = () if s.squeeze_axis else (None if length is None else max(last - first, 0),)
        outs.learn(part, (*known[:at], *own, *known[at + 1 :]))


@operator(
    "_split_v2",
    "_npi_split",
    settings=Settings(indices=(axes, ()), axis=(integer, 1), squeeze_axis=(flag, False), sections=(integer, 0)),
    outputs=_parts_of,
    shapes=_parts_shapes,
    gradient=LINEAR,
)
def _split_v2(s: Any, data: Any) -> Any:
    lead = (slice(None),) * (s.axis % data.ndim)
    found = [data[(*lead, slice(first, last))] for first, last in _bounds(s, data.shape[s.axis])]
    found = [namespace.squeeze(each, axis=s.axis) for each in found] if s.squeeze_axis else found
    return found[0] if len(found) == 1 else tuple(found)
