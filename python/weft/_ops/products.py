"""Products: `matmul`, `tensordot`, `vecdot`, and NumPy's `dot`, `inner`, `outer`, `vdot`, `kron`.

`matmul` and its relatives run NumPy's loops, and so BLAS, on workers without the GIL.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.calls import Elements, one
from weft._call.operands import as_array
from weft._core import Native, NDArray, way_of
from weft._cuda.launch import Product
from weft._ops.elementwise import multiply
from weft._ops.manipulation import flattened, permute_dims, reshape
from weft._registry.avals import Aval, broadcast_shapes, result_dtype
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shape_rules import shaped_by
from weft._registry.shapes import Shape, as_index, axis_index, contiguous_strides, is_index
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._call.operands import ArrayLike

__all__ = ["dot", "inner", "kron", "matmul", "outer", "tensordot", "vdot", "vecdot"]


@register_op("matmul", infer=shaped_by("matmul"))
def _matmul(out: Elements, x1: Elements, x2: Elements) -> None:
    np.matmul(x1, x2, out=out)


def push_product(outputs: tuple[NDArray], operands: tuple[NDArray, NDArray]) -> bool:
    """Push the product of two matrices, or stacks of them, without Python; return whether it was pushed."""
    return way_of(_matmul, operands, {}).push(outputs, operands)


_matmul.set_attribute("kernels", Product())
_matmul.operator = "matmul"
_matmul._operate("matmul", False)
_matmul._run_by(Native.multiply())
state(_matmul, superlinear=True, blas=True, layout="matmul")


def _infer_tensordot(x1: Aval, x2: Aval, *, axes: tuple[Shape, Shape]) -> Aval:
    left = tuple(axis_index(i, len(x1.shape)) for i in axes[0])
    right = tuple(axis_index(i, len(x2.shape)) for i in axes[1])
    if len(left) != len(right) or len(set(left)) != len(left) or len(set(right)) != len(right):
        raise ArgumentValueError(f"tensordot sums over pairs of different axes, got axes={axes}")
    if any(x1.shape[i] != x2.shape[j] for i, j in zip(left, right, strict=True)):
        raise ArgumentValueError(f"tensordot of shapes {x1.shape} and {x2.shape}: axes {axes} differ in length")
    kept = [n for i, n in enumerate(x1.shape) if i not in left]
    kept += [n for i, n in enumerate(x2.shape) if i not in right]
    return Aval(tuple(kept), result_dtype(x1, x2))


@register_op("tensordot", infer=_infer_tensordot)
def _tensordot(out: Elements, x1: Elements, x2: Elements, *, axes: tuple[Shape, Shape]) -> None:
    np.copyto(out, np.tensordot(x1, x2, axes))


def _tensordot_for_all(_: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    """Bring the summed axes together, as for one example, and multiply matrices."""
    matrices: list[Any] = []
    lengths: list[int] = []
    for x, is_mapped, axes, last in zip(operands, mapped, attributes["axes"], (True, False), strict=True):
        ahead = tuple(range(is_mapped))
        own = x.shape[is_mapped:]
        summed = [axis_index(axis, len(own)) for axis in axes]
        free = [axis for axis in range(len(own)) if axis not in summed]
        order = [is_mapped + axis for axis in ((*free, *summed) if last else (*summed, *free))]
        inner = math.prod(own[axis] for axis in summed)
        outer = math.prod(own[axis] for axis in free)
        shape = (outer, inner) if last else (inner, outer)
        matrices.append(reshape(permute_dims(x, (*ahead, *order)), (*x.shape[:is_mapped], *shape)))
        lengths += [own[axis] for axis in free]
    found = matmul(*matrices)
    return reshape(found, (found.shape[0], *lengths))


state(_tensordot, superlinear=True, blas=True, batch=_tensordot_for_all)


def _push_tensordot(outputs: tuple[NDArray], operands: tuple[NDArray, NDArray], *, axes: tuple[Shape, Shape]) -> bool:
    """Bring the summed axes together and push one product of matrices."""
    result, (x1, x2) = outputs[0], operands
    plain = result.strides == contiguous_strides(result.shape, result.itemsize)
    if not plain or 0 in (x1.size, x2.size) or not x1.dtype == x2.dtype == result.dtype:
        return False
    left = [axis_index(i, x1.ndim) for i in axes[0]]
    right = [axis_index(i, x2.ndim) for i in axes[1]]
    free1, free2 = ([i for i in range(x.ndim) if i not in used] for x, used in ((x1, left), (x2, right)))
    summed = math.prod(x1.shape[i] for i in left)
    a = reshape(permute_dims(x1, [*free1, *left]), (-1, summed))
    b = reshape(permute_dims(x2, [*right, *free2]), (summed, -1))
    return push_product((reshape(result, (a.shape[0], b.shape[1])),), (a, b))


_tensordot.set_attribute("push", _push_tensordot)


def _infer_vecdot(x1: Aval, x2: Aval, *, axis: int) -> Aval:
    at1, at2 = axis_index(axis, len(x1.shape)), axis_index(axis, len(x2.shape))
    if x1.shape[at1] != x2.shape[at2]:
        raise ArgumentValueError(f"vecdot of shapes {x1.shape} and {x2.shape}: axis {axis} differs in length")
    stack = broadcast_shapes((*x1.shape[:at1], *x1.shape[at1 + 1 :]), (*x2.shape[:at2], *x2.shape[at2 + 1 :]))
    return Aval(stack, result_dtype(x1, x2))


@register_op("vecdot", infer=_infer_vecdot)
def _vecdot(out: Elements, x1: Elements, x2: Elements, *, axis: int) -> None:
    pairs: Any = [axis, axis]  # NumPy's stub wants tuples
    np.vecdot(x1, x2, out=out, axes=pairs)


def _vecdot_by_cupy(out: Any, x1: Any, x2: Any, *, axis: int) -> None:
    products = np.multiply(np.conj(x1) if x1.dtype.kind == "c" else x1, x2)
    if out.dtype.kind == "b":
        np.any(products, axis=axis, out=out)
    else:
        np.sum(products, axis=axis, dtype=out.dtype, out=out)


state(_vecdot, cupy=_vecdot_by_cupy)


def _vecdot_for_all(_: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    own = [len(x.shape) - is_mapped for x, is_mapped in zip(operands, mapped, strict=True)]
    axis = attributes["axis"]
    if axis >= 0:
        if own[0] != own[1]:
            return None
        axis -= own[0]
    most = max(own)
    given = [
        reshape(x, (x.shape[0], *(1,) * (most - axes), *x.shape[1:])) if is_mapped and axes < most else x
        for x, axes, is_mapped in zip(operands, own, mapped, strict=True)
    ]
    return one(_vecdot, *given, axis=axis)


state(_vecdot, superlinear=True, blas=True, batch=_vecdot_for_all)


def matmul(x1: ArrayLike, x2: ArrayLike, /, out: NDArray | None = None) -> NDArray:
    """Multiply matrices, or stacks of them that broadcast; an operand with one axis is a row or a column.

    Parameters
    ----------
    x1 : array_like
        Shape ``(..., m, k)`` or ``(k,)``.
    x2 : array_like
        Shape ``(..., k, n)`` or ``(k,)``.
    out : NDArray, optional
        An array of the result's shape ``(..., m, n)`` to write to.

    Examples
    --------
    >>> import weft
    >>> weft.matmul([[1, 2], [3, 4]], [1, 1])
    NDArray([3, 7])
    """
    return one(_matmul, x1, x2, out=out)


def _are_vectors(x1: ArrayLike, x2: ArrayLike) -> bool:
    """Return whether both are real vectors of one length on the host: for these all products equal that of matrices."""
    if x1.__class__ is not NDArray or x2.__class__ is not NDArray:
        return False
    return x1.ndim == 1 and x1.shape == x2.shape and x1.dtype.kind != "c" and not x1._elsewhere


def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> NDArray:
    """Sum products over several axes of both arrays.

    Parameters
    ----------
    x1, x2 : array_like
        The arrays.
    axes : int or pair of sequences of int
        So many of the last axes of `x1` with the first of `x2`, or the axes of each, pair by pair.

    Examples
    --------
    >>> import weft
    >>> weft.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]]).item()
    5
    """
    x1, x2 = _pair(x1, x2)
    if is_index(axes):
        count = operator.index(axes)
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ArgumentValueError(f"tensordot of shapes {x1.shape} and {x2.shape} cannot sum over {count} axes")
        pairs = (tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count)))
    else:
        left, right = ((each,) if is_index(each) else each for each in axes)
        pairs = (tuple(map(operator.index, left)), tuple(map(operator.index, right)))
    return one(_tensordot, x1, x2, axes=pairs)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: SupportsIndex = -1) -> NDArray:
    """Return the scalar products of vectors along `axis`, those of `x1` conjugated; the other axes broadcast.

    Examples
    --------
    >>> import weft
    >>> weft.vecdot([[1, 2], [3, 4]], [1, 1])
    NDArray([3, 7])
    """
    axis = as_index(axis, "axis")
    if axis == -1 and not _vecdot.replaced and _are_vectors(x1, x2):
        return one(_matmul, x1, x2)
    x1, x2 = _pair(x1, x2)
    return one(_vecdot, x1, x2, axis=axis)


def dot(x1: ArrayLike, x2: ArrayLike, /, out: NDArray | None = None) -> NDArray:
    """Multiply as `numpy.dot` does: scalars, vectors and matrices; beyond, the last axis with the second-to-last one.

    Examples
    --------
    >>> import weft
    >>> weft.dot([1, 2], [3, 4]).item()
    11
    """
    x1, x2 = _pair(x1, x2)
    if 0 in (x1.ndim, x2.ndim):
        return multiply(x1, x2, out=out)
    if x2.ndim == 1 or max(x1.ndim, x2.ndim) <= 2:  # matrices
        return matmul(x1, x2, out=out)
    return one(_tensordot, x1, x2, out=out, axes=((x1.ndim - 1,), (x2.ndim - 2,)))


def inner(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Sum products over the last axes of both arrays.

    Examples
    --------
    >>> import weft
    >>> weft.inner([[1, 2], [3, 4]], [1, 1])
    NDArray([3, 7])
    """
    if not _tensordot.replaced and _are_vectors(x1, x2):
        return one(_matmul, x1, x2)
    x1, x2 = _pair(x1, x2)
    if 0 in (x1.ndim, x2.ndim):
        return multiply(x1, x2)
    return one(_tensordot, x1, x2, axes=((x1.ndim - 1,), (x2.ndim - 1,)))


def outer(x1: ArrayLike, x2: ArrayLike, /, out: NDArray | None = None) -> NDArray:
    """Return the products of each element of `x1` with each of `x2`; both are flattened.

    Examples
    --------
    >>> import weft
    >>> print(weft.outer([1, 2], [3, 4]))
    [[3 4]
     [6 8]]
    """
    x1, x2 = _pair(x1, x2)
    return multiply(reshape(x1, (x1.size, 1)), reshape(x2, (1, x2.size)), out=out)


def vdot(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return the scalar product of the flattened arrays, `x1` conjugated.

    Examples
    --------
    >>> import weft
    >>> weft.vdot([1 + 1j], [1 + 1j]).item()
    (2+0j)
    """
    x1, x2 = _pair(x1, x2)
    return one(_vecdot, flattened(x1), flattened(x2), axis=-1)


def kron(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return the Kronecker product: `x2` scaled by each element of `x1`, block by block.

    Examples
    --------
    >>> import weft
    >>> weft.kron([1, 10], [1, 2, 3])
    NDArray([ 1,  2,  3, 10, 20, 30])
    """
    x1, x2 = _pair(x1, x2)
    ndim = max(x1.ndim, x2.ndim)
    left, right = ((*(1,) * (ndim - x.ndim), *x.shape) for x in (x1, x2))
    blocks = multiply(
        reshape(x1, [n for length in left for n in (length, 1)]),
        reshape(x2, [n for length in right for n in (1, length)]),
    )
    return reshape(blocks, tuple(map(operator.mul, left, right)))


def _pair(x1: ArrayLike, x2: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return both as arrays, on the engine of the first array among them."""
    left = as_array(x1, x2 if isinstance(x2, NDArray) else None)
    return left, as_array(x2, left)
