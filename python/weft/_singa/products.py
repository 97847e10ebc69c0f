"""SINGA's operators on matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._numpy import namespace
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._core import NDArray


def add_bias(x: NDArray, b: NDArray, axis: int = 0) -> NDArray:
    """Return a matrix with a vector added to each row, or, for ``axis=1``, to each column.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.add_bias(weft.zeros((2, 2)), weft.asarray([1.0, 2.0]))
    NDArray([[1., 2.],
             [1., 2.]])
    """
    if x.ndim != 2 or b.ndim != 1 or axis not in {0, 1} or b.shape[0] != x.shape[1 - axis]:  # a matrix
        raise ShapeError(
            f"add_bias: a vector of shape {b.shape} is not added to the {'rows' if axis == 0 else 'columns'} of {x.shape}"
        )
    return x + (b if axis == 0 else b[:, None])


def gemm(
    A: NDArray,
    B: NDArray,
    C: NDArray | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> NDArray:
    """Return ``alpha * A @ B + beta * C``, of `A` or `B` transposed where that is asked for.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.gemm(weft.ones((1, 2)), weft.ones((3, 2)), transB=1)
    NDArray([[2., 2., 2.]])
    """
    found = namespace.matmul(A.T if transA else A, B.T if transB else B)
    if alpha != 1.0:
        found = alpha * found
    if C is None:
        return found
    return found + (C if beta == 1.0 else beta * C)


def cossim(a: NDArray, b: NDArray) -> NDArray:
    """Return the cosine of the angle between each row of one matrix and that of another.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.cossim(weft.asarray([[1.0, 0.0]]), weft.asarray([[1.0, 1.0]])).round(4)
    NDArray([0.7071])
    """
    if a.shape != b.shape or a.ndim != 2:  # matrices
        raise ShapeError(f"cossim takes two matrices of one shape, and was given {a.shape} and {b.shape}")
    lengths = namespace.sqrt(namespace.sum(a * a, axis=1) * namespace.sum(b * b, axis=1))
    return namespace.sum(a * b, axis=1) / lengths
