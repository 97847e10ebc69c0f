"""Elements that indices choose, and indices as rows of ones."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import data_dtype, own_dtype, place
from weft._mxnet.settings import REQUIRED, Settings, choice, dtype, flag, integer, number
from weft._numpy import namespace
from weft._registry.avals import as_dtype

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes


def _take_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known, at = ins[0], ins[1]
    if known is not None and at is not None:
        axis = place(s.axis, len(known))
        outs.learn(0, (*known[:axis], *at, *known[axis + 1 :]))


@operator(
    "take",
    "_npi_take",
    settings=Settings(axis=(integer, 0), mode=(choice("clip", "wrap", "raise"), "clip")),
    inputs=("a", "indices"),
    shapes=_take_shapes,
    dtypes=data_dtype,
)
def _take(s: Any, data: Any, indices: Any) -> Any:
    rows = namespace.astype(indices, "int64")
    # weft's take raises when it runs, if an index is out of bounds; a negative one is, too.
    rows = _beyond(rows, data.shape[s.axis]) if s.mode == "raise" else _inside(rows, data.shape[s.axis], s.mode)
    return namespace.take(data, rows, axis=s.axis)


def _inside(rows: Any, length: int, mode: str) -> Any:
    """Return indices that all name an element."""
    return rows % length if mode == "wrap" else namespace.clip(rows, 0, length - 1)


def _beyond(rows: Any, length: int) -> Any:
    """Return indices that do not count from the end: a negative one is beyond it, where nothing is."""
    return namespace.where(rows < 0, length, rows)


def _pick_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    at = place(s.axis, len(known))
    rest = (*known[:at], *known[at + 1 :])
    kept = (*known[:at], 1, *known[at + 1 :])
    outs.learn(0, kept if s.keepdims else rest)
    index = ins[1]
    if index is None or len(index) == len(rest):
        ins.learn(1, rest)
    else:
        ins.learn(1, kept)


@operator(
    "pick",
    "_npx_pick",
    settings=Settings(axis=(integer, -1), keepdims=(flag, False), mode=(choice("clip", "wrap"), "clip")),
    inputs=("data", "index"),
    shapes=_pick_shapes,
    dtypes=data_dtype,
)
def _pick(s: Any, data: Any, index: Any) -> Any:
    at = s.axis % data.ndim
    shape_ = (*data.shape[:at], 1, *data.shape[at + 1 :])
    rows = _inside(namespace.astype(index, "int64"), data.shape[at], s.mode).reshape(shape_)
    found = namespace.take_along_axis(data, rows, axis=at)
    return found if s.keepdims else found.reshape((*data.shape[:at], *data.shape[at + 1 :]))


def _hot_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, (*known, s.depth))


@operator(
    "one_hot",
    "_npx_one_hot",
    settings=Settings(
        depth=(integer, REQUIRED), on_value=(number, 1.0), off_value=(number, 0.0), dtype=(dtype, "float32")
    ),
    inputs=("indices",),
    shapes=_hot_shapes,
    dtypes=own_dtype,
    gradient=NONE,
)
def _one_hot(s: Any, data: Any) -> Any:
    hit = namespace.expand_dims(namespace.astype(data, "int64"), -1) == namespace.arange(s.depth, engine=data.engine)
    kind = as_dtype(s.dtype)
    return namespace.astype(namespace.astype(hit, kind) * (s.on_value - s.off_value) + s.off_value, kind)
