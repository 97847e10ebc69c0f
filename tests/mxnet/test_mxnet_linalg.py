"""MXNet's ops of matrices against NumPy, and their gradients against differences."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from composed import follows_differences, numbers, run

import weft
import weft.mxnet.ndarray as nd
import weft.mxnet.symbol as mx
from weft.errors import ShapeError

compute = partial(run, room="linalg")
check = partial(follows_differences, room="linalg")
close = partial(np.testing.assert_allclose, rtol=2e-4, atol=2e-5)


def positive(*shape: int) -> np.ndarray:
    x = numbers(*shape, shape[-1])
    return x @ x.swapaxes(-1, -2) + 2 * np.eye(shape[-1], dtype="f")


def test_products_of_matrices() -> None:
    a, b, c = numbers(2, 3, 4), numbers(2, 5, 4), numbers(2, 3, 5)
    wanted = 2 * a @ b.swapaxes(1, 2)
    close(compute("gemm2", a, b, transpose_b=True, alpha=2.0)[0], wanted)
    close(compute("gemm", a, b, c, transpose_b=True, alpha=2.0, beta=-1.0)[0], wanted - c)
    rows = numbers(3, 2, 4), numbers(4, 2, 5)  # rows along axis 0
    close(compute("gemm2", *rows, axis=0)[0], np.einsum("ibj,jbk->ibk", *rows))
    close(compute("syrk", a, alpha=0.5)[0], 0.5 * a @ a.swapaxes(1, 2))
    close(compute("syrk", a, transpose=True)[0], a.swapaxes(1, 2) @ a)
    check("gemm", a, b, c, wrt=(0, 1, 2), transpose_b=True)
    check("syrk", a)


@pytest.mark.parametrize("rightside", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangles(rightside: bool, transpose: bool, lower: bool) -> None:
    a = numbers(2, 3, 3) + 3 * np.eye(3, dtype="f")
    b = numbers(2, 4, 3) if rightside else numbers(2, 3, 4)
    half = np.tril(a) if lower else np.triu(a)
    half = half.swapaxes(1, 2) if transpose else half
    options: dict[str, Any] = {"rightside": rightside, "transpose": transpose, "lower": lower, "alpha": 2.0}
    close(compute("trmm", a, b, **options)[0], 2 * (b @ half if rightside else half @ b))
    inverse = np.linalg.inv(half)
    close(compute("trsm", a, b, **options)[0], 2 * (b @ inverse if rightside else inverse @ b))
    check("trmm", a, b, wrt=(0, 1), **options)
    check("trsm", a, b, wrt=(0, 1), **options)


def test_factors() -> None:
    a = positive(2, 3)
    lower, upper = compute("potrf", a)[0], compute("potrf", a, lower=False)[0]
    close(lower, np.linalg.cholesky(a))
    close(upper.swapaxes(1, 2) @ upper, a)
    close(compute("potri", lower)[0], np.linalg.inv(a))
    close(compute("potri", upper, lower=False)[0], np.linalg.inv(a))
    check("potri", lower)

    wide = numbers(2, 3, 5)
    q, half = compute("gelqf", wide)
    close(half @ q, wide)
    close(half, np.tril(half))
    close(q @ q.swapaxes(1, 2), np.broadcast_to(np.eye(3), (2, 3, 3)))

    rows, values = compute("syevd", a)
    close(rows.swapaxes(1, 2) @ (values[..., None] * rows), a)
    assert (np.diff(values) > 0).all()
    assert (np.take_along_axis(rows, abs(rows).argmax(-1)[..., None], -1) > 0).all()


def test_the_gradient_of_a_factor_is_symmetric() -> None:
    x = weft.asarray(positive(1, 3).astype("d"))
    x.requires_grad = True
    found = weft.autograd.gradients(weft.sum(nd.linalg.potrf(x) * weft.asarray(np.arange(9.0).reshape((3, 3)))))[x]
    close(found, found.numpy().swapaxes(1, 2))


def test_determinants() -> None:
    a = positive(2, 3)
    close(compute("det", a)[0], np.linalg.det(a))
    signs, logs = compute("slogdet", -a)
    assert signs.tolist() == [-1, -1]
    close(logs, np.log(np.linalg.det(a)))
    close(compute("inverse", a)[0], np.linalg.inv(a))
    close(compute("sumlogdiag", a)[0], np.log(np.einsum("bii->bi", a)).sum(-1))
    assert compute("det", a[0])[0].shape == (1,)
    assert compute("sumlogdiag", a[0])[0].shape == (1,)
    for op in ("det", "inverse", "sumlogdiag"):
        check(op, a)


@pytest.mark.parametrize("offset", [-2, -1, 0, 1])
def test_diagonals(offset: int) -> None:
    a, diagonal = numbers(2, 4, 4), numbers(2, 3)
    close(compute("extractdiag", a, offset=offset)[0], np.diagonal(a, offset, 1, 2))
    close(compute("makediag", diagonal, offset=offset)[0], [np.diag(each, offset) for each in diagonal])
    check("makediag", diagonal, offset=offset)


@pytest.mark.parametrize(("offset", "lower"), [(0, True), (0, False), (1, True), (-1, True), (-2, False)])
def test_packed_triangles(offset: int, lower: bool) -> None:
    a = numbers(2, 4, 4)
    below = lower if offset == 0 else offset < 0
    at = np.tril_indices(4, offset) if below else np.triu_indices(4, offset)
    packed = compute("extracttrian", a, offset=offset, lower=lower)[0]
    close(packed, a[:, *at])
    wanted = np.zeros_like(a)
    wanted[:, *at] = packed
    close(compute("maketrian", packed, offset=offset, lower=lower)[0], wanted)
    check("maketrian", packed, offset=offset, lower=lower)


@pytest.mark.parametrize(
    ("op", "shapes", "text"),
    [
        ("gemm2", {"A": (2, 3, 4), "B": (2, 3, 4)}, "4 columns and 3 rows"),
        ("gemm2", {"A": (2, 3, 4), "B": (4, 4)}, "as many axes"),
        ("gemm2", {"A": (2, 3, 4), "B": (3, 4, 5)}, "alike"),
        ("potrf", {"A": (2, 3)}, "square"),
        ("gelqf", {"A": (4, 3)}, "as many columns as rows"),
        ("maketrian", {"A": (2, 4)}, "no triangle"),
    ],
)
def test_matrices_that_do_not_fit(op: str, shapes: dict[str, Any], text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        getattr(mx.linalg, op)(**{name: mx.Variable(name) for name in shapes}).infer_shape(**shapes)
