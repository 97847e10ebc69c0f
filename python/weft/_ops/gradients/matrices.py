"""Rules of diagonals and triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._ops.unbroadcast import apply, cast_like, shape_of
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op

if TYPE_CHECKING:
    from weft._call.calls import Elements


def _infer_embed(g: Aval, like: Aval, **_: object) -> Aval:
    return Aval(like.shape, g.dtype)


@register_op("diagonal_embed", infer=_infer_embed)
def _embed(out: Elements, g: Elements, like: Elements, *, offset: int, axis1: int, axis2: int) -> None:
    del like
    out[...] = 0
    where = np.moveaxis(out, (axis1, axis2), (-2, -1))
    down, right = max(-offset, 0), max(offset, 0)
    for at in range(g.shape[-1]):
        where[..., at + down, at + right] = g[..., at]


def _embedded(g: Any, like: Any, node: Any) -> Any:
    from weft._ops.gradients.indexing import stand_in  # noqa: PLC0415 - the other way round at import

    options = {
        name: node.attributes.get(name, default) for name, default in (("offset", 0), ("axis1", 0), ("axis2", 1))
    }
    return get_op("diagonal_embed")(g, stand_in(like), **options)


@gradient_of("diagonal")
def _diagonal(node: Any, grads: Any) -> Any:
    return (_embedded(grads[0], node.inputs[0], node),)


@gradient_of("diagonal_embed")
def _diagonal_embed(node: Any, grads: Any) -> Any:
    return apply("diagonal", grads[0], **node.attributes), None


@gradient_of("trace")
def _trace(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    shape = shape_of(x)
    rows, columns = (int(node.attributes[name]) % len(shape) for name in ("axis1", "axis2"))
    offset: int = node.attributes["offset"]
    length = max(min(shape[rows] + min(offset, 0), shape[columns] - max(offset, 0)), 0)
    kept = tuple(n for i, n in enumerate(shape) if i not in (rows, columns))
    g = apply("broadcast_to", apply("expand_dims", grads[0], axes=(len(kept),)), shape=(*kept, length))
    return (cast_like(_embedded(g, x, node), x),)


@gradient_of("diagflat")
def _diagflat(node: Any, grads: Any) -> Any:
    return (apply("diagonal", grads[0], offset=node.attributes["k"], axis1=0, axis2=1),)


@gradient_of("tril")
def _tril(node: Any, grads: Any) -> Any:
    return (apply("tril", grads[0], k=node.attributes["k"]),)


@gradient_of("triu")
def _triu(node: Any, grads: Any) -> Any:
    return (apply("triu", grads[0], k=node.attributes["k"]),)
