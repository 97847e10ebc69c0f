"""Elements in order: sorts, the first ones, and the places where they were."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import own_dtype, place, product
from weft._mxnet.settings import Settings, choice, dtype, flag, integer, optional
from weft._numpy import namespace

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Dtypes, Lengths, Shapes

_AXIS: dict[str, Any] = {"axis": (optional(integer), -1)}


def _places(x: Any, axis: int, *, ascends: bool) -> Any:
    """Return the places of elements in order; of equal ones the first comes first."""
    if ascends:
        return namespace.argsort(x, axis=axis, stable=True)
    back = namespace.argsort(namespace.flip(x, axis=axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - namespace.flip(back, axis=axis)


def _whole_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if s.axis is not None:
        ins.alike(outs)
    elif known is not None:
        outs.learn(0, (product(known),))


def _in_row(s: Any, data: Any) -> tuple[Any, int]:
    return (data.reshape(-1), 0) if s.axis is None else (data, s.axis)


@operator("sort", settings=Settings(**_AXIS, is_ascend=(flag, True)), shapes=_whole_shapes)
def _sort(s: Any, data: Any) -> Any:
    x, axis = _in_row(s, data)
    return namespace.take_along_axis(x, _places(x, axis, ascends=s.is_ascend), axis=axis)


@operator(
    "argsort",
    settings=Settings(**_AXIS, is_ascend=(flag, True), dtype=(dtype, "float32")),
    shapes=_whole_shapes,
    dtypes=own_dtype,
    gradient=NONE,
)
def _argsort(s: Any, data: Any) -> Any:
    x, axis = _in_row(s, data)
    return namespace.astype(_places(x, axis, ascends=s.is_ascend), s.dtype)


def _first_shape(s: Any, known: Lengths) -> Lengths:
    if s.ret_typ == "mask":
        return known
    rows = (product(known),) if s.axis is None else known
    at = 0 if s.axis is None else place(s.axis, len(known))
    count = s.k if s.k > 0 else rows[at]
    return (*rows[:at], count, *rows[at + 1 :])


def _first_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        for at in range(len(outs)):
            outs.learn(at, _first_shape(s, known))


def _first_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    if s.ret_typ in {"value", "mask"}:
        outs.learn(0, ins[0])
    elif s.ret_typ == "both":
        outs.learn(0, ins[0])
        outs.learn(1, s.dtype)
    else:
        outs.learn(0, s.dtype)


@operator(
    "topk",
    "_npx_topk",
    settings=Settings(
        **_AXIS,
        k=(integer, 1),
        ret_typ=(choice("value", "indices", "mask", "both"), "indices"),
        is_ascend=(flag, False),
        dtype=(dtype, "float32"),
    ),
    outputs=lambda s: 2 if s.ret_typ == "both" else 1,
    shapes=_first_shapes,
    dtypes=_first_dtypes,
)
def _first(s: Any, data: Any) -> Any:
    x, axis = _in_row(s, data)
    count = s.k if s.k > 0 else x.shape[axis]
    order = _places(x, axis, ascends=s.is_ascend)
    if s.ret_typ == "mask":  # the place of each element in that order
        ranks = namespace.argsort(order, axis=axis, stable=True)
        return namespace.astype(ranks < count, data.dtype).reshape(data.shape)
    rows = order[(*(slice(None),) * (axis % x.ndim), slice(0, count))]
    found = namespace.astype(rows, s.dtype)
    if s.ret_typ == "indices":
        return found
    values = namespace.take_along_axis(x, rows, axis=axis)
    return values if s.ret_typ == "value" else (values, found)


def _rank_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = ins[0]
    if known is not None:
        outs.learn(0, (len(known),))


def _integers(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s, ins
    outs.learn(0, "int64")


@operator("shape_array", shapes=_rank_shapes, dtypes=_integers, gradient=NONE)
def _shape_array(s: Any, data: Any) -> Any:
    del s
    return namespace.asarray(list(data.shape), "int64", engine=data.engine)


@operator("size_array", shapes=lambda s, ins, outs: outs.learn(0, (1,)), dtypes=_integers, gradient=NONE)
def _size_array(s: Any, data: Any) -> Any:
    del s
    return namespace.asarray([data.size], "int64", engine=data.engine)
