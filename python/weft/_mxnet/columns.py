"""Windows of data as columns of a matrix, and back: convolutions written as products."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import LINEAR, Backward
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import product
from weft._mxnet.settings import REQUIRED, Settings, shape
from weft._mxnet.shapes_of_windows import spread
from weft._numpy import namespace
from weft._tape.transforms import vjp
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._mxnet.partial_shapes import Shapes

_WINDOW: dict[str, Any] = {
    "kernel": (shape, REQUIRED),
    "stride": (shape, ()),
    "dilate": (shape, ()),
    "pad": (shape, ()),
}


def _steps(s: Any) -> tuple[tuple[int, ...], ...]:
    """Return stride, dilation and padding of each axis."""
    count = len(s.kernel)
    return spread(s.stride, count, 1, "stride"), spread(s.dilate, count, 1, "dilate"), spread(s.pad, count, 0, "pad")


def _windows(s: Any, lengths: tuple[int | None, ...]) -> tuple[int | None, ...]:
    strides, dilates, pads = _steps(s)
    found: list[int | None] = []
    for length, kernel, stride, dilate, pad in zip(lengths, s.kernel, strides, dilates, pads, strict=True):
        if length is None:
            found.append(None)
            continue
        left = length + 2 * pad - dilate * (kernel - 1) - 1
        if left < 0:
            raise ShapeError(f"im2col: a window of {kernel} does not fit into an axis of {length}")
        found.append(left // stride + 1)
    return tuple(found)


def _column_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.learn_rank(0, 2 + len(s.kernel))
    known = ins[0]
    assert known is not None
    channels = None if known[1] is None else known[1] * math.prod(s.kernel)
    outs.learn(0, (known[0], channels, product(_windows(s, known[2:]))))


def _columns(s: Any, data: Any) -> Any:
    strides, dilates, pads = _steps(s)
    counts = [int(each or 0) for each in _windows(s, data.shape[2:])]
    x = namespace.pad(data, ((0, 0), (0, 0), *((each, each) for each in pads)))
    found: list[Any] = []
    for places in itertools.product(*map(range, s.kernel)):
        firsts = [at * dilate for at, dilate in zip(places, dilates, strict=True)]
        parts = zip(firsts, counts, strides, strict=True)
        found.append(x[(..., *(slice(first, first + (n - 1) * by + 1, by) for first, n, by in parts))])
    stacked = namespace.stack(found, axis=2)
    return stacked.reshape((data.shape[0], data.shape[1] * math.prod(s.kernel), math.prod(counts)))


@operator("im2col", settings=Settings(**_WINDOW), shapes=_column_shapes, gradient=LINEAR)
def _im2col(s: Any, data: Any) -> Any:
    return _columns(s, data)


def _picture_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    each = math.prod(s.kernel)
    ins.learn(0, (None, None, product(_windows(s, s.output_size))))
    channels = ins.length(0, 1)
    if channels is not None and channels % each:
        raise ShapeError(f"col2im: {channels} rows are not channels of {each} elements of a window")
    outs.learn(0, (ins.length(0, 0), None if channels is None else channels // each, *s.output_size))


def _picture_back(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del inputs, outputs
    return [_columns(s, grads[0])]


@operator(
    "col2im",
    settings=Settings(output_size=(shape, REQUIRED), **_WINDOW),
    shapes=_picture_shapes,
    gradient=Backward(_picture_back, of_shapes=True),
)
def _col2im(s: Any, data: Any) -> Any:
    lengths = (data.shape[0], data.shape[1] // math.prod(s.kernel), *s.output_size)
    _, pull = vjp(lambda x: _columns(s, x), namespace.zeros(lengths, dtype=data.dtype, engine=data.engine))
    found: Any = pull(data)[0]
    return found
