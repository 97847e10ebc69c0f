"""Diagonals, traces and cross products: functions of matrices without a decomposition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.calls import DType, Elements, one
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._call.views import Layout, register_view
from weft._core import NDArray
from weft._ops.reductions import total_dtype
from weft._ops.unbroadcast import apply, cast_like, shape_of, stand_in
from weft._registry.avals import Aval, as_dtype, broadcast_shapes, result_dtype
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft._registry.shapes import Shape, as_index, axes_in_order, axis_index
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from weft._call.operands import ArrayLike

__all__ = ["cross", "diag", "diagonal"]


def _copy_diagonal(x: Elements, *, offset: int, axis1: int, axis2: int) -> Elements:
    return np.diagonal(x, offset, axis1, axis2)


@register_view("diagonal", _copy_diagonal, batch="axis")
def _diagonal(shape: Shape, strides: Shape, *, offset: int, axis1: int, axis2: int) -> Layout:
    if len(shape) < 2:  # a matrix has two axes
        raise ArgumentValueError(f"a diagonal needs an array of at least 2 axes, got shape {shape}")
    rows, columns = axes_in_order((axis1, axis2), len(shape))
    down, right = max(-offset, 0), max(offset, 0)
    length = max(min(shape[rows] - down, shape[columns] - right), 0)
    kept = [i for i in range(len(shape)) if i not in (rows, columns)]
    return Layout(
        (*(shape[i] for i in kept), length),
        (*(strides[i] for i in kept), strides[rows] + strides[columns]),
        down * strides[rows] + right * strides[columns],
    )


def _infer_trace(x: Aval, *, offset: int, axis1: int, axis2: int, dtype: DType | None = None) -> Aval:
    shape = _diagonal_shape(x.shape, offset, axis1, axis2)
    return Aval(shape[:-1], total_dtype(x.dtype, dtype))


def _diagonal_shape(shape: Shape, offset: int, axis1: int, axis2: int) -> Shape:
    if len(shape) < 2:  # a matrix has two axes
        raise ArgumentValueError(f"a trace needs an array of at least 2 axes, got shape {shape}")
    rows, columns = axes_in_order((axis1, axis2), len(shape))
    length = max(min(shape[rows] + min(offset, 0), shape[columns] - max(offset, 0)), 0)
    return (*(n for i, n in enumerate(shape) if i not in (rows, columns)), length)


@register_op("trace", infer=_infer_trace)
def _trace(out: Elements, x: Elements, *, offset: int, axis1: int, axis2: int, dtype: DType | None = None) -> None:
    np.copyto(out, np.trace(x, offset, axis1, axis2, dtype or out.dtype))


state(_trace, batch="axis")


def _answer_trace(x: Elements, *, offset: int, axis1: int, axis2: int, dtype: DType | None = None) -> object:
    return x.trace(offset, axis1, axis2, dtype or total_dtype(x.dtype, None))


answers(_trace, _answer_trace)


def _infer_cross(x1: Aval, x2: Aval, *, axis: int) -> Aval:
    shapes: list[Shape] = []
    for x in (x1, x2):
        at = axis_index(axis, len(x.shape))
        if x.shape[at] != 3:  # vectors in space
            raise ArgumentValueError(
                f"cross products are of 3 elements along axis {axis}, got shapes {x1.shape}, {x2.shape}"
            )
        shapes.append((*x.shape[:at], *x.shape[at + 1 :]))
    stack = broadcast_shapes(*shapes)
    at = axis_index(axis, len(stack) + 1)
    return Aval((*stack[:at], 3, *stack[at:]), result_dtype(x1, x2))


@register_op("cross", infer=_infer_cross)
def _cross(out: Elements, x1: Elements, x2: Elements, *, axis: int) -> None:
    a, b, c = (np.moveaxis(x, axis, -1) for x in (x1, x2, out))
    c[...] = np.cross(a.astype(out.dtype, copy=False), b.astype(out.dtype, copy=False))


def _infer_diag(x: Aval, *, k: int) -> Aval:
    n = x.shape[0] + abs(k)
    return Aval((n, n), x.dtype)


@register_op("diagflat", infer=_infer_diag)
def _diagflat(out: Elements, x: Elements, *, k: int) -> None:
    np.copyto(out, np.diag(x, k))


answers(_diagflat, np.diag, exact=True)


def diagonal(x: ArrayLike, /, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1) -> NDArray:
    """Return a view of a diagonal of the plane of two axes, which comes last; `offset` counts to the right of the main one.

    Examples
    --------
    >>> import weft
    >>> weft.diagonal([[1, 2], [3, 4]])
    NDArray([1, 4])
    """
    at = as_index(axis1, "axis1"), as_index(axis2, "axis2")
    return _diagonal(as_array(x), offset=as_index(offset, "offset"), axis1=at[0], axis2=at[1])


def diag(x: ArrayLike, /, k: SupportsIndex = 0) -> NDArray:
    """Return a view of the `k`-th diagonal of a matrix, or for a vector a new matrix that has it there.

    Examples
    --------
    >>> import weft
    >>> print(weft.diag([1, 2]))
    [[1 0]
     [0 2]]
    """
    x = as_array(x)
    if x.ndim == 1:
        return one(_diagflat, x, k=as_index(k, "k"))
    if x.ndim != 2:  # a matrix has two axes
        raise ArgumentValueError(f"diag takes a vector or a matrix, got shape {x.shape}")
    return diagonal(x, k)


def trace(
    x: ArrayLike,
    /,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Return the sum of a diagonal of the plane of two axes; integers are added in 64 bits.

    Examples
    --------
    >>> import weft
    >>> weft.trace([[1, 2], [3, 4]]).item()
    5
    """
    given = None if dtype is None else as_dtype(dtype)
    at = as_index(axis1, "axis1"), as_index(axis2, "axis2")
    return one(_trace, as_array(x), out=out, offset=as_index(offset, "offset"), axis1=at[0], axis2=at[1], dtype=given)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: SupportsIndex = -1) -> NDArray:
    """Return the cross products of vectors of 3 elements along `axis`; the other axes broadcast.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.cross([1, 0, 0], [0, 1, 0])
    NDArray([0, 0, 1])
    """
    x1 = as_array(x1, x2 if isinstance(x2, NDArray) else None)
    return one(_cross, x1, as_array(x2, x1), axis=as_index(axis, "axis"))


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
    options = {
        name: node.attributes.get(name, default) for name, default in (("offset", 0), ("axis1", 0), ("axis2", 1))
    }
    return get_op("diagonal_embed")(g, stand_in(like), **options)


@gradient_of("diagonal")
def _of_diagonal(node: Any, grads: Any) -> Any:
    return (_embedded(grads[0], node.inputs[0], node),)


@gradient_of("diagonal_embed")
def _of_diagonal_embed(node: Any, grads: Any) -> Any:
    return apply("diagonal", grads[0], **node.attributes), None


@gradient_of("trace")
def _of_trace(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    shape = shape_of(x)
    rows, columns = (int(node.attributes[name]) % len(shape) for name in ("axis1", "axis2"))
    offset: int = node.attributes["offset"]
    length = max(min(shape[rows] + min(offset, 0), shape[columns] - max(offset, 0)), 0)
    kept = tuple(n for i, n in enumerate(shape) if i not in (rows, columns))
    g = apply("broadcast_to", apply("expand_dims", grads[0], axes=(len(kept),)), shape=(*kept, length))
    return (cast_like(_embedded(g, x, node), x),)


@gradient_of("diagflat")
def _of_diagflat(node: Any, grads: Any) -> Any:
    return (apply("diagonal", grads[0], offset=node.attributes["k"], axis1=0, axis2=1),)
