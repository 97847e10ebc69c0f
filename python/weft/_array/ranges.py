"""Arrays whose elements follow from their positions: ranges, diagonals, grids, triangles."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from weft._array.calls import one
from weft._array.devices import as_device, new, place
from weft._array.filling import fill
from weft._array.operands import ArrayLike, as_array, engine_of
from weft._array.rules import Aval, as_dtype, like_first
from weft._array.views import view
from weft._core import NDArray, beside, copy_elements
from weft.ops import register_op

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._array.rules import DType
    from weft._core import Engine
    from weft._device import Device
    from weft.ops import Op

__all__ = ["arange", "eye", "identity", "linspace", "meshgrid", "tril", "triu"]


def _range_rule(*, start: float, stop: float, step: float, dtype: DType) -> Aval:
    extent = stop - start
    length = extent / step
    if length == 0 and extent != 0:  # an underflow: there is an element all the same, if the signs agree
        length = 1.0 if math.copysign(1.0, length) > 0 else 0.0
    return Aval((max(0, math.ceil(length)),), dtype)


@register_op("arange", infer=_range_rule)
def _arange(out: np.ndarray[Any, Any], *, start: float, stop: float, step: float, dtype: DType) -> None:
    out[...] = np.arange(start, stop, step, dtype=dtype)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Device | str | None = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return the numbers from `start` up to, but without, `stop`.

    Parameters
    ----------
    start, stop : int or float
        The ends; of one number given, the range starts at 0.
    step : int or float, default: 1
        The distance of two elements.
    dtype : dtype-like, optional
        The dtype; by default int64 where all numbers are integers, float64 otherwise.
    device : Device or str, optional
        The device.
    engine : Engine, optional
        The engine; by default the default one.

    Raises
    ------
    ZeroDivisionError
        If `step` is 0.

    Examples
    --------
    >>> import weft
    >>> weft.arange(1, 10, 3)
    NDArray([1, 4, 7])
    """
    where = as_device(device)
    given = (0, start, step) if stop is None else (start, stop, step)
    numbers = [_number(x) for x in given]
    if any(isinstance(x, complex) for x in numbers):
        raise TypeError(f"arange() takes real numbers, not {numbers}")
    first, last, by = numbers
    found = as_dtype(np.result_type(*map(type, numbers)) if dtype is None else dtype)
    if found.kind == "b" and _range_rule(start=first, stop=last, step=by, dtype=found).shape[0] > 2:  # noqa: PLR2004 - False, True
        raise TypeError("arange() is only supported for booleans when the result has at most length 2")
    owner = engine or engine_of()
    rule = _range_rule(start=first, stop=last, step=by, dtype=found)
    return _made(_arange, rule.shape, found, owner, where, start=first, stop=last, step=by)


def _made(
    op: Op,
    shape: tuple[int, ...],
    dtype: DType,
    engine: Engine,
    where: Device,
    **attributes: Any,  # noqa: ANN401 - the op's own
) -> NDArray:
    """Push an op that makes an array out of numbers: on a device of its own memory by a kernel, or else on the host."""
    if where.kind != "cpu":
        from weft._cuda import functions  # noqa: PLC0415 - for those alone who have a device

        made = new(shape, dtype, engine, where)
        name = op.attribute("kernels", None)
        if name is not None and functions.push(name, (made,), (), {"dtype": dtype, **attributes}):
            return made
    host = where if where.kind == "cpu" else as_device(None)
    result = one(op, out=new(shape, dtype, engine, host), engine=engine, dtype=dtype, **attributes)
    return result if host is where else place(result, where)


_arange.set_attribute("kernels", "arange")


def _linspace_rule(*, num: int, dtype: DType, **_attributes: object) -> Aval:
    return Aval((num,), dtype)


@register_op("linspace", infer=_linspace_rule)
def _linspace(
    out: np.ndarray[Any, Any], *, start: complex, stop: complex, num: int, dtype: DType, endpoint: bool
) -> None:
    out[...] = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


_linspace.set_attribute("kernels", "linspace")


def linspace(
    start: complex,
    stop: complex,
    /,
    num: SupportsIndex = 50,
    *,
    dtype: npt.DTypeLike | None = None,
    device: Device | str | None = None,
    endpoint: bool = True,
    engine: Engine | None = None,
) -> NDArray:
    """Return evenly spaced numbers over an interval.

    Parameters
    ----------
    start, stop : int, float or complex
        The ends.
    num : int, default: 50
        How many numbers.
    dtype : dtype-like, optional
        The dtype; by default float64, or complex128 for complex ends.
    device : Device or str, optional
        The device.
    endpoint : bool, default: True
        Whether `stop` is the last of them.
    engine : Engine, optional
        The engine; by default the default one.

    Raises
    ------
    ValueError
        If `num` is negative.

    Examples
    --------
    >>> import weft
    >>> weft.linspace(0, 1, 5)
    NDArray([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    where = as_device(device)
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    ends = _number(start), _number(stop)
    default = np.complex128 if any(isinstance(end, complex) for end in ends) else np.float64
    found = as_dtype(default if dtype is None else dtype)
    owner = engine or engine_of()
    given = {"start": ends[0], "stop": ends[1], "num": count, "endpoint": bool(endpoint)}
    return _made(_linspace, (count,), found, owner, where, **given)


def _eye_rule(*, n_rows: int, n_cols: int, dtype: DType, **_attributes: object) -> Aval:
    return Aval((n_rows, n_cols), dtype)


@register_op("eye", infer=_eye_rule)
def _eye(out: np.ndarray[Any, Any], *, n_rows: int, n_cols: int, k: int, dtype: DType) -> None:  # noqa: ARG001 - of the rule
    out[...] = 0
    if -n_rows < k < n_cols:
        rows = np.arange(max(0, -k), min(n_rows, n_cols - k))
        out[rows, rows + k] = 1


def eye(
    n_rows: SupportsIndex,
    n_cols: SupportsIndex | None = None,
    /,
    k: SupportsIndex = 0,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Device | str | None = None,
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
    device : Device or str, optional
        The device.
    engine : Engine, optional
        The engine; by default the default one.

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
    rows = operator.index(n_rows)
    columns = rows if n_cols is None else operator.index(n_cols)
    if min(rows, columns) < 0:
        raise ValueError(f"negative dimensions are not allowed: the shape {(rows, columns)}")
    found = as_dtype(np.float64 if dtype is None else dtype)
    owner = engine or engine_of()
    diagonal = operator.index(k)
    if where.kind != "cpu":
        return _eye_on_device(new((rows, columns), found, owner, where), diagonal)
    return _made(_eye, (rows, columns), found, owner, where, n_rows=rows, n_cols=columns, k=diagonal)


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


def meshgrid(*arrays: ArrayLike, indexing: Literal["xy", "ij"] = "xy") -> list[NDArray]:
    """Return the coordinates of the points of a grid.

    Parameters
    ----------
    *arrays : array-like
        The coordinates along each axis, of at most one dimension.
    indexing : {"xy", "ij"}, default: "xy"
        Whether the first two axes are swapped, as for a picture, or in order, as for a matrix.

    Returns
    -------
    list of NDArray
        One array per axis, all of the grid's shape.

    Raises
    ------
    ValueError
        If `indexing` is another word, or an array has more dimensions.

    Examples
    --------
    >>> import weft
    >>> weft.meshgrid(weft.asarray([1, 2]), weft.asarray([3, 4]))[0]
    NDArray([[1, 2],
             [1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    engine = engine_of(*arrays)
    given = [as_array(x, engine=engine) for x in arrays]
    if any(x.ndim > 1 for x in given):
        raise ValueError(f"meshgrid() takes arrays of one dimension, not of the shapes {[x.shape for x in given]}")
    axes = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        axes[:2] = [1, 0]
    shape = [0] * len(given)
    for axis, x in zip(axes, given, strict=True):
        shape[axis] = x.size
    grids: list[NDArray] = []
    for axis, x in zip(axes, given, strict=True):
        strides = [0] * len(shape)
        strides[axis] = x.strides[0] if x.ndim else 0
        grid = beside(x, tuple(shape), x.dtype)
        copy_elements(grid, view(x, shape, strides))
        grids.append(grid)
    return grids


def _triangle_rule(x: Aval, *, k: int) -> Aval:
    if len(x.shape) < 2:  # noqa: PLR2004 - a matrix
        raise ValueError(f"tril() and triu() take matrices or stacks of them, not an array of shape {x.shape} (k={k})")
    return like_first(x)


@register_op("tril", infer=_triangle_rule)
def _tril(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, k: int) -> None:
    out[...] = np.tril(x, k)


@register_op("triu", infer=_triangle_rule)
def _triu(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, k: int) -> None:
    out[...] = np.triu(x, k)


_tril.set_attribute("kernels", "tril")
_triu.set_attribute("kernels", "triu")


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
    return one(_tril, as_array(x), k=operator.index(k))


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
    return one(_triu, as_array(x), k=operator.index(k))


def _number(value: Any) -> Any:  # noqa: ANN401 - whatever was given
    """Return a Python number for a number, a NumPy scalar, or an array of one element, which is waited for."""
    found: Any = value.item() if hasattr(value, "item") else value
    if not isinstance(found, bool | int | float | complex):
        raise TypeError(f"a number is needed, not {found.__class__.__name__}")
    return found
