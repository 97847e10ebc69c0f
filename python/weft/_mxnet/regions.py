"""Regions of pictures: pooled, by whole elements or between them; boxes encoded beside anchors."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, choice, flag, integer, number, shape
from weft._numpy import namespace
from weft._tape.leaves import stop_gradient
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Dtypes, Shapes


def _region_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    data, rois = ins[0], ins[1]
    for at, rank in ((0, 4), (1, 2)):
        known = ins[at]
        if known is not None and len(known) != rank:
            raise ShapeError(f"data (n, c, h, w) and rois (r, 5) are taken, and got {data} and {rois}")
    ins.learn(1, (None, 5))
    outs.learn(0, (ins.length(1, 0), ins.length(0, 1), *s.pooled_size))


def numbers_like(length: int, like: Any) -> Any:
    """Return numbers from 0 on, of the dtype and on the engine of an array."""
    return namespace.arange(length, dtype=like.dtype, engine=like.engine)


def rounded(x: Any) -> Any:
    """Return the nearest integers; halves go away from 0, as in C."""
    return namespace.sign(x) * namespace.floor(abs(x) + 0.5)


def _inside(first: Any, last: Any, count: int, length: int) -> Any:
    """Return for each region and part whether an element is in it."""
    bins = namespace.maximum(last - first + 1, 1.0) / count
    parts = numbers_like(count, first)
    low = namespace.clip(namespace.floor(parts * bins[:, None]) + first[:, None], 0, length)
    high = namespace.clip(namespace.ceil((parts + 1) * bins[:, None]) + first[:, None], 0, length)
    at = numbers_like(length, first)
    return (at >= low[..., None]) & (at < high[..., None])


@operator(
    "ROIPooling",
    settings=Settings(pooled_size=(shape, REQUIRED), spatial_scale=(number, REQUIRED)),
    inputs=("data", "rois"),
    shapes=_region_shapes,
)
def _roi_pooling(s: Any, data: Any, rois: Any) -> Any:
    height, width = s.pooled_size
    rois = stop_gradient(rois)  # as in MXNet
    which = namespace.astype(rois[:, 0], "int64")
    is_there = ((which >= 0) & (which < data.shape[0]))[:, None, None, None]
    x = data[namespace.clip(which, 0, data.shape[0] - 1)]
    ends = rounded(rois[:, 1:] * s.spatial_scale)
    rows = _inside(ends[:, 1], ends[:, 3], height, data.shape[2])
    columns = _inside(ends[:, 0], ends[:, 2], width, data.shape[3])
    least = float("-inf")
    # The largest of each column's part first, one part after another: a mask of all at once takes parts times as much.
    found = [namespace.max(namespace.where(columns[:, None, None, at], x, least), axis=3) for at in range(width)]
    x = namespace.stack(found, axis=3)
    found = [namespace.max(namespace.where(rows[:, None, at, :, None], x, least), axis=2) for at in range(height)]
    x = namespace.stack(found, axis=2)
    return namespace.where((x == least) | ~is_there, 0.0, x)


def between(data: Any, which: Any, y: Any, x: Any) -> Any:
    """Return values between elements of pictures (n, c, h, w), channels last: 0 where `y` or `x` is outside by 1 or more."""
    height, width = data.shape[2:]
    is_out = (y < -1.0) | (y > height) | (x < -1.0) | (x > width)
    y, x = namespace.clip(y, 0, height - 1), namespace.clip(x, 0, width - 1)
    found = _corners(namespace.permute_dims(data, (0, 2, 3, 1)), which, y, x)
    return namespace.where(is_out[..., None], 0.0, found)


def _corners(last: Any, which: Any, y: Any, x: Any) -> Any:
    """Return the sum of the four elements around each place, by how near they are."""
    height, width = last.shape[1:3]
    low_y, low_x = namespace.floor(y), namespace.floor(x)
    part_y, part_x = (y - low_y)[..., None], (x - low_x)[..., None]
    top, left = namespace.astype(low_y, "int64"), namespace.astype(low_x, "int64")
    bottom, right = namespace.minimum(top + 1, height - 1), namespace.minimum(left + 1, width - 1)
    upper = last[which, top, left] * (1.0 - part_x) + last[which, top, right] * part_x
    lower = last[which, bottom, left] * (1.0 - part_x) + last[which, bottom, right] * part_x
    return upper * (1.0 - part_y) + lower * part_y


def _align_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    if not s.position_sensitive:
        _region_shapes(s, ins, outs)
        return
    parts, channels = s.pooled_size[0] * s.pooled_size[1], ins.length(0, 1)
    if channels is not None and channels % parts:
        raise ShapeError(f"ROIAlign: {channels} channels do not divide among {parts} parts")
    ins.learn_rank(0, 4)
    ins.learn(1, (None, 5))
    outs.learn(0, (ins.length(1, 0), None if channels is None else channels // parts, *s.pooled_size))


@operator(
    "_contrib_ROIAlign",
    settings=Settings(
        pooled_size=(shape, REQUIRED),
        spatial_scale=(number, REQUIRED),
        sample_ratio=(integer, -1),
        position_sensitive=(flag, False),
        aligned=(flag, False),
    ),
    inputs=("data", "rois"),
    shapes=_align_shapes,
)
def _roi_align(s: Any, data: Any, rois: Any) -> Any:
    count = data.shape[0]
    rois = stop_gradient(rois)  # as in MXNet
    which = namespace.astype(rois[:, 0], "int64")
    ends = rois[:, 1:] * s.spatial_scale - (0.5 if s.aligned else 0.0)
    axes = [_samples(s, ends[:, 1], ends[:, 3], 0, data), _samples(s, ends[:, 0], ends[:, 2], 1, data)]
    (y, by_y), (x, by_x) = axes  # (r, parts, samples) and weights that sum to 1
    at = namespace.clip(which, 0, count - 1)[:, None, None, None, None]
    shape_ = (y.shape[0], y.shape[1], y.shape[2], x.shape[1], x.shape[2])
    rows = namespace.broadcast_to(y[:, :, :, None, None], shape_)
    columns = namespace.broadcast_to(x[:, None, None, :, :], shape_)
    found = between(data, namespace.broadcast_to(at, shape_), rows, columns)
    found = found * by_y[:, :, :, None, None, None] * by_x[:, None, None, :, :, None]
    found = namespace.permute_dims(namespace.sum(found, axis=(2, 4)), (0, 3, 1, 2))
    if s.position_sensitive:  # each part looks at channels of its own
        parts = s.pooled_size[0] * s.pooled_size[1]
        own = found.reshape((found.shape[0], found.shape[1] // parts, parts, parts))
        found = namespace.diagonal(own, 0, 2, 3).reshape((*own.shape[:2], *s.pooled_size))
    return namespace.where((which >= 0)[:, None, None, None], found, 0.0)


def _samples(s: Any, first: Any, last: Any, axis: int, data: Any) -> tuple[Any, Any]:
    """Return where each part of each region is looked at along an axis, and by how much each look counts."""
    count = s.pooled_size[axis]
    size = last - first if s.aligned else namespace.maximum(last - first, 1.0)
    bins = (size / count)[:, None, None]
    parts = numbers_like(count, first)[None, :, None]
    if s.sample_ratio > 0:
        looks, most = namespace.full_like(first, s.sample_ratio)[:, None, None], s.sample_ratio
    else:  # as many as the part has elements: no region is larger than the picture, as far as it counts
        looks, most = namespace.maximum(namespace.ceil(bins), 1.0), -(-data.shape[2 + axis] // count) + 1
        looks = namespace.minimum(looks, float(most))
    at = numbers_like(most, first)[None, None, :]
    places = first[:, None, None] + parts * bins + (at + 0.5) * bins / looks
    return places, namespace.astype(at < looks, first.dtype) / looks


def _corner_form(boxes: Any, kind: str) -> tuple[Any, ...]:
    a, b, c, d = (boxes[..., at] for at in range(4))
    return (a, b, c, d) if kind == "corner" else (a - c / 2, b - d / 2, a + c / 2, b + d / 2)


def _iou_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    one, other = ins[0], ins[1]
    if one is not None and other is not None:
        outs.learn(0, (*one[:-1], *other[:-1]))


@operator(
    "_contrib_box_iou",
    settings=Settings(format=(choice("corner", "center"), "corner")),
    inputs=("lhs", "rhs"),
    shapes=_iou_shapes,
    gradient=NONE,
)
def _box_iou(s: Any, one: Any, other: Any) -> Any:
    lead, rest = one.shape[:-1], other.shape[:-1]
    a = [each.reshape((*lead, *(1,) * len(rest))) for each in _corner_form(one, s.format)]
    b = _corner_form(other, s.format)
    wide = namespace.minimum(a[2], b[2]) - namespace.maximum(a[0], b[0])
    high = namespace.minimum(a[3], b[3]) - namespace.maximum(a[1], b[1])
    shared = namespace.maximum(wide, 0.0) * namespace.maximum(high, 0.0)
    sizes = [(each[2] - each[0]) * (each[3] - each[1]) for each in (a, b)]
    total = sizes[0] + sizes[1] - shared
    return namespace.where(total > 0, shared / namespace.where(total > 0, total, 1.0), 0.0)


def _encode_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = ins[0]
    if known is not None:
        for at in range(2):
            outs.learn(at, (*known, 4))


def _encode_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s
    ins.alike(outs)


@operator(
    "_contrib_box_encode",
    inputs=("samples", "matches", "anchors", "refs", "means", "stds"),
    outputs=2,
    shapes=_encode_shapes,
    dtypes=_encode_dtypes,
    gradient=NONE,
)
def _box_encode(s: Any, samples: Any, matches: Any, anchors: Any, refs: Any, means: Any, stds: Any) -> Any:
    del s
    rows = namespace.astype(matches, "int64")[..., None]
    chosen = namespace.take_along_axis(refs, namespace.broadcast_to(rows, (*matches.shape, 4)), axis=1)
    x, y, wide, high = _centres(chosen)
    own_x, own_y, own_wide, own_high = _centres(anchors)
    found = namespace.stack(
        [
            (x - own_x) / own_wide,
            (y - own_y) / own_high,
            namespace.log(wide / own_wide),
            namespace.log(high / own_high),
        ],
        axis=-1,
    )
    counts = namespace.broadcast_to((samples > 0.5)[..., None], found.shape)
    return namespace.where(counts, (found - means) / stds, 0.0), namespace.astype(counts, samples.dtype)


def _centres(boxes: Any) -> tuple[Any, ...]:
    a, b, c, d = (boxes[..., at] for at in range(4))
    return (a + c) / 2, (b + d) / 2, c - a, d - b


@operator(
    "_contrib_box_decode",
    settings=Settings(
        std0=(number, 1.0),
        std1=(number, 1.0),
        std2=(number, 1.0),
        std3=(number, 1.0),
        clip=(number, -1.0),
        format=(choice("corner", "center"), "center"),
    ),
    inputs=("data", "anchors"),
    shapes=lambda s, ins, outs: ins.alike(outs, [0], [0]),
    gradient=NONE,
)
def _box_decode(s: Any, data: Any, anchors: Any) -> Any:
    x, y, wide, high = (anchors[..., at] for at in range(4)) if s.format == "center" else _centres(anchors)
    logs = [data[..., 2] * s.std2, data[..., 3] * s.std3]
    if s.clip > 0:
        logs = [namespace.minimum(each, s.clip) for each in logs]
    halves = namespace.exp(logs[0]) * wide * 0.5, namespace.exp(logs[1]) * high * 0.5
    x, y = data[..., 0] * s.std0 * wide + x, data[..., 1] * s.std1 * high + y
    return namespace.stack([x - halves[0], y - halves[1], x + halves[0], y + halves[1]], axis=-1)
