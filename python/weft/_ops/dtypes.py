"""Dtypes: the names of the standard, and the functions on them.

Dtypes are NumPy's, in native byte order. The names here are its scalar types, as in NumPy's own namespace: they name a
dtype as an argument, and make a scalar when called. Promotion is NumPy 2's, which includes the standard's table: mixed
kinds promote too, and Python scalars take the dtype of the arrays beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft._call.calls import one
from weft._call.copies import copy_cast
from weft._call.devices import as_device, device_of, new
from weft._call.operands import ArrayLike, as_array
from weft._core import Native, NDArray, tape_hear_view
from weft._registry.avals import Aval, as_dtype
from weft._registry.defaults import state
from weft._registry.op import get_op, register_op
from weft._registry.shape_rules import shaped_by
from weft._registry.symbol_hook import compose, is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import builtins

    import numpy.typing as npt

    from weft._engine.labels import Device

__all__ = [
    "astype", "bool", "bool_", "can_cast", "complex64", "complex128", "e", "finfo", "float16", "float32", "float64",
    "iinfo", "inf", "int8", "int16", "int32", "int64", "isdtype", "nan", "newaxis", "pi", "promote_types",
    "result_type", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

DType: TypeAlias = np.dtype[Any]

bool = np.bool_
bool_ = bool
int8 = np.int8
int16 = np.int16
int32 = np.int32
int64 = np.int64
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
uint64 = np.uint64
float16 = np.float16
float32 = np.float32
float64 = np.float64
complex64 = np.complex64
complex128 = np.complex128

e = np.e
inf = np.inf
nan = np.nan
newaxis = None
pi = np.pi


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating-point dtype; for a complex one, those of its parts. Made by `finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntInfo:
    """The limits of an integer dtype. Made by `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: DType


def astype(
    x: ArrayLike, dtype: npt.DTypeLike, /, *, copy: builtins.bool = True, device: Device | str | None = None
) -> NDArray:
    """Return the elements cast to a dtype.

    Parameters
    ----------
    x : array-like
        The array.
    dtype : dtype-like
        The wanted dtype. Casts follow NumPy's rules; a cast of complex numbers to real ones is refused.
    copy : bool, default: True
        Whether to copy even if `x` has the dtype.
    device : Device or str, optional
        The device of the result.

    Returns
    -------
    NDArray
        The result; `x` itself only if `copy` is False and nothing changes.

    Raises
    ------
    TypeError
        If arrays cannot have `dtype`, or it would drop imaginary parts.

    Examples
    --------
    >>> import weft
    >>> weft.astype(weft.asarray([1.7, -1.7]), weft.int8)
    NDArray([ 1, -1], dtype=int8)
    """
    if copy and device is None:
        return one(_astype, x, dtype=dtype)
    array = as_array(x)
    wanted = as_dtype(dtype)
    if is_symbol(array):
        there = array if device is None else compose(get_op("copy_to"), (array,), {"device": str(as_device(device))})
        return one(_astype, there, dtype=wanted)
    where = device_of(array) if device is None else as_device(device)
    if where == device_of(array):
        return array if array.dtype == wanted and not copy else one(_astype, array, dtype=wanted)
    _check(array.dtype, wanted)
    result = new(array.shape, wanted, array.engine, where)
    copy_cast(result, array)
    if array._heard:
        tape_hear_view(_astype, array, result, {"dtype": wanted})
    return result


def _check(own: DType, wanted: DType) -> None:
    if own.kind == "c" and wanted.kind not in "cb":
        raise ArgumentTypeError(f"cannot cast an array of dtype {own} to {wanted}: take real() or imag() first")


def _casting(_: object, *, dtype: npt.DTypeLike) -> dict[str, DType]:
    return {"dtype": as_dtype(dtype)}


def _cast(x: Aval, *, dtype: DType) -> DType:
    _check(x.dtype, dtype)
    return dtype


@register_op("astype", infer=shaped_by("like_first", _cast))
def _astype(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, dtype: DType) -> None:
    del dtype  # that of `out`
    np.copyto(out, x if x.dtype.kind != "c" or out.dtype.kind in "cb" else x.real, casting="unsafe")


def _push_astype(outputs: tuple[NDArray], operands: tuple[NDArray], *, dtype: DType) -> builtins.bool:
    del dtype  # that of the result
    copy_cast(outputs[0], operands[0])
    return True


state(
    _astype,
    elementwise=True,
    identity="like",
    push=_push_astype,
    push_on_device=_push_astype,
)
_astype._prepare_by(_casting)
_astype._run_by(Native.cast())


def can_cast(from_: npt.DTypeLike | NDArray, to: npt.DTypeLike, /, casting: Any = "safe") -> builtins.bool:
    """Return whether a cast loses nothing.

    Parameters
    ----------
    from_ : dtype-like or NDArray
        The dtype to cast from.
    to : dtype-like
        The dtype to cast to.
    casting : {"safe", "same_kind", "unsafe", "equiv", "no"}, default: "safe"
        NumPy's rule.

    Examples
    --------
    >>> import weft
    >>> weft.can_cast(weft.int32, weft.float64), weft.can_cast(weft.float64, weft.float32)
    (True, False)
    """
    return np.can_cast(from_.dtype if isinstance(from_, NDArray) else from_, to, casting)


def finfo(type: npt.DTypeLike | NDArray, /) -> FloatInfo:
    """Return the limits of a floating-point dtype.

    Parameters
    ----------
    type : dtype-like or NDArray
        A real or complex floating-point dtype, or an array of one.

    Returns
    -------
    FloatInfo
        With the attributes ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal`` and ``dtype``.

    Raises
    ------
    ValueError
        If the dtype is another.

    Examples
    --------
    >>> import weft
    >>> weft.finfo(weft.float32).bits
    32
    """
    dtype = as_dtype(type.dtype if isinstance(type, NDArray) else type)
    if dtype.kind not in "fc":
        raise ArgumentValueError(f"finfo() takes a floating-point dtype, not {dtype}")
    found = np.finfo(dtype)
    return FloatInfo(
        int(found.bits),
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        as_dtype(found.dtype),
    )


def iinfo(type: npt.DTypeLike | NDArray, /) -> IntInfo:
    """Return the limits of an integer dtype.

    Parameters
    ----------
    type : dtype-like or NDArray
        An integer dtype, or an array of one.

    Returns
    -------
    IntInfo
        With the attributes ``bits``, ``max``, ``min`` and ``dtype``.

    Raises
    ------
    ValueError
        If the dtype is another.

    Examples
    --------
    >>> import weft
    >>> weft.iinfo(weft.int8).max
    127
    """
    dtype = as_dtype(type.dtype if isinstance(type, NDArray) else type)
    if dtype.kind not in "iu":
        raise ArgumentValueError(f"iinfo() takes an integer dtype, not {dtype}")
    found = np.iinfo(dtype)
    return IntInfo(found.bits, int(found.max), int(found.min), dtype)


def isdtype(dtype: npt.DTypeLike, kind: npt.DTypeLike | tuple[Any, ...]) -> builtins.bool:
    """Return whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype-like
        The dtype.
    kind : dtype-like or str or tuple of them
        A dtype, or "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
        "numeric"; of several, one must fit.

    Raises
    ------
    TypeError or ValueError
        If `kind` is none of these.

    Examples
    --------
    >>> import weft
    >>> weft.isdtype(weft.int8, "integral")
    True
    """
    kinds = tuple(map(_kind, kind)) if isinstance(kind, tuple) else _kind(kind)
    try:
        return np.isdtype(np.dtype(dtype), kinds)
    except ValueError as error:
        raise ArgumentValueError(f"isdtype: {error}") from None
    except TypeError as error:
        raise ArgumentTypeError(f"isdtype: {error}") from None


def promote_types(type1: npt.DTypeLike, type2: npt.DTypeLike, /) -> DType:
    """Return the smallest dtype to which both cast safely.

    Examples
    --------
    >>> import weft
    >>> weft.promote_types(weft.int8, weft.uint8)
    dtype('int16')
    """
    return as_dtype(np.promote_types(type1, type2))


def result_type(*arrays_and_dtypes: ArrayLike) -> DType:
    """Return the dtype to which arrays, dtypes and Python scalars promote.

    Parameters
    ----------
    *arrays_and_dtypes : array-like or dtype-like
        The operands. Python scalars take the dtype of the others, if their kind fits.

    Returns
    -------
    numpy.dtype
        The dtype.

    Raises
    ------
    ValueError
        If there are no operands.
    TypeError
        If arrays cannot have the dtype.

    Examples
    --------
    >>> import weft
    >>> weft.result_type(weft.float32, 1.5, weft.asarray([1, 2], dtype=weft.int8))
    dtype('float32')
    """
    try:
        found = np.result_type(*(x.dtype if isinstance(x, NDArray) else x for x in arrays_and_dtypes))
    except np.exceptions.DTypePromotionError:
        raise
    except TypeError as error:
        raise ArgumentTypeError(f"result_type: {error}") from None
    return as_dtype(found)


def _kind(kind: Any) -> Any:
    """Return names of kinds as they are, and the name of a dtype as a dtype: the standard takes no such names."""
    return kind if isinstance(kind, str) else np.dtype(kind)
