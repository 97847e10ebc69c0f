"""Questions about arrays and their elements, as NumPy's functions ask them: `shape`, `ndim`, `size`, `isreal`, `isposinf`, `array_equiv`."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from weft._call.operands import as_array
from weft._call.outputs import broadcast_or_none
from weft._ops.comparing import array_equal
from weft._ops.elementwise import equal, greater, isinf, less, logical_and
from weft._ops.manipulation import broadcast_arrays
from weft._ops.parts import imag
from weft._registry.shapes import axis_index
from weft._registry.symbol_hook import UnknownRank, is_symbol
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from weft._call.operands import ArrayLike
    from weft._core import NDArray

__all__ = [
    "array_equiv", "iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj", "ndim", "shape",
    "size",
]  # fmt: skip


def shape(x: ArrayLike, /) -> tuple[int, ...]:
    """Return the lengths of the axes.

    Examples
    --------
    >>> import weft
    >>> weft.shape([[1, 2, 3]])
    (1, 3)
    """
    return as_array(x).shape


def ndim(x: ArrayLike, /) -> int:
    """Return the number of axes.

    Examples
    --------
    >>> import weft
    >>> weft.ndim([[1, 2, 3]])
    2
    """
    found: int | UnknownRank = as_array(x).ndim
    if isinstance(found, UnknownRank):
        raise GraphError(str(found))
    return found


def size(x: ArrayLike, /, axis: SupportsIndex | None = None) -> int:
    """Return the number of elements, or the length of an axis.

    Examples
    --------
    >>> import weft
    >>> weft.size([[1, 2, 3]]), weft.size([[1, 2, 3]], 0)
    (3, 1)
    """
    x = as_array(x)
    length: int = x.size if axis is None else x.shape[axis_index(axis, x.ndim)]
    return length


def iscomplexobj(x: ArrayLike, /) -> bool:
    """Return whether the dtype is complex, for any elements.

    Examples
    --------
    >>> import weft
    >>> weft.iscomplexobj([1 + 0j]), weft.iscomplexobj([1.0])
    (True, False)
    """
    return as_array(x).dtype.kind == "c"


def isrealobj(x: ArrayLike, /) -> bool:
    """Return whether the dtype is not complex.

    Examples
    --------
    >>> import weft
    >>> weft.isrealobj([1 + 0j]), weft.isrealobj([1.0])
    (False, True)
    """
    return not iscomplexobj(x)


def isreal(x: ArrayLike, /) -> NDArray:
    """Return for each element whether it has no imaginary part.

    Examples
    --------
    >>> import weft
    >>> weft.isreal([1 + 0j, 1j])
    NDArray([ True, False])
    """
    return equal(imag(x), 0)


def iscomplex(x: ArrayLike, /) -> NDArray:
    """Return for each element whether it has an imaginary part.

    Examples
    --------
    >>> import weft
    >>> weft.iscomplex([1 + 0j, 1j])
    NDArray([False,  True])
    """
    return ~isreal(x)


def isposinf(x: ArrayLike, /) -> NDArray:
    """Return for each element whether it is positive infinity.

    Examples
    --------
    >>> import weft
    >>> weft.isposinf([weft.inf, -weft.inf, 1.0])
    NDArray([ True, False, False])
    """
    x = _real("isposinf", x)
    return logical_and(isinf(x), greater(x, 0))


def isneginf(x: ArrayLike, /) -> NDArray:
    """Return for each element whether it is negative infinity.

    Examples
    --------
    >>> import weft
    >>> weft.isneginf([weft.inf, -weft.inf, 1.0])
    NDArray([False,  True, False])
    """
    x = _real("isneginf", x)
    return logical_and(isinf(x), less(x, 0))


def array_equiv(x1: ArrayLike, x2: ArrayLike, /) -> NDArray:
    """Return whether two arrays, broadcast to one shape, have the same elements. Does not wait.

    Examples
    --------
    >>> import weft
    >>> bool(weft.array_equiv([1, 2], [[1, 2], [1, 2]])), bool(weft.array_equiv([1, 2], [1, 2, 3]))
    (True, False)
    """
    x1 = as_array(x1)
    x2 = as_array(x2, x1)
    if broadcast_or_none(x1.shape, x2.shape) is None:
        return as_array(False, x1)
    return array_equal(*broadcast_arrays(x1, x2))


def _real(name: str, x: ArrayLike) -> NDArray:
    found = as_array(x)
    if not is_symbol(found) and found.dtype.kind == "c":
        raise ArgumentTypeError(
            f"{name}() takes no array of dtype {found.dtype}: complex infinities have no sign; ask x.real or x.imag"
        )
    return found
