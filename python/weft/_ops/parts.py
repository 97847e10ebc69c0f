"""Element-wise functions that split numbers: real and imaginary part, quotient and remainder, mantissa."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one, several
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._call.views import view
from weft._core import NDArray, tape_hear_view
from weft._cuda.launch import PARTS, Launch
from weft._ops.creation import zeros_like
from weft._ops.elementwise import floor_divide, ldexp
from weft._ops.unbroadcast import cast_like, conjugate, fit, is_known
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft._registry.symbol_hook import is_symbol

if TYPE_CHECKING:
    from weft._call.operands import ArrayLike

__all__ = ["angle", "divmod", "frexp", "imag", "modf", "real"]

_divmod = register_op("divmod", ufunc=np.divmod, nout=2)(np.divmod)
_frexp = register_op("frexp", ufunc=np.frexp, nout=2)(np.frexp)
_modf = register_op("modf", ufunc=np.modf, nout=2)(np.modf)

_divmod.set_attribute(
    "cuda",
    {name: get_op(name).attribute("cuda") for name in ("floor_divide", "remainder")},  # a kernel for each result
)
_modf.set_attribute(
    "cuda",
    {
        "modf_fraction": {"f": "a - a == a - a ? copysign(a - trunc(a), a) : a != a ? a : copysign((R)0, a)"},
        "trunc": get_op("trunc").attribute("cuda"),
    },
)
_frexp.set_attribute("cuda", {"frexp_mantissa": {"f": "mantissa(a)"}, "frexp_exponent": {"f": "(R)exponent(a)"}})


@gradient_of("divmod", inputs=[0, 1])
def _of_divmod(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    first = fit(grads[1], x1) if needs(node, 0) else None
    return first, fit(-grads[1] * floor_divide(x1, x2), x2) if needs(node, 1) else None


@gradient_of("modf")
def _of_modf(node: Any, grads: Any) -> Any:
    return (fit(grads[0], node.inputs[0]),)


@gradient_of("frexp", outputs=[1])
def _of_frexp(node: Any, grads: Any) -> Any:
    return (fit(ldexp(grads[0], -node.outputs[1]), node.inputs[0]),)


def _angle_rule(z: Aval, *, deg: bool) -> Aval:  # noqa: ARG001 - the op's attribute
    dtype: np.dtype[Any] = np.angle(np.empty(0, z.dtype)).dtype
    return Aval(z.shape, dtype)


@register_op("angle", infer=_angle_rule)
def _angle(out: np.ndarray[Any, Any], z: np.ndarray[Any, Any], *, deg: bool) -> None:
    out[...] = np.angle(z, deg=deg)


def _answer_angle(z: np.ndarray[Any, Any], *, deg: bool) -> object:
    return np.angle(z, deg=deg)


answers(_angle, _answer_angle)


def _angle_on_cuda(out: NDArray, z: NDArray, *, deg: bool) -> Launch:
    body = "atan2(a.im, a.re)" if z.dtype.kind == "c" else "atan2((R)0, a)"
    if deg:
        body += " * (R)(180 / 3.14159265358979323846264338327950288)"
    return Launch("angle_degrees" if deg else "angle", body, (z,), (z.dtype if z.dtype.kind == "c" else out.dtype,))


_angle.set_attribute("kernels", _angle_on_cuda)


@gradient_of("angle", inputs=[0])
def _of_angle(node: Any, grads: Any) -> Any:
    """Compute the gradient of atan2(imag, real): i x / abs(x)**2, and zero for real numbers."""
    x, g = node.inputs[0], grads[0]
    if isinstance(x, NDArray) and x.dtype.kind != "c":
        return (None,)
    scale = 180 / math.pi if node.attributes.get("deg") else 1.0
    return (cast_like(cast_like(g * scale, x) * (1j * x) / (x * conjugate(x)), x),)


def _part_rule(x: Aval) -> Aval:
    return Aval(x.shape, PARTS.get(x.dtype, x.dtype))


@register_op("real", infer=_part_rule)
def _real(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    np.copyto(out, x.real)


@register_op("imag", infer=_part_rule)
def _imag(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    np.copyto(out, x.imag)


for _op in (get_op("angle"), _real, _imag):
    state(_op, batch="broadcast")


@gradient_of("real")
def _of_real(node: Any, grads: Any) -> Any:
    return (cast_like(grads[0], node.inputs[0]),)


@gradient_of("imag")
def _of_imag(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    if is_known(x) and x.dtype.kind != "c":
        return (None,)
    return (cast_like(grads[0] * 1j, x),)


def real(x: ArrayLike, /) -> NDArray:
    """Return the real part of each element.

    Parameters
    ----------
    x : array-like
        The operand.

    Returns
    -------
    NDArray
        A view of a complex `x`, of half its elements' size; a real `x` itself.

    Examples
    --------
    >>> import weft
    >>> weft.real(weft.asarray([1 + 2j]))
    NDArray([1.])
    """
    array = as_array(x)
    if is_symbol(array):
        return one(_real, array)
    if array.dtype not in PARTS:
        return array
    result = view(array, array.shape, array.strides, 0, PARTS[array.dtype])
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
        A view of a complex `x`; zeros of the dtype of a real one.

    Examples
    --------
    >>> import weft
    >>> weft.imag(weft.asarray([1 + 2j]))
    NDArray([2.])
    """
    array = as_array(x)
    if is_symbol(array):
        return one(_imag, array)
    if array.dtype not in PARTS:
        return zeros_like(array)
    result = view(array, array.shape, array.strides, array.itemsize // 2 if array.size else 0, PARTS[array.dtype])
    if array._heard:
        tape_hear_view(_imag, array, result, {})
    return result


def angle(z: ArrayLike, /, deg: bool = False) -> NDArray:
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


def divmod(
    x1: ArrayLike, x2: ArrayLike, /, *, out: tuple[NDArray | None, ...] | None = None
) -> tuple[NDArray, NDArray]:
    """Return the quotients and the remainders of floor division.

    Parameters
    ----------
    x1, x2 : array-like
        The operands.
    out : tuple of two NDArray or None, optional
        Arrays for the results.

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
        Arrays for the results.

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
        Arrays for the results.

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
