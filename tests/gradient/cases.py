"""For each op with a gradient rule, functions of weft that call it, and operands at which it is smooth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CASES", "Case"]

_ = weft


@dataclass(frozen=True)
class Case:
    """A function and its operands, whose gradients are checked."""

    function: Callable[..., Any]
    operands: tuple[np.ndarray[Any, Any], ...]
    second: bool = True


_rng = np.random.default_rng(20)


def _real(*shape: int, low: float = 0.3, high: float = 0.9) -> np.ndarray[Any, Any]:
    return _rng.uniform(low, high, shape)


def _signed(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers of both signs, none near zero or near another one."""
    size = int(np.prod(shape))
    return (_rng.permutation(size).reshape(shape) + 0.35 - size // 2 + _rng.uniform(0, 0.2, shape)) / 2


def _complex(*shape: int) -> np.ndarray[Any, Any]:
    return _real(*shape) + 1j * _rng.uniform(-0.9, 0.9, shape)


def _matrix(*shape: int) -> np.ndarray[Any, Any]:
    """Well-conditioned square matrices."""
    return _rng.uniform(-0.5, 0.5, shape) + np.diag(np.arange(1, shape[-1] + 1.0))


def _complex_matrix(*shape: int) -> np.ndarray[Any, Any]:
    return _matrix(*shape) + 1j * _rng.uniform(-0.5, 0.5, shape)


def _positive(x: Any) -> Any:
    """Return Hermitian matrices that are positive, as a function of any."""
    return x @ weft.conj(x).mT + weft.eye(x.shape[-1])


def _with_nan(x: np.ndarray[Any, Any]) -> Any:
    """Return a function that puts NaN into an array of the shape of `x`."""
    mask = np.zeros(x.shape, bool)
    mask[..., 1] = True
    return lambda y: weft.where(weft.asarray(mask), weft.nan, y)


def _unary(name: str, **kinds: Any) -> list[Case]:
    function = getattr(weft, name)
    real = kinds.get("real", _real)
    found = [
        Case(function, (each,)) for each in (real(2, 3), np.array(real(1)[0]), np.zeros((0, 3)), real(4, 6)[::2, ::-2])
    ]
    found.append(Case(lambda x: function(weft.broadcast_to(x, (3, 2))), (real(2),)))
    if kinds.get("analytic", True):
        found.append(Case(function, (kinds.get("complex", _complex)(2, 3),), second=kinds.get("second", True)))
    return found


def _binary(name: str, **kinds: Any) -> list[Case]:
    function = getattr(weft, name)
    real = kinds.get("real", _real)
    found = [
        Case(function, (real(2, 3), real(2, 3))),
        Case(function, (real(2, 1), real(3))),
        Case(function, (np.array(real(1)[0]), real(2))),
        Case(function, (np.zeros((0, 2)), real(2))),
        Case(function, (real(6)[::-2], real(3))),
        Case(lambda x: function(x, 0.7), (real(3),)),
        Case(lambda x: function(0.7, x), (real(3),)),
    ]
    if kinds.get("analytic", False):
        found += [Case(function, (_complex(2, 3), _complex(3))), Case(function, (_real(3), _complex(3)))]
    return found


def _reduction(
    name: str, *, analytic: bool = False, where: bool = False, real: Any = _signed, **options: Any
) -> list[Case]:
    function = getattr(weft, name)
    found = [
        Case(lambda x: function(x, **options), (real(2, 3),)),
        Case(lambda x: function(x, axis=1, **options), (real(2, 3),)),
        Case(lambda x: function(x, axis=(0, 2), keepdims=True, **options), (real(2, 3, 2),)),
        Case(lambda x: function(x, axis=0, **options), (real(4, 6)[::-2, 1::2],)),
    ]
    if analytic:
        found.append(Case(lambda x: function(x, axis=-1, **options), (_complex(2, 3),)))
    if where:
        mask = np.array([[True, False, True], [True, True, False]])
        extra = {"initial": -50.0} if name == "max" else {"initial": 50.0} if name == "min" else {}
        found.append(Case(lambda x: function(x, axis=1, where=weft.asarray(mask), **extra, **options), (real(2, 3),)))
    return found


CASES: dict[str, list[Case]] = {
    **{name: _unary(name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "atanh")},
    **{name: _unary(name) for name in ("exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sqrt", "square", "reciprocal")},
    "erf": [Case(weft.autograd.erf, (each,)) for each in (_real(2, 3), _signed(3))],
    **{name: _unary(name) for name in ("negative", "positive", "conj")},
    **{name: _unary(name, analytic=False) for name in ("cbrt", "degrees", "radians", "fabs", "modf_fraction") if hasattr(weft, name)},
    **{name: _unary(name, real=_signed, analytic=False) for name in ("ceil", "floor", "rint", "trunc", "round")},
    "acosh": _unary("acosh", real=lambda *shape: 1 + _real(*shape)),
    "abs": _unary("abs", real=_signed),
    "sign": _unary("sign", real=_signed),
    "angle": [Case(weft.angle, (_complex(2, 3),)), Case(lambda x: weft.angle(x, deg=True), (_complex(3),)), Case(weft.angle, (_signed(3),))],
    "real": [Case(weft.real, (_complex(2, 3),)), Case(weft.real, (_signed(3),))],
    "imag": [Case(weft.imag, (_complex(2, 3),)), Case(weft.imag, (_signed(3),))],
    "modf": [Case(lambda x: weft.modf(x)[0], (_signed(3),)), Case(lambda x: weft.modf(x), (_signed(2, 2),))],
    "frexp": [Case(lambda x: weft.frexp(x)[0], (_signed(3),))],
    "divmod": [Case(lambda x, y: weft.divmod(x, y), (_signed(4), _real(4)))],
    **{name: _binary(name, analytic=True) for name in ("add", "subtract", "multiply", "divide", "pow", "float_power")},
    **{name: _binary(name) for name in ("atan2", "hypot", "logaddexp", "logaddexp2", "copysign")},
    **{name: _binary(name, real=lambda *s: _signed(*s) + _real(*s) / 10) for name in ("maximum", "minimum", "fmax", "fmin")},
    "remainder": [Case(weft.remainder, (_signed(2, 3), _real(3)))],
    "fmod": [Case(weft.fmod, (_signed(2, 3), _real(3)))],
    "spacing": [Case(weft.spacing, (_signed(2, 3) * 1.01,))],
    "nextafter": [Case(weft.nextafter, (_signed(2, 3), _real(3)))],
    "floor_divide": [Case(weft.floor_divide, (_signed(2, 3), _real(3)))],
    "heaviside": [Case(weft.heaviside, (np.array([-1.0, 0.0, 2.0]), _real(3))) for _ in range(0)]
    + [Case(lambda y: weft.heaviside(weft.asarray([-1.0, 0.0, 2.0]), y), (_real(3),))],
    "ldexp": [Case(lambda x: weft.ldexp(x, weft.asarray([1, 2, 3])), (_real(3),))],
    "clip": [
        Case(lambda x, a, b: weft.clip(x, a, b), (_signed(8), np.full(8, -1.05), np.array(1.03))),
        Case(lambda x: weft.clip(x, -1.05, 1.03), (_signed(8),)),
        Case(lambda x, a, b: weft.clip(x, a, b), (_signed(8), np.full(8, 1.05), np.full(8, -1.03))),
    ],
    "nan_to_num": [Case(lambda x: weft.nan_to_num(_with_nan(np.zeros(3))(x)), (_signed(3),))],
    "sum": _reduction("sum", analytic=True, where=True),
    "mean": _reduction("mean", analytic=True, where=True),
    "prod": [
        *_reduction("prod", analytic=True, where=True, initial=2.0),
        Case(lambda x: weft.prod(x, axis=1), (np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 2.0], [1.0, 2.0, 3.0]]),)),
        Case(weft.prod, (np.array([[0.0, 2.0], [3.0, 0.0]]),)),
        Case(lambda x: weft.prod(x, axis=(0, 2)), (np.array([[[0.0, 2.0], [1.0, 3.0]], [[3.0, 0.0], [0.0, 0.5]]]),)),
    ],
    "max": _reduction("max", where=True),
    "min": _reduction("min", where=True),
    "ptp": _reduction("ptp"),
    "var": _reduction("var", analytic=True, where=True, correction=1),
    "std": _reduction("std", analytic=True, where=True),
    "median": [*_reduction("median"), *_reduction("median", real=lambda *s: _signed(*(n + 1 for n in s)))],
    "quantile": [
        *(Case(lambda x, a=a, k=k: weft.quantile(x, 0.3, axis=a, keepdims=k), (_signed(2, 3, 2),)) for a, k in ((None, False), (1, False), ((0, 2), True))),
        Case(lambda x: weft.quantile(x, [0.1, 0.75], axis=0), (_signed(5, 2),)),
        Case(lambda x: weft.quantile(x, weft.asarray([[0.1, 0.75]]), axis=1, keepdims=True), (_signed(2, 5),)),
        *(Case(lambda x, m=m: weft.quantile(x, 0.4, method=m), (_signed(7),)) for m in ("lower", "nearest", "hazen", "weibull")),
    ],
    **{
        name: [
            Case(lambda x, f=getattr(weft, name): f(_with_nan(np.zeros((2, 4)))(x), axis=1), (_signed(2, 4),)),
            Case(lambda x, f=getattr(weft, name): f(_with_nan(np.zeros((2, 4)))(x), keepdims=True), (_signed(2, 4),)),
        ]
        for name in ("nansum", "nanmean", "nanprod", "nanmax", "nanmin", "nanvar", "nanstd", "nanmedian")
    },
    "cumulative_sum": [
        Case(lambda x: weft.cumulative_sum(x, axis=1), (_signed(2, 3),)),
        Case(lambda x: weft.cumulative_sum(x, axis=0, include_initial=True), (_complex(2, 3),)),
    ],
    "cumulative_prod": [
        Case(lambda x: weft.cumulative_prod(x, axis=1), (_signed(2, 3),)),
        Case(lambda x: weft.cumulative_prod(x, axis=0, include_initial=True), (_complex(3, 2),)),
        Case(lambda x: weft.cumulative_prod(x), (np.array([1.0, 0.0, 2.0, 0.0, 3.0]),)),
        Case(lambda x: weft.cumulative_prod(x, axis=1), (np.zeros((2, 0)),)),
    ],
    "recurrence": [Case(lambda x: weft.cumulative_prod(x), (_signed(4),))],
    "diff": [
        Case(lambda x: weft.diff(x), (_signed(4),)),
        Case(lambda x: weft.diff(x, n=2, axis=0), (_complex(4, 2),)),
        Case(lambda x: weft.diff(x, n=5), (_signed(3),)),
    ],
    "astype": [Case(lambda x: weft.astype(x, "complex128"), (_signed(3),)), Case(lambda x: x.copy(), (_complex(3),))],
    "reshape": [Case(lambda x: x.reshape(3, -1), (_signed(2, 3),)), Case(lambda x: x.reshape(-1), (_signed(4, 3).T,))],
    "permute_dims": [Case(lambda x: weft.permute_dims(x, (2, 0, 1)), (_signed(2, 3, 2),)), Case(lambda x: x.T, (_complex(2, 3),))],
    "matrix_transpose": [Case(lambda x: x.mT, (_signed(2, 3),)), Case(lambda x: weft.linalg.inv(x), (_matrix(3, 3),))],
    "expand_dims": [Case(lambda x: weft.expand_dims(x, 1), (_signed(2, 3),))],
    "squeeze": [Case(lambda x: weft.squeeze(x), (_signed(2, 1, 3),))],
    "flip": [Case(lambda x: weft.flip(x), (_signed(2, 3),)), Case(lambda x: weft.flip(x, axis=1), (_signed(2, 3),))],
    "roll": [Case(lambda x: weft.roll(x, 2), (_signed(2, 3),)), Case(lambda x: weft.roll(x, (1, 2), axis=(0, 1)), (_signed(2, 3),))],
    "broadcast_to": [Case(lambda x: weft.broadcast_to(x, (3, 2, 4)), (_signed(2, 1),))],
    "select": [Case(lambda x: weft.unstack(x, axis=1), (_signed(2, 3),))],
    "narrow": [Case(lambda x: weft.array_split(x, 2, axis=1), (_signed(2, 5),))],
    "pad_axis": [Case(lambda x: weft.diff(x, n=2), (_signed(5),))],
    "getitem": [
        Case(lambda x: x[1:, ::-2], (_signed(3, 4),)),
        Case(lambda x: x[..., None, 0], (_signed(3, 4),)),
        Case(lambda x: x[[0, 0, 2]], (_signed(3, 2),)),
        Case(lambda x: x[weft.asarray([2, 0]), :, [1, 1]], (_signed(3, 2, 3),)),
        Case(lambda x: x[x > 0], (_signed(3, 2),)),
        Case(lambda x: x[np.array([True, False, True]), 1:], (_complex(3, 2),)),
    ],
    "scatter_add": [Case(lambda x: x[[0, 0, 1]] ** 2, (_signed(3),))],
    "setitem": [
        Case(lambda x, v: _written(x, ([0, 2],), v), (_signed(3, 2), _signed(2))),
        Case(lambda x, v: _written(x, (weft.asarray([1, 0]), slice(1, None)), v), (_signed(3, 2), _complex(2, 1).real)),
        Case(lambda x: _written(x, (np.array([True, False, True]),), 2.0), (_signed(3, 2),)),
    ],
    "assign": [
        Case(lambda x, v: _written(x, (slice(1, None),), v), (_signed(3, 2), _signed(2))),
        Case(lambda x, v: _written(x, (slice(None), 0), v), (_complex(3, 2), _complex(3))),
        Case(lambda x: _written(x, (..., slice(None, None, 2)), 2.0), (_signed(3, 4),)),
    ],
    "take": [
        Case(lambda x: weft.take(x, weft.asarray([0, 2, 2]), axis=1), (_signed(2, 3),)),
        Case(lambda x: weft.take(x, [[0, -1]]), (_complex(2, 3),)),
    ],
    "take_along_axis": [
        Case(lambda x: weft.take_along_axis(x, weft.asarray([[0, 0, 1, -1]]), axis=1), (_signed(2, 3),)),
        Case(lambda x: weft.take_along_axis(x, weft.asarray([[1], [0]]), axis=1), (_complex(1, 3),)),
    ],
    "scatter_along_axis": [Case(lambda x: weft.sort(x, axis=0) ** 2, (_signed(3, 2),))],
    "where": [
        Case(lambda x, y: weft.where(weft.asarray([True, False, True]), x, y), (_signed(2, 3), _signed(3))),
        Case(lambda x: weft.where(weft.asarray([[True], [False]]), x, 1.0), (_complex(3),)),
    ],
    "concat": [
        Case(lambda x, y: weft.concat([x, y], axis=1), (_signed(2, 3), _signed(2, 1))),
        Case(lambda x, y: weft.concat([x, y], axis=None), (_complex(2, 3), _signed(2))),
    ],
    "stack": [Case(lambda x, y: weft.stack([x, y, x], axis=-1), (_signed(2, 3), _signed(2, 3)))],
    "tile": [Case(lambda x: weft.tile(x, (2, 1, 3)), (_signed(2, 3),)), Case(lambda x: weft.tile(x, 2), (_complex(2, 3),))],
    "repeat": [Case(lambda x: weft.repeat(x, 2, axis=0), (_signed(2, 3),)), Case(lambda x: weft.repeat(x, [0, 2, 1], axis=1), (_signed(2, 3),))],
    "pad": [
        *(Case(lambda x, m=m: weft.pad(x, ((1, 2), (0, 2)), mode=m), (_signed(4, 3),)) for m in ("constant", "edge", "reflect", "symmetric", "wrap", "mean")),
        Case(lambda x: weft.pad(x, 2, mode="linear_ramp", end_values=1.0), (_signed(3),)),
        Case(lambda x: weft.pad(x, 2, mode="reflect", reflect_type="odd"), (_signed(4),)),
        *(Case(lambda x, m=m: weft.pad(x, ((1, 2), (1, 0)), mode=m, stat_length=2), (_signed(4, 3),)) for m in ("maximum", "minimum", "median", "mean")),
    ],
    "sort": [Case(lambda x: weft.sort(x, axis=0), (_signed(4, 2),)), Case(lambda x: weft.sort(x, descending=True), (_signed(2, 3),))],
    "partition": [Case(lambda x: weft.partition(x, 2), (_signed(2, 6),))],
    "diagonal": [Case(lambda x: weft.diagonal(x, 1), (_signed(3, 4),)), Case(lambda x: weft.diagonal(x, -1, 0, 2), (_complex(3, 2, 3),))],
    "diagonal_embed": [Case(lambda x: weft.diagonal(x) ** 2, (_signed(3, 3),))],
    "trace": [Case(lambda x: weft.linalg.trace(x), (_signed(3, 4),)), Case(lambda x: x.trace(1, 0, 2), (_complex(3, 2, 3),))],
    "diagflat": [Case(lambda x: weft.diag(x, 1), (_signed(3),))],
    "tril": [Case(lambda x: weft.tril(x, k=-1), (_signed(2, 3, 3),))],
    "triu": [Case(lambda x: weft.triu(x, k=1), (_complex(3, 3),))],
    "matmul": [
        Case(weft.matmul, (_signed(2, 3), _signed(3, 2))),
        Case(weft.matmul, (_signed(3), _signed(3))),
        Case(weft.matmul, (_signed(2, 4, 3), _signed(3))),
        Case(weft.matmul, (_signed(3), _signed(2, 3, 2))),
        Case(weft.matmul, (_complex(2, 1, 2, 3), _signed(2, 3, 2))),
        Case(weft.matmul, (_signed(3, 2).T, _complex(6, 2)[::2])),
        Case(weft.matmul, (np.zeros((2, 0)), np.zeros((0, 3)))),
    ],
    "tensordot": [
        Case(lambda x, y: weft.tensordot(x, y, axes=1), (_signed(2, 3), _complex(3, 2))),
        Case(lambda x, y: weft.tensordot(x, y, axes=((2, 0), (1, 3))), (_signed(2, 3, 4), _signed(2, 4, 3, 2))),
    ],
    "vecdot": [
        Case(lambda x, y: weft.vecdot(x, y), (_complex(2, 3), _complex(3))),
        Case(lambda x, y: weft.vecdot(x, y, axis=0), (_signed(3, 2), _signed(3, 1))),
    ],
    "einsum": [
        Case(lambda x, y: weft.einsum("ij,jk->ik", x, y), (_signed(2, 3), _complex(3, 2))),
        Case(lambda x: weft.einsum("ii->i", x), (_signed(3, 3),)),
        Case(lambda x: weft.einsum("iij->j", x), (_signed(2, 2, 3),)),
        Case(lambda x, y: weft.einsum("ij,k", x, y), (_signed(2, 3), _signed(2))),
        Case(lambda x, y: weft.einsum("...ij,j...->i...", x, y), (_signed(2, 2, 3), _signed(3, 2))),
        Case(lambda x, y: weft.einsum("i...,i->...", x, y), (_signed(2, 3, 2), _signed(2))),
        Case(lambda x: weft.einsum("ij->i", x), (_signed(2, 3),)),
        Case(lambda x, y, z: weft.einsum("ij,ij,j->", x, y, z), (_signed(2, 3), _signed(1, 3), _signed(3))),
    ],
    "cross": [
        Case(lambda x, y: weft.linalg.cross(x, y), (_signed(2, 3), _signed(3))),
        Case(lambda x, y: weft.linalg.cross(x, y, axis=0), (_complex(3, 2), _signed(3, 1))),
    ],
    "interp": [
        Case(lambda x, xp, fp: weft.interp(x, xp, fp), (np.array([0.2, 1.7, -1.0, 9.0]), np.array([0.0, 1.0, 2.5]), _signed(3))),
        Case(lambda x, fp: weft.interp(x, [0.0, 1.0, 3.0], fp, left=2.0, right=-1.0), (np.array([[0.2, -1.0], [2.0, 5.0]]), _signed(3))),
        Case(lambda x, fp: weft.interp(x, [0.5, 1.0, 3.0], fp, period=4.0), (np.array([0.2, -1.2, 6.0]), _signed(3))),
    ],
    "gradient": [
        Case(lambda x: weft.gradient(x, 0.5), (_signed(5),)),
        Case(lambda x: weft.gradient(x, weft.asarray([0.0, 1.0, 3.0, 4.0]), axis=1, edge_order=2), (_complex(2, 4),)),
    ],
    "gradient_adjoint": [Case(lambda x: weft.gradient(x) ** 2, (_signed(4),))],
    "convolve": [
        *(Case(lambda x, y, m=m: weft.convolve(x, y, mode=m), (_signed(5), _signed(n))) for m in ("full", "same", "valid") for n in (2, 3)),
        Case(lambda x, y: weft.convolve(x, y, mode="same"), (_complex(3), _complex(4))),
    ],
    "average": [
        Case(lambda x, w: weft.average(x, 1, w), (_signed(2, 3), _real(3))),
        Case(lambda x, w: weft.average(x, None, w, keepdims=True), (_complex(2, 3), _real(2, 3))),
    ],
    "cov": [
        Case(lambda x: weft.cov(x), (_signed(2, 4),)),
        Case(lambda x, y: weft.cov(x, y, rowvar=False), (_complex(4, 2), _signed(4))),
        Case(lambda x: weft.corrcoef(x), (_signed(3, 5),)),
        Case(lambda x: weft.cov(x), (_signed(5),)),
    ],
    **{
        f"fft.{name}": [
            Case(lambda x, f=getattr(weft.fft, name): f(x), (_complex(2, 4),)),
            Case(lambda x, f=getattr(weft.fft, name): f(x, n=6, axis=0, norm="ortho"), (_complex(5, 2),)),
            Case(lambda x, f=getattr(weft.fft, name): f(x, n=3, norm="forward"), (_complex(2, 5),)),
        ]
        for name in ("fft", "ifft", "irfft", "hfft")
    },
    **{
        f"fft.{name}": [
            Case(lambda x, f=getattr(weft.fft, name): f(x), (_signed(2, 5),)),
            Case(lambda x, f=getattr(weft.fft, name): f(x, n=6, axis=0, norm="ortho"), (_signed(5, 2),)),
            Case(lambda x, f=getattr(weft.fft, name): f(x, n=4, norm="forward"), (_signed(2, 5),)),
        ]
        for name in ("rfft", "ihfft")
    },
    **{f"fft.{name}": [Case(lambda x, f=getattr(weft.fft, name): f(x, s=(4, 3)), (_complex(3, 4),))] for name in ("fftn", "ifftn", "irfftn")},
    "fft.rfftn": [Case(lambda x: weft.fft.rfftn(x, s=(4, 5)), (_signed(3, 5),))],
    "linalg.inv": [Case(weft.linalg.inv, (_matrix(2, 3, 3),)), Case(weft.linalg.inv, (_complex_matrix(3, 3),))],
    "linalg.solve": [
        Case(weft.linalg.solve, (_matrix(3, 3), _signed(3, 2))),
        Case(weft.linalg.solve, (_complex_matrix(2, 3, 3), _signed(3))),
        Case(weft.linalg.solve, (_matrix(3, 3), _signed(2, 3, 2))),
    ],
    "linalg.det": [
        Case(weft.linalg.det, (_matrix(2, 3, 3),)),
        Case(weft.linalg.det, (_complex_matrix(3, 3),)),
        Case(weft.linalg.det, (np.array([[1.0, 2.0], [2.0, 4.0]]),), second=False),
    ],
    "linalg.adjugate": [Case(weft.linalg.det, (_matrix(3, 3),))],
    "linalg.slogdet": [
        Case(lambda x: weft.linalg.slogdet(x)[1], (_matrix(2, 3, 3),)),
        Case(lambda x: tuple(weft.linalg.slogdet(x)), (_complex_matrix(3, 3),)),
    ],
    "linalg.cholesky": [
        Case(lambda x: weft.linalg.cholesky(_positive(x)), (_matrix(3, 3),)),
        Case(lambda x: weft.linalg.cholesky(_positive(x), upper=True), (_complex_matrix(2, 3, 3),)),
    ],
    "linalg.eigh": [
        Case(lambda x: (weft.linalg.eigh(x + x.mT)[0], weft.linalg.eigh(x + x.mT)[1] ** 2), (_matrix(3, 3),)),
        Case(lambda x: weft.abs(weft.linalg.eigh(_positive(x))[1]) ** 2, (_complex_matrix(3, 3),)),
    ],
    "linalg.eigvalsh": [
        Case(lambda x: weft.linalg.eigvalsh(x + x.mT), (_matrix(2, 3, 3),)),
        Case(lambda x: weft.linalg.eigvalsh(_positive(x)), (_complex_matrix(3, 3),)),
    ],
    "linalg.eig": [
        Case(lambda x: weft.linalg.eig(x)[0], (_matrix(3, 3),)),
        Case(lambda x: weft.abs(weft.linalg.eig(x)[1]) ** 2, (_complex_matrix(3, 3),)),
    ],
    "linalg.eigvals": [Case(weft.linalg.eigvals, (_matrix(3, 3),)), Case(weft.linalg.eigvals, (_complex_matrix(3, 3),))],
    "linalg.qr": [
        Case(lambda x: tuple(weft.linalg.qr(x)), (_signed(4, 3),)),
        Case(lambda x: tuple(weft.linalg.qr(x)), (_signed(2, 3, 4),)),
        Case(lambda x: tuple(weft.linalg.qr(x)), (_complex(4, 3),)),
        Case(lambda x: tuple(weft.linalg.qr(x, mode="complete")), (_matrix(3, 3),)),
    ],
    "linalg.svd": [
        Case(lambda x: _products_of_svd(x), (_signed(3, 2),)),
        Case(lambda x: _products_of_svd(x), (_signed(2, 2, 3),)),
        Case(lambda x: _products_of_svd(x), (_complex(3, 2),)),
        Case(lambda x: weft.linalg.svd(x)[1], (_complex_matrix(3, 3),)),
    ],
    "linalg.svdvals": [Case(weft.linalg.svdvals, (_signed(3, 2),)), Case(weft.linalg.svdvals, (_complex(2, 3),))],
    "linalg.pinv": [Case(weft.linalg.pinv, (_signed(3, 2),)), Case(weft.linalg.pinv, (_complex(2, 3),))],
    "linalg.matrix_power": [
        *(Case(lambda x, n=n: weft.linalg.matrix_power(x, n), (_matrix(3, 3),)) for n in (0, 1, 3, -2)),
        Case(lambda x: weft.linalg.matrix_power(x, 3), (_complex_matrix(2, 2, 2),)),
    ],
    "linalg.matrix_norm": [
        *(Case(lambda x, o=o: weft.linalg.matrix_norm(x, ord=o), (_signed(2, 3, 2),)) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        Case(lambda x: weft.linalg.matrix_norm(x, ord=2, keepdims=True), (_complex(3, 2),)),
    ],
    "linalg.vector_norm": [
        *(Case(lambda x, o=o: weft.linalg.vector_norm(x, ord=o, axis=1), (_signed(2, 3),)) for o in (0, 1, 2, 3, 2.5, np.inf, -np.inf, -1)),
        Case(lambda x: weft.linalg.vector_norm(x, keepdims=True), (_complex(2, 3),)),
        Case(lambda x: weft.linalg.vector_norm(x, axis=(), ord=2), (_signed(3),)),
    ],
}  # fmt: skip


def _written(x: Any, key: Any, value: Any) -> Any:
    found = x * 1.0
    found[key] = value
    return found


def _products_of_svd(x: Any) -> Any:
    """Return what does not depend on the phases of singular vectors."""
    u, s, vh = weft.linalg.svd(x, full_matrices=False)
    return s, (u * s[..., None, :]) @ vh, weft.abs(u) ** 2, weft.abs(vh) ** 2
