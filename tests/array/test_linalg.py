"""The linalg extension, against NumPy."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from against import DTYPES, agree, sample

import weft
from weft import linalg

INEXACT = ("float32", "float64", "complex64", "complex128", "int32")
STACKS = [(), (2,), (0,), (2, 1)]


def matrices(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    x = sample(dtype, shape, seed)
    return (x + 8 * np.eye(*shape[-2:])).astype(dtype)  # far from singular


def positive(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    x = sample(dtype, shape)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + 9 * np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("stack", STACKS)
def test_square(dtype: str, stack: tuple[int, ...]) -> None:
    x = matrices(dtype, (*stack, 3, 3))
    a = weft.asarray(x)
    agree(linalg.det(a), np.linalg.det(x), close=True)
    agree(linalg.inv(a), np.linalg.inv(x), close=True)
    agree(linalg.slogdet(a), tuple(np.linalg.slogdet(x)), close=True)
    for n in (0, 1, 3, -2):
        agree(linalg.matrix_power(a, n), np.linalg.matrix_power(x, n), close=True)
    for shape in ((3,), (3, 2), (*stack, 3, 2)):
        y = sample(dtype, shape, 1)
        agree(linalg.solve(a, weft.asarray(y)), np.linalg.solve(x, y), close=True)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("stack", STACKS)
def test_hermitian(dtype: str, stack: tuple[int, ...]) -> None:
    x = positive(dtype, (*stack, 3, 3))
    a = weft.asarray(x)
    agree(linalg.cholesky(a), np.linalg.cholesky(x), close=True)
    agree(linalg.cholesky(a, upper=True), np.linalg.cholesky(x, upper=True), close=True)
    agree(linalg.eigh(a), tuple(np.linalg.eigh(x)), close=True)
    agree(linalg.eigh(a, UPLO="U"), tuple(np.linalg.eigh(x, "U")), close=True)
    agree(linalg.eigvalsh(a), np.linalg.eigvalsh(x), close=True)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_rectangular(dtype: str, stack: tuple[int, ...], shape: tuple[int, int]) -> None:
    x = sample(dtype, (*stack, *shape))
    a = weft.asarray(x)
    for full in (True, False):
        agree(linalg.svd(a, full_matrices=full), tuple(np.linalg.svd(x, full_matrices=full)), close=True)
    agree(linalg.svdvals(a), np.linalg.svdvals(x), close=True)
    for mode in ("reduced", "complete"):
        agree(linalg.qr(a, mode=mode), tuple(np.linalg.qr(x, mode)), close=True)  # type: ignore[arg-type]
    agree(linalg.matrix_rank(a), np.asarray(np.linalg.matrix_rank(x), np.int64))
    floating = x.astype(np.result_type(x, np.float32)) if x.dtype.kind != "i" else x.astype(np.float64)
    agree(linalg.pinv(a), np.linalg.pinv(floating, rtol=None), close=True)
    agree(linalg.pinv(a, rtol=0.3), np.linalg.pinv(floating, rtol=0.3), close=True)
    agree(linalg.matrix_transpose(a), np.matrix_transpose(x))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, None])
def test_matrix_norm(dtype: str, ord: Any) -> None:  # noqa: A002 - the standard's name
    for shape in [(3, 4), (2, 3, 4), (0, 2, 3)]:
        x = sample(dtype, shape)
        for keepdims in (False, True):
            want = np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
            agree(linalg.matrix_norm(weft.asarray(x), ord=ord, keepdims=keepdims), want, close=True)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("ord", [2, 1, 0, 3.5, -1, np.inf, -np.inf])
def test_vector_norm(dtype: str, ord: float) -> None:  # noqa: A002 - the standard's name
    x = sample(dtype, (2, 3, 4))
    if ord < 0:
        x = x + np.ones_like(x) * 20
    for axis in (None, 0, -1, (0, 2), (0, 1, 2)):
        for keepdims in (False, True):
            want = np.linalg.vector_norm(x, axis=axis, ord=ord, keepdims=keepdims)
            got = linalg.vector_norm(weft.asarray(x), axis=axis, ord=ord, keepdims=keepdims)
            assert got.dtype == (np.float32 if dtype in ("float32", "complex64") else np.float64)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-4)
            assert got.shape == want.shape


def test_norm_as_in_numpy() -> None:
    x = sample("float64", (2, 3, 4))
    a = weft.asarray(x)
    agree(linalg.norm(a), np.linalg.norm(x), close=True)
    agree(linalg.norm(a, 1, 2), np.linalg.norm(x, 1, 2), close=True)
    agree(linalg.norm(a[0], "fro"), np.linalg.norm(x[0], "fro"), close=True)
    agree(linalg.norm(a, np.inf, (2, 0)), np.linalg.norm(x, np.inf, (2, 0)), close=True)
    agree(linalg.norm(a, 2, (0, 1), keepdims=True), np.linalg.norm(x, 2, (0, 1), keepdims=True), close=True)
    for refused in (lambda: linalg.norm(a, 1), lambda: linalg.norm(a, "fro", 1), lambda: linalg.norm(a, 1, (0, 0))):
        with pytest.raises(ValueError):
            refused()


@pytest.mark.parametrize("dtype", DTYPES)
def test_trace_diagonal_and_outer(dtype: str) -> None:
    x = sample(dtype, (2, 3, 4))
    a = weft.asarray(x)
    for offset in (-3, -1, 0, 2, 9):
        agree(linalg.diagonal(a, offset=offset), np.linalg.diagonal(x, offset=offset))
        agree(linalg.trace(a, offset=offset), np.linalg.trace(x, offset=offset), close=True)
    agree(linalg.trace(a, dtype="complex128"), np.linalg.trace(x, dtype="complex128"), close=True)
    agree(linalg.outer(a[0, 0], a[0, 1]), np.linalg.outer(x[0, 0], x[0, 1]))
    agree(linalg.vecdot(a, a), np.linalg.vecdot(x, x), close=True)
    agree(linalg.tensordot(a, a, axes=3), np.linalg.tensordot(x, x, axes=3), close=True)
    with pytest.raises(ValueError, match=r"\(2, 3, 4\)"):
        linalg.outer(a, a)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "complex128"])
def test_cross(dtype: str) -> None:
    x, y = sample(dtype, (4, 3)), sample(dtype, (2, 1, 3), 1)
    agree(linalg.cross(weft.asarray(x), weft.asarray(y)), np.linalg.cross(x, y), close=True)
    agree(
        linalg.cross(weft.asarray(x).T, weft.asarray(x[::-1]).T, axis=0), np.cross(x.T, x[::-1].T, axis=0), close=True
    )
    with pytest.raises(ValueError, match=r"3 elements.*\(4, 3\)"):
        linalg.cross(weft.asarray(x), weft.asarray(x), axis=0)


def test_rank_with_tolerances() -> None:
    x = np.stack([np.diag([1.0, 0.1, 0.01]), np.eye(3)])
    a = weft.asarray(x)
    agree(linalg.matrix_rank(a, rtol=0.05), np.array([2, 3]))
    agree(linalg.matrix_rank(a, rtol=weft.asarray([0.5, 0.5])), np.array([1, 3]))
    agree(linalg.matrix_rank(weft.zeros((0, 3))), np.array(0))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        linalg.matrix_rank(a, rtol=weft.zeros(3))


def test_eig() -> None:
    x = sample("float64", (2, 3, 3))
    values, vectors = linalg.eig(weft.asarray(x))
    v, w = values.numpy(), vectors.numpy()
    assert v.dtype == w.dtype == np.complex128
    np.testing.assert_allclose(x @ w, v[:, None, :] * w, atol=1e-12)
    np.testing.assert_allclose(np.sort(linalg.eigvals(weft.asarray(x)).numpy()), np.sort(v), atol=1e-12)


def test_lstsq_cond_and_multi_dot() -> None:
    x, y = sample("float64", (5, 2)), sample("float64", (5,), 1)
    for got, want in zip(linalg.lstsq(weft.asarray(x), weft.asarray(y)), np.linalg.lstsq(x, y), strict=True):
        np.testing.assert_allclose(got.numpy(), want)
    agree(linalg.cond(weft.asarray(x)), np.linalg.cond(x), close=True)
    agree(linalg.multi_dot([weft.asarray(y), weft.asarray(x), x.T]), np.linalg.multi_dot([y, x, x.T]), close=True)
    with pytest.raises(ValueError):
        linalg.multi_dot([x])


@pytest.mark.parametrize("name", ["inv", "solve"])
def test_singular_matrices_fail_at_the_wait(name: str) -> None:
    a = weft.zeros((2, 2))
    result = linalg.inv(a) if name == "inv" else linalg.solve(a, a)
    after = result + 1
    with pytest.raises(linalg.LinAlgError, match="Singular"):
        after.wait_to_read()
    with pytest.raises(linalg.LinAlgError):
        linalg.cholesky(weft.asarray([[-1.0]])).wait_to_read()


def test_shapes_are_checked_at_the_call() -> None:
    rectangle, vector = weft.zeros((2, 3)), weft.zeros(3)
    for name in ("cholesky", "det", "inv", "slogdet", "eigh", "eigvalsh", "eig", "eigvals"):
        for refused in (rectangle, vector):
            with pytest.raises(np.linalg.LinAlgError, match=rf"\({refused.shape[0]},"):
                getattr(linalg, name)(refused)
    for name in ("svd", "svdvals", "qr", "pinv"):
        with pytest.raises(np.linalg.LinAlgError, match=r"\(3,\)"):
            getattr(linalg, name)(vector)
    for name in ("matrix_rank", "matrix_norm", "diagonal", "trace"):
        with pytest.raises(ValueError, match=r"\(3,\)"):
            getattr(linalg, name)(vector)
    for call in (
        lambda: linalg.solve(weft.eye(3), weft.zeros(2)),
        lambda: linalg.solve(weft.eye(3), weft.zeros((2, 2))),
        lambda: linalg.solve(weft.zeros((2, 3, 3)), weft.zeros((3, 3, 1))),
        lambda: linalg.matrix_power(rectangle, 2),
        lambda: linalg.qr(rectangle, mode="raw"),  # type: ignore[arg-type]
        lambda: linalg.eigh(weft.eye(2), UPLO="X"),  # type: ignore[arg-type]
        lambda: linalg.matrix_norm(rectangle, ord=3),
        lambda: linalg.matrix_norm(weft.zeros((0, 0)), ord=2),
        lambda: linalg.vector_norm(weft.zeros(0), ord=np.inf),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        linalg.vector_norm(vector, ord="fro")  # type: ignore[arg-type]
    with pytest.raises(np.exceptions.AxisError):
        linalg.vector_norm(vector, axis=1)


def test_results_are_named() -> None:
    a = weft.eye(2)
    assert linalg.svd(a)._fields == ("U", "S", "Vh")
    assert linalg.qr(a)._fields == ("Q", "R")
    assert linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.slogdet(a)._fields == ("sign", "logabsdet")


def test_every_function_of_the_standard_is_there() -> None:
    standard = [
        "cholesky",
        "cross",
        "det",
        "diagonal",
        "eigh",
        "eigvalsh",
        "inv",
        "matmul",
        "matrix_norm",
        "matrix_power",
        "matrix_rank",
        "matrix_transpose",
        "outer",
        "pinv",
        "qr",
        "slogdet",
        "solve",
        "svd",
        "svdvals",
        "tensordot",
        "trace",
        "vecdot",
        "vector_norm",
    ]
    for name in standard:
        assert name in linalg.__all__
        theirs = inspect.signature(getattr(np.linalg, name)).parameters
        mine = inspect.signature(getattr(linalg, name)).parameters
        keywords = {key for key, each in theirs.items() if each.kind is each.KEYWORD_ONLY}
        assert keywords - {"dtype", "rtol"} <= set(mine) | {"hermitian"}
