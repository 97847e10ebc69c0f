"""The ops of `weft.linalg`: shapes and dtypes are checked here, values by LAPACK when the op runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from weft._call.inline import answers
from weft._core import Native
from weft._registry.avals import Aval, broadcast_shapes
from weft._registry.brief import brief
from weft._registry.defaults import state
from weft._registry.gradients import no_gradient
from weft._registry.op import group, register_op
from weft.errors import ArgumentTypeError, ArgumentValueError, LinAlgError

if TYPE_CHECKING:
    from weft._call.calls import DType, Elements
    from weft._registry.shapes import Shape

state(group("linalg"), superlinear=True, blas=True, batch="stack")

Norm = float | Literal["fro", "nuc"] | None
_MATRIX_NORMS = frozenset([None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])


def _floating(dtype: DType) -> DType:
    """Return the dtype of LAPACK's computation: integers and bool become float64."""
    return dtype if dtype.kind in "fc" else np.dtype("f8")


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the real parts of numbers in `_floating` dtype."""
    found = _floating(dtype)
    return np.dtype(f"f{found.itemsize // 2}") if found.kind == "c" else found


def _complex(dtype: DType) -> DType:
    return np.result_type(_floating(dtype), np.complex64)


def _matrix(name: str, x: Aval) -> tuple[Shape, int, int]:
    """Return the shape of the stack, and that of its matrices; LinAlgError if `x` has no matrices."""
    if len(x.shape) < 2:  # a matrix has two axes
        raise LinAlgError(f"{name} takes matrices, or stacks of them, got shape {x.shape}")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def _square(name: str, x: Aval) -> tuple[Shape, int]:
    stack, m, n = _matrix(name, x)
    if m != n:
        raise LinAlgError(f"{name} takes square matrices, got shape {x.shape}")
    return stack, n


def _infer_same(name: str) -> Any:
    def infer(x: Aval, **_: object) -> Aval:
        _square(name, x)
        return Aval(x.shape, _floating(x.dtype))

    return infer


@register_op("linalg.cholesky", infer=_infer_same("cholesky"))
def cholesky(out: Elements, x: Elements, *, upper: bool = False) -> None:
    out[...] = np.linalg.cholesky(x, upper=upper)


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _as_floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def _cholesky_by_cupy(out: Any, x: Any, *, upper: bool = False) -> None:
    out[...] = _adjoint(np.linalg.cholesky(_adjoint(x))) if upper else np.linalg.cholesky(x)


state(cholesky, cupy=_cholesky_by_cupy)


@register_op("linalg.inv", infer=_infer_same("inv"))
def inv(out: Elements, x: Elements) -> None:
    out[...] = np.linalg.inv(x)


answers(inv, np.linalg.inv)


def _infer_det(x: Aval) -> Aval:
    return Aval(_square("det", x)[0], _floating(x.dtype))


@register_op("linalg.det", infer=_infer_det)
def det(out: Elements, x: Elements) -> None:
    out[...] = np.linalg.det(x)


answers(det, np.linalg.det)


def _infer_slogdet(x: Aval) -> tuple[Aval, Aval]:
    stack, _ = _square("slogdet", x)
    return Aval(stack, _floating(x.dtype)), Aval(stack, real_dtype(x.dtype))


@register_op("linalg.slogdet", infer=_infer_slogdet, nout=2)
def slogdet(sign: Elements, logabsdet: Elements, x: Elements) -> None:
    sign[...], logabsdet[...] = np.linalg.slogdet(x)


def _infer_eigh(x: Aval, *, uplo: str = "L") -> tuple[Aval, Aval]:
    return _infer_eigvalsh(x, uplo=uplo), Aval(x.shape, _floating(x.dtype))


def _infer_eigvalsh(x: Aval, *, uplo: str = "L") -> Aval:
    if uplo not in ("L", "U"):
        raise ArgumentValueError(f"the triangle to read is 'L' or 'U', got {uplo!r}")
    stack, n = _square("eigh", x)
    return Aval((*stack, n), real_dtype(x.dtype))


@register_op("linalg.eigh", infer=_infer_eigh, nout=2)
def eigh(values: Elements, vectors: Elements, x: Elements, *, uplo: Literal["L", "U"] = "L") -> None:
    values[...], vectors[...] = np.linalg.eigh(x, uplo)


@register_op("linalg.eigvalsh", infer=_infer_eigvalsh)
def eigvalsh(values: Elements, x: Elements, *, uplo: Literal["L", "U"] = "L") -> None:
    values[...] = np.linalg.eigvalsh(x, uplo)


def _infer_eig(x: Aval) -> tuple[Aval, Aval]:
    return _infer_eigvals(x), Aval(x.shape, _complex(x.dtype))


def _infer_eigvals(x: Aval) -> Aval:
    stack, n = _square("eig", x)
    return Aval((*stack, n), _complex(x.dtype))


@register_op("linalg.eig", infer=_infer_eig, nout=2)
def eig(values: Elements, vectors: Elements, x: Elements) -> None:
    values[...], vectors[...] = np.linalg.eig(x)


@register_op("linalg.eigvals", infer=_infer_eigvals)
def eigvals(values: Elements, x: Elements) -> None:
    values[...] = np.linalg.eigvals(x)


def _infer_qr(x: Aval, *, mode: str = "reduced") -> tuple[Aval, Aval]:
    if mode not in ("reduced", "complete"):
        raise ArgumentValueError(f"mode is 'reduced' or 'complete', got {mode!r}")
    stack, m, n = _matrix("qr", x)
    k = m if mode == "complete" else min(m, n)
    dtype = _floating(x.dtype)
    return Aval((*stack, m, k), dtype), Aval((*stack, k, n), dtype)


@register_op("linalg.qr", infer=_infer_qr, nout=2)
def qr(q: Elements, r: Elements, x: Elements, *, mode: Literal["reduced", "complete"] = "reduced") -> None:
    q[...], r[...] = np.linalg.qr(x, mode)


def _infer_svd(x: Aval, *, full_matrices: bool = True) -> tuple[Aval, Aval, Aval]:
    stack, m, n = _matrix("svd", x)
    k = min(m, n)
    dtype = _floating(x.dtype)
    u, v = ((m, m), (n, n)) if full_matrices else ((m, k), (k, n))
    return Aval((*stack, *u), dtype), Aval((*stack, k), real_dtype(dtype)), Aval((*stack, *v), dtype)


@register_op("linalg.svd", infer=_infer_svd, nout=3)
def svd(u: Elements, s: Elements, vh: Elements, x: Elements, *, full_matrices: bool = True) -> None:
    u[...], s[...], vh[...] = np.linalg.svd(x, full_matrices=full_matrices)


def _infer_svdvals(x: Aval) -> Aval:
    return _infer_svd(x)[1]


@register_op("linalg.svdvals", infer=_infer_svdvals)
def svdvals(s: Elements, x: Elements) -> None:
    s[...] = np.linalg.svdvals(x)


def _svdvals_by_cupy(out: Any, x: Any) -> None:
    out[...] = np.linalg.svd(x, compute_uv=False)


state(svdvals, cupy=_svdvals_by_cupy)


def _infer_solve(x1: Aval, x2: Aval) -> Aval:
    stack, n = _square("solve", x1)
    dtype = np.result_type(_floating(x1.dtype), _floating(x2.dtype))
    if len(x2.shape) == 1:
        if x2.shape != (n,):
            raise ArgumentValueError(f"solve: shapes {x1.shape} and {x2.shape} differ in the number of rows")
        return Aval((*stack, n), dtype)
    other, m, columns = _matrix("solve", x2)
    if m != n:
        raise ArgumentValueError(f"solve: shapes {x1.shape} and {x2.shape} differ in the number of rows")
    return Aval((*broadcast_shapes(stack, other), n, columns), dtype)


@register_op("linalg.solve", infer=_infer_solve)
def solve(out: Elements, x1: Elements, x2: Elements) -> None:
    out[...] = np.linalg.solve(x1, x2)


answers(solve, np.linalg.solve)


def _tolerance(stack: Shape, rtol: tuple[Aval, ...]) -> None:
    if rtol and broadcast_shapes(rtol[0].shape, stack) != stack:
        raise ArgumentValueError(f"rtol of shape {rtol[0].shape} does not broadcast to the stack's shape {stack}")


def _infer_matrix_rank(x: Aval, *rtol: Aval) -> Aval:
    stack, _, _ = _matrix("matrix_rank", x)
    _tolerance(stack, rtol)
    return Aval(stack, np.dtype(np.int64))


@register_op("linalg.matrix_rank", infer=_infer_matrix_rank)
def matrix_rank(out: Elements, x: Elements, *rtol: Any) -> None:
    if 0 in x.shape[-2:]:
        out[...] = 0
    else:
        out[...] = np.linalg.matrix_rank(x, rtol=rtol[0] if rtol else None)


def _matrix_rank_by_cupy(out: Any, x: Any, *rtol: Any) -> None:
    if 0 in x.shape[-2:]:
        out[...] = 0
        return
    values = np.linalg.svd(_as_floating(x), compute_uv=False)
    share = rtol[0] if rtol else max(x.shape[-2:]) * float(np.finfo(values.dtype).eps)
    bound = np.max(values, axis=-1) * share
    np.sum(values > bound[..., None], axis=-1, dtype=out.dtype, out=out)


state(matrix_rank, cupy=_matrix_rank_by_cupy)


no_gradient("linalg.matrix_rank")


def _infer_pinv(x: Aval, *rtol: Aval) -> Aval:
    stack, m, n = _matrix("pinv", x)
    _tolerance(stack, rtol)
    return Aval((*stack, n, m), _floating(x.dtype))


@register_op("linalg.pinv", infer=_infer_pinv)
def pinv(out: Elements, x: Elements, *rtol: Any) -> None:
    tolerance: Any = rtol[0] if rtol else None
    out[...] = np.linalg.pinv(x.astype(out.dtype, copy=False), rtol=tolerance)


def _pinv_by_cupy(out: Any, x: Any, *rtol: Any) -> None:
    share = rtol[0] if rtol else max(x.shape[-2:]) * float(np.finfo(out.dtype).eps)
    out[...] = np.linalg.pinv(x.astype(out.dtype, copy=False), share)


state(pinv, cupy=_pinv_by_cupy)


def _infer_matrix_power(x: Aval, *, n: int) -> Aval:
    _square("matrix_power", x)
    return Aval(x.shape, x.dtype if n >= 0 else _floating(x.dtype))


@register_op("linalg.matrix_power", infer=_infer_matrix_power)
def matrix_power(out: Elements, x: Elements, *, n: int) -> None:
    out[...] = np.linalg.matrix_power(x, n)


def _infer_matrix_norm(x: Aval, *, keepdims: bool = False, ord: Norm = "fro") -> Aval:
    if ord not in _MATRIX_NORMS:
        raise ArgumentValueError(
            f"ord of a matrix norm is 'fro', 'nuc', 1, 2 or inf, or one of those negative; got {brief(ord)}"
        )
    stack, m, n = _matrix("matrix_norm", x)
    if 0 in (m, n) and ord not in (None, "fro", "nuc"):
        raise ArgumentValueError(f"the norm of order {ord} is of no elements: shape {x.shape}")
    return Aval((*stack, 1, 1) if keepdims else stack, real_dtype(x.dtype))


@register_op("linalg.matrix_norm", infer=_infer_matrix_norm)
def matrix_norm(out: Elements, x: Elements, *, keepdims: bool = False, ord: Norm = "fro") -> None:
    out[...] = np.linalg.matrix_norm(x.astype(_floating(x.dtype), copy=False), keepdims=keepdims, ord=ord)


def _matrix_norm_by_cupy(out: Any, x: Any, *, keepdims: bool = False, ord: Any = "fro") -> None:
    out[...] = np.linalg.norm(_as_floating(x), ord, (-2, -1), keepdims)


state(matrix_norm, cupy=_matrix_norm_by_cupy)


def _infer_vector_norm(x: Aval, *, axis: Shape, keepdims: bool = False, ord: float = 2) -> Aval:
    if not isinstance(ord, int | float):
        raise ArgumentTypeError(f"ord of a vector norm is a number, got {brief(ord)}")
    shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape) if keepdims or i not in axis)
    if abs(ord) == np.inf and any(x.shape[i] == 0 for i in axis):
        raise ArgumentValueError(f"the norm of order {ord} is of no elements: shape {x.shape} along axes {axis}")
    return Aval(shape, real_dtype(x.dtype))


@register_op("linalg.vector_norm", infer=_infer_vector_norm)
def vector_norm(
    out: Elements,
    x: Elements,
    *,
    axis: Shape,
    keepdims: bool = False,
    ord: float = 2,
) -> None:
    if axis:
        x = x.astype(_floating(x.dtype), copy=False)
        out[...] = np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    else:
        out[...] = np.abs(x) if ord else x != 0


def _vector_norm_by_cupy(out: Any, x: Any, *, axis: Shape, ord: float = 2, **_: object) -> None:
    if not axis:
        out[...] = np.abs(x) if ord else x != x.dtype.type(0)
        return
    rest = [i for i in range(x.ndim) if i not in axis]
    lengths = [x.shape[i] for i in rest]
    rows = np.transpose(_as_floating(x), (*axis, *rest)).reshape((math.prod(x.shape[i] for i in axis), *lengths))
    out[...] = np.linalg.norm(rows, ord, 0).reshape(out.shape)


state(vector_norm, cupy=_vector_norm_by_cupy)
vector_norm.set_attribute("batch", "axis")


vector_norm._run_by(Native.reduce(np.add, "norm"))
