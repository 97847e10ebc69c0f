"""Embeddings: rows of a table that integers name, and sums of gradients into these rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._core import Native, NDArray, kernel_lookup
from weft._nn.arguments import chosen, refuse, spoiled
from weft._nn.facts import along, join
from weft._ops.unbroadcast import stand_in
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ShapeError

if TYPE_CHECKING:
    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import Kernel
    from weft._nn.facts import Shapes
    from weft._registry.shapes import Shape


def _infer_embedding(indices: Aval, weight: Aval) -> Aval:
    if indices.dtype.kind not in "iu":
        raise ArgumentTypeError(f"nn.embedding: indices are integers, not {indices.dtype}")
    if not weight.shape:
        raise refuse("nn.embedding", "weights (rows, ...) are taken", indices=indices, weight=weight)
    return Aval((*indices.shape, *weight.shape[1:]), weight.dtype)


def _shapes(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    del attributes
    op = "nn.embedding"
    (indices, weight), (out,) = ins, outs
    if weight == ():
        raise ShapeError(f"{op}: weights (rows, ...) are taken, and their shape is ()")
    if indices is not None and weight is not None:
        out = join(op, "the result", out, (*indices, *weight[1:]))
    if out is not None and (indices is not None or weight is not None):
        ahead = len(indices) if indices is not None else len(out) + 1 - len(weight or (None,))
        if ahead >= 0:
            indices = join(op, "indices", indices, tuple(out[:ahead]))
            weight = join(op, "weight", weight, (along(weight, 0), *out[ahead:]))
    return [indices, weight], [out]


def _rows(indices: Elements, count: int) -> tuple[Elements, Elements | None]:
    return chosen(
        indices, count, lambda wrong: f"nn.embedding: there is no row {wrong} among {count}: rows count from 0"
    )


@register_op("nn.embedding", infer=_infer_embedding)
def _embedding(out: Elements, indices: Elements, weight: Elements) -> None:
    rows, wrong = _rows(indices, weight.shape[0])
    out[...] = spoiled(weight[rows], wrong)


def _lookup(name: str, dtype: DType, indices: Aval, table: Shape, *, gradient: bool) -> Kernel | None:
    sizes = [math.prod(indices.shape), table[0], math.prod(table[1:])]
    return None if 0 in sizes else kernel_lookup(name, dtype, indices.dtype, sizes, gradient)


def _make_embedding(results: tuple[Aval, ...], operands: tuple[Aval, ...]) -> Kernel | None:
    indices, weight = operands
    return _lookup("nn.embedding", results[0].dtype, indices, weight.shape, gradient=False)


state(_embedding, infer_shape=_shapes, batch="last", places=(0,))
_embedding._run_by(Native.by(_make_embedding))


def _infer_embedding_weight(g: Aval, indices: Aval, like: Aval) -> Aval:
    if g.shape != (*indices.shape, *like.shape[1:]):
        raise refuse("nn.embedding_weight", "gradients have the shape of the rows", g=g, indices=indices, weight=like)
    return Aval(like.shape, g.dtype)


@register_op("nn.embedding_weight", infer=_infer_embedding_weight)
def _embedding_weight(out: Elements, g: Elements, indices: Elements, like: Elements) -> None:
    del like
    out[...] = 0
    rows, wrong = _rows(indices, out.shape[0])
    np.add.at(out, rows.reshape(-1), spoiled(g, wrong).reshape(rows.size, *out.shape[1:]))


def _make_embedding_weight(results: tuple[Aval, ...], operands: tuple[Aval, ...]) -> Kernel | None:
    (out,), indices = results, operands[1]
    return _lookup("nn.embedding_weight", out.dtype, indices, out.shape, gradient=True)


state(_embedding_weight, ignores=(2,))
_embedding_weight._run_by(Native.by(_make_embedding_weight))


@gradient_of("nn.embedding", inputs=[0])
def _embedding_rule(node: Any, grads: Any) -> Any:
    indices, weight = node.inputs
    return None, get_op("nn.embedding_weight")(grads[0], indices, stand_in(weight)) if needs(node, 1) else None


@gradient_of("nn.embedding_weight", inputs=[1])
def _embedding_weight_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.embedding")(node.inputs[1], grads[0]), None, None


def embedding(indices: ArrayLike, weight: ArrayLike) -> NDArray:
    """Return the rows of `weight` that integers name.

    Parameters
    ----------
    indices : array_like of int
        Numbers of rows, from 0.
    weight : array_like
        Shape ``(rows, ...)``.

    Raises
    ------
    IndexError
        When the result is waited for, if there is no such row.

    Examples
    --------
    >>> import weft
    >>> weft.nn.embedding([2, 0], [[1.0], [2.0], [3.0]]).tolist()
    [[3.0], [1.0]]
    """
    like = weight if isinstance(weight, NDArray) or is_symbol(weight) else None
    indices = as_array(indices, like)
    return one(_embedding, indices, as_array(weight, indices))
