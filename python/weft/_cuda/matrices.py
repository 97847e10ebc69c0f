"""Linear algebra on CUDA devices that CuPy has under another name, with other options, or only in parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.shapes import Shape


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def _cholesky(out: Any, x: Any, *, upper: bool = False) -> None:
    out[...] = _adjoint(np.linalg.cholesky(_adjoint(x))) if upper else np.linalg.cholesky(x)


def _svdvals(out: Any, x: Any) -> None:
    out[...] = np.linalg.svd(x, compute_uv=False)


def _matrix_rank(out: Any, x: Any, *rtol: Any) -> None:
    if 0 in x.shape[-2:]:
        out[...] = 0
        return
    values = np.linalg.svd(_floating(x), compute_uv=False)
    share = rtol[0] if rtol else max(x.shape[-2:]) * float(np.finfo(values.dtype).eps)
    bound = np.max(values, axis=-1) * share
    np.sum(values > bound[..., None], axis=-1, dtype=out.dtype, out=out)


def _pinv(out: Any, x: Any, *rtol: Any) -> None:
    share = rtol[0] if rtol else max(x.shape[-2:]) * float(np.finfo(out.dtype).eps)
    out[...] = np.linalg.pinv(x.astype(out.dtype, copy=False), share)


def _matrix_norm(out: Any, x: Any, *, keepdims: bool = False, ord: Any = "fro") -> None:  # noqa: A002 - NumPy's name
    out[...] = np.linalg.norm(_floating(x), ord, (-2, -1), keepdims)


def _vector_norm(out: Any, x: Any, *, axis: Shape, ord: float = 2, **_: object) -> None:  # noqa: A002 - NumPy's name
    if not axis:
        out[...] = np.abs(x) if ord else x != x.dtype.type(0)
        return
    rest = [i for i in range(x.ndim) if i not in axis]
    lengths = [x.shape[i] for i in rest]
    rows = np.transpose(_floating(x), (*axis, *rest)).reshape((math.prod(x.shape[i] for i in axis), *lengths))
    out[...] = np.linalg.norm(rows, ord, 0).reshape(out.shape)


def _vecdot(out: Any, x1: Any, x2: Any, *, axis: int) -> None:
    products = np.multiply(np.conj(x1) if x1.dtype.kind == "c" else x1, x2)
    if out.dtype.kind == "b":
        np.any(products, axis=axis, out=out)
    else:
        np.sum(products, axis=axis, dtype=out.dtype, out=out)


def _cov(out: Any, x: Any, *others: Any, rowvar: bool, ddof: float = 0, scaled: bool = False) -> None:
    rows = [each.reshape((1, -1)) if each.ndim <= 1 else each if rowvar else each.T for each in (x, *others)]
    samples = np.concatenate([row.astype(out.dtype, copy=False) for row in rows])
    count = samples.shape[1]
    samples = samples - np.sum(samples, axis=1, keepdims=True) / count
    found = np.dot(samples, np.conj(samples.T)) / float(max(count - ddof, 0))
    if scaled:
        deviations = np.sqrt(np.real(np.diagonal(found)))
        found = found / deviations[:, None] / deviations
        parts = [np.clip(part, -1, 1) for part in ((found.real, found.imag) if found.dtype.kind == "c" else (found,))]
        found = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    np.copyto(out, found.reshape(out.shape))


#: By the op's name.
COMPUTES: dict[str, Callable[..., None]] = {
    "linalg.cholesky": _cholesky,
    "linalg.svdvals": _svdvals,
    "linalg.matrix_rank": _matrix_rank,
    "linalg.pinv": _pinv,
    "linalg.matrix_norm": _matrix_norm,
    "linalg.vector_norm": _vector_norm,
    "vecdot": _vecdot,
    "cov": _cov,
}
