"""Boxes that a network has found: decoded, sorted by their scores, and without those that others cover."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import Settings, choice, flag, integer, number, numbers
from weft._registry.avals import Aval
from weft._registry.op import register_op
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._mxnet.partial_shapes import Lengths, Shapes

_CORNERS, _ROW = 4, 6  # numbers of a box; class, score and box


def _settings_of(s: Any) -> tuple[Any, ...]:
    given = cast("dict[str, Any]", vars(s))
    return tuple(given.items())


def _area(boxes: Elements) -> Elements:
    sizes = boxes[..., 2:] - boxes[..., :2]
    found: Elements = np.where((sizes < 0).any(axis=-1), 0, sizes[..., 0] * sizes[..., 1])
    return found


def _covered(box: Elements, others: Elements, *, signed: bool) -> Elements:
    """Return the quotient of intersection and union of one box with each other one."""
    sizes = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0)
    shared = sizes[:, 0] * sizes[:, 1]
    areas = [np.prod(each[..., 2:] - each[..., :2], axis=-1) if signed else _area(each) for each in (box, others)]
    union = areas[0] + areas[1] - shared
    found: Elements = np.where(union > 0, shared / np.where(union > 0, union, 1), 0)
    return found


def _decoded(anchors: Elements, offsets: Elements, variances: tuple[float, ...], *, clip: bool) -> Elements:
    """Return the corners of boxes with centres and sizes that differ so from those of anchors."""
    sizes, centres = anchors[:, 2:] - anchors[:, :2], (anchors[:, :2] + anchors[:, 2:]) / 2
    scaled = offsets * np.asarray(variances, offsets.dtype)
    centres = scaled[:, :2] * sizes + centres
    halves = np.exp(scaled[:, 2:]) * sizes / 2
    found: Elements = np.concatenate([centres - halves, centres + halves], axis=1)
    return found.clip(0, 1) if clip else found


def _infer_detections(chances: Aval, offsets: Aval, anchors: Aval, **settings: Any) -> Aval:
    del offsets, settings
    return Aval((chances.shape[0], anchors.shape[1], _ROW), chances.dtype)


@register_op("mxnet.box_detections", infer=_infer_detections)
def _box_detections(
    out: Elements, chances: Elements, offsets: Elements, anchors: Elements, *, settings: tuple[Any, ...]
) -> None:
    s = SimpleNamespace(**dict(settings))
    out.fill(-1)
    known = anchors.reshape(-1, _CORNERS)
    for rows, scores, moved in zip(out, chances, offsets, strict=True):
        best = scores[1:].max(axis=0, initial=-1)
        kept = np.flatnonzero(best >= s.threshold)
        if not len(kept):
            continue
        found = np.empty((len(kept), _ROW), out.dtype)
        found[:, 0], found[:, 1] = scores[1:, kept].argmax(axis=0), best[kept]
        found[:, 2:] = _decoded(known[kept], moved.reshape(-1, _CORNERS)[kept], s.variances, clip=s.clip)
        if 0 < s.nms_threshold <= 1:
            # Rows behind the best `nms_topk` stay where they were, without a class, as MXNet has it.
            order = np.argsort(-found[:, 1], kind="stable")[: s.nms_topk if s.nms_topk > 0 else None]
            found[: len(order)] = found[order]
            found[len(order) :, 0] = -1
            _suppress(found, s)
        rows[: len(found)] = found


def _suppress(found: Elements, s: Any) -> None:
    """Give the class -1 to each row that one before it covers."""
    for at in range(len(found) - 1):
        row, later = found[at], found[at + 1 :]
        if row[0] < 0:
            continue
        rivals = (later[:, 0] >= 0) & (s.force_suppress | (later[:, 0] == row[0]))
        later[rivals & (_covered(row[2:], later[:, 2:], signed=True) >= s.nms_threshold), 0] = -1


_box_detections.set_attribute("gradient_reads", None)


def _detection_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    batch, count = ins.length(0, 0) or ins.length(1, 0), ins.length(0, 2) or ins.length(2, 1)
    ins.learn(0, (batch, None, count))
    ins.learn(1, (batch, None if count is None else _CORNERS * count))
    ins.learn(2, (1, count, _CORNERS))
    outs.learn(0, (batch, count, _ROW))


@operator(
    "_contrib_MultiBoxDetection",
    "MultiBoxDetection",
    "_npx_multibox_detection",
    settings=Settings(
        ("background_id",),
        clip=(flag, True),
        threshold=(number, 0.01),
        nms_threshold=(number, 0.5),
        force_suppress=(flag, False),
        variances=(numbers, (0.1, 0.1, 0.2, 0.2)),
        nms_topk=(integer, -1),
    ),
    inputs=("cls_prob", "loc_pred", "anchor"),
    shapes=_detection_shapes,
    gradient=NONE,
)
def _detection(s: Any, chances: Any, offsets: Any, anchors: Any) -> Any:
    return _box_detections(chances, offsets, anchors, settings=_settings_of(s))


def _infer_nms(data: Aval, **settings: Any) -> tuple[Aval, Aval]:
    del settings
    return data, Aval((*data.shape[:-1], 1), data.dtype)


def _other_format(boxes: Elements, wanted: str) -> Elements:
    """Return boxes as corners, or as centres and sizes; rows of -1 stay."""
    first, second = boxes[:, :2], boxes[:, 2:]
    halves = second / 2
    pair = (first - halves, first + halves) if wanted == "corner" else ((first + second) / 2, second - first)
    found: Elements = np.where(boxes[:, :1] < 0, boxes, np.concatenate(pair, axis=1))
    return found


@register_op("mxnet.box_nms", infer=_infer_nms, nout=2)
def _box_nms(out: Elements, record: Elements, data: Elements, *, settings: tuple[Any, ...]) -> None:
    """Write the rows that no better one covers, the best first, and the numbers of these rows; -1 elsewhere."""
    s = SimpleNamespace(**dict(settings))
    count, wide = data.shape[-2:]
    records = record.reshape(-1, count)
    place = slice(s.coord_start, s.coord_start + _CORNERS)
    for at, (rows, given) in enumerate(zip(out.reshape(-1, count, wide), data.reshape(-1, count, wide), strict=True)):
        if s.topk == 0:
            rows[...], records[at] = given, np.arange(at * count, (at + 1) * count)
        else:
            kept = _kept(given, place, s)
            rows[...], records[at] = -1, -1
            rows[: len(kept)], records[at, : len(kept)] = given[kept], np.asarray(kept) + at * count
        if s.in_format != s.out_format:
            rows[:, place] = _other_format(rows[:, place], s.out_format)


def _kept(given: Elements, place: slice, s: Any) -> list[int]:
    """Return the numbers of the rows that stay, the best first."""
    scores = given[:, s.score_index]
    valid = scores > s.valid_thresh
    if s.id_index >= 0 and s.background_id >= 0:
        valid &= given[:, s.id_index] != s.background_id
    order = np.flatnonzero(valid)
    order = order[np.argsort(-scores[order], kind="stable")][: s.topk if s.topk > 0 else None]
    boxes = given[order, place]
    if s.in_format == "center":
        halves = boxes[:, 2:] / 2
        boxes = np.concatenate([boxes[:, :2] - halves, boxes[:, :2] + halves], axis=1)
    kinds = None if s.id_index < 0 or s.force_suppress else given[order, s.id_index]
    left = np.ones(len(order), bool)
    for at in range(len(order)):
        if left[at]:
            later = slice(at + 1, None)
            rivals = True if kinds is None else kinds[later] == kinds[at]
            left[later] &= ~(rivals & (_covered(boxes[at], boxes[later], signed=False) > s.overlap_thresh))
    found: list[int] = order[left].tolist()
    return found


_box_nms.set_attribute("gradient_reads", None)


def _nms_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known: Lengths | None = ins[0]
    if known is None:
        return
    if len(known) < 2:  # rows of boxes
        raise ShapeError(f"_contrib_box_nms takes data (..., boxes, numbers), and got {known}")
    wide = known[-1]
    last = max(s.coord_start + _CORNERS - 1, s.score_index, s.id_index)
    if wide is not None and last >= wide:
        raise ShapeError(f"_contrib_box_nms: rows of {wide} numbers have none at {last}, of data of shape {known}")
    outs.learn(0, known)
    outs.learn(1, (*known[:-1], 1))


_FORMATS = choice("corner", "center")


@operator(
    "_contrib_box_nms",
    "_contrib_box_non_maximum_suppression",
    "_npx_box_nms",
    settings=Settings(
        overlap_thresh=(number, 0.5),
        valid_thresh=(number, 0.0),
        topk=(integer, -1),
        coord_start=(integer, 2),
        score_index=(integer, 1),
        id_index=(integer, -1),
        background_id=(integer, -1),
        force_suppress=(flag, False),
        in_format=(_FORMATS, "corner"),
        out_format=(_FORMATS, "corner"),
    ),
    outputs=2,
    visible=1,
    shapes=_nms_shapes,
    gradient=NONE,
)
def _nms(s: Any, data: Any) -> Any:
    return _box_nms(data, settings=_settings_of(s))
