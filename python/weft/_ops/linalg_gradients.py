"""Rules of linear algebra: Giles, "Collected matrix derivative results for forward and reverse mode" (2008), and their complex forms.

Undetermined values have no gradients: phases of eigenvectors and singular vectors, and the vectors that `svd` and `qr`
add to make their bases complete. A loss must not depend on these. Gradients of functions that read one triangle of a
Hermitian matrix are Hermitian.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import weft._ops.elementwise as e
from weft._ops.manipulation_gradients import adjoint
from weft._ops.parts import imag, real
from weft._ops.unbroadcast import apply, cast_like, choose, conjugate, fit, shape_of
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft.errors import GradientError


def _op(name: str, *arrays: Any, **attributes: Any) -> Any:
    return get_op(f"linalg.{name}")(*arrays, **attributes)


def _product(a: Any, *others: Any) -> Any:
    for b in others:
        a = get_op("matmul")(a, b)
    return a


def _columns(x: Any) -> Any:
    """Return vectors in the shape that scales the columns of matrices."""
    return apply("expand_dims", x, axes=(-2,))


def _rows(x: Any) -> Any:
    """Return vectors in the shape that scales the rows of matrices."""
    return apply("expand_dims", x, axes=(-1,))


def _scalars(x: Any) -> Any:
    return apply("expand_dims", x, axes=(-2, -1))


def _diagonal(x: Any) -> Any:
    """Return the diagonals of matrices."""
    return apply("diagonal", x, offset=0, axis1=-2, axis2=-1)


def _hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def _unit(x: Any) -> Any:
    """Return the identity matrix for square matrices with any elements."""
    from weft._call.devices import device_of  # noqa: PLC0415 - as above
    from weft._ops.creation import asarray  # noqa: PLC0415 - a circle at import

    n = shape_of(x)[-1]
    if hasattr(x, "engine"):
        dtype = np.empty(0, x.dtype).real.dtype
        return asarray(np.eye(n, dtype=dtype), device=device_of(x), engine=x.engine)
    return asarray(np.eye(n))


@gradient_of("linalg.inv", outputs=[0])
def _inv(node: Any, grads: Any) -> Any:
    back = adjoint(node.outputs[0])
    return (-_product(back, grads[0], back),)


@gradient_of("linalg.solve", inputs=[0], outputs=[0])
def _solve(node: Any, grads: Any) -> Any:
    a, b = node.inputs
    y = node.outputs[0]
    w = _op("solve", adjoint(a), _rows(grads[0]) if len(shape_of(b)) == 1 else grads[0])
    if len(shape_of(b)) == 1:
        da = fit(-_product(w, adjoint(_rows(y))), a) if needs(node, 0) else None
        return da, fit(w[..., 0], b) if needs(node, 1) else None
    return fit(-_product(w, adjoint(y)), a) if needs(node, 0) else None, fit(w, b) if needs(node, 1) else None


def _infer_adjugate(x: Aval) -> Aval:
    return Aval(x.shape, x.dtype)


@register_op("linalg.adjugate", infer=_infer_adjugate)
def _adjugate(out: Any, x: Any) -> None:
    """Write the determinant times the inverse, which exists for singular matrices, too."""
    if not x.size:
        return
    u, s, vh = np.linalg.svd(x)
    n = s.shape[-1]
    spared = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    turn = np.linalg.det(u) * np.linalg.det(vh)
    v, uh = np.swapaxes(vh, -1, -2).conj(), np.swapaxes(u, -1, -2).conj()
    out[...] = turn[..., None, None] * ((v * spared[..., None, :]) @ uh)


@gradient_of("linalg.adjugate", inputs=[0])
def _adjugate_rule(node: Any, grads: Any) -> Any:
    """Compute the gradient of det(A) inv(A), if the inverse exists."""
    x, g = node.inputs[0], grads[0]
    inverse, det = _op("inv", x), _op("det", x)
    back = adjoint(inverse)
    by_det = apply("sum", g * conjugate(inverse), axis=(-2, -1) if not hasattr(g, "ndim") else (g.ndim - 2, g.ndim - 1))
    return (_scalars(by_det * conjugate(det)) * back - _product(back, g * _scalars(conjugate(det)), back),)


@gradient_of("linalg.det", inputs=[0])
def _det(node: Any, grads: Any) -> Any:
    return (_scalars(grads[0]) * adjoint(_op("adjugate", node.inputs[0])),)


@gradient_of("linalg.slogdet", inputs=[0], outputs=[0])
def _slogdet(node: Any, grads: Any) -> Any:
    x, sign = node.inputs[0], node.outputs[0]
    by_sign, by_log = grads
    scale = cast_like(by_log, sign)
    if sign.dtype.kind == "c":
        scale = scale - 1j * cast_like(imag(conjugate(by_sign) * sign), sign)
    return (_scalars(scale) * adjoint(_op("inv", x)),)


@gradient_of("linalg.cholesky", outputs=[0])
def _cholesky(node: Any, grads: Any) -> Any:
    lower, g = node.outputs[0], grads[0]
    if node.attributes.get("upper"):
        lower, g = adjoint(lower), adjoint(g)
    half = _product(adjoint(lower), g)
    half = apply("tril", half, k=0) - half * _unit(half) / 2
    back = _op("inv", lower)
    return (_hermitian(_product(adjoint(back), half, back)),)


def _gaps(values: Any) -> Any:
    """Return the differences of each value to each other, columns less rows, and infinity on the diagonal."""
    gaps = _columns(values) - _rows(values)
    return choose(_unit(gaps) > 0, math.inf, gaps)


@gradient_of("linalg.eigh", outputs=[0, 1])
def _eigh(node: Any, grads: Any) -> Any:
    values, vectors = node.outputs
    by_values, by_vectors = grads
    inner = _product(adjoint(vectors), by_vectors) / cast_like(_gaps(values), vectors)
    inner = inner + _unit(inner) * _columns(by_values)
    return (_hermitian(_product(vectors, inner, adjoint(vectors))),)


@gradient_of("linalg.eigvalsh", inputs=[0])
def _eigvalsh(node: Any, grads: Any) -> Any:
    vectors = _op("eigh", node.inputs[0], uplo=node.attributes.get("uplo", "L"))[1]
    return (_hermitian(_product(vectors * _columns(grads[0]), adjoint(vectors))),)


@gradient_of("linalg.eig", inputs=[0], outputs=[0, 1])
def _eig(node: Any, grads: Any) -> Any:
    """Vectors have length 1: the part of a gradient that would change the length is removed."""
    values, vectors = node.outputs
    by_values, by_vectors = grads
    back = adjoint(vectors)
    inner = _product(back, by_vectors)
    along = cast_like(real(_diagonal(inner)), vectors)
    inner = (inner - _product(back, vectors * _columns(along))) / conjugate(cast_like(_far(values), vectors))
    inner = inner * (1 - _unit(inner)) + _unit(inner) * _columns(by_values)
    return (cast_like(_op("solve", back, _product(inner, back)), node.inputs[0]),)


def _far(values: Any) -> Any:
    gaps = _columns(values) - _rows(values)
    return choose(_unit(gaps) > 0, 1.0, gaps)


@gradient_of("linalg.eigvals", inputs=[0])
def _eigvals(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    vectors = _op("eig", x)[1]
    back = adjoint(vectors)
    return (cast_like(_op("solve", back, _rows(grads[0]) * back), x),)


@gradient_of("linalg.qr", outputs=[0, 1])
def _qr(node: Any, grads: Any) -> Any:
    """Factor the first columns of a wide matrix, and turn the others: R = [U, Q* Y]."""
    q, r = node.outputs
    by_q, by_r = grads
    m, k = shape_of(q)[-2:]
    n = shape_of(r)[-1]
    if node.attributes.get("mode") == "complete" and m > n:
        raise GradientError(
            f"qr() of a matrix with {m} rows and {n} columns has no gradient in the mode 'complete', which adds columns that "
            "are not determined: use the mode 'reduced'"
        )
    if n <= k:
        return (_qr_square(q, r, by_q, by_r),)
    first, by_first, by_rest, rest = r[..., :k], by_r[..., :k], by_r[..., k:], r[..., k:]
    others = _product(q, rest)
    by_x = _qr_square(q, first, by_q + _product(others, adjoint(by_rest)), by_first)
    return (get_op("concat")(by_x, _product(q, by_rest), axis=-1),)


def _qr_square(q: Any, r: Any, by_q: Any, by_r: Any) -> Any:
    inner = apply("triu", _product(by_r, adjoint(r)) - _product(adjoint(q), by_q), k=0)
    both = inner + adjoint(inner)
    both = both - both * _unit(both) / 2
    return adjoint(_op("solve", r, adjoint(by_q + _product(q, both))))


@gradient_of("linalg.svd", outputs=[0, 1, 2])
def _svd(node: Any, grads: Any) -> Any:
    u, s, vh = node.outputs
    by_u, by_s, by_vh = grads
    k = shape_of(s)[-1]
    u, by_u, vh, by_vh = u[..., :k], by_u[..., :k], vh[..., :k, :], by_vh[..., :k, :]
    sizes = cast_like(s, u)
    squares = sizes * sizes
    gaps = _gaps(squares) if u.dtype.kind != "c" else _gaps_complex(squares)
    inner_u = _product(adjoint(u), by_u)
    inner_v = _product(vh, adjoint(by_vh))
    turn_u, turn_v = ((each - adjoint(each)) for each in (inner_u, inner_v))
    inner = turn_u / gaps * _columns(sizes) + _rows(sizes) * (turn_v / gaps)
    on_diagonal = cast_like(by_s, u)
    if u.dtype.kind == "c":
        on_diagonal = on_diagonal + _diagonal(turn_u) / (2 * sizes)
    inner = inner + _unit(inner) * _columns(on_diagonal)
    found = _product(u, inner, vh)
    if shape_of(u)[-2] > k:
        scaled = by_u / _columns(sizes)
        found = found + _product(scaled - _product(u, adjoint(u), scaled), vh)
    if shape_of(vh)[-1] > k:
        scaled = by_vh / _rows(sizes)
        found = found + _product(u, scaled - _product(scaled, adjoint(vh), vh))
    return (found,)


def _gaps_complex(values: Any) -> Any:
    """Return `_gaps` with a large number, because a division by infinity would give NaN."""
    gaps = _columns(values) - _rows(values)
    return choose(_unit(gaps) > 0, 1e300 if gaps.dtype.itemsize == 16 else 1e30, gaps)  # complex128


@gradient_of("linalg.svdvals", inputs=[0])
def _svdvals(node: Any, grads: Any) -> Any:
    u, _, vh = _op("svd", node.inputs[0], full_matrices=False)
    return (_product(u * _columns(grads[0]), vh),)


@gradient_of("linalg.pinv", inputs=[0], outputs=[0])
def _pinv(node: Any, grads: Any) -> Any:
    """Golub and Pereyra, "The differentiation of pseudo-inverses" (1973)."""
    x, y, g = node.inputs[0], node.outputs[0], grads[0]
    back, turned = adjoint(y), adjoint(g)
    rows = turned - _product(x, y, turned)
    columns = turned - _product(turned, y, x)
    found = _product(rows, y, back) + _product(back, y, columns) - _product(back, g, back)
    return (found, *(None,) * (len(node.inputs) - 1))


@gradient_of("linalg.matrix_power", inputs=[0])
def _matrix_power(node: Any, grads: Any) -> Any:
    x, n = node.inputs[0], node.attributes["n"]
    if n == 0:
        return (None,)
    base = x if n > 0 else _op("inv", x)
    back, g = adjoint(base), grads[0]
    found = None
    for at in range(abs(n)):
        each = g if at == 0 else _product(_op("matrix_power", back, n=at), g)
        rest = abs(n) - 1 - at
        each = each if rest == 0 else _product(each, _op("matrix_power", back, n=rest))
        found = each if found is None else found + each
    return (found if n > 0 else -_product(back, found, back),)


@gradient_of("linalg.matrix_norm", inputs=[0], outputs=[0])
def _matrix_norm(node: Any, grads: Any) -> Any:
    x, y, g = node.inputs[0], node.outputs[0], grads[0]
    if not node.attributes.get("keepdims"):
        y, g = _scalars(y), _scalars(g)
    order = node.attributes.get("ord", "fro")
    if order in (None, "fro"):
        return (x * cast_like(_ratio(g, y), x),)
    if order in ("nuc", 2, -2):
        u, s, vh = _op("svd", x, full_matrices=False)
        share = g if order == "nuc" else g * _share(_columns(s), order)
        return (_product(u * cast_like(share, u), vh),)
    axis = len(shape_of(x)) - (2 if abs(order) == 1 else 1)
    sums = apply("sum", e.abs(x), axis=(axis,), keepdims=True)
    return (cast_like(g * _share(sums, order), x) * e.sign(x),)


def _share(values: Any, order: float) -> Any:
    """Return each value's share of the gradient of a norm that is the greatest value, or the least."""
    ndim = len(shape_of(values))
    same = e.equal(values, apply("max" if order > 0 else "min", values, axis=(ndim - 2, ndim - 1), keepdims=True))
    return same / apply("sum", same, axis=(ndim - 2, ndim - 1), keepdims=True)


def _ratio(g: Any, y: Any) -> Any:
    """Return g / y, and zero for zeros of y."""
    nothing = e.equal(y, 0)
    return choose(nothing, 0, g / choose(nothing, 1, y))


@gradient_of("linalg.vector_norm", inputs=[0], outputs=[0])
def _vector_norm(node: Any, grads: Any) -> Any:
    x, y, g = node.inputs[0], node.outputs[0], grads[0]
    axis, order = node.attributes["axis"], node.attributes.get("ord", 2)
    if order == 0:
        return (None,)
    if axis and not node.attributes.get("keepdims"):
        y, g = apply("expand_dims", y, axes=axis), apply("expand_dims", g, axes=axis)
    if order == 1 or not axis:
        return (cast_like(g, x) * e.sign(x),)
    if order == 2:  # Euclid's
        return (x * cast_like(_ratio(g, y), x),)
    if math.isinf(order):
        same = e.equal(e.abs(x), y)
        share = same / apply("sum", same, axis=axis, keepdims=True)
        return (cast_like(g * share, x) * e.sign(x),)
    nothing = e.equal(e.abs(x), 0)
    power = choose(nothing, 0, e.pow(choose(nothing, 1, e.abs(x)), order - 1))
    scale = _ratio(g, e.pow(choose(e.equal(y, 0), 1, y), order - 1))
    return (e.sign(x) * cast_like(power * scale, x),)
