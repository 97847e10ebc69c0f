"""The rule of a value made by several writes: a view of memory that other views wrote to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import device_of
from weft._call.listening import hear_nothing
from weft._call.views import view
from weft._core import NDArray, tape_hear_view, tape_patch
from weft._cuda.launch import PARTS
from weft._ops.creation import zeros
from weft._ops.reductions import sum as total
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft._registry.shapes import contiguous_strides
from weft.errors import GradientError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._registry.avals import DType

#: In the core's form: shape, strides and offset in bytes, dtype.
_Place = tuple[tuple[int, ...], tuple[int, ...], int, Any]


def _infer(x: Aval, *pieces: Aval, **_: object) -> Aval:
    del pieces
    return Aval(x.shape, x.dtype)


@register_op("tape.patch", infer=_infer)
def _patch(
    out: Elements, x: Elements, *parts: Elements, nbytes: int, layout: _Place, pieces: tuple[_Place, ...]
) -> None:
    memory = np.zeros(nbytes, np.uint8)
    for (shape, strides, offset, dtype), each in zip((layout, *pieces), (x, *parts), strict=True):
        np.ndarray(shape, dtype, memory, offset, strides)[...] = each
    shape, strides, offset, dtype = layout
    np.copyto(out, np.ndarray(shape, dtype, memory, offset, strides))


@gradient_of("tape.patch")
def _rule(node: Any, grads: Any) -> Any:
    """Lay the gradient out like the memory: the last write takes its part first, and leaves zeros there."""
    g = grads[0]
    nbytes, layout, places = (node.attributes[name] for name in ("nbytes", "layout", "pieces"))
    for place in places:
        if _numbers(place[3]) != _numbers(layout[3]):
            raise GradientError(
                f"an array of dtype {layout[3]} shows memory that was written as elements of {place[3]}: bytes have no gradient"
            )
    unit: DType = (
        layout[3] if layout[3].kind == "c" else max((place[3] for place in (layout, *places)), key=lambda d: d.itemsize)
    )
    memory = zeros((-(-nbytes // unit.itemsize),), unit, device=device_of(g), engine=g.engine)
    shape, strides, offset, dtype = layout
    repeated = tuple(at for at, (n, step) in enumerate(zip(shape, strides, strict=True)) if step == 0 and n > 1)
    if repeated:  # by broadcasting: the write takes the sum
        g = total(g, axis=repeated, keepdims=True)
        shape = tuple(1 if at in repeated else n for at, n in enumerate(shape))
    _at(memory, (shape, strides, offset, dtype))[...] = g
    found: list[NDArray | None] = []
    for position in range(len(places), 0, -1):
        piece = _at(memory, places[position - 1])
        found.append(piece.copy() if needs(node, position) else None)
        piece[...] = 0
    base = _at(memory, layout).copy() if needs(node, 0) else None
    return (base, *reversed(found))


def _at(memory: NDArray, place: _Place) -> NDArray:
    shape, strides, offset, dtype = place
    if 0 in shape:
        offset = 0
    result = view(memory, shape, strides, offset, dtype)
    tape_hear_view(get_op("tape.view"), memory, result, {"nbytes": memory.nbytes, "place": place})
    return result


def _infer_view(x: Aval, *, nbytes: int, place: _Place) -> Aval:
    del x, nbytes
    return Aval(place[0], place[3])


@register_op("tape.view", infer=_infer_view)
def _view(out: Elements, x: Elements, *, nbytes: int, place: _Place) -> None:
    del nbytes
    shape, strides, offset, dtype = place
    np.copyto(out, np.ndarray(shape, dtype, np.ascontiguousarray(x).view(np.uint8), offset, strides))


@gradient_of("tape.view")
def _view_rule(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    memory = zeros(x.shape, x.dtype, device=device_of(grads[0]), engine=grads[0].engine)
    _at(memory, node.attributes["place"])[...] = grads[0]
    return (memory,)


def hear_view(x: NDArray, result: NDArray) -> None:
    """Note that `result` shows the elements of `x` as those of another dtype: complex numbers as pairs of real ones, or back.

    Other dtypes read bytes as what they are not: a request for a gradient raises.
    """
    if _numbers(x.dtype) != _numbers(result.dtype):
        hear_nothing("view", (x,), (result,))
        return
    shape, dtype = result.shape, result.dtype
    place = (shape, contiguous_strides(shape, dtype.itemsize), 0, dtype)
    tape_hear_view(get_op("tape.view"), x, result, {"nbytes": x.nbytes, "place": place})


def _numbers(dtype: DType) -> DType:
    """Return the dtype of the real numbers that elements consist of."""
    return PARTS.get(dtype, dtype)


tape_patch(get_op("tape.patch"))
