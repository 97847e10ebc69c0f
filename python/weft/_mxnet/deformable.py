"""Convolutions with windows displaced by offsets: Dai et al., ICCV 2017."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import Shapes
from weft._mxnet.regions import between
from weft._mxnet.settings import REQUIRED, Settings, choice, flag, integer, optional, shape
from weft._mxnet.shapes_of_windows import convolution, spread
from weft._numpy import namespace
from weft.errors import GraphError


def _inputs(s: Any) -> tuple[str, ...]:
    return ("data", "offset", "weight") if s.no_bias else ("data", "offset", "weight", "bias")


def _shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    plain = [0, *range(2, len(ins))]  # as of a convolution, but for the offsets
    own = Shapes([ins[at] for at in plain], "input")
    convolution(s, own, outs)
    for at, place in enumerate(plain):
        ins.learn(place, own[at])
    looks = 2 * math.prod(s.kernel) * s.num_deformable_group
    made = outs[0]
    ins.learn(1, (ins.length(0, 0), looks, *((None, None) if made is None else made[2:])))


@operator(
    "_contrib_DeformableConvolution",
    settings=Settings(
        ("workspace",),
        kernel=(shape, REQUIRED),
        stride=(shape, ()),
        dilate=(shape, ()),
        pad=(shape, ()),
        num_filter=(integer, REQUIRED),
        num_group=(integer, 1),
        num_deformable_group=(integer, 1),
        no_bias=(flag, False),
        layout=(optional(choice("NCHW")), None),
    ),
    inputs=_inputs,
    shapes=_shapes,
)
def _deformable(s: Any, data: Any, offset: Any, weight: Any, bias: Any = None) -> Any:
    batch, channels = data.shape[:2]
    groups, looks = s.num_deformable_group, math.prod(s.kernel)
    if channels % groups:
        raise GraphError(f"DeformableConvolution: {channels} channels do not divide into {groups} groups of offsets")
    height, width = offset.shape[2:]
    starts = [_starts(s, at, length) for at, length in enumerate((height, width))]
    rows = np.broadcast_to(starts[0][:, None, :, None], (*s.kernel, height, width)).reshape(looks, height, width)
    columns = np.broadcast_to(starts[1][None, :, None, :], (*s.kernel, height, width)).reshape(looks, height, width)
    moved = offset.reshape((batch, groups, looks, 2, height, width))
    y = moved[:, :, :, 0] + namespace.asarray(rows.astype(offset.dtype), engine=data.engine)
    x = moved[:, :, :, 1] + namespace.asarray(columns.astype(offset.dtype), engine=data.engine)
    at = namespace.arange(batch * groups, engine=data.engine)[:, None, None, None]
    each = channels // groups
    size = (batch * groups, looks, height, width)
    y, x = y.reshape(size), x.reshape(size)
    found = _at(data.reshape((batch * groups, each, *data.shape[2:])), namespace.broadcast_to(at, size), y, x)
    found = namespace.permute_dims(found, (0, 4, 1, 2, 3)).reshape((batch, channels, looks, height * width))
    parts = found.reshape((batch, s.num_group, channels // s.num_group * looks, height * width))
    filters = weight.reshape((s.num_group, s.num_filter // s.num_group, -1))
    made = (filters @ parts).reshape((batch, s.num_filter, height, width))
    return made if bias is None else made + bias.reshape((1, -1, 1, 1))


def _at(data: Any, which: Any, y: Any, x: Any) -> Any:
    """Return values between elements, those outside being 0: a border of zeros is added, which is looked at from outside."""
    height, width = data.shape[2:]
    bordered = namespace.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y, x = namespace.clip(y + 1, 0, height + 1), namespace.clip(x + 1, 0, width + 1)
    return between(bordered, which, y, x)


def _starts(s: Any, axis: int, length: int) -> Any:
    """Return where each element of the kernel looks first, for each window: (kernel, windows)."""
    stride, pad = spread(s.stride, 2, 1, "stride")[axis], spread(s.pad, 2, 0, "pad")[axis]
    dilate = spread(s.dilate, 2, 1, "dilate")[axis]
    return np.arange(s.kernel[axis])[:, None] * dilate + np.arange(length)[None, :] * stride - pad
