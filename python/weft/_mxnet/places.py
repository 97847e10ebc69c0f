"""Places of elements as numbers: flat indices, rows that are copied or chosen, elements that are counted."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import NONE, Backward
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import data_dtype, place
from weft._mxnet.settings import REQUIRED, Settings, integer, numbers, optional, shape
from weft._numpy import namespace
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._mxnet.partial_shapes import Dtypes, Shapes


def _steps(lengths: tuple[int, ...]) -> list[int]:
    """Return by how much a flat index grows along each axis; the first length does not count."""
    return [math.prod(lengths[at + 1 :]) for at in range(len(lengths))]


def _ravel_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        ins.learn(0, (len(s.shape), *known[1:]))
        outs.learn(0, known[1:])


_SHAPE = Settings(shape=(shape, REQUIRED))


@operator("_ravel_multi_index", "ravel_multi_index", settings=_SHAPE, shapes=_ravel_shapes, gradient=NONE)
def _ravel(s: Any, data: Any) -> Any:
    steps = np.array(_steps(s.shape), data.dtype).reshape((-1, *(1,) * (data.ndim - 1)))
    return namespace.astype(namespace.sum(data * namespace.asarray(steps, engine=data.engine), axis=0), data.dtype)


def _unravel_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, (len(s.shape), *known))


@operator("_unravel_index", "unravel_index", settings=_SHAPE, shapes=_unravel_shapes, gradient=NONE)
def _unravel(s: Any, data: Any) -> Any:
    left = namespace.astype(data, "int64")
    found: list[Any] = []
    for step in _steps(s.shape):
        found.append(left // step)
        left = left % step
    return namespace.astype(namespace.stack(found, axis=0), data.dtype)


def _index_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, (*known, len(known) if s.axes is None else len(s.axes)))


def _long(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s, ins
    outs.learn(0, "int64")


@operator(
    "_contrib_index_array",
    settings=Settings(axes=(optional(shape), None)),
    shapes=_index_shapes,
    dtypes=_long,
    gradient=NONE,
)
def _index_array(s: Any, data: Any) -> Any:
    chosen = range(data.ndim) if s.axes is None else [place(axis, data.ndim) for axis in s.axes]
    grids = np.indices(data.shape)
    found = np.stack([grids[axis] for axis in chosen], axis=-1) if data.ndim else np.zeros(0, np.int64)
    return namespace.asarray(found.astype(np.int64), engine=data.engine)


def _copy_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.alike(outs, [0], [0])
    known = ins[0]
    if known is not None:
        ins.learn(2, (ins.length(1, 0), *known[1:]))
        ins.learn(1, (ins.length(2, 0),))


def _copy_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s
    ins.alike(outs, [0, 2], [0])
    ins.learn(1, "int64")


def _rows(index: Any) -> Any:
    return namespace.astype(index, "int64")


def _copy_back(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del s, outputs
    rows = _rows(inputs[1])
    left = namespace.asarray(grads[0], copy=True)
    left[rows] = 0
    return [left, None, grads[0][rows]]


@operator(
    "_contrib_index_copy",
    inputs=("old_tensor", "index_vector", "new_tensor"),
    shapes=_copy_shapes,
    dtypes=_copy_dtypes,
    places=(1,),
    gradient=Backward(_copy_back),
)
def _index_copy(s: Any, old: Any, index: Any, new: Any) -> Any:
    del s
    found = old + 0
    found[_rows(index)] = new
    return found


def _chosen_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = ins[0]
    if known is not None:
        ins.learn(1, (known[0],))
        outs.learn(0, (None, *known[1:]))


@operator(
    "_contrib_boolean_mask",
    settings=Settings(axis=(integer, 0)),
    inputs=("data", "index"),
    shapes=_chosen_shapes,
    dtypes=data_dtype,
    records=False,
)
def _boolean_mask(s: Any, data: Any, index: Any) -> Any:
    """Return the rows with an index other than 0; asks for the indices' values."""
    if s.axis:
        raise GraphError(f"boolean_mask: rows lie along axis 0, and axis={s.axis} was given")
    return namespace.take(data, np.flatnonzero(index.numpy()), axis=0)


def _bins(s: Any) -> tuple[str, ...]:
    return ("data",) if s.bin_cnt is not None else ("data", "bins")


def _counted_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    if s.bin_cnt is not None:
        outs.learn(0, (s.bin_cnt,))
        outs.learn(1, (s.bin_cnt + 1,))
        return
    ins.learn_rank(1, 1)
    edges = ins.length(1, 0)
    outs.learn(0, (None if edges is None else edges - 1,))
    outs.learn(1, (edges,))


def _counted_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s
    ins.alike(outs, None, [1])
    outs.learn(0, "int64")


@operator(
    "_histogram",
    "histogram",
    settings=Settings(bin_cnt=(optional(integer), None), range=(optional(numbers), None)),
    inputs=_bins,
    outputs=2,
    shapes=_counted_shapes,
    dtypes=_counted_dtypes,
    gradient=NONE,
    records=False,
)
def _histogram(s: Any, data: Any, bins: Any = None) -> Any:
    """Return how many elements lie between edges, and the edges; asks for values."""
    values = data.numpy()
    if bins is None:
        low, high = (values.min(), values.max()) if s.range is None else s.range
        edges = np.linspace(low, high, s.bin_cnt + 1, dtype=values.dtype)
        counts = np.histogram(values, s.bin_cnt, (low, high))[0]
    else:
        edges = bins.numpy()
        counts = np.histogram(values, edges)[0]
    return namespace.asarray(counts.astype(np.int64), engine=data.engine), namespace.asarray(edges, engine=data.engine)
