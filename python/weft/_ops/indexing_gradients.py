"""Rules of indexing: gradients of gathered elements are added up at their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._ops.indexing import decode
from weft._ops.unbroadcast import cast_like, fit, stand_in
from weft._registry.avals import Aval, broadcast_shapes
from weft._registry.gradients import ALL_INPUTS, give, gradient_of, needs
from weft._registry.op import get_op, register_op

if TYPE_CHECKING:
    from weft._call.calls import Elements


def _infer_scatter(g: Aval, like: Aval, *indices: Aval, key: tuple[Any, ...]) -> Aval:
    del indices, key
    return Aval(like.shape, g.dtype)


@register_op("scatter_add", infer=_infer_scatter)
def _scatter_add(out: Elements, g: Elements, like: Elements, *indices: Elements, key: tuple[Any, ...]) -> None:
    del like
    out[...] = 0
    where = decode(key, indices)
    if indices:
        np.add.at(out, where, g)
    else:
        out[where] += g


get_op("scatter_add").set_attribute("ignores", (1,))


def scatter_add(g: Any, like: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    """Return zeros of the shape of `like`, with the elements of `g` added at `key`."""
    return get_op("scatter_add")(g, stand_in(like), *indices, key=key)


def _getitem(node: Any, grads: Any) -> Any:
    x, *indices = node.inputs
    g = cast_like(scatter_add(grads[0], x, *indices, key=node.attributes["key"]), x)
    return (g, *(None,) * len(indices))


give(get_op("getitem"), _getitem, ALL_INPUTS & ~1)


def _scatter_add_rule(node: Any, grads: Any) -> Any:
    g, _, *indices = node.inputs
    found = cast_like(get_op("getitem")(grads[0], *indices, key=node.attributes["key"]), g)
    return (found, None, *(None,) * len(indices))


give(get_op("scatter_add"), _scatter_add_rule, ALL_INPUTS & ~3)


def _setitem(node: Any, grads: Any) -> Any:
    """Return the gradients of the array, without the overwritten part, and of the value, from that part."""
    x, value, *indices = node.inputs
    key = node.attributes["key"]
    dx = cast_like(get_op("setitem")(grads[0], 0, *indices, key=key), x) if needs(node, 0) else None
    dv = fit(get_op("getitem")(grads[0], *indices, key=key), value) if needs(node, 1) else None
    return (dx, dv, *(None,) * len(indices))


give(get_op("setitem"), _setitem, ALL_INPUTS & ~3)


@gradient_of("assign")
def _assign(node: Any, grads: Any) -> Any:
    return (fit(grads[0], node.inputs[0]),)


def _take(node: Any, grads: Any) -> Any:
    x, indices = node.inputs
    key = (*((None, None, None),) * node.attributes["axis"], "array")
    return cast_like(scatter_add(grads[0], x, indices, key=key), x), None


give(get_op("take"), _take, 2)


def _infer_along(g: Aval, like: Aval, indices: Aval, *, axis: int) -> Aval:
    del indices, axis
    return Aval(like.shape, g.dtype)


@register_op("scatter_along_axis", infer=_infer_along)
def _scatter_along_axis(out: Elements, g: Elements, like: Elements, indices: Elements, *, axis: int) -> None:
    """Add at positions given for each slice along an axis."""
    full = list(broadcast_shapes(_without(like.shape, axis), _without(indices.shape, axis)))
    ndim = len(full)
    axis %= ndim
    spread = list(full)
    spread[axis] = indices.shape[axis]
    where = [
        np.arange(n).reshape([-1 if i == at else 1 for i in range(ndim)]) % like.shape[at]
        if like.shape[at]
        else np.zeros(1, np.intp)
        for at, n in enumerate(spread)
    ]
    where[axis] = np.broadcast_to(indices, spread)
    out[...] = 0
    if g.size:
        np.add.at(out, tuple(where), g)


get_op("scatter_along_axis").set_attribute("ignores", (1,))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    at = axis % len(shape)
    return (*shape[:at], 1, *shape[at + 1 :])


def _take_along(node: Any, grads: Any) -> Any:
    x, indices = node.inputs
    found = get_op("scatter_along_axis")(grads[0], stand_in(x), indices, axis=node.attributes["axis"])
    return cast_like(found, x), None


give(get_op("take_along_axis"), _take_along, 2)


def _scatter_along(node: Any, grads: Any) -> Any:
    g, _, indices = node.inputs
    return cast_like(get_op("take_along_axis")(grads[0], indices, axis=node.attributes["axis"]), g), None, None


give(get_op("scatter_along_axis"), _scatter_along, 4)


@gradient_of("where", inputs=[0])
def _where(node: Any, grads: Any) -> Any:
    condition, x1, x2 = node.inputs
    g = grads[0]
    first = fit(_chosen(condition, g, 0), x1) if needs(node, 1) else None
    return None, first, fit(_chosen(condition, 0, g), x2) if needs(node, 2) else None


def _chosen(condition: Any, x1: Any, x2: Any) -> Any:
    return get_op("where")(condition, x1, x2)


@gradient_of("select")
def _select(node: Any, grads: Any) -> Any:
    key = (*((None, None, None),) * node.attributes["axis"], node.attributes["index"])
    return (scatter_add(grads[0], node.inputs[0], key=key),)


@gradient_of("narrow")
def _narrow(node: Any, grads: Any) -> Any:
    axis, start, length = (node.attributes[name] for name in ("axis", "start", "length"))
    key = (*((None, None, None),) * axis, (start, start + length, None))
    return (scatter_add(grads[0], node.inputs[0], key=key),)
