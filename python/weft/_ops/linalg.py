"""Linear algebra: the functions of `weft.linalg`. Their ops are in `decompositions`."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex

import numpy as np

from weft._call.blas import limited
from weft._call.blocking import eager
from weft._call.calls import Elements, one, several
from weft._call.operands import as_array, engine_of
from weft._core import NDArray
from weft._ops import decompositions as ops
from weft._ops.elementwise import divide, equal
from weft._ops.manipulation import _selected as _select, expand_dims, permute_dims, reshape
from weft._ops.matrices import diagonal as _diagonal, trace as _trace
from weft._ops.products import matmul, outer as _outer
from weft._ops.searching import count_nonzero, where
from weft._registry.shapes import Axis, as_index, axis_tuple, is_index
from weft.errors import ArgumentValueError, LinAlgError as _LinAlgError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

    from weft._call.operands import ArrayLike


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: NDArray
    eigenvectors: NDArray


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: NDArray
    eigenvectors: NDArray


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: NDArray
    R: NDArray


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: NDArray
    logabsdet: NDArray


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: NDArray
    S: NDArray
    Vh: NDArray


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> NDArray:
    """Return the triangular factor of positive-definite matrices ``(..., n, n)``, the lower one unless `upper`.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.cholesky([[4.0, 2.0], [2.0, 2.0]]))
    [[2. 0.]
     [1. 1.]]
    """
    return one(ops.cholesky, as_array(x), upper=upper)


def cond(x: ArrayLike, /) -> NDArray:
    """Return the ratio of the largest to the smallest singular value of matrices ``(..., m, n)``.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.cond([[2.0, 0.0], [0.0, 1.0]]).item()
    2.0
    """
    values = svdvals(x)
    if values.shape[-1] == 0:
        raise _LinAlgError(f"cond is not defined for empty matrices: shape {np.shape(x)}")
    largest, smallest = (_select(values, axis=values.ndim - 1, index=i) for i in (0, values.shape[-1] - 1))
    ratios: Any = where(equal(largest, 0), np.inf, divide(largest, smallest))  # zeros give 0 / 0
    result: NDArray = ratios
    return result


def det(x: ArrayLike, /) -> NDArray:
    """Return the determinants of matrices ``(..., n, n)``.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.det([[2.0, 0.0], [0.0, 3.0]]).item()
    6.0
    """
    return one(ops.det, as_array(x))


def diagonal(x: ArrayLike, /, *, offset: SupportsIndex = 0) -> NDArray:
    """Return a view of a diagonal of matrices ``(..., m, n)``; `offset` counts to the right of the main one.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.diagonal([[1, 2], [3, 4]])
    NDArray([1, 4])
    """
    return _diagonal(x, offset, -2, -1)


def eig(x: ArrayLike, /) -> EigResult:
    """Return the complex eigenvalues ``(..., n)`` and eigenvectors ``(..., n, n)`` of matrices ``(..., n, n)``.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.eig([[0.0, 1.0], [-1.0, 0.0]]).eigenvalues.dtype
    dtype('complex128')
    """
    return EigResult(*several(ops.eig, as_array(x)))


def eigh(x: ArrayLike, /, *, UPLO: Literal["L", "U"] = "L") -> EighResult:  # noqa: N803 - NumPy's name
    """Return the eigenvalues in ascending order and the eigenvectors of symmetric or Hermitian matrices ``(..., n, n)``.

    Only the lower triangle is read, or the upper one by ``UPLO="U"``.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues)
    [1. 2.]
    """
    return EighResult(*several(ops.eigh, as_array(x), uplo=UPLO))


def eigvals(x: ArrayLike, /) -> NDArray:
    """Return the complex eigenvalues of matrices ``(..., n, n)``.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.eigvals([[2.0, 0.0], [0.0, 1.0]]).shape
    (2,)
    """
    return one(ops.eigvals, as_array(x))


def eigvalsh(x: ArrayLike, /, *, UPLO: Literal["L", "U"] = "L") -> NDArray:  # noqa: N803 - NumPy's name
    """Return the eigenvalues in ascending order of symmetric or Hermitian matrices ``(..., n, n)``.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]))
    [1. 2.]
    """
    return one(ops.eigvalsh, as_array(x), uplo=UPLO)


def inv(x: ArrayLike, /) -> NDArray:
    """Return the inverses of matrices ``(..., n, n)``.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.inv([[2.0, 0.0], [0.0, 4.0]]))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return one(ops.inv, as_array(x))


def lstsq(x1: ArrayLike, x2: ArrayLike, /, rcond: float | None = None) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return the least-squares solution of ``x1 @ y = x2``, residuals, rank and singular values, as NumPy does.

    The number of residuals depends on the rank: it waits for both arrays.

    Examples
    --------
    >>> import weft
    >>> solution, residuals, rank, values = weft.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
    >>> print(solution.round(6), rank)
    [2.] 1
    """
    threads = engine_of(x1, x2).blas_threads

    def solve_least(a: Elements, b: Elements) -> tuple[Any, ...]:
        with limited(threads):
            return np.linalg.lstsq(a, b, rcond=rcond)

    found: tuple[NDArray, NDArray, NDArray, NDArray] = eager("lstsq", solve_least, x1, x2)
    return found


def matrix_norm(
    x: ArrayLike,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> NDArray:
    """Return the norms of matrices ``(..., m, n)``.

    `ord` is "fro" (Frobenius), "nuc" (sum of singular values), 1 or inf (largest sum of a column or row), 2 (largest
    singular value), or one of -1, -2, -inf for the smallest.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]).item()
    5.0
    """
    return one(ops.matrix_norm, as_array(x), keepdims=keepdims, ord=ord)


def matrix_power(x: ArrayLike, n: SupportsIndex, /) -> NDArray:
    """Return square matrices ``(..., m, m)`` to the power `n`; negative powers are those of the inverse.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.matrix_power([[1, 1], [0, 1]], 3))
    [[1 3]
     [0 1]]
    """
    return one(ops.matrix_power, as_array(x), n=as_index(n, "n"))


def matrix_rank(x: ArrayLike, /, tol: ArrayLike | None = None, *, rtol: ArrayLike | None = None) -> NDArray:
    """Return the ranks of matrices ``(..., m, n)``: how many singular values exceed `tol`, or `rtol` times the largest.

    By default `rtol` is ``max(m, n)`` times the dtype's epsilon; an array has one value for each matrix of the stack.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.matrix_rank([[1.0, 1.0], [1.0, 1.0]]).item()
    1
    """
    if tol is not None:
        if rtol is not None:
            raise ArgumentValueError("`tol` and `rtol` can't be both set.")
        return count_nonzero(svdvals(x) > expand_dims(tol, -1), axis=-1)
    return one(ops.matrix_rank, as_array(x), *(() if rtol is None else (rtol,)))


def multi_dot(arrays: Sequence[ArrayLike], /) -> NDArray:
    """Multiply matrices one after the other; the first and the last may be vectors.

    Each product is an op of its own, in the order given.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.multi_dot([[1, 2], [[1, 0], [0, 1]], [3, 4]]).item()
    11
    """
    if len(arrays) < 2:
        raise ArgumentValueError(f"multi_dot needs at least 2 arrays, got {len(arrays)}")
    first, *others = map(as_array, arrays)
    return reduce(matmul, others, first)


def norm(
    x: ArrayLike,
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Axis = None,
    *,
    keepdims: bool = False,
) -> NDArray:
    """Return the norm of vectors along one axis or of matrices along two, as `numpy.linalg.norm` does.

    Without an axis and `ord` it is the 2-norm of all elements; with `ord` alone `x` is one vector or matrix.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.norm([3.0, 4.0]).item()
    5.0
    """
    x = as_array(x)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if is_index(axes) or len(axes) == 1:
        if isinstance(ord, str):
            raise ArgumentValueError(f"the norm of order {ord!r} is one of matrices, not of vectors")
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ArgumentValueError(f"a norm is one of vectors or matrices, not along axes {axes} of shape {x.shape}")
    rows, columns = (axis_tuple(i, x.ndim)[0] for i in axes)
    if rows == columns:
        raise ArgumentValueError(f"a matrix norm needs two different axes, got {axes}")
    others = [i for i in range(x.ndim) if i not in (rows, columns)]
    result = matrix_norm(permute_dims(x, (*others, rows, columns)), ord="fro" if ord is None else ord)
    if not keepdims:
        return result
    return reshape(result, tuple(1 if i in (rows, columns) else n for i, n in enumerate(x.shape)))


def outer(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return the products ``(m, n)`` of each element of one vector ``(m,)`` with each of another ``(n,)``.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.outer([1, 2], [3, 4]))
    [[3 4]
     [6 8]]
    """
    x1 = as_array(x1, x2 if isinstance(x2, NDArray) else None)
    x2 = as_array(x2, x1)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ArgumentValueError(
            f"linalg.outer takes two vectors, got shapes {x1.shape} and {x2.shape}: see weft.outer"
        )
    return _outer(x1, x2)


def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> NDArray:
    """Return the pseudo-inverses ``(..., n, m)`` of matrices ``(..., m, n)``.

    Singular values up to `rtol` times the largest count as zero; by default that is ``max(m, n)`` times the epsilon.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.pinv([[2.0], [0.0]]))
    [[0.5 0. ]]
    """
    return one(ops.pinv, as_array(x), *(() if rtol is None else (rtol,)))


def qr(x: ArrayLike, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return an orthonormal and an upper triangular factor of matrices ``(..., m, n)``.

    With ``k = min(m, n)`` their shapes are ``(..., m, k)`` and ``(..., k, n)``; for "complete", ``k = m``.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.qr(weft.ones((4, 2))).R.shape
    (2, 2)
    """
    return QRResult(*several(ops.qr, as_array(x), mode=mode))


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Return the sign and the logarithm of the absolute value of the determinants of matrices ``(..., n, n)``.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.slogdet([[-1.0, 0.0], [0.0, 1.0]]).sign.item()
    -1.0
    """
    return SlogdetResult(*several(ops.slogdet, as_array(x)))


def solve(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Solve ``x1 @ y = x2`` for matrices `x1` ``(..., n, n)`` and a vector ``(n,)`` or matrices ``(..., n, k)``.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]))
    [1.  0.5]
    """
    x1 = as_array(x1, x2 if isinstance(x2, NDArray) else None)
    return one(ops.solve, x1, as_array(x2, x1))


def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition of matrices ``(..., m, n)``: ``U``, ``S`` in descending order, ``Vh``.

    Their shapes are ``(..., m, m)``, ``(..., k)`` with ``k = min(m, n)``, and ``(..., n, n)``; without `full_matrices`,
    ``(..., m, k)``, ``(..., k)`` and ``(..., k, n)``.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.svd([[3.0, 0.0], [0.0, 4.0]]).S)
    [4. 3.]
    """
    return SVDResult(*several(ops.svd, as_array(x), full_matrices=full_matrices))


def svdvals(x: ArrayLike, /) -> NDArray:
    """Return the singular values of matrices ``(..., m, n)`` in descending order.

    Examples
    --------
    >>> import weft
    >>> print(weft.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]))
    [4. 3.]
    """
    return one(ops.svdvals, as_array(x))


def trace(x: ArrayLike, /, *, offset: SupportsIndex = 0, dtype: DTypeLike | None = None) -> NDArray:
    """Return the sums of a diagonal of matrices ``(..., m, n)``; integers are added in 64 bits.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.trace([[1, 2], [3, 4]]).item()
    5
    """
    return _trace(x, offset, -2, -1, dtype)


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    ord: float = 2,
) -> NDArray:
    """Return the norms of vectors along `axis`, by default of all elements.

    `ord` is any number: inf and -inf give the largest and smallest absolute value, 0 the count of elements not zero.

    Examples
    --------
    >>> import weft
    >>> weft.linalg.vector_norm([3.0, 4.0]).item()
    5.0
    """
    x = as_array(x)
    return one(ops.vector_norm, x, axis=axis_tuple(axis, x.ndim), keepdims=keepdims, ord=ord)
