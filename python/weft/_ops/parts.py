"""Element-wise functions that take numbers apart: real and imaginary part, quotient and remainder, mantissa."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one, several
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._call.symbol_hook import is_symbol
from weft._call.views import view
from weft._core import tape_hear_view
from weft._registry.avals import Aval
from weft._registry.op import register_op
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from weft._call.operands import ArrayLike
    from weft._core import NDArray

__all__ = ["angle", "divmod", "frexp", "imag", "modf", "real"]

_divmod = register_op("divmod", ufunc=np.divmod, nout=2)(np.divmod)
_frexp = register_op("frexp", ufunc=np.frexp, nout=2)(np.frexp)
_modf = register_op("modf", ufunc=np.modf, nout=2)(np.modf)

_PART: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


def _angle_rule(z: Aval, *, deg: bool) -> Aval:  # noqa: ARG001 - the op's attribute
    dtype = _PART.get(z.dtype, z.dtype)
    return Aval(z.shape, dtype if dtype.kind == "f" else np.dtype(np.float64))


@register_op("angle", infer=_angle_rule)
def _angle(out: np.ndarray[Any, Any], z: np.ndarray[Any, Any], *, deg: bool) -> None:
    out[...] = np.angle(z, deg=deg)


def _answer_angle(z: np.ndarray[Any, Any], *, deg: bool) -> object:
    if z.dtype.kind not in "fc":
        raise ArgumentTypeError("by `compute` alone, in the dtype of the rule")
    return np.angle(z, deg=deg)


answers(_angle, _answer_angle)
_angle.set_attribute("kernels", "angle")


def _part_rule(x: Aval) -> Aval:
    return Aval(x.shape, _PART.get(x.dtype, x.dtype))


@register_op("real", infer=_part_rule)
def _real(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    np.copyto(out, x.real)


@register_op("imag", infer=_part_rule)
def _imag(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    np.copyto(out, x.imag)


def real(x: ArrayLike, /) -> NDArray:
    """Return the real part of each element.

    Parameters
    ----------
    x : array-like
        The operand.

    Returns
    -------
    NDArray
        A view of `x` where it is complex, of half its elements' size; `x` itself where it is real.

    Examples
    --------
    >>> import weft
    >>> weft.real(weft.asarray([1 + 2j]))
    NDArray([1.])
    """
    array = as_array(x)
    if is_symbol(array):
        return one(_real, array)
    if array.dtype not in _PART:
        return array
    result = view(array, array.shape, array.strides, 0, _PART[array.dtype])
    if array._heard:
        tape_hear_view(_real, array, result, {})
    return result


def imag(x: ArrayLike, /) -> NDArray:
    """Return the imaginary part of each element.

    Parameters
    ----------
    x : array-like
        The operand.

    Returns
    -------
    NDArray
        A view of `x` where it is complex; zeros of its dtype where it is real.

    Examples
    --------
    >>> import weft
    >>> weft.imag(weft.asarray([1 + 2j]))
    NDArray([2.])
    """
    array = as_array(x)
    if is_symbol(array):
        return one(_imag, array)
    if array.dtype not in _PART:
        from weft._ops.creation import zeros_like  # noqa: PLC0415 - the other way round at import

        return zeros_like(array)
    result = view(array, array.shape, array.strides, array.itemsize // 2 if array.size else 0, _PART[array.dtype])
    if array._heard:
        tape_hear_view(_imag, array, result, {})
    return result


def angle(z: ArrayLike, /, deg: bool = False) -> NDArray:  # noqa: FBT001, FBT002 - NumPy's signature
    """Return the angle of each complex number.

    Parameters
    ----------
    z : array-like
        The operand.
    deg : bool, default: False
        Whether to return degrees instead of radians.

    Returns
    -------
    NDArray
        The angles, from -pi (exclusive) to pi.

    Examples
    --------
    >>> import weft
    >>> weft.angle(weft.asarray([1 + 0j, 1j]), deg=True)
    NDArray([ 0., 90.])
    """
    return one(_angle, as_array(z), deg=bool(deg))


def divmod(  # noqa: A001 - NumPy's name
    x1: ArrayLike, x2: ArrayLike, /, *, out: tuple[NDArray | None, ...] | None = None
) -> tuple[NDArray, NDArray]:
    """Return the quotients and the remainders of floor division.

    Parameters
    ----------
    x1, x2 : array-like
        The operands.
    out : tuple of two NDArray or None, optional
        Where to write the results.

    Returns
    -------
    (NDArray, NDArray)
        As `floor_divide` and `remainder` give them.

    Examples
    --------
    >>> import weft
    >>> weft.divmod(weft.asarray([7, -7]), 3)
    (NDArray([ 2, -3]), NDArray([1, 2]))
    """
    quotient, remainder = several(_divmod, x1, x2, out=out)
    return quotient, remainder


def modf(x: ArrayLike, /, *, out: tuple[NDArray | None, ...] | None = None) -> tuple[NDArray, NDArray]:
    """Return the fractional and the integral part of each element.

    Parameters
    ----------
    x : array-like
        The operand.
    out : tuple of two NDArray or None, optional
        Where to write the results.

    Returns
    -------
    (NDArray, NDArray)
        Both of a floating-point dtype, with the elements' signs.

    Examples
    --------
    >>> import weft
    >>> weft.modf(weft.asarray([1.5, -0.25]))
    (NDArray([ 0.5 , -0.25]), NDArray([ 1., -0.]))
    """
    fraction, whole = several(_modf, x, out=out)
    return fraction, whole


def frexp(x: ArrayLike, /, *, out: tuple[NDArray | None, ...] | None = None) -> tuple[NDArray, NDArray]:
    """Return the mantissa and the exponent of each element.

    Parameters
    ----------
    x : array-like
        The operand.
    out : tuple of two NDArray or None, optional
        Where to write the results.

    Returns
    -------
    (NDArray, NDArray)
        Mantissas between -1 and 1, and int32 exponents of 2; ``ldexp`` puts them together.

    Examples
    --------
    >>> import weft
    >>> weft.frexp(weft.asarray([8.0]))
    (NDArray([0.5]), NDArray([4], dtype=int32))
    """
    mantissa, exponent = several(_frexp, x, out=out)
    return mantissa, exponent
