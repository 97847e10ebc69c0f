"""Pictures looked at through grids: affine and warped ones, sampled between elements; two pictures compared."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, choice, flag, integer, shape
from weft._numpy import namespace
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Lengths, Shapes

#: The numbers of an affine map: two rows of three.
_AFFINE = 6


def _regular(height: int, width: int, like: Any) -> Any:
    """Return the places (x, y, 1) of a grid's points, each axis from -1 to 1, as columns."""
    y, x = (np.linspace(-1, 1, count) if count > 1 else np.full(1, -1.0) for count in (height, width))
    rows, columns = np.meshgrid(y, x, indexing="ij")
    found = np.stack([columns.ravel(), rows.ravel(), np.ones(height * width)]).astype(like.dtype)
    return namespace.asarray(found, engine=like.engine)


def _affine(data: Any, size: tuple[int, ...]) -> Any:
    height, width = size
    found = data.reshape((data.shape[0], 2, 3)) @ _regular(height, width, data)
    return found.reshape((data.shape[0], 2, height, width))


def _grid_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    if s.transform_type == "warp":
        ins.learn(0, (None, 2, None, None))
        ins.alike(outs)
        return
    if len(s.target_shape) != 2 or 0 in s.target_shape:
        raise ShapeError(
            f"GridGenerator: an affine grid needs target_shape=(height, width), and {s.target_shape} was given"
        )
    ins.learn(0, (None, _AFFINE))
    outs.learn(0, (ins.length(0, 0), 2, *s.target_shape))


@operator(
    "GridGenerator",
    settings=Settings(transform_type=(choice("affine", "warp"), REQUIRED), target_shape=(shape, (0, 0))),
    shapes=_grid_shapes,
)
def _grid(s: Any, data: Any) -> Any:
    if s.transform_type == "affine":
        return _affine(data, s.target_shape)
    height, width = data.shape[2:]
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    places = namespace.asarray(np.stack([x, y]).astype(data.dtype), engine=data.engine)
    halves = np.array([(width - 1) / 2, (height - 1) / 2], data.dtype).reshape((2, 1, 1))
    return (data + places) / namespace.asarray(halves, engine=data.engine) - 1


def _sampled(data: Any, grid: Any) -> Any:
    """Return pictures (n, c, h, w) at the places of a grid (n, 2, rows, columns), and 0 outside of the pictures."""
    height, width = data.shape[2:]
    x, y = ((grid[:, at] + 1) * ((length - 1) / 2) for at, length in ((0, width), (1, height)))
    left, top = namespace.floor(x), namespace.floor(y)
    last = namespace.permute_dims(data, (0, 2, 3, 1))
    which = namespace.arange(data.shape[0], engine=data.engine)[:, None, None]
    total: Any = None
    for row, by_row in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, by_column in ((left, 1 - (x - left)), (left + 1, x - left)):
            is_in = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            rows = namespace.astype(namespace.clip(row, 0, height - 1), "int64")
            columns = namespace.astype(namespace.clip(column, 0, width - 1), "int64")
            weight: Any = namespace.where(is_in, by_row * by_column, 0.0)
            part = last[which, rows, columns] * weight[..., None]
            total = part if total is None else total + part
    return namespace.permute_dims(total, (0, 3, 1, 2))


def _sampler_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.learn(0, (None,) * 4)
    ins.learn(1, (ins.length(0, 0), 2, None, None))
    outs.learn(0, (ins.length(0, 0), ins.length(0, 1), ins.length(1, 2), ins.length(1, 3)))


@operator("BilinearSampler", settings=Settings(("cudnn_off",)), inputs=("data", "grid"), shapes=_sampler_shapes)
def _sampler(s: Any, data: Any, grid: Any) -> Any:
    del s
    return _sampled(data, grid)


def _transformer_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.learn(0, (None,) * 4)
    ins.learn(1, (ins.length(0, 0), _AFFINE))
    if len(s.target_shape) != 2 or 0 in s.target_shape:
        raise ShapeError(f"SpatialTransformer: target_shape=(height, width) is needed, and {s.target_shape} was given")
    outs.learn(0, (ins.length(0, 0), ins.length(0, 1), *s.target_shape))


@operator(
    "SpatialTransformer",
    settings=Settings(
        ("cudnn_off",),
        target_shape=(shape, (0, 0)),
        transform_type=(choice("affine"), REQUIRED),
        sampler_type=(choice("bilinear"), REQUIRED),
    ),
    inputs=("data", "loc"),
    shapes=_transformer_shapes,
)
def _transformer(s: Any, data: Any, loc: Any) -> Any:
    return _sampled(data, _affine(loc, s.target_shape))


def _reach(s: Any) -> int:
    """Return how far from a border the first window's middle lies."""
    return int(s.max_displacement + (s.kernel_size - 1) // 2)


def _compared(s: Any, known: Lengths) -> tuple[int | None, ...]:
    if s.kernel_size % 2 == 0:
        raise GraphError(f"Correlation: kernel_size is odd, and {s.kernel_size} was given")
    side = 2 * (s.max_displacement // s.stride2) + 1
    sizes = [None if each is None else -(-(each + 2 * s.pad_size - 2 * _reach(s)) // s.stride1) for each in known[2:]]
    if any(each is not None and each < 1 for each in sizes):
        raise ShapeError(f"Correlation: windows that are moved by {s.max_displacement} do not fit into {known}")
    return (known[0], side * side, *sizes)


def _correlation_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.learn(0, (None,) * 4)
    ins.alike(outs, theirs=())
    known = ins[0]
    if known is not None:
        outs.learn(0, _compared(s, known))


@operator(
    "Correlation",
    settings=Settings(
        kernel_size=(integer, 1),
        max_displacement=(integer, 1),
        stride1=(integer, 1),
        stride2=(integer, 1),
        pad_size=(integer, 0),
        is_multiply=(flag, True),
    ),
    inputs=("data1", "data2"),
    shapes=_correlation_shapes,
)
def _correlation(s: Any, one: Any, other: Any) -> Any:
    rows, columns = (int(each or 0) for each in _compared(s, one.shape)[2:])
    pads = ((0, 0), (0, 0), (s.pad_size, s.pad_size), (s.pad_size, s.pad_size))
    one, other = namespace.pad(one, pads), namespace.pad(other, pads)

    def window(x: Any, down: int, right: int) -> Any:
        top, left = s.max_displacement + down, s.max_displacement + right
        return x[
            :,
            :,
            top : top + (rows - 1) * s.stride1 + 1 : s.stride1,
            left : left + (columns - 1) * s.stride1 + 1 : s.stride1,
        ]

    steps = s.max_displacement // s.stride2
    moves = [at * s.stride2 for at in range(-steps, steps + 1)]
    found: list[Any] = []
    for down in moves:
        for right in moves:
            total: Any = None
            for y in range(s.kernel_size):
                for x in range(s.kernel_size):
                    a, b = window(one, y, x), window(other, y + down, x + right)
                    # Of equal elements the first grows, as in MXNet.
                    each = a * b if s.is_multiply else namespace.where(a >= b, a - b, b - a)
                    part = namespace.sum(each, axis=1)
                    total = part if total is None else total + part
            found.append(total)
    return namespace.stack(found, axis=1) / (s.kernel_size**2 * one.shape[1])
