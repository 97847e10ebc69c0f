"""Boxes that a network proposes: the best anchors, moved by its offsets, without those that better ones cover."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import Settings, flag, integer, number, numbers
from weft._registry.avals import Aval
from weft._registry.op import register_op
from weft.errors import GraphError

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._mxnet.partial_shapes import Shapes

    _Numbers = npt.NDArray[Any]

_SETTINGS = Settings(
    rpn_pre_nms_top_n=(integer, 6000),
    rpn_post_nms_top_n=(integer, 300),
    threshold=(number, 0.7),
    rpn_min_size=(integer, 16),
    scales=(numbers, (4.0, 8.0, 16.0, 32.0)),
    ratios=(numbers, (0.5, 1.0, 2.0)),
    feature_stride=(integer, 16),
    output_score=(flag, False),
    iou_loss=(flag, False),
)


def _anchors(s: Any) -> _Numbers:
    """Return the corners of the anchors of the first place: of each ratio in each scale."""
    side = float(s.feature_stride)
    middle = 0.5 * (side - 1)
    found: list[tuple[float, ...]] = []
    for ratio in s.ratios:
        for scale in s.scales:
            wide = np.floor(np.sqrt(np.floor(side * side / ratio)) + 0.5) * scale
            high = np.floor(wide / scale * ratio + 0.5) * scale
            halves = 0.5 * (wide - 1), 0.5 * (high - 1)
            found.append((middle - halves[0], middle - halves[1], middle + halves[0], middle + halves[1]))
    return np.array(found, np.float32)


def _moved(boxes: _Numbers, offsets: _Numbers, *, by_corners: bool) -> _Numbers:
    if by_corners:
        return boxes + offsets
    sizes = boxes[:, 2:] - boxes[:, :2] + 1
    middles = boxes[:, :2] + 0.5 * (sizes - 1) + offsets[:, :2] * sizes
    halves = 0.5 * (np.exp(offsets[:, 2:]) * sizes - 1)
    return np.concatenate([middles - halves, middles + halves], axis=1)


def _kept(boxes: _Numbers, threshold: float, most: int) -> _Numbers:
    """Return the places of boxes, the best first, that no better one covers."""
    area = (boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1)
    is_open = np.ones(len(boxes), bool)
    kept: list[int] = []
    for at in range(len(boxes)):
        if len(kept) == most:
            break
        if not is_open[at]:
            continue
        kept.append(at)
        low = np.maximum(boxes[at, :2], boxes[at + 1 :, :2])
        high = np.minimum(boxes[at, 2:], boxes[at + 1 :, 2:])
        shared = np.prod(np.maximum(high - low + 1, 0), axis=1)
        is_open[at + 1 :] &= ~(shared / (area[at] + area[at + 1 :] - shared) > threshold)
    return np.array(kept)


def _of_one(s: Any, scores: _Numbers, offsets: _Numbers, info: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Return the proposals of one picture, and their scores."""
    count, height, width = scores.shape
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    shifts = np.stack([columns, rows, columns, rows], axis=-1).astype(np.float32) * s.feature_stride
    boxes = (shifts[:, :, None] + _anchors(s)).reshape((-1, 4))
    moves = offsets.reshape((count, 4, height, width)).transpose((2, 3, 0, 1)).reshape((-1, 4))
    boxes = _moved(boxes, moves, by_corners=s.iou_loss)
    boxes = np.clip(boxes, 0, np.array([info[1], info[0]] * 2, np.float32) - 1)
    found = scores.transpose((1, 2, 0)).astype(np.float32)
    found[int(info[0] / s.feature_stride) :] = -1
    found[:, int(info[1] / s.feature_stride) :] = -1
    found = found.reshape(-1)
    least = s.rpn_min_size * info[2]
    is_small = ((boxes[:, 2:] - boxes[:, :2] + 1) < least).any(axis=1)
    boxes[is_small] += np.array([-least / 2, -least / 2, least / 2, least / 2], np.float32)
    found[is_small] = -1
    most = min(s.rpn_pre_nms_top_n, len(found)) if s.rpn_pre_nms_top_n > 0 else len(found)
    order = np.argsort(-found, kind="stable")[:most]
    boxes, found = boxes[order], found[order]
    kept = np.resize(_kept(boxes, s.threshold, min(s.rpn_post_nms_top_n, most)), s.rpn_post_nms_top_n)
    return boxes[kept], found[kept]


def _infer(chances: Aval, offsets: Aval, info: Aval, *, settings: tuple[Any, ...]) -> tuple[Aval, Aval]:
    del offsets, info
    rows = chances.shape[0] * dict(settings)["rpn_post_nms_top_n"]
    return Aval((rows, 5), chances.dtype), Aval((rows, 1), chances.dtype)


@register_op("mxnet.proposals", infer=_infer, nout=2)
def _proposals(
    out: _Numbers,
    out_scores: _Numbers,
    chances: _Numbers,
    offsets: _Numbers,
    info: _Numbers,
    *,
    settings: tuple[Any, ...],
) -> None:
    s = SimpleNamespace(**dict(settings))
    most, anchors = s.rpn_post_nms_top_n, chances.shape[1] // 2
    for at in range(chances.shape[0]):
        boxes, scores = _of_one(s, chances[at, anchors:], offsets[at], info[at])
        rows = slice(at * most, (at + 1) * most)
        out[rows, 0], out[rows, 1:], out_scores[rows, 0] = at, boxes, scores


def _shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.learn(0, (None,) * 4)
    batch, channels = ins.length(0, 0), ins.length(0, 1)
    if channels is not None and channels != 2 * len(s.scales) * len(s.ratios):
        raise GraphError(
            f"Proposal: {len(s.scales)} scales and {len(s.ratios)} ratios are "
            f"{2 * len(s.scales) * len(s.ratios)} channels of chances, and {channels} were given"
        )
    ins.learn(1, (batch, None if channels is None else 2 * channels, ins.length(0, 2), ins.length(0, 3)))
    ins.learn(2, (batch, 3))
    rows = None if batch is None else batch * s.rpn_post_nms_top_n
    outs.learn(0, (rows, 5))
    outs.learn(1, (rows, 1))


def _register(name: str) -> None:
    @operator(
        name,
        settings=_SETTINGS,
        inputs=("cls_prob", "bbox_pred", "im_info"),
        outputs=2,
        visible=lambda s: 2 if s.output_score else 1,
        output_names=("output", "score"),
        shapes=_shapes,
        gradient=NONE,
    )
    def apply(s: Any, chances: Any, offsets: Any, info: Any) -> Any:
        if name == "_contrib_Proposal" and chances.shape[0] != 1:
            raise GraphError(f"Proposal takes one picture, and got {chances.shape[0]}: MultiProposal takes several")
        return _proposals(chances, offsets, info, settings=tuple(vars(s).items()))


for _name in ("_contrib_Proposal", "_contrib_MultiProposal"):
    _register(_name)
