"""Rows and columns that belong together, by their scores: the best pair first, each in one pair at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, flag, integer, number
from weft._registry.avals import Aval
from weft._registry.op import register_op
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._mxnet.partial_shapes import Shapes


def _of_matrices(shape: Any) -> Any:
    if len(shape) < 2:  # rows and columns
        raise ShapeError(f"_contrib_bipartite_matching takes scores (..., rows, columns), and got {shape}")
    return shape


def _infer_matches(scores: Aval, **settings: Any) -> tuple[Aval, Aval]:
    del settings
    *lead, rows, columns = _of_matrices(scores.shape)
    return Aval((*lead, rows), scores.dtype), Aval((*lead, columns), scores.dtype)


@register_op("mxnet.matches", infer=_infer_matches, nout=2)
def _matches(
    of_rows: Elements, of_columns: Elements, scores: Elements, *, ascending: bool, threshold: float, most: int
) -> None:
    """Write the column of each row and the row of each column; -1 where there is none."""
    of_rows[...], of_columns[...] = -1, -1
    rows, columns = scores.shape[-2:]
    parts = of_rows.reshape(-1, rows), of_columns.reshape(-1, columns), scores.reshape(-1, rows * columns)
    for own, others, given in zip(*parts, strict=True):
        good = given < threshold if ascending else given > threshold
        order = np.argsort(given if ascending else -given, kind="stable")
        made = 0
        for at in order[good[order]]:
            row, column = divmod(int(at), columns)
            if own[row] != -1 or others[column] != -1:
                continue
            own[row], others[column] = column, row
            made += 1
            if 0 < most < made:  # MXNet looks after it has made the pair, so one more than `topk` is made
                break


_matches.set_attribute("gradient_reads", None)


def _match_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    if ins[0] is not None:
        *lead, rows, columns = _of_matrices(ins[0])
        outs.learn(0, (*lead, rows))
        outs.learn(1, (*lead, columns))


@operator(
    "_contrib_bipartite_matching",
    "_npx_bipartite_matching",
    settings=Settings(is_ascend=(flag, False), threshold=(number, REQUIRED), topk=(integer, -1)),
    outputs=2,
    shapes=_match_shapes,
    gradient=NONE,
)
def _bipartite_matching(s: Any, data: Any) -> Any:
    return _matches(data, ascending=s.is_ascend, threshold=s.threshold, most=s.topk)
