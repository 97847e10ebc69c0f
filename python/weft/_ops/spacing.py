"""Numbers spaced evenly: `arange`, `linspace`; on a logarithmic scale: `logspace`, `geomspace`."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.devices import as_device, place
from weft._call.listening import hear_nothing
from weft._call.making import made
from weft._call.scalars import number_of
from weft._core import fresh_range, fresh_spaced, wrap
from weft._cuda.launch import Launch
from weft._engine.default import get_engine
from weft._registry.avals import Aval, as_dtype
from weft._registry.gradients import no_gradient
from weft._registry.op import register_op
from weft._registry.shapes import as_index
from weft.errors import ArgumentDivisionError, ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._call.devices import Where
    from weft._core import Engine, NDArray
    from weft._registry.avals import DType

__all__ = ["arange", "geomspace", "linspace", "logspace"]


def _range_rule(*, start: float, stop: float, step: float, dtype: DType) -> Aval:
    if step == 0:
        raise ArgumentDivisionError("arange: step is another number than 0")
    extent = stop - start
    length = extent / step
    if length == 0 and extent != 0:  # an underflow: there is an element all the same, if the signs agree
        length = 1.0 if math.copysign(1.0, length) > 0 else 0.0
    if not -math.inf < length <= sys.maxsize:  # NaN, too
        raise ArgumentValueError(
            f"arange: from {start} to {stop} by {step} are {length:.3g} elements: no array has so many"
        )
    return Aval((max(0, math.ceil(length)),), dtype)


@register_op("arange", infer=_range_rule)
def _arange(out: np.ndarray[Any, Any], *, start: float, stop: float, step: float, dtype: DType) -> None:
    out[...] = np.arange(start, stop, step, dtype=dtype)


no_gradient("arange")


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Where = None,
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
        The dtype; by default int64 if all numbers are integers, float64 otherwise.
    device, engine : optional
        As of `empty`.

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
    first, last = (0, start) if stop is None else (start, stop)
    if device is None and (short := fresh_range(first, last, step, dtype, engine or get_engine())) is not None:
        return short
    given = (first, last, step)
    numbers = [number_of(x) for x in given]
    if any(isinstance(x, complex) for x in numbers):
        raise ArgumentTypeError(f"arange() takes real numbers, not {numbers}")
    first, last, by = numbers
    found = as_dtype(np.result_type(*map(type, numbers)) if dtype is None else dtype)
    if found.kind == "b" and _range_rule(start=first, stop=last, step=by, dtype=found).shape[0] > 2:  # False, True
        raise ArgumentTypeError("arange() is only supported for booleans when the result has at most length 2")
    rule = _range_rule(start=first, stop=last, step=by, dtype=found)
    answer = made(_arange, rule.shape, found, device, engine, start=first, stop=last, step=by)
    hear_nothing("arange", (start, stop, step), (answer,))
    return answer


def _arange_on_cuda(out: NDArray, *, start: float, stop: float, step: float, dtype: DType) -> Launch:
    del stop  # the length is decided already
    ends = np.empty(2, dtype)  # the first two elements determine the rest, as in NumPy
    ends[0] = start
    if out.size > 1:
        ends[1] = start + step
    if dtype.kind == "c":
        ramp = "a.{0} + (decltype(a.re))(long long)i * (b.{0} - a.{0})"
        body = f"made({ramp.format('re')}, {ramp.format('im')})"
    elif dtype.kind == "f":
        body = "a + (R)(long long)i * (b - a)"
    else:
        body = "i ? b : a" if dtype.kind == "b" else "(R)((U)a + (U)i * ((U)b - (U)a))"
    if out.size <= 1:
        ends[1] = ends[0]
    return Launch("arange", body, tuple(ends.tolist()), (dtype, dtype), indexed=True)


_arange.set_attribute("kernels", _arange_on_cuda)


def _linspace_rule(*, num: int, dtype: DType, **_attributes: object) -> Aval:
    return Aval((num,), dtype)


@register_op("linspace", infer=_linspace_rule)
def _linspace(
    out: np.ndarray[Any, Any], *, start: complex, stop: complex, num: int, dtype: DType, endpoint: bool
) -> None:
    out[...] = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


no_gradient("linspace")


def _linspace_on_cuda(
    _: NDArray, *, start: complex, stop: complex, num: int, dtype: DType, endpoint: bool
) -> Launch | None:
    if isinstance(start, complex) or isinstance(stop, complex):
        return None
    first, last, parts = float(start), float(stop), num - 1 if endpoint else num
    step = (last - first) / parts if parts > 0 else 0.0
    if step == 0 and first != last and parts > 0:
        return None  # the step underflows: NumPy divides first
    body = "(long long)i == (long long)d ? c : (double)(long long)i * b + a"
    if dtype.kind in "iu":
        body = f"floor({body})"
    end, double = parts if endpoint and num > 1 else -1, np.dtype(np.float64)
    return Launch("linspace", body, (first, step, last, end), (double,) * 4, result=double, indexed=True)


_linspace.set_attribute("kernels", _linspace_on_cuda)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: SupportsIndex = 50,
    *,
    dtype: npt.DTypeLike | None = None,
    device: Where = None,
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
    endpoint : bool, default: True
        Whether `stop` is the last of them.
    device, engine : optional
        As of `empty`.

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
    count = as_index(num, "num")
    if count < 0:
        raise ArgumentValueError(f"Number of samples, {count}, must be non-negative.")
    if device is None:
        short = fresh_spaced(start, stop, count, bool(endpoint), dtype, engine or get_engine())
        if short is not None:
            return short
    ends = number_of(start), number_of(stop)
    default = np.complex128 if any(isinstance(end, complex) for end in ends) else np.float64
    found = as_dtype(default if dtype is None else dtype)
    given = {"start": ends[0], "stop": ends[1], "num": count, "endpoint": bool(endpoint)}
    numbers = made(_linspace, (count,), found, device, engine, **given)
    hear_nothing("linspace", (start, stop), (numbers,))
    return numbers


def logspace(
    start: complex,
    stop: complex,
    /,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Where = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return numbers from ``base ** start`` to ``base ** stop`` whose logarithms are evenly spaced.

    Parameters
    ----------
    start, stop : number
        The exponents of the ends.
    num : int, default: 50
        How many numbers.
    endpoint : bool, default: True
        Whether the last one is at `stop`.
    base : float, default: 10.0
        The base.
    dtype : dtype-like, optional
        The dtype; by default float64, or complex128 for complex ends.
    device, engine : optional
        As of `empty`.

    Examples
    --------
    >>> import weft
    >>> weft.logspace(0, 2, 3)
    NDArray([  1.,  10., 100.])
    """
    ends: tuple[float, float] = number_of(start), number_of(stop)
    scale: float = number_of(base)
    values = np.logspace(*ends, as_index(num, "num"), endpoint=endpoint, base=scale)
    found = _wrapped(values, dtype, device, engine)
    hear_nothing("logspace", (start, stop, base), (found,))
    return found


def geomspace(
    start: complex,
    stop: complex,
    /,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Where = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return numbers from `start` to `stop`, each the same multiple of the one before; parameters as in `logspace`.

    Examples
    --------
    >>> import weft
    >>> weft.geomspace(1, 8, 4)
    NDArray([1., 2., 4., 8.])
    """
    ends: tuple[float, float] = number_of(start), number_of(stop)
    wanted = None if dtype is None else as_dtype(dtype)
    with np.errstate(all="ignore"):
        values = np.geomspace(*ends, as_index(num, "num"), endpoint=endpoint, dtype=wanted)
    found = _wrapped(values, dtype, device, engine)
    hear_nothing("geomspace", (start, stop), (found,))
    return found


def _wrapped(
    values: npt.NDArray[np.inexact], dtype: npt.DTypeLike | None, device: Where, engine: Engine | None
) -> NDArray:
    wanted = values.dtype if dtype is None else as_dtype(dtype)
    return place(wrap(values.astype(wanted), engine or get_engine(), own=True), as_device(device))
