"""Products, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from against import DTYPES, agree, sample

import weft

PAIRS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((0,), (0,)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", PAIRS)
def test_matmul(dtype: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = sample(dtype, shapes[0]), sample(dtype, shapes[1], 1)
    agree(weft.matmul(weft.asarray(x), weft.asarray(y)), np.matmul(x, y), close=True)
    agree(weft.asarray(x) @ weft.asarray(y), x @ y, close=True)


def test_matmul_of_views_and_mixed_dtypes() -> None:
    x, y = sample("float32", (6, 8)), sample("float32", (8, 6), 1)
    a, b = weft.asarray(x), weft.asarray(y)
    for (m, n), (p, q) in (
        ((a, b), (x, y)),
        ((b.T, a.T), (y.T, x.T)),
        ((a[::2, ::-1], b[:, 1:]), (x[::2, ::-1], y[:, 1:])),
        ((a[:, ::2], a[:, ::2].T), (x[:, ::2], x[:, ::2].T)),
        ((weft.broadcast_to(a[0], (3, 8)), b), (np.broadcast_to(x[0], (3, 8)), y)),
    ):
        agree(m @ n, p @ q, close=True)
    agree(a @ weft.asarray(y.astype("int16")), x @ y.astype("int16"), close=True)
    agree(weft.matmul(a, y), x @ y, close=True)


def test_matmul_out() -> None:
    x = sample("float64", (4, 4))
    a = weft.asarray(x)
    out = weft.zeros((4, 4))
    weft.matmul(a, a, out=out)
    agree(out, x @ x, close=True)
    weft.matmul(a, a, out=a)
    agree(a, x @ x, close=True)
    vector = weft.zeros((2, 4))
    weft.matmul(weft.asarray(x), x[0], out=vector[1])
    agree(vector[1], x @ x[0], close=True)


def test_matmul_refuses() -> None:
    for left, right in [((2, 3), (2, 3)), ((3,), (2,)), ((), (2,)), ((2, 2), ()), ((2, 1, 2), (3, 2, 1))]:
        with pytest.raises(ValueError):
            weft.matmul(weft.zeros(left), weft.zeros(right))
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4, 5\)"):
        weft.zeros((2, 3)) @ weft.zeros((4, 5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("left", "right", "axes"),
    [
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3), (4, 5), 0),
        ((2, 3, 4), (4, 3, 5), ([1, 2], [1, 0])),
        ((2, 3), (3, 2), ([0, -1], [1, 0])),
        ((2, 0), (0, 3), 1),
        ((), (), 0),
        ((3,), (3,), 1),
    ],
)
def test_tensordot(dtype: str, left: tuple[int, ...], right: tuple[int, ...], axes: Any) -> None:
    x, y = sample(dtype, left), sample(dtype, right, 1)
    agree(weft.tensordot(weft.asarray(x), weft.asarray(y), axes=axes), np.tensordot(x, y, axes), close=True)


def test_tensordot_refuses() -> None:
    a = weft.zeros((2, 3))
    for axes in (1, 3, ([0], [0, 1]), ([0, 0], [0, 0])):
        with pytest.raises(ValueError):
            weft.tensordot(a, a, axes=axes)
    with pytest.raises(np.exceptions.AxisError):
        weft.tensordot(a, a, axes=([2], [0]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_vecdot(dtype: str) -> None:
    x, y = sample(dtype, (4, 1, 3)), sample(dtype, (5, 3), 1)
    agree(weft.vecdot(weft.asarray(x), weft.asarray(y)), np.vecdot(x, y), close=True)
    x, y = sample(dtype, (3, 4)), sample(dtype, (3, 4), 1)
    agree(weft.vecdot(weft.asarray(x), weft.asarray(y), axis=0), np.vecdot(x, y, axis=0), close=True)
    with pytest.raises(ValueError, match=r"\(3, 4\) and \(3, 5\)"):
        weft.vecdot(weft.asarray(x), weft.zeros((3, 5)))


@pytest.mark.parametrize("shapes", [((), (2,)), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 3, 4), (5, 4, 2))])
def test_dot(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = sample("float64", shapes[0]), sample("float64", shapes[1], 1)
    agree(weft.dot(weft.asarray(x), weft.asarray(y)), np.dot(x, y), close=True)


def test_other_products() -> None:
    x, y = sample("complex128", (2, 3)), sample("complex128", (4, 3), 1)
    a, b = weft.asarray(x), weft.asarray(y)
    agree(weft.inner(a, b), np.inner(x, y), close=True)
    agree(weft.outer(a, b), np.outer(x, y), close=True)
    agree(weft.vdot(a, x + 1), np.vdot(x, x + 1), close=True)
    agree(weft.kron(a, b), np.kron(x, y), close=True)
    agree(weft.kron(a, b[0]), np.kron(x, y[0]), close=True)
    agree(weft.inner(2, a), np.inner(2, x), close=True)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("ba", [(2, 3)]),
        ("i,i->", [(3,), (3,)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("...j,j", [(5, 2, 3), (3,)]),
        ("i...->...", [(5, 2, 3)]),
        ("ijk,il,jm->klm", [(2, 3, 4), (2, 5), (3, 6)]),
        (" i j -> j i ", [(2, 3)]),
        ("i,->i", [(3,), ()]),
    ],
)
def test_einsum(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    xs = [sample("float64", shape, seed) for seed, shape in enumerate(shapes)]
    arrays = [weft.asarray(x) for x in xs]
    agree(weft.einsum(subscripts, *arrays), np.einsum(subscripts, *xs), close=True)
    agree(weft.einsum(subscripts, *arrays, optimize=True), np.einsum(subscripts, *xs), close=True)


def test_einsum_otherwise() -> None:
    x, y = sample("int32", (2, 3)), sample("float32", (3, 4))
    a, b = weft.asarray(x), weft.asarray(y)
    agree(weft.einsum(a, [0, 1], b, [1, 2], [0, 2]), np.einsum(x, [0, 1], y, [1, 2], [0, 2]), close=True)
    agree(weft.einsum(a, [..., 0], [0, ...]), np.einsum(x, [..., 0], [0, ...]), close=True)
    out = weft.zeros((2, 4))
    weft.einsum("ij,jk", a, b, out=out)
    agree(out, np.einsum("ij,jk", x, y).astype("float64"), close=True)


@pytest.mark.parametrize(
    "subscripts", ["ij", "i,j", "ijk,jk", "ij,kj", "ij,jk->il", "ij,jk->ii", "i1,jk", "i...,jk->i"]
)
def test_einsum_refuses(subscripts: str) -> None:
    with pytest.raises(ValueError):
        weft.einsum(subscripts, weft.zeros((2, 3)), weft.zeros((3, 4)))


def test_diagonals() -> None:
    x = sample("int16", (2, 3, 4))
    a = weft.asarray(x)
    for offset in range(-4, 5):
        for axes in [(0, 1), (1, 2), (2, 0)]:
            agree(weft.diagonal(a, offset, *axes), np.diagonal(x, offset, *axes))
            agree(weft.trace(a, offset, *axes), np.trace(x, offset, *axes))
    agree(weft.diag(a[0]), np.diag(x[0]))
    agree(weft.diag(a[0, 0], -2), np.diag(x[0, 0], -2))
    assert weft.diagonal(a)._shares_buffer(a)
    for refused in (lambda: weft.diagonal(weft.zeros(3)), lambda: weft.trace(weft.zeros(3)), lambda: weft.diag(a)):
        with pytest.raises(ValueError):
            refused()
