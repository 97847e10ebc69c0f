"""Operands: the array-likes of a caller, and the places to write to."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from weft._core import NDArray, wrap
from weft._engine import observers
from weft._engine.default import get_engine
from weft._registry.avals import SUPPORTED, as_dtype
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError, WeftError

if TYPE_CHECKING:
    from weft._core import Engine
    from weft._registry.avals import DType

#: All that `as_array` takes: NumPy's array-likes, and more.
ArrayLike: TypeAlias = Any
#: An operand of a push: an array, or a Python scalar that takes the dtype of the arrays beside it.
Operand: TypeAlias = "NDArray | bool | int | float | complex"

_OPERANDS = frozenset([NDArray, bool, int, float, complex])
_FRESH = frozenset([bool, int, float, complex, list, tuple])
#: Stands for an integer that is too long for all dtypes.
_TOO_LONG = object()


def engine_of(*arrays: object) -> Engine:
    """Return the engine of the first NDArray among `arrays`, or else the default one.

    Examples
    --------
    >>> import weft
    >>> from weft._call.operands import engine_of
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
    """Return an NDArray as it is, the stand-in of a moved tensor, or a new array with the present values of others.

    Parameters
    ----------
    x : array-like
        An NDArray, a NumPy array or scalar, a Python scalar, a sequence, or an object with a buffer or with DLPack.
    like : NDArray, optional
        An array with the engine for a new one.
    engine : Engine, optional
        The engine of a new array, if `like` is not given.
    dtype : numpy.dtype, optional
        The dtype of a new array.

    Raises
    ------
    TypeError
        If arrays cannot have elements of this type.

    Examples
    --------
    >>> import weft
    >>> from weft._call.operands import as_array
    >>> as_array([1, 2])
    NDArray([1, 2])
    """
    if isinstance(x, NDArray):
        return x if x.__class__ is NDArray else x._now
    if is_symbol(x):
        return x  # type: ignore[no-any-return]  # a symbol stands for an array, up to the call
    if is_symbol(like):
        return x  # type: ignore[no-any-return]  # a number: composing refuses all else
    owner = like.engine if like is not None else engine or get_engine()
    return wrap(host_array(x, dtype), owner, own=True)


def host_array(x: ArrayLike, dtype: DType | None = None, *, copy: bool | None = True) -> np.ndarray[Any, Any]:
    """Return a NumPy array of an array-like, of a dtype that arrays may have: a copy, or shared memory for ``copy=False``."""
    if hasattr(x, "__dlpack__") and not is_host(x):
        x = np.from_dlpack(x)
    if is_host(x):
        _meet(x)
    try:
        found: np.ndarray[Any, Any] = np.asarray(x)
    except ValueError as error:
        if isinstance(error, WeftError) or not isinstance(
            x, list | tuple
        ):  # errors of an object's own conversion are its own
            raise
        raise ArgumentValueError(f"no array can be made of it: {error}") from None
    if x.__class__ in _FRESH and copy and found.dtype in SUPPORTED and (dtype is None or dtype is found.dtype):
        return found  # made from Python's numbers: it has no other user
    wanted = dtype if dtype is not None else SUPPORTED.get(found.dtype) or _native(found, x)
    fresh = isinstance(x, int | float | complex | list | tuple)
    if found.dtype.kind == "O" and fresh and (isinstance(x, int) or wanted.kind in "iu"):
        return np.array(x, wanted)  # an integer over 64 bits: NumPy checks the range
    if found.dtype.kind not in "biufc":
        _native(found, x)  # raises: text and objects are not read
    if found.dtype.kind == "c" and wanted.kind not in "cb":
        raise ArgumentTypeError(
            f"cannot make an array of dtype {wanted} from complex values: take real() or imag() first"
        )
    if fresh and found.dtype.kind in "iuf" and wanted.kind in "iu":
        return np.array(x, wanted)  # NumPy checks the range of Python's numbers
    with np.errstate(all="ignore"):
        return np.array(found, wanted, copy=None if fresh and copy else copy)


def _meet(x: np.ndarray[Any, Any]) -> None:
    """Refuse masked elements, and tell the observer of an array that is converted."""
    if x.__class__ is not np.ndarray and np.ma.is_masked(x):  # where there are subclasses, there may be numpy.ma's
        raise ArgumentTypeError(
            "no array can be made of masked elements: write x.filled(weft.nan), or x.compressed() to leave them out"
        )
    if observers.converted is not None:
        observers.converted(x)


def _native(found: np.ndarray[Any, Any], x: Any) -> DType:
    """Return the dtype of NumPy's array of `x` in native byte order; ArgumentTypeError if arrays cannot have it."""
    if found.dtype.kind == "O" and not isinstance(x, np.ndarray | np.generic):
        others = (each for each in found.flat if not isinstance(each, int | float | complex | np.generic))
        raise ArgumentTypeError(_no_array(next(others, _TOO_LONG)))
    return as_dtype(found.dtype.newbyteorder("="))


def _no_array(x: Any) -> str:
    """Return the message about an object that NumPy takes for one element, and what to write instead."""
    kind: str = type(x).__name__
    if x is _TOO_LONG:
        return "no array can be made of an integer of more than 64 bits: write float(x)"
    if x is None:
        return "no array can be made of None: write weft.nan for a missing number"
    if isinstance(x, Mapping):
        instead = "list(x.values())"
    elif isinstance(x, Iterable) and not isinstance(x, str | bytes):
        instead = "list(x)"
    else:
        instead = "float(x)" if hasattr(x, "__float__") else "its numbers, as a list or a NumPy array"
    return f"no array can be made of a value of the class {kind}: write {instead}"


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a read-only view."""
    shown = array.view()
    shown.flags.writeable = False
    return shown


def values(x: NDArray) -> np.ndarray[Any, Any]:
    """Wait for an array, and return a read-only NumPy view of its values."""
    shown = x._now
    shown.wait_to_read()
    return read_only(shown._storage())


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


def coerce(arrays: tuple[Any, ...], out: object = None, *, some_array: bool = False) -> tuple[Operand, ...]:
    """Return NDArrays and Python scalars for whatever was given; the scalars take the arrays' dtype later.

    If there is no array and `some_array` asks for one, all become arrays. If nothing changes, `arrays` itself is
    returned.
    """
    for x in arrays:
        if type(x) not in _OPERANDS:
            break
    else:
        if not some_array or NDArray in map(type, arrays):
            return arrays
    engine = engine_of(*arrays, *listed(out))
    found = tuple([x if type(x) in _OPERANDS else _operand(x, engine) for x in arrays])
    if some_array and not any(isinstance(x, NDArray) for x in found):
        return tuple([as_array(x, engine=engine) for x in found])
    return arrays if all(map(operator.is_, found, arrays)) else found


def _operand(x: Any, engine: Engine) -> Operand:
    if isinstance(x, NDArray):
        return x
    for kind in (int, float, complex):  # subclasses, such as enum.IntEnum, but for NumPy's own, which have a dtype
        if isinstance(x, kind) and not isinstance(x, np.generic):
            return kind(x)  # type: ignore[arg-type] # an instance of itself
    return as_array(x, engine=engine)
