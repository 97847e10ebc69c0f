"""Fourier transforms: the ops and the functions of `weft.fft`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from weft._call.calls import one
from weft._call.devices import as_device, place
from weft._call.operands import as_array
from weft._engine.default import get_engine
from weft._ops.manipulation import roll
from weft._registry.avals import Aval, as_dtype
from weft._registry.brief import brief
from weft._registry.defaults import state
from weft._registry.gradients import no_gradient
from weft._registry.op import group, register_op
from weft._registry.shapes import Axis, as_index, axis_index, axis_tuple, is_index
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._engine.labels import Device
    from weft._registry.op import Op
    from weft._registry.shapes import Shape

state(group("fft"), superlinear=True, batch="axis")

Norm: TypeAlias = Literal["backward", "ortho", "forward"]


def _transform_dtype(x: DType, *, real: bool) -> DType:
    single = x.name in ("float16", "float32", "complex64")
    return np.dtype(("f4" if real else "c8") if single else ("f8" if real else "c16"))


def _infer(name: str, x: Aval, lengths: Shape, axes: Shape, norm: str | None) -> Aval:
    """Return the inferred value of the transform `name` of `lengths` points along `axes`."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentValueError(f"norm is 'backward', 'ortho' or 'forward', got {norm!r}")
    if any(n < 1 for n in lengths):
        raise ArgumentValueError(
            f"a transform needs at least 1 point along each axis, got {lengths} for shape {x.shape}"
        )
    if name in ("rfft", "rfftn", "ihfft") and x.dtype.kind == "c":
        raise ArgumentTypeError(f"{name} takes real arrays, got dtype {x.dtype}")
    shape = list(x.shape)
    for axis, n in zip(axes, lengths, strict=True):
        shape[axis] = n
    if name in ("rfft", "rfftn", "ihfft") and axes:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    return Aval(tuple(shape), _transform_dtype(x.dtype, real=name in ("irfft", "irfftn", "hfft")))


def _register_one_axis(name: str) -> Op:
    function: Callable[..., Any] = getattr(np.fft, name)

    def infer(x: Aval, *, n: int, axis: int, norm: Norm | None = "backward") -> Aval:
        return _infer(name, x, (n,), (axis,), norm)

    def compute(out: Elements, x: Elements, *, n: int, axis: int, norm: Norm | None = "backward") -> None:
        if x.size:
            np.copyto(out, function(x, n, axis, norm))
        else:
            out.fill(0)  # NumPy leaves some results as they were

    return register_op(f"fft.{name}", infer=infer)(compute)


def _register_many_axes(name: str) -> Op:
    function: Callable[..., Any] = getattr(np.fft, name)

    def infer(x: Aval, *, s: Shape, axes: Shape, norm: Norm | None = "backward") -> Aval:
        return _infer(name, x, s, axes, norm)

    def compute(out: Elements, x: Elements, *, s: Shape, axes: Shape, norm: Norm | None = "backward") -> None:
        if x.size:
            np.copyto(out, function(x, s, axes, norm))
        else:
            out.fill(0)  # as above

    return register_op(f"fft.{name}", infer=infer)(compute)


_OPS = {
    **{name: _register_one_axis(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{name: _register_many_axes(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
}


def fft(x: ArrayLike, /, n: int | None = None, axis: SupportsIndex = -1, norm: Norm | None = "backward") -> NDArray:
    """Return the discrete Fourier transform of `n` points along `axis`, cut or padded with zeros to that many.

    Examples
    --------
    >>> import weft
    >>> print(weft.fft.fft([1.0, 0.0, 0.0, 0.0]))
    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _one_axis("fft", x, n, axis, norm)


def ifft(x: ArrayLike, /, n: int | None = None, axis: SupportsIndex = -1, norm: Norm | None = "backward") -> NDArray:
    """Return the inverse of `fft`.

    Examples
    --------
    >>> import weft
    >>> print(weft.fft.ifft([4.0, 0.0, 0.0, 0.0]))
    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _one_axis("ifft", x, n, axis, norm)


def rfft(x: ArrayLike, /, n: int | None = None, axis: SupportsIndex = -1, norm: Norm | None = "backward") -> NDArray:
    """Return the first ``n // 2 + 1`` values of the transform of a real array; the others are their conjugates.

    Examples
    --------
    >>> import weft
    >>> weft.fft.rfft([1.0, 2.0, 3.0, 4.0]).shape
    (3,)
    """
    return _one_axis("rfft", x, n, axis, norm)


def irfft(x: ArrayLike, /, n: int | None = None, axis: SupportsIndex = -1, norm: Norm | None = "backward") -> NDArray:
    """Return the inverse of `rfft`: `n` real values, by default an even number of them.

    Examples
    --------
    >>> import weft
    >>> print(weft.fft.irfft([4.0, 0.0, 0.0]))
    [1. 1. 1. 1.]
    """
    return _one_axis("irfft", x, n, axis, norm)


def hfft(x: ArrayLike, /, n: int | None = None, axis: SupportsIndex = -1, norm: Norm | None = "backward") -> NDArray:
    """Return the real transform of a Hermitian signal with `x` as its first half.

    Examples
    --------
    >>> import weft
    >>> print(weft.fft.hfft([1.0, 0.0, 0.0]))
    [1. 1. 1. 1.]
    """
    return _one_axis("hfft", x, n, axis, norm)


def ihfft(x: ArrayLike, /, n: int | None = None, axis: SupportsIndex = -1, norm: Norm | None = "backward") -> NDArray:
    """Return the inverse of `hfft`: the first half of a Hermitian signal.

    Examples
    --------
    >>> import weft
    >>> weft.fft.ihfft([1.0, 1.0, 1.0, 1.0]).shape
    (3,)
    """
    return _one_axis("ihfft", x, n, axis, norm)


def fftn(
    x: ArrayLike,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm | None = "backward",
) -> NDArray:
    """Return the transform of ``s[i]`` points along each of `axes`, by default all, or the last ones that `s` is for.

    Examples
    --------
    >>> import weft
    >>> weft.fft.fftn(weft.ones((2, 3))).shape
    (2, 3)
    """
    return _many_axes("fftn", x, s, axes, norm)


def ifftn(
    x: ArrayLike,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm | None = "backward",
) -> NDArray:
    """Return the inverse of `fftn`.

    Examples
    --------
    >>> import weft
    >>> weft.fft.ifftn(weft.ones((2, 3))).shape
    (2, 3)
    """
    return _many_axes("ifftn", x, s, axes, norm)


def rfftn(
    x: ArrayLike,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm | None = "backward",
) -> NDArray:
    """Return `fftn` of a real array, without the second half of its last axis.

    Examples
    --------
    >>> import weft
    >>> weft.fft.rfftn(weft.ones((2, 4))).shape
    (2, 3)
    """
    return _many_axes("rfftn", x, s, axes, norm)


def irfftn(
    x: ArrayLike,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm | None = "backward",
) -> NDArray:
    """Return the inverse of `rfftn`; ``s[-1]`` is the number of real values, by default an even one.

    Examples
    --------
    >>> import weft
    >>> weft.fft.irfftn(weft.ones((2, 3))).shape
    (2, 4)
    """
    return _many_axes("irfftn", x, s, axes, norm)


def fft2(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm | None = "backward"
) -> NDArray:
    """Return `fftn` along the last two axes.

    Examples
    --------
    >>> import weft
    >>> weft.fft.fft2(weft.ones((5, 2, 3))).shape
    (5, 2, 3)
    """
    return fftn(x, s, axes, norm)


def ifft2(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm | None = "backward"
) -> NDArray:
    """Return the inverse of `fft2`.

    Examples
    --------
    >>> import weft
    >>> weft.fft.ifft2(weft.ones((5, 2, 3))).shape
    (5, 2, 3)
    """
    return ifftn(x, s, axes, norm)


def rfft2(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm | None = "backward"
) -> NDArray:
    """Return `rfftn` along the last two axes.

    Examples
    --------
    >>> import weft
    >>> weft.fft.rfft2(weft.ones((5, 2, 4))).shape
    (5, 2, 3)
    """
    return rfftn(x, s, axes, norm)


def irfft2(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm | None = "backward"
) -> NDArray:
    """Return the inverse of `rfft2`.

    Examples
    --------
    >>> import weft
    >>> weft.fft.irfft2(weft.ones((5, 2, 3))).shape
    (5, 2, 4)
    """
    return irfftn(x, s, axes, norm)


def _infer_frequencies(*, n: int, d: float, dtype: DType) -> Aval:  # noqa: ARG001 - an attribute of the op
    _check_points(n)
    return Aval((n,), dtype)


@register_op("fft.fftfreq", infer=_infer_frequencies)
def _fftfreq(out: Elements, *, n: int, d: float, dtype: DType) -> None:  # noqa: ARG001 - that of `out`
    np.copyto(out, np.fft.fftfreq(n, d), casting="same_kind")


no_gradient("fft.fftfreq")


def _infer_real_frequencies(*, n: int, d: float, dtype: DType) -> Aval:  # noqa: ARG001 - an attribute of the op
    _check_points(n)
    return Aval((n // 2 + 1,), dtype)


@register_op("fft.rfftfreq", infer=_infer_real_frequencies)
def _rfftfreq(out: Elements, *, n: int, d: float, dtype: DType) -> None:  # noqa: ARG001 - that of `out`
    np.copyto(out, np.fft.rfftfreq(n, d), casting="same_kind")


no_gradient("fft.rfftfreq")


def fftfreq(
    n: SupportsIndex, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: Device | str | None = None
) -> NDArray:
    """Return the frequencies of `fft`'s values for `n` points at the distance `d`, in float64 unless `dtype` is given.

    Examples
    --------
    >>> import weft
    >>> print(weft.fft.fftfreq(4))
    [ 0.    0.25 -0.5  -0.25]
    """
    return _frequencies(_fftfreq, n, d, dtype, device)


def rfftfreq(
    n: SupportsIndex, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: Device | str | None = None
) -> NDArray:
    """Return the frequencies of `rfft`'s values for `n` points at the distance `d`, in float64 unless `dtype` is given.

    Examples
    --------
    >>> import weft
    >>> print(weft.fft.rfftfreq(4))
    [0.   0.25 0.5 ]
    """
    return _frequencies(_rfftfreq, n, d, dtype, device)


def fftshift(x: ArrayLike, /, axes: Axis = None) -> NDArray:
    """Move the zero frequency to the middle of `axes`, by default of all.

    Examples
    --------
    >>> import weft
    >>> weft.fft.fftshift([0, 1, -2, -1])
    NDArray([-2, -1,  0,  1])
    """
    x = as_array(x)
    chosen = axis_tuple(axes, x.ndim)
    return roll(x, tuple(x.shape[i] // 2 for i in chosen), axis=chosen)


def ifftshift(x: ArrayLike, /, axes: Axis = None) -> NDArray:
    """Return the inverse of `fftshift`.

    Examples
    --------
    >>> import weft
    >>> weft.fft.ifftshift([-2, -1, 0, 1])
    NDArray([ 0,  1, -2, -1])
    """
    x = as_array(x)
    chosen = axis_tuple(axes, x.ndim)
    return roll(x, tuple(-(x.shape[i] // 2) for i in chosen), axis=chosen)


def _one_axis(name: str, x: ArrayLike, n: int | None, axis: SupportsIndex, norm: Norm | None) -> NDArray:
    x = as_array(x)
    at = axis_index(axis, x.ndim)
    points = 2 * (x.shape[at] - 1) if name in ("irfft", "hfft") else x.shape[at]
    return one(_OPS[name], x, n=points if n is None else operator.index(n), axis=at, norm=norm)


def _many_axes(
    name: str, x: ArrayLike, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm | None
) -> NDArray:
    x = as_array(x)
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    if is_index(axes):
        raise ArgumentTypeError(f"{name}: axes are a sequence of integers, not {brief(axes)}")
    at = tuple(axis_index(axis, x.ndim) for axis in axes)
    if s is not None and len(s) != len(at):
        raise ArgumentValueError(f"s={tuple(s)} is not for as many axes as {tuple(axes)}")
    if not at and name in ("rfftn", "irfftn"):
        raise ArgumentValueError(f"{name} needs at least 1 axis, got shape {x.shape} and axes {tuple(axes)}")
    whole = [x.shape[i] for i in at]
    if name == "irfftn":
        whole[-1] = 2 * (whole[-1] - 1)
    given = whole if s is None else [n if m == -1 else operator.index(m) for n, m in zip(whole, s, strict=True)]
    return one(_OPS[name], x, s=tuple(given), axes=at, norm=norm)


def _check_points(n: int) -> None:
    if n < 1:
        raise ArgumentValueError(f"frequencies need at least 1 point, got n={n}")


def _frequencies(op: Op, n: SupportsIndex, d: float, dtype: DTypeLike | None, device: Device | str | None) -> NDArray:
    where = as_device(device)
    given = np.dtype(np.float64) if dtype is None else as_dtype(dtype)
    if given.kind not in "fc":
        raise ArgumentTypeError(f"frequencies have a floating dtype, got {given}")
    return place(one(op, engine=get_engine(), n=as_index(n, "n"), d=d, dtype=given), where)
