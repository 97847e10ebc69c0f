"""Operands: what a caller may give for an array, and for a place to write to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from weft._array.rules import SUPPORTED, as_dtype, broadcast_shapes
from weft._array.symbolic import Composing, is_symbol
from weft._core import NDArray, wrap
from weft._default import get_engine

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._array.rules import DType
    from weft._core import Engine

__all__ = [
    "ArrayLike",
    "Operand",
    "as_array",
    "as_dtype",
    "check_target",
    "check_writable",
    "coerce",
    "engine_of",
    "host_array",
    "is_host",
    "listed",
    "matches",
    "number",
    "read_only",
    "share",
    "targets",
    "values",
]

#: Whatever `as_array` takes: what NumPy takes, and more.
ArrayLike: TypeAlias = Any
#: What an op is pushed over: an array, or a Python scalar that takes the dtype of the arrays it meets.
Operand: TypeAlias = "NDArray | bool | int | float | complex"

_SINGLE = 4
_LARGEST = float(np.finfo(np.float32).max)
_PARTS: dict[int, DType] = {8: np.dtype(np.float32), 16: np.dtype(np.float64)}
_SCALARS = frozenset([bool, int, float, complex])


def engine_of(*arrays: object) -> Engine:
    """Return the engine of the first NDArray among `arrays`, or else the default one.

    Examples
    --------
    >>> import weft
    >>> from weft._array.dispatch import engine_of
    >>> engine_of(1, weft.asarray(2)) is weft.get_engine()
    True
    """
    for x in arrays:
        if isinstance(x, NDArray):
            return x.engine
    return get_engine()


def as_array(
    x: ArrayLike,
    like: NDArray | None = None,
    *,
    engine: Engine | None = None,
    dtype: DType | None = None,
) -> NDArray:
    """Return an NDArray as it is, and anything else as a new one that holds its present values.

    Parameters
    ----------
    x : array-like
        An NDArray, a NumPy array or scalar, a Python scalar, a sequence, or an object with a buffer or with DLPack.
    like : NDArray, optional
        An array whose engine a new one is to have.
    engine : Engine, optional
        The engine of a new array, where `like` is not given.
    dtype : numpy.dtype, optional
        The dtype of a new array.

    Raises
    ------
    TypeError
        If arrays cannot have the elements' type.

    Examples
    --------
    >>> import weft
    >>> from weft._array.dispatch import as_array
    >>> as_array([1, 2])
    NDArray([1, 2])
    """
    if isinstance(x, NDArray) or is_symbol(x):
        return x  # type: ignore[no-any-return] # a symbol goes where arrays go, up to the call
    if is_symbol(like):
        return x  # type: ignore[no-any-return] # a number: composing refuses all else
    owner = like.engine if like is not None else engine or get_engine()
    return wrap(host_array(x, dtype), owner)


def host_array(x: ArrayLike, dtype: DType | None = None, *, copy: bool | None = True) -> np.ndarray[Any, Any]:
    """Return a NumPy array of an array-like, of a dtype that arrays may have: a copy, or shared memory for ``copy=False``."""
    if hasattr(x, "__dlpack__") and not is_host(x):
        x = np.from_dlpack(x)
    found: np.ndarray[Any, Any] = np.asarray(x)
    wanted = dtype if dtype is not None else SUPPORTED.get(found.dtype) or as_dtype(found.dtype.newbyteorder("="))
    fresh = isinstance(x, int | float | complex | list | tuple)
    if found.dtype.kind == "O" and fresh and (isinstance(x, int) or wanted.kind in "iu"):
        return np.array(x, wanted)  # an integer over 64 bits: NumPy says whether it fits
    if found.dtype.kind not in "biufc":
        as_dtype(found.dtype)  # raises: nothing is read from text or from objects
    if found.dtype.kind == "c" and wanted.kind not in "cb":
        raise TypeError(f"cannot make an array of dtype {wanted} from complex values: take real() or imag() first")
    if fresh and found.dtype.kind in "iu" and wanted.kind in "iu":
        return np.array(x, wanted)  # NumPy checks the range of Python integers
    with np.errstate(all="ignore"):
        return np.array(found, wanted, copy=None if fresh and copy else copy)


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view that cannot be written through."""
    shown = array.view()
    shown.flags.writeable = False
    return shown


def values(x: NDArray) -> np.ndarray[Any, Any]:
    """Wait for an array, and return a read-only NumPy view of its values."""
    x.wait_to_read()
    return read_only(x._storage())


def share(one: NDArray, other: NDArray) -> bool:
    """Return whether two arrays are views of one buffer."""
    return one._shares_buffer(other)


def is_host(x: object) -> TypeGuard[np.ndarray[Any, Any]]:
    """Return whether `x` is a NumPy array."""
    return isinstance(x, np.ndarray)


def listed(x: object) -> tuple[Any, ...]:
    """Return a tuple as it is, and anything else as the one item of a tuple."""
    found: Any = x
    return found if isinstance(x, tuple) else (x,)


def coerce(arrays: tuple[Any, ...], out: object = None) -> tuple[Any, ...]:
    """Return NDArrays and Python scalars for whatever was given; the scalars take the arrays' dtype later."""
    if all(type(x) is NDArray for x in arrays):
        return arrays
    if any(map(is_symbol, arrays)):
        raise Composing
    engine = engine_of(*arrays, *listed(out))
    return tuple(_operand(x, engine) for x in arrays)


def _operand(x: Any, engine: Engine) -> Operand:  # noqa: ANN401 - array-likes
    if isinstance(x, NDArray):
        return x
    if type(x) in _SCALARS:
        return x  # type: ignore[no-any-return] # one of four types
    for kind in (int, float, complex):  # subclasses, as of enum.IntEnum, but for NumPy's own, whose dtype counts
        if isinstance(x, kind) and not isinstance(x, np.generic):
            return kind(x)  # type: ignore[arg-type] # an instance of itself
    return as_array(x, engine=engine)


def number(value: Any, dtype: DType) -> bool | int | float | complex:  # noqa: ANN401 - a Python scalar
    """Return a Python scalar as an element of `dtype` is written.

    Raises
    ------
    OverflowError
        If `dtype` is one of integers, and `value` is out of its range.

    Examples
    --------
    >>> import numpy
    >>> from weft._array.operands import number
    >>> number(3, numpy.dtype("float32"))
    3.0
    """
    kind = dtype.kind
    if kind == "f":
        value = float(value)
        if dtype.itemsize == _SINGLE and abs(value) > _LARGEST:
            with np.errstate(all="ignore"):
                return float(np.float32(value))  # to infinity, or just not
        return value  # type: ignore[no-any-return] # a float, just made
    if kind in "iu":
        value = int(value)
        bits = 8 * dtype.itemsize - (kind == "i")
        low = -(1 << bits) if kind == "i" else 0
        if not low <= value < 1 << bits:
            raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
        return value  # type: ignore[no-any-return] # an int, just made
    if kind == "b":
        return bool(value)
    value = complex(value)
    part = _PARTS[dtype.itemsize]
    return complex(number(value.real, part), number(value.imag, part))


def targets(out: Any, count: int) -> tuple[NDArray | None, ...]:  # noqa: ANN401 - what a caller gave
    """Return `count` places for results, None where the result is to be new."""
    given = (None,) * count if out is None else listed(out)
    if len(given) != count:
        raise ValueError(f"out= takes {count} array{'s' * (count != 1)}, and {len(given)} were given")
    for each in given:
        if each is not None and not isinstance(each, NDArray):
            raise TypeError(f"return arrays must be of type NDArray, not {type(each).__name__}")
    return given


def check_target(name: str, target: NDArray, shape: tuple[int, ...], dtype: DType, *, exact: bool = False) -> None:
    """Raise what NumPy raises unless results of `shape` and `dtype` may be written to `target`."""
    check_writable(target)
    if target.shape != shape and (exact or broadcast_or_none(target.shape, shape) != target.shape):
        if exact:
            raise ValueError(f"{name}() gives an array of shape {shape}, and out= has the shape {target.shape}")
        raise ValueError(
            f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape {shape}"
        )
    if target.dtype != dtype and not np.can_cast(dtype, target.dtype, "same_kind"):
        raise TypeError(f"Cannot cast {name}() output from {dtype!r} to {target.dtype!r} with casting rule 'same_kind'")


def check_writable(x: NDArray) -> None:
    """Raise ValueError if `x` is read-only, or shows one element several times, as broadcasting makes it."""
    if x.readonly:
        raise ValueError(f"output array is read-only: an array of shape {x.shape} and dtype {x.dtype}")
    if x.size and 0 in x.strides and any(step == 0 and size > 1 for size, step in zip(x.shape, x.strides, strict=True)):
        raise ValueError(f"output array is read-only: a broadcast view of shape {x.shape}; write to a copy of it")


def broadcast_or_none(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape to which `shapes` broadcast, or None."""
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        return None


def matches(x: NDArray, dtype: npt.DTypeLike) -> bool:
    """Return whether `x` has the dtype."""
    return x.dtype == dtype
