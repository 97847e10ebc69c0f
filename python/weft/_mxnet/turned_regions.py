"""Regions with channels of their own for each part, and regions that are turned."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.operator import operator
from weft._mxnet.regions import between, numbers_like, rounded
from weft._mxnet.settings import REQUIRED, Settings, integer, number, shape
from weft._numpy import namespace
from weft._tape.leaves import stop_gradient
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes


def _groups(s: Any) -> int:
    return int(s.group_size or s.pooled_size)


def _sensitive_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.learn(0, (None, s.output_dim * _groups(s) ** 2, None, None))
    ins.learn(1, (None, 5))
    outs.learn(0, (ins.length(1, 0), s.output_dim, s.pooled_size, s.pooled_size))


def _parts(first: Any, last: Any, count: int, length: int) -> Any:
    """Return for each region and part which elements are in it, as numbers."""
    bins = namespace.maximum(last - first, 0.1) / count
    at = numbers_like(count, first)
    low = namespace.clip(namespace.floor(at * bins[:, None] + first[:, None]), 0, length)
    high = namespace.clip(namespace.ceil((at + 1) * bins[:, None] + first[:, None]), 0, length)
    places = numbers_like(length, first)
    return namespace.astype((places >= low[..., None]) & (places < high[..., None]), first.dtype)


@operator(
    "_contrib_PSROIPooling",
    settings=Settings(
        spatial_scale=(number, REQUIRED),
        output_dim=(integer, REQUIRED),
        pooled_size=(integer, REQUIRED),
        group_size=(integer, 0),
    ),
    inputs=("data", "rois"),
    shapes=_sensitive_shapes,
)
def _sensitive(s: Any, data: Any, rois: Any) -> Any:
    """Return means of parts; each part looks at channels of its own: Dai et al., NIPS 2016."""
    count, groups = s.pooled_size, _groups(s)
    rois = stop_gradient(rois)  # as in MXNet
    ends = [rounded(rois[:, at]) + (1 if at > 2 else 0) for at in range(1, 5)]
    left, top, right, bottom = (each * s.spatial_scale for each in ends)
    rows = _parts(top, bottom, count, data.shape[2])
    columns = _parts(left, right, count, data.shape[3])
    which = namespace.astype(rois[:, 0], "int64")
    x = data.reshape((data.shape[0], s.output_dim, groups, groups, *data.shape[2:]))[which]
    found: list[Any] = []
    for i in range(count):
        for j in range(count):
            part = x[:, :, i * groups // count, j * groups // count]
            down, right_ = rows[:, i], columns[:, j]
            total = namespace.sum(part * down[:, None, :, None] * right_[:, None, None, :], axis=(2, 3))
            size = (namespace.sum(down, axis=-1) * namespace.sum(right_, axis=-1))[:, None]
            found.append(namespace.where(size > 0, total / namespace.maximum(size, 1.0), 0.0))
    return namespace.stack(found, axis=-1).reshape((rois.shape[0], s.output_dim, count, count))


def _turned_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.learn(0, (None,) * 4)
    ins.learn(1, (None, 6))
    if len(s.pooled_size) != 2:
        raise ShapeError(f"RROIAlign: pooled_size=(height, width) is taken, and {s.pooled_size} was given")
    outs.learn(0, (ins.length(1, 0), ins.length(0, 1), *s.pooled_size))


def _looks(s: Any, size: Any, axis: int, length: int) -> tuple[Any, Any]:
    """Return where parts of regions are looked at, from their middle on, and by how much each look counts."""
    count = s.pooled_size[axis]
    bins = (size / count)[:, None, None]
    if s.sampling_ratio > 0:
        looks, most = namespace.full_like(bins, s.sampling_ratio), s.sampling_ratio
    else:
        most = -(-2 * length // count) + 1
        looks = namespace.clip(namespace.ceil(bins), 1.0, float(most))
    at = numbers_like(most, size)[None, None, :]
    parts = numbers_like(count, size)[None, :, None]
    places = -size[:, None, None] / 2 + parts * bins + (at + 0.5) * bins / looks
    return places, namespace.astype(at < looks, size.dtype) / looks


@operator(
    "_contrib_RROIAlign",
    settings=Settings(pooled_size=(shape, REQUIRED), spatial_scale=(number, REQUIRED), sampling_ratio=(integer, -1)),
    inputs=("data", "rois"),
    shapes=_turned_shapes,
)
def _turned(s: Any, data: Any, rois: Any) -> Any:
    """Return means between elements of regions (x, y, width, height, degrees) that are turned about their middle."""
    rois = stop_gradient(rois)
    x, y, wide, high = (rois[:, at] * s.spatial_scale for at in range(1, 5))
    angle = rois[:, 5] * (namespace.pi / 180)
    down, by_down = _looks(s, namespace.maximum(high, 1.0), 0, data.shape[2])
    right, by_right = _looks(s, namespace.maximum(wide, 1.0), 1, data.shape[3])
    yy, xx = down[:, :, :, None, None], right[:, None, None, :, :]
    cos, sin, x, y = (each[:, None, None, None, None] for each in (namespace.cos(angle), namespace.sin(angle), x, y))
    columns, rows = xx * cos + yy * sin + x, yy * cos - xx * sin + y
    which = namespace.broadcast_to(namespace.astype(rois[:, 0], "int64")[:, None, None, None, None], rows.shape)
    found = (
        between(data, which, rows, columns) * by_down[:, :, :, None, None, None] * by_right[:, None, None, :, :, None]
    )
    return namespace.permute_dims(namespace.sum(found, axis=(2, 4)), (0, 3, 1, 2))
