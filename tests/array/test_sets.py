"""Sets of values, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from against import DTYPES, agree, sample

import weft


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (20,), (4, 5)])
def test_unique(dtype: str, shape: tuple[int, ...]) -> None:
    x = sample(dtype, shape)
    a = weft.asarray(x)
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        got, want = getattr(weft, name)(a), getattr(np, name)(x)
        agree(got, tuple(want))
        assert got._fields == want._fields
    agree(weft.unique_values(a), np.sort(np.unique_values(x)))
    agree(weft.unique(a), np.unique(x))


def test_unique_as_in_numpy() -> None:
    x = sample("uint8", (4, 5)) % 3
    agree(weft.unique(weft.asarray(x), True, True, True), np.unique(x, True, True, True))
    agree(weft.unique(weft.asarray(x), axis=0), np.unique(x, axis=0))


def test_nan_are_distinct() -> None:
    x = np.array([np.nan, 1.0, np.nan, -0.0, 0.0])
    agree(weft.unique_counts(weft.asarray(x)).counts, np.array([2, 1, 1, 1]))
    assert weft.unique_values(weft.asarray(x)).shape == (4,)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
def test_two_sets(dtype: str) -> None:
    x, y = sample(dtype, (3, 4)).round(), sample(dtype, (6,), 1).round()
    a, b = weft.asarray(x), weft.asarray(y)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        agree(getattr(weft, name)(a, b), getattr(np, name)(x, y))
    agree(weft.isin(a, b), np.isin(x, y))
    agree(weft.isin(a, b, invert=True), np.isin(x, y, invert=True))


def test_a_failure_comes_out() -> None:
    broken = weft.linalg.inv(weft.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError):
        weft.unique_values(broken)
