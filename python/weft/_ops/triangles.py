"""Matrices by their diagonals: `eye`, `identity`, `tril`, `triu`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.calls import one
from weft._call.devices import as_device, new
from weft._call.filling import fill
from weft._call.inline import answers
from weft._call.making import made
from weft._call.operands import ArrayLike, as_array, engine_of
from weft._call.views import view
from weft._core import fresh_diagonal
from weft._cuda.launch import Launch
from weft._ops.creation import ones
from weft._ops.unbroadcast import apply
from weft._registry.avals import Aval, as_dtype, like_first
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, no_gradient
from weft._registry.op import register_op
from weft._registry.shapes import as_index
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft._call.devices import Where
    from weft._core import Engine, NDArray
    from weft._registry.avals import DType
    from weft._registry.op import Op

__all__ = ["eye", "identity", "tri", "tril", "triu"]


def _eye_rule(*, n_rows: int, n_cols: int, dtype: DType, **_attributes: object) -> Aval:
    return Aval((n_rows, n_cols), dtype)


@register_op("eye", infer=_eye_rule)
def _eye(out: np.ndarray[Any, Any], *, n_rows: int, n_cols: int, k: int, dtype: DType) -> None:  # noqa: ARG001 - of the rule
    out[...] = 0
    if -n_rows < k < n_cols:
        rows = np.arange(max(0, -k), min(n_rows, n_cols - k))
        out[rows, rows + k] = 1


no_gradient("eye")


def eye(
    n_rows: SupportsIndex,
    n_cols: SupportsIndex | None = None,
    /,
    k: SupportsIndex = 0,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Where = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return a matrix with ones on one diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        The numbers of rows and of columns; by default as many columns as rows.
    k : int, default: 0
        Which diagonal: above the main one if positive, below if negative.
    dtype : dtype-like, optional
        The dtype; by default float64.
    device, engine : optional
        As of `empty`.

    Raises
    ------
    ValueError
        If a length is negative.

    Examples
    --------
    >>> import weft
    >>> weft.eye(2, 3, k=1)
    NDArray([[0., 1., 0.],
             [0., 0., 1.]])
    """
    where = as_device(device)
    rows = as_index(n_rows, "n_rows")
    columns = rows if n_cols is None else as_index(n_cols, "n_cols")
    if min(rows, columns) < 0:
        raise ArgumentValueError(f"negative dimensions are not allowed: the shape {(rows, columns)}")
    found = as_dtype(np.float64 if dtype is None else dtype)
    diagonal = as_index(k, "k")
    if device is None:
        inside = max(-rows, min(columns, diagonal))
        short = fresh_diagonal((rows, columns), inside, found, engine or engine_of())
        if short is not None:
            return short
    if where.kind != "cpu":
        return _eye_on_device(new((rows, columns), found, engine or engine_of(), where), diagonal)
    return made(_eye, (rows, columns), found, where, engine, n_rows=rows, n_cols=columns, k=diagonal)


def _eye_on_device(result: NDArray, k: int) -> NDArray:
    """Fill a matrix as `eye` does: zeros, then ones through a view of the diagonal."""
    rows, columns = result.shape
    fill(result, 0)
    length = max(0, min(rows, rows + k, columns, columns - k))
    if length:
        start = (max(0, -k) * columns + max(0, k)) * result.itemsize
        fill(view(result, (length,), ((columns + 1) * result.itemsize,), start), 1)
    return result


def identity(n: SupportsIndex, dtype: npt.DTypeLike | None = None) -> NDArray:
    """Return the square matrix with ones on its diagonal.

    Examples
    --------
    >>> import weft
    >>> weft.identity(2)
    NDArray([[1., 0.],
             [0., 1.]])
    """
    return eye(n, dtype=dtype)


def _triangle_rule(x: Aval, *, k: int) -> Aval:
    if len(x.shape) < 2:  # a matrix
        raise ArgumentValueError(
            f"tril() and triu() take matrices or stacks of them, not an array of shape {x.shape} (k={k})"
        )
    return like_first(x)


@register_op("tril", infer=_triangle_rule)
def _tril(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, k: int) -> None:
    out[...] = np.tril(x, k)


@register_op("triu", infer=_triangle_rule)
def _triu(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, k: int) -> None:
    out[...] = np.triu(x, k)


for _op in (_tril, _triu):
    state(_op, batch="stack")


def _answer_triangle(op: Op, function: Callable[..., object]) -> None:
    def answer(x: np.ndarray[Any, Any], *, k: int) -> object:
        _triangle_rule(Aval(x.shape, x.dtype), k=k)  # refuses vectors
        return function(x, k)

    answers(op, answer, exact=True)


_answer_triangle(_tril, np.tril)
_answer_triangle(_triu, np.triu)


def _triangle_on_cuda(name: str, sign: str) -> Callable[..., Launch]:
    def launch(_: NDArray, x: NDArray, *, k: int) -> Launch:
        rows, columns = x.shape[-2:]
        body = f"(long long)(i % b) - (long long)(i / b % c) {sign} d ? a : A()"
        return Launch(name, body, (x, columns, rows, k), (x.dtype, *(np.dtype(np.int64),) * 3), indexed=True)

    return launch


_tril.set_attribute("kernels", _triangle_on_cuda("tril", "<="))
_triu.set_attribute("kernels", _triangle_on_cuda("triu", ">="))


def tril(x: ArrayLike, /, k: SupportsIndex = 0) -> NDArray:
    """Return matrices with zeros above a diagonal.

    Parameters
    ----------
    x : array-like
        A matrix or a stack of them.
    k : int, default: 0
        Which diagonal is the last to stay: above the main one if positive, below if negative.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import weft
    >>> weft.tril(weft.ones((2, 2)))
    NDArray([[1., 0.],
             [1., 1.]])
    """
    return one(_tril, as_array(x), k=as_index(k, "k"))


def tri(
    n: SupportsIndex, m: SupportsIndex | None = None, /, k: SupportsIndex = 0, dtype: npt.DTypeLike | None = None
) -> NDArray:
    """Return a matrix of `n` rows and `m` columns with ones on a diagonal and below it, and zeros above.

    Examples
    --------
    >>> import weft
    >>> weft.tri(2, 3, dtype=int)
    NDArray([[1, 0, 0],
             [1, 1, 0]])
    """
    rows = as_index(n, "n")
    columns = rows if m is None else as_index(m, "m")
    return tril(ones((max(rows, 0), max(columns, 0)), dtype), k)


def triu(x: ArrayLike, /, k: SupportsIndex = 0) -> NDArray:
    """Return matrices with zeros below a diagonal.

    Parameters
    ----------
    x : array-like
        A matrix or a stack of them.
    k : int, default: 0
        Which diagonal is the first to stay: above the main one if positive, below if negative.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import weft
    >>> weft.triu(weft.ones((2, 2)))
    NDArray([[1., 1.],
             [0., 1.]])
    """
    return one(_triu, as_array(x), k=as_index(k, "k"))


@gradient_of("tril")
def _of_tril(node: Any, grads: Any) -> Any:
    return (apply("tril", grads[0], k=node.attributes["k"]),)


@gradient_of("triu")
def _of_triu(node: Any, grads: Any) -> Any:
    return (apply("triu", grads[0], k=node.attributes["k"]),)
