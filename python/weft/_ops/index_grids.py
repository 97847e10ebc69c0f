"""Arrays of positions: `ix_`, `meshgrid`, `tril_indices`, `triu_indices`, `unravel_index`; and functions along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from weft._call.blocking import eager, eager_once
from weft._call.calls import Elements, one
from weft._call.inline import answers
from weft._call.listening import hear_nothing
from weft._call.operands import as_array, engine_of, values
from weft._call.views import view
from weft._core import NDArray, beside, copy_elements, tape_hears, wrap
from weft._engine.default import get_engine
from weft._ops.spacing import arange
from weft._registry.avals import Aval, as_dtype
from weft._registry.gradients import no_gradient
from weft._registry.op import register_op
from weft._registry.shapes import as_index, as_shape
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft._call.operands import ArrayLike
    from weft._registry.shapes import AnyShape, Shape

__all__ = [
    "apply_along_axis", "diag_indices", "indices", "ix_", "meshgrid", "tril_indices", "triu_indices",
    "unravel_index",
]  # fmt: skip

_INDEX = np.dtype(np.int64)


def ix_(*args: ArrayLike) -> tuple[NDArray, ...]:
    """Return arrays that index the product of some positions on each axis.

    Positions that are NDArrays of bool are waited for.

    Examples
    --------
    >>> import weft
    >>> x = weft.arange(10).reshape(2, 5)
    >>> x[weft.ix_([0, 1], [2, 4])]
    NDArray([[2, 4],
             [7, 9]])
    """
    if any(map(is_symbol, args)):
        raise ArgumentTypeError(
            "ix_() takes arrays, as it asks for their dtypes: of symbols i and j, write x[i[:, None], j]"
        )
    engine = engine_of(*args)
    made = tuple(_lying_along(at, len(args), x, as_array(x, engine=engine)) for at, x in enumerate(args))
    hear_nothing("ix_", args, made)
    return made


def _lying_along(at: int, ndim: int, given: ArrayLike, x: NDArray) -> NDArray:
    """Return positions `x`, made of what was `given`, along one of so many axes, those of bool as the indices of true elements."""
    if x.ndim != 1:
        raise ArgumentValueError("Cross index must be 1 dimensional")
    if x.dtype.kind == "b":
        x = wrap(np.flatnonzero(values(x)), x.engine, own=True)
    elif x.size == 0 and not isinstance(given, NDArray | np.ndarray):
        x = as_array([], dtype=_INDEX, engine=x.engine)  # of an empty list: NumPy's default would be float64
    shape, strides = [1] * ndim, [0] * ndim
    shape[at], strides[at] = x.size, x.strides[0]
    return view(x, shape, strides)


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
        raise ArgumentValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    engine = engine_of(*arrays)
    given = [as_array(x, engine=engine) for x in arrays]
    if any(x.ndim > 1 for x in given):
        raise ArgumentValueError(
            f"meshgrid() takes arrays of one dimension, not of the shapes {[x.shape for x in given]}"
        )
    axes = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        axes[:2] = [1, 0]
    shape = [0] * len(given)
    for axis, x in zip(axes, given, strict=True):
        shape[axis] = x.size
    if tape_hears(tuple(given)):
        from weft._ops.manipulation import broadcast_to  # noqa: PLC0415 - which is a function of arrays

        return [
            broadcast_to(x.reshape([-1 if each == axis else 1 for each in range(len(shape))]), tuple(shape)).copy()
            for axis, x in zip(axes, given, strict=True)
        ]
    grids: list[NDArray] = []
    for axis, x in zip(axes, given, strict=True):
        strides = [0] * len(shape)
        strides[axis] = x.strides[0] if x.ndim else 0
        grid = beside(x, tuple(shape), x.dtype)
        copy_elements(grid, view(x, shape, strides))
        grids.append(grid)
    return grids


def indices(dimensions: AnyShape, dtype: npt.DTypeLike | None = None, *, sparse: bool = False) -> Any:
    """Return the positions along each axis of all elements of a shape: one array, or with `sparse` several that broadcast.

    Examples
    --------
    >>> import weft
    >>> weft.indices((2, 3))[0]
    NDArray([[0, 0, 0],
             [1, 1, 1]])
    """
    wanted = _INDEX if dtype is None else as_dtype(dtype)
    make: Any = np.indices  # its overloads accept no flag that is passed on
    engine = get_engine()
    found: Any = make(as_shape(dimensions), wanted, sparse=sparse)
    return tuple([wrap(each, engine, own=True) for each in found]) if sparse else wrap(found, engine, own=True)


def diag_indices(n: SupportsIndex, ndim: int = 2) -> tuple[NDArray, ...]:
    """Return the positions on each axis of the main diagonal of an array with axes of the length `n`.

    Examples
    --------
    >>> import weft
    >>> weft.eye(3)[weft.diag_indices(3)]
    NDArray([1., 1., 1.])
    """
    return (arange(as_index(n, "n")),) * ndim


def tril_indices(n: SupportsIndex, k: SupportsIndex = 0, m: SupportsIndex | None = None) -> tuple[NDArray, NDArray]:
    """Return the rows and the columns of a lower triangle, of a matrix of `n` rows and `m` columns.

    Examples
    --------
    >>> import weft
    >>> weft.tril_indices(2)
    (NDArray([0, 1, 1]), NDArray([0, 0, 1]))
    """
    return _pair(np.tril_indices(int(n), int(k), None if m is None else int(m)))


def triu_indices(n: SupportsIndex, k: SupportsIndex = 0, m: SupportsIndex | None = None) -> tuple[NDArray, NDArray]:
    """Return the rows and the columns of an upper triangle, of a matrix of `n` rows and `m` columns.

    Examples
    --------
    >>> import weft
    >>> weft.triu_indices(2)
    (NDArray([0, 0, 1]), NDArray([0, 1, 1]))
    """
    return _pair(np.triu_indices(int(n), int(k), None if m is None else int(m)))


def _pair(found: Any) -> tuple[NDArray, NDArray]:
    rows, columns = found
    engine = get_engine()
    return wrap(rows, engine, own=True), wrap(columns, engine, own=True)


def _infer_unravel(x: Aval, **_: object) -> Aval:
    if x.dtype.kind not in "iu":
        raise ArgumentTypeError(f"unravel_index() takes indices of an integer dtype, not {x.dtype}")
    return Aval(x.shape, _INDEX)


@register_op("unravel_index", infer=_infer_unravel)
def _unravel(out: Elements, x: Elements, *, shape: Shape, axis: int) -> None:
    np.copyto(out, np.unravel_index(x, shape)[axis])


no_gradient("unravel_index")


def _unravelled(x: Elements, *, shape: Shape, axis: int) -> Elements:
    return np.unravel_index(x, shape)[axis]


answers(_unravel, _unravelled, exact=True)


def unravel_index(indices: ArrayLike, shape: AnyShape) -> tuple[NDArray, ...]:
    """Return the positions on each axis of elements that are counted through the flattened array.

    Raises
    ------
    ValueError
        When the op runs, if an index is out of bounds.

    Examples
    --------
    >>> import weft
    >>> weft.unravel_index([1, 5], (2, 3))
    (NDArray([0, 1]), NDArray([1, 2]))
    """
    x, lengths = as_array(indices), as_shape(shape)
    if not lengths and not is_symbol(x):
        eager("unravel_index", np.unravel_index, x, shape=lengths)  # without results none could fail
    return tuple(one(_unravel, x, shape=lengths, axis=axis) for axis in range(len(lengths)))


def apply_along_axis(
    func1d: Callable[..., Any],
    axis: SupportsIndex,
    x: ArrayLike,
    /,
    *args: Any,
    **kwargs: Any,
) -> NDArray:
    """Return a function's results for each slice of one axis. Waits for `x`: the function decides the result's shape.

    Parameters
    ----------
    func1d : callable
        Takes a NumPy array of one axis, `args` and `kwargs`.
    axis : int
        The axis.
    x : array-like
        The array.
    *args, **kwargs
        Passed on.

    Examples
    --------
    >>> import weft
    >>> weft.apply_along_axis(sum, 0, [[1, 2], [3, 4]])
    NDArray([4, 6])
    """

    def along(host: Elements) -> Elements:
        return np.apply_along_axis(func1d, int(axis), host, *args, **kwargs)

    found: NDArray = eager_once("apply_along_axis", along, x)
    return found
