"""Searching and counting, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from against import DTYPES, agree, sample

import weft


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_argmax(name: str, dtype: str) -> None:
    for shape in [(), (5,), (3, 4), (2, 3, 4), (2, 3, 0, 4)]:
        x = sample(dtype, shape)
        a = weft.asarray(x)
        for axis in (None, *range(-len(shape), len(shape))):
            for keepdims in (False, True):
                try:
                    want = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                except ValueError:
                    with pytest.raises(ValueError, match=r"\(2, 3, 0, 4\)"):
                        getattr(weft, name)(a, axis=axis, keepdims=keepdims)
                else:
                    agree(getattr(weft, name)(a, axis=axis, keepdims=keepdims), np.asarray(want, np.int64))


def test_argmax_past_nan() -> None:
    x = sample("float64", (3, 4))
    x[:, 1] = np.nan
    agree(weft.nanargmax(weft.asarray(x), 1), np.nanargmax(x, 1))
    agree(weft.nanargmin(weft.asarray(x)), np.nanargmin(x))
    with pytest.raises(ValueError, match="All-NaN"):
        weft.nanargmax(weft.asarray(x), 0).wait_to_read()
    with pytest.raises(TypeError):
        weft.argmax(weft.asarray(x), axis=(0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero_and_count(dtype: str) -> None:
    for shape in [(7,), (3, 4), (2, 0), (2, 3, 4)]:
        x = sample(dtype, shape)
        a = weft.asarray(x)
        agree(weft.nonzero(a), np.nonzero(x))
        agree(weft.argwhere(a), np.argwhere(x))
        agree(weft.flatnonzero(a), np.flatnonzero(x))
        for axis in (None, 0, -1):
            agree(weft.count_nonzero(a, axis=axis), np.asarray(np.count_nonzero(x, axis=axis)))
    with pytest.raises(ValueError, match="axes"):
        weft.nonzero(weft.asarray(1))


@pytest.mark.parametrize("dtypes", [("int8", "int32"), ("float32", "float32"), ("int64", "float32"), ("bool", "uint8")])
def test_where(dtypes: tuple[str, str]) -> None:
    condition = sample("bool", (3, 1))
    x, y = sample(dtypes[0], (3, 4)), sample(dtypes[1], (4,))
    got = weft.where(weft.asarray(condition), weft.asarray(x), weft.asarray(y))
    agree(got, np.where(condition, x, y))


def test_where_with_scalars() -> None:
    condition, x = sample("bool", (3, 4)), sample("float32", (3, 4))
    c, a = weft.asarray(condition), weft.asarray(x)
    for scalar in (0, 1.5, True):
        agree(weft.where(c, a, scalar), np.where(condition, x, scalar))
        agree(weft.where(c, scalar, a), np.where(condition, scalar, x))
    agree(weft.where(c, 1, 0), np.where(condition, 1, 0))
    agree(weft.where(weft.asarray([0.0, 2.0]), [1, 2], [3, 4]), np.where([0.0, 2.0], [1, 2], [3, 4]))
    agree(weft.where(c), np.where(condition))
    with pytest.raises(ValueError):
        weft.where(c, a)
    with pytest.raises(ValueError, match=r"\(3,4\).*\(5,\)"):
        weft.where(c, a, weft.zeros(5))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64"])
def test_searchsorted(side: Any, dtype: str) -> None:
    x, values = sample(dtype, (9,)), sample(dtype, (2, 5), 1)
    order = np.argsort(x)
    agree(
        weft.searchsorted(weft.asarray(x[order]), weft.asarray(values), side=side),
        np.searchsorted(x[order], values, side),
    )
    agree(
        weft.searchsorted(weft.asarray(x), weft.asarray(values), side=side, sorter=weft.asarray(order)),
        np.searchsorted(x, values, side, order),
    )


def test_searchsorted_refuses() -> None:
    a = weft.arange(3)
    with pytest.raises(ValueError, match="'middle'"):
        weft.searchsorted(a, a, side="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\(1, 3\)"):
        weft.searchsorted(a[None], a)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        weft.searchsorted(a, a, sorter=weft.arange(2))
    with pytest.raises(TypeError, match="float64"):
        weft.searchsorted(a, a, sorter=weft.zeros(3))
