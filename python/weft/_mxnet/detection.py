"""Boxes: priors around each place of a map, and their targets in training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import Settings, flag, number, numbers
from weft._numpy import namespace
from weft._registry.avals import Aval
from weft._registry.op import register_op
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._mxnet.partial_shapes import Shapes


def _prior_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    each = len(s.sizes) + len(s.ratios) - 1
    if known is not None:
        if len(known) != 4:  # (n, c, h, w)
            raise ShapeError(f"MultiBoxPrior takes data (n, c, h, w), and got {known}")
        height, width = known[2:]
        outs.learn(0, (1, None if height is None or width is None else height * width * each, 4))


def priors(s: Any, height: int, width: int) -> np.ndarray[Any, Any]:
    """Return the corners (left, top, right, bottom) of boxes around each place, in units of the picture.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from weft._mxnet.detection import priors
    >>> settings = SimpleNamespace(sizes=(0.5,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False)
    >>> priors(settings, 1, 1).tolist()
    [[0.25, 0.25, 0.75, 0.75]]
    """
    if min(s.steps) <= 0 and max(s.steps) > 0:
        raise GraphError(f"MultiBoxPrior: steps={s.steps} are both given, or both -1")
    down, right = (each if each > 0 else 1.0 / count for each, count in zip(s.steps, (height, width), strict=True))
    wide: list[float] = []
    high: list[float] = []
    for size in s.sizes:
        wide.append(size * height / width / 2)
        high.append(size / 2)
    for ratio in s.ratios[1:]:
        wide.append(s.sizes[0] * height / width * np.sqrt(ratio) / 2)
        high.append(s.sizes[0] / np.sqrt(ratio) / 2)
    x = ((np.arange(width) + s.offsets[1]) * right)[None, :, None]
    y = ((np.arange(height) + s.offsets[0]) * down)[:, None, None]
    halves = np.array(wide), np.array(high)
    corners = np.broadcast_arrays(x - halves[0], y - halves[1], x + halves[0], y + halves[1])
    found: np.ndarray[Any, Any] = np.stack(corners, axis=-1).reshape(-1, 4)
    if s.clip:
        found = found.clip(0.0, 1.0)
    return found


@operator(
    "_contrib_MultiBoxPrior",
    "MultiBoxPrior",
    "_npx_multibox_prior",
    settings=Settings(
        sizes=(numbers, (1.0,)),
        ratios=(numbers, (1.0,)),
        clip=(flag, False),
        steps=(numbers, (-1.0, -1.0)),
        offsets=(numbers, (0.5, 0.5)),
    ),
    shapes=_prior_shapes,
    gradient=NONE,
)
def _prior(s: Any, data: Any) -> Any:
    found = priors(s, *data.shape[2:]).astype(data.dtype)[None]
    return namespace.asarray(found, engine=data.engine)


def _overlaps(boxes: Elements, others: Elements) -> Elements:
    """Return the quotient of intersection and union, for each box and each other one."""
    least = np.maximum(boxes[:, None, :2], others[None, :, :2])
    most = np.minimum(boxes[:, None, 2:4], others[None, :, 2:4])
    shared = np.prod(np.maximum(most - least, 0), axis=-1)
    area = np.prod(boxes[:, 2:4] - boxes[:, :2], axis=-1)[:, None] + np.prod(others[:, 2:4] - others[:, :2], axis=-1)
    union = area - shared
    found: Elements = np.where(union > 0, shared / np.where(union > 0, union, 1), 0)
    return found


def _matched(overlaps: Elements, threshold: float) -> tuple[Elements, Elements]:
    """Return which box of the truth each anchor gets, and which anchors have one for certain.

    First each box takes the anchor that it overlaps most, the best pair of all first; then anchors take boxes.
    """
    of, sure = overlaps.argmax(axis=1), np.zeros(len(overlaps), bool)
    open_pairs = overlaps.copy()
    for _ in range(overlaps.shape[1]):
        at, box = np.unravel_index(open_pairs.argmax(), overlaps.shape)
        if open_pairs[at, box] <= 1e-6:  # MXNet's
            break
        of[at], sure[at] = box, True
        open_pairs[at, :] = open_pairs[:, box] = -1
    if threshold > 0:
        sure |= overlaps.max(axis=1) > threshold
    return of, sure


def _mined(s: Any, sure: Elements, overlaps: Elements, scores: Elements) -> Elements:
    """Return the anchors that count as background: those of all that are most surely taken for something else."""
    count = min(int(sure.sum() * s.negative_mining_ratio), len(sure) - int(sure.sum()))
    open_ = ~sure & (overlaps.max(axis=1) < s.negative_mining_thresh)
    powers = np.exp(scores - scores.max(axis=0))
    background = powers[0] / powers.sum(axis=0)
    order = np.flatnonzero(open_)[np.argsort(background[open_], kind="stable")]
    found = np.zeros(len(sure), bool)
    found[order[:count]] = True
    return found


def _offsets(anchors: Elements, boxes: Elements, variances: tuple[float, ...]) -> Elements:
    """Return by how much centres and sizes of boxes differ from those of anchors."""
    sizes, wanted = anchors[:, 2:] - anchors[:, :2], boxes[:, 2:] - boxes[:, :2]
    centres: Elements = (boxes[:, :2] + boxes[:, 2:] - anchors[:, :2] - anchors[:, 2:]) / 2
    found: Elements = np.concatenate([centres / sizes, np.log(wanted / sizes)], axis=1) / np.array(variances)
    return found


def _infer_targets(anchors: Aval, labels: Aval, scores: Aval, **settings: Any) -> tuple[Aval, Aval, Aval]:
    del labels, settings
    batch, count = scores.shape[0], anchors.shape[1]
    boxes = Aval((batch, 4 * count), anchors.dtype)
    return boxes, boxes, Aval((batch, count), anchors.dtype)


@register_op("mxnet.box_targets", infer=_infer_targets, nout=3)
def _box_targets(
    offsets: Elements,
    mask: Elements,
    classes: Elements,
    anchors: Elements,
    labels: Elements,
    scores: Elements,
    *,
    settings: tuple[Any, ...],
) -> None:
    s = SimpleNamespace(**dict(settings))
    offsets.fill(0)
    mask.fill(0)
    classes.fill(s.ignore_label)
    known = anchors.reshape(-1, 4)
    for at, rows in enumerate(labels):
        ends = np.flatnonzero(rows[:, 0] == -1)
        truth = rows[: ends[0]] if len(ends) else rows
        if not len(truth):
            continue
        overlaps = _overlaps(known, truth[:, 1:5])
        of, sure = _matched(overlaps, s.overlap_threshold)
        mined = s.negative_mining_ratio > 0
        classes[at, _mined(s, sure, overlaps, scores[at]) if mined else ~sure] = 0
        classes[at, sure] = truth[of[sure], 0] + 1
        mask[at].reshape(-1, 4)[sure] = 1
        offsets[at].reshape(-1, 4)[sure] = _offsets(known[sure], truth[of[sure], 1:5], s.variances)


_box_targets.set_attribute("gradient_reads", None)


def _target_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    count = ins.length(0, 1) or ins.length(2, 2)
    batch = ins.length(1, 0) or ins.length(2, 0)
    ins.learn(0, (1, count, 4))
    ins.learn(1, (batch, None, None))
    ins.learn(2, (batch, None, count))
    whole = None if count is None else 4 * count
    for at, each in enumerate((whole, whole, count)):
        outs.learn(at, (batch, each))


@operator(
    "_contrib_MultiBoxTarget",
    "MultiBoxTarget",
    "_npx_multibox_target",
    settings=Settings(
        ("minimum_negative_samples",),
        overlap_threshold=(number, 0.5),
        ignore_label=(number, -1.0),
        negative_mining_ratio=(number, -1.0),
        negative_mining_thresh=(number, 0.5),
        variances=(numbers, (0.1, 0.1, 0.2, 0.2)),
    ),
    inputs=("anchor", "label", "cls_pred"),
    outputs=3,
    output_names=("loc_target", "loc_mask", "cls_target"),
    shapes=_target_shapes,
    gradient=NONE,
)
def _target(s: Any, anchors: Any, labels: Any, scores: Any) -> Any:
    given = cast("dict[str, Any]", vars(s))
    return _box_targets(anchors, labels, scores, settings=tuple(given.items()))
