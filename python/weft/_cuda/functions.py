"""Functions that are no ufuncs and have kernels of weft's: element-wise ones, one each, where the dtypes have one; reductions.

An op names its function here by its attribute ``"kernels"``; `push` then comes before CuPy's function of the op's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft._call.scalars import number
from weft._core import NDArray
from weft._cuda import products, totals
from weft._cuda.elementwise import copying, kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.avals import DType
    from weft._registry.shapes import Shape

    #: Of the operands what is given, and of what dtype each is.
    Given: TypeAlias = tuple[Any, ...]

__all__ = ["push"]

_BOOL, _INDEX, _HALF, _DOUBLE = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float16), np.dtype(np.float64)
_PARTS: dict[DType, DType] = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): _DOUBLE}


def push(name: str, results: tuple[NDArray, ...], given: Given, attributes: dict[str, Any]) -> bool:
    """Push the kernel of a function.

    Parameters
    ----------
    name : str
        The function.
    results : tuple of NDArray
        Where to, on a CUDA device.
    given : tuple of NDArray or Python scalar
        The operands, arrays on that device.
    attributes : dict
        The op's attributes.

    Returns
    -------
    bool
        Whether there is one, and it was pushed.
    """
    return _FUNCTIONS[name](results[0], *given, **attributes)


def _launch(
    name: str,
    body: str,
    out: NDArray,
    given: Given,
    computed: tuple[DType, ...],
    *,
    result: DType | None = None,
    indexed: bool = False,
) -> bool:
    """Push a kernel over operands that are cast to `computed`, as which scalars are passed."""
    inputs = tuple(x.dtype if isinstance(x, NDArray) else dtype for x, dtype in zip(given, computed, strict=True))
    operands = tuple(
        x if isinstance(x, NDArray) else number(x, dtype) for x, dtype in zip(given, computed, strict=True)
    )
    found = kernels(name, body, inputs, out.dtype, computed, out.dtype if result is None else result, indexed=indexed)
    found.push((out,), operands)
    return True


def _where(out: NDArray, condition: NDArray, x1: Any, x2: Any) -> bool:
    return _launch("where", "a ? b : c", out, (condition, x1, x2), (_BOOL, out.dtype, out.dtype))


def _clip(out: NDArray, x: Any, low: Any, high: Any) -> bool:
    body = "lesser(larger(a, b), c)"
    if out.dtype.kind == "c":
        body = "(a = nan_(a) || at_least(a, b) ? a : b), nan_(a) || at_least(c, a) ? a : c"
    return _launch("clip", body, out, (x, low, high), (out.dtype,) * 3)


def _angle(out: NDArray, z: NDArray, *, deg: bool) -> bool:
    body = "atan2(a.im, a.re)" if z.dtype.kind == "c" else "atan2((R)0, a)"
    if deg:
        body += " * (R)(180 / 3.14159265358979323846264338327950288)"
    return _launch(
        "angle_degrees" if deg else "angle", body, out, (z,), (z.dtype if z.dtype.kind == "c" else out.dtype,)
    )


def _nan_to_num(out: NDArray, x: NDArray, *, nan: float, posinf: float | None, neginf: float | None) -> bool:
    dtype = out.dtype
    if dtype.kind not in "fc":
        copying(dtype).push((out,), (x,))
        return True
    real = _PARTS.get(dtype, dtype)
    limits = np.finfo(real)
    top, bottom = float(limits.max) if posinf is None else posinf, float(limits.min) if neginf is None else neginf
    part = "({0} != {0} ? b : {0} - {0} == {0} - {0} ? {0} : {0} > 0 ? c : d)"
    body = part.format("a") if dtype.kind == "f" else f"made({part.format('a.re')}, {part.format('a.im')})"
    return _launch("nan_to_num", body, out, (x, nan, top, bottom), (dtype, real, real, real))


def _round(out: NDArray, x: NDArray, *, decimals: int) -> bool:
    dtype = out.dtype
    if dtype.kind in "biu":
        if decimals >= 0 and dtype.kind != "b":
            copying(dtype).push((out,), (x,))
        return decimals >= 0 and dtype.kind != "b"
    real = _PARTS.get(dtype, dtype)
    scaled = "{0} * b" if decimals > 0 else "{0} / b"
    if dtype == _HALF:
        scaled = f"(float)(Half)({scaled})"  # as NumPy rounds each step to half precision
    part = "rint({0})" if decimals == 0 else f"rint({scaled}) {'/' if decimals > 0 else '*'} b"
    body = part.format("a") if dtype.kind == "f" else f"made({part.format('a.re')}, {part.format('a.im')})"
    name = ("round", "round_after", "round_before")[(decimals > 0) - (decimals < 0)]
    return _launch(name, body, out, (x, 10.0 ** abs(decimals)), (dtype, real))


def _isclose(out: NDArray, x1: Any, x2: Any, *, rtol: float, atol: float, equal_nan: bool) -> bool:
    arrays = [x for x in (x1, x2) if isinstance(x, NDArray)]
    dtype = np.result_type(*(x.dtype for x in arrays), *(x for x in (x1, x2) if not isinstance(x, NDArray)))
    if dtype.kind == "c":
        return False
    computed = dtype if dtype.kind == "f" else _DOUBLE
    body = "(b - b == b - b && fabs(a - b) <= d + c * fabs(b)) || a == b"
    if equal_nan:
        body += " || (a != a && b != b)"
    name = "isclose_nan" if equal_nan else "isclose"
    return _launch(name, body, out, (x1, x2, rtol, atol), (computed,) * 4, result=_BOOL)


def _triangle(name: str, sign: str) -> Callable[..., bool]:
    def push(out: NDArray, x: NDArray, *, k: int) -> bool:
        rows, columns = x.shape[-2:]
        body = f"(long long)(i % b) - (long long)(i / b % c) {sign} d ? a : A()"
        return _launch(name, body, out, (x, columns, rows, k), (x.dtype, _INDEX, _INDEX, _INDEX), indexed=True)

    return push


def _arange(out: NDArray, *, start: float, stop: float, step: float, dtype: DType) -> bool:
    del stop  # which has decided on the length
    ends = np.empty(2, dtype)  # the first two elements say the rest, as in NumPy
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
    return _launch("arange", body, out, tuple(ends.tolist()), (dtype, dtype), indexed=True)


def _linspace(out: NDArray, *, start: complex, stop: complex, num: int, dtype: DType, endpoint: bool) -> bool:
    if isinstance(start, complex) or isinstance(stop, complex):
        return False
    first, last, parts = float(start), float(stop), num - 1 if endpoint else num
    step = (last - first) / parts if parts > 0 else 0.0
    if step == 0 and first != last and parts > 0:
        return False  # too small for a step: NumPy divides first
    body = "(long long)i == (long long)d ? c : (double)(long long)i * b + a"
    if dtype.kind in "iu":
        body = f"floor({body})"
    end = parts if endpoint and num > 1 else -1
    return _launch("linspace", body, out, (first, step, last, end), (_DOUBLE,) * 4, result=_DOUBLE, indexed=True)


def _reduction(name: str) -> Callable[..., bool]:
    def push(out: NDArray, x: NDArray, *masks: NDArray, axis: Shape | None = None, **attributes: Any) -> bool:
        return not masks and totals.push(name, out, x, axis, attributes)

    return push


_FUNCTIONS: dict[str, Callable[..., bool]] = {
    "matmul": products.push,
    **{name: _reduction(name) for name in totals.FUNCTIONS},
    "where": _where,
    "clip": _clip,
    "angle": _angle,
    "nan_to_num": _nan_to_num,
    "round": _round,
    "isclose": _isclose,
    "tril": _triangle("tril", "<="),
    "triu": _triangle("triu", ">="),
    "arange": _arange,
    "linspace": _linspace,
}
