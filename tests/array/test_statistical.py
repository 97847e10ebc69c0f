"""Reductions, cumulative functions, order statistics and counting, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from against import COMPLEX, DTYPES, FLOATS, INTEGERS, agree, sample

import weft

SHAPES = [(), (5,), (2, 3), (2, 3, 4), (3, 0, 2), (0,)]
REAL = (*INTEGERS, *FLOATS)


def axes_of(shape: tuple[int, ...]) -> list[Any]:
    every: list[Any] = [None, (), *range(-len(shape), len(shape))]
    return [*every, (0, -1)] if len(shape) > 1 else every


def quietly(function: Any, *args: Any, **kw: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kw)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any", "mean", "var", "std", "count_nonzero"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(name: str, shape: tuple[int, ...], keepdims: bool) -> None:
    x = sample("float64", shape)
    a = weft.asarray(x)
    for axis in axes_of(shape):
        try:
            want = quietly(getattr(np, name), x, axis=axis, keepdims=keepdims)
        except ValueError:
            with pytest.raises(ValueError, match=r"no maximum or minimum of no elements: shape \("):
                getattr(weft, name)(a, axis=axis, keepdims=keepdims)
            continue
        agree(
            getattr(weft, name)(a, axis=axis, keepdims=keepdims),
            want,
            close=name in ("sum", "prod", "mean", "var", "std"),
        )


@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "mean", "var", "std", "max", "min", "count_nonzero"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(name: str, dtype: str) -> None:
    x = sample(dtype, (3, 4))
    want = getattr(np, name)(x, axis=1)
    got = getattr(weft, name)(weft.asarray(x), axis=1)
    agree(got, want, close=True)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
def test_loops_over_strides_give_what_numpy_gives(name: str) -> None:
    x = sample("float32", (7, 33, 20))
    a = weft.asarray(x)
    for mine, theirs in ((a, x), (a.T, x.T), (a[:, ::-2, 1:], x[:, ::-2, 1:]), (a[2], x[2]), (a[0, 0], x[0, 0])):
        for axis in axes_of(theirs.shape):
            want = getattr(np, name)(theirs, axis=axis)
            agree(getattr(weft, name)(mine, axis=axis), want, close=name not in ("max", "min"))


def test_sums_are_as_exact_as_numpys() -> None:
    x = np.full(1_000_000, 0.1, np.float32)
    agree(weft.sum(weft.asarray(x)), np.sum(x))


def test_nan_and_infinities() -> None:
    x = np.array([[1.0, np.nan, 3.0], [np.inf, 2.0, -np.inf]])
    a = weft.asarray(x)
    for name in ("max", "min", "sum", "mean", "var", "median", "ptp"):
        agree(getattr(weft, name)(a, axis=1), quietly(getattr(np, name), x, axis=1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "int8", "bool"])
def test_dtype_given(dtype: str) -> None:
    x = sample("int32", (3, 4))
    a = weft.asarray(x)
    agree(weft.sum(a, dtype=dtype), np.sum(x, dtype=dtype))
    agree(weft.prod(a, axis=0, dtype=dtype), np.prod(x, axis=0, dtype=dtype))
    agree(weft.cumulative_sum(a, axis=0, dtype=dtype), np.cumulative_sum(x, axis=0, dtype=dtype))
    with pytest.raises(TypeError, match=r"longdouble|float128"):
        weft.sum(a, dtype="longdouble")


def test_out_initial_and_where() -> None:
    x, mask = sample("float64", (3, 4)), sample("bool", (3, 4), 1)
    a, m = weft.asarray(x), weft.asarray(mask)
    out = weft.zeros(3)
    assert weft.sum(a, axis=1, out=out) is out
    agree(out, np.sum(x, axis=1))
    agree(weft.sum(a, 0, initial=3.0), np.sum(x, 0, initial=3.0))
    agree(weft.prod(a, 1, where=m), np.prod(x, 1, where=mask))
    agree(weft.max(a, 1, initial=-9.0, where=m), np.max(x, 1, initial=-9.0, where=mask))
    agree(weft.all(a > 0, 1, where=m), np.all(x > 0, 1, where=mask))
    agree(weft.mean(a, 1, where=m), quietly(np.mean, x, 1, where=mask), close=True)
    agree(weft.var(a, 1, where=m), quietly(np.var, x, 1, where=mask), close=True)
    narrow = weft.zeros(3, dtype="float32")
    weft.sum(a, axis=1, out=narrow)
    agree(narrow, np.sum(x, axis=1).astype("float32"))
    row = weft.asarray(x.copy())
    weft.sum(row, axis=0, out=row[0])
    agree(row[0], np.sum(x, axis=0))
    with pytest.raises(ValueError, match=r"\(3,\).*\(4,\)"):
        weft.sum(a, axis=1, out=weft.zeros(4))
    with pytest.raises(TypeError, match="float64"):
        weft.sum(a, where=a)
    with pytest.raises(ValueError, match=r"where= of shape \(3,\) .* shape \(3, 4\)"):
        weft.sum(a, where=m[:, 0])
    with pytest.raises(ValueError, match="initial"):
        weft.max(a, where=m)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "all", "argmax", "cumulative_sum", "median", "diff"])
def test_no_such_axis(name: str) -> None:
    for axis in (2, -3):
        with pytest.raises(np.exceptions.AxisError):
            getattr(weft, name)(weft.zeros((2, 3)), axis=axis)
    if name in ("sum", "mean", "max", "all", "median"):
        with pytest.raises(ValueError, match="repeated"):
            getattr(weft, name)(weft.zeros((2, 3)), axis=(0, -2))


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_variance(dtype: str, correction: float) -> None:
    x = sample(dtype, (3, 5))
    a = weft.asarray(x)
    for axis in (None, 0, 1):
        agree(weft.var(a, axis, correction=correction), np.var(x, axis, ddof=correction), close=True)
        agree(weft.std(a, axis, ddof=correction), np.std(x, axis, ddof=correction), close=True)


def test_variance_of_too_few_is_nan() -> None:
    assert np.isnan(weft.var(weft.asarray([1.0, 2.0]), correction=2).item())
    assert np.isnan(weft.std(weft.asarray([1.0, 2.0]), correction=3).item())
    assert np.isnan(weft.mean(weft.zeros(0)).item())


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cumulative(name: str, dtype: str) -> None:
    for shape in [(4,), (2, 3), (0,), (2, 0, 3)]:
        x = sample(dtype, shape)
        for axis in range(-len(shape), len(shape)):
            for initial in (False, True):
                want = getattr(np, name)(x, axis=axis, include_initial=initial)
                got = getattr(weft, name)(weft.asarray(x), axis=axis, include_initial=initial)
                agree(got, want, close=True)
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        getattr(weft, name)(weft.zeros((2, 3)))


def test_cumsum_as_in_numpy() -> None:
    x = sample("int16", (2, 3))
    a = weft.asarray(x)
    agree(weft.cumsum(a), np.cumsum(x))
    agree(weft.cumprod(a, 1), np.cumprod(x, 1))
    out = weft.zeros((2, 3), dtype="int64")
    weft.cumsum(a, 0, out=out)
    agree(out, np.cumsum(x, 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_diff(dtype: str) -> None:
    x = sample(dtype, (3, 5))
    a = weft.asarray(x)
    for axis in (0, 1, -1):
        for n in (0, 1, 2, 7):
            agree(weft.diff(a, axis=axis, n=n), np.diff(x, axis=axis, n=n))
    agree(weft.diff(a, prepend=a[:, :2], append=a[:, :1]), np.diff(x, prepend=x[:, :2], append=x[:, :1]))
    with pytest.raises(ValueError):
        weft.diff(a, n=-1)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("q", [0.25, 1.0, [0.0, 0.5, 1.0], [[0.1], [0.9]]])
def test_quantile(dtype: str, q: Any) -> None:
    x = sample(dtype, (4, 5))
    a = weft.asarray(x)
    for axis in (None, 0, (0, 1)):
        for keepdims in (False, True):
            want = np.quantile(x, q, axis=axis, keepdims=keepdims)
            agree(weft.quantile(a, q, axis=axis, keepdims=keepdims), want, close=True)
    agree(weft.percentile(a, 30, 1), np.percentile(x, 30, 1), close=True)
    agree(weft.median(a, 1, keepdims=True), np.median(x, 1, keepdims=True), close=True)


def test_quantile_of_array_and_method() -> None:
    x = sample("float64", (9,))
    q = weft.asarray([0.2, 0.7])
    agree(weft.quantile(weft.asarray(x), q), np.quantile(x, [0.2, 0.7]))
    agree(weft.quantile(weft.asarray(x), 0.3, method="nearest"), np.quantile(x, 0.3, method="nearest"))
    with pytest.raises(ValueError, match="from 0 to 1"):
        weft.quantile(weft.asarray(x), 1.5)
    with pytest.raises(ValueError):
        weft.quantile(weft.asarray(x), 0.5, method="guess")
    with pytest.raises(TypeError):
        weft.quantile(weft.asarray(x * 1j), 0.5)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_past_nan(name: str, dtype: str) -> None:
    x = sample(dtype, (4, 5))
    x[0, 1] = x[2] = np.nan
    a = weft.asarray(x)
    for axis in (None, 0, 1, (0, 1)):
        for keepdims in (False, True):
            want = quietly(getattr(np, name), x, axis=axis, keepdims=keepdims)
            agree(getattr(weft, name)(a, axis=axis, keepdims=keepdims), want, close=True)
    for axis in (None, 1):
        want = quietly(np.nanquantile, x, [0.2, 0.5], axis=axis)
        agree(weft.nanquantile(a, [0.2, 0.5], axis=axis), want, close=True)
        agree(weft.nanpercentile(a, 20, axis=axis), quietly(np.nanpercentile, x, 20, axis=axis), close=True)


@pytest.mark.parametrize("name", ["nansum", "nanmax", "nanmean", "nanmedian"])
def test_past_nan_of_integers(name: str) -> None:
    x = sample("int32", (3, 4))
    agree(getattr(weft, name)(weft.asarray(x), axis=0), getattr(np, name)(x, axis=0))


def test_bincount_and_histogram() -> None:
    x, w = sample("uint8", (20,)), sample("float64", (20,))
    a = weft.asarray(x)
    agree(weft.bincount(a), np.bincount(x))
    agree(weft.bincount(a, weft.asarray(w), minlength=30), np.bincount(x, w, 30))
    agree(weft.histogram(weft.asarray(w), 5), np.histogram(w, 5))
    agree(weft.histogram(weft.asarray(w), [-1.0, 0.0, 2.0]), np.histogram(w, [-1.0, 0.0, 2.0]))
    agree(weft.histogram(a, 4, (0, 9), weights=weft.asarray(w)), np.histogram(x, 4, (0, 9), weights=w))
    agree(weft.histogram(weft.asarray(w), 4, density=True), np.histogram(w, 4, density=True))
    agree(weft.digitize(weft.asarray(w), [-1.0, 0.0, 1.0]), np.digitize(w, [-1.0, 0.0, 1.0]))


def test_average() -> None:
    x, w = sample("float64", (3, 4)), np.abs(sample("float64", (3, 4), 1))
    a = weft.asarray(x)
    agree(weft.average(a), np.average(x), close=True)
    agree(weft.average(a, 1, weft.asarray(w)), np.average(x, 1, w), close=True)
    agree(weft.average(a, 0, w[:, 0], keepdims=True), np.average(x, 0, w[:, 0], keepdims=True), close=True)
    with pytest.raises(ValueError, match=r"\(5,\)"):
        weft.average(a, 0, np.ones(5))
    with pytest.raises(ZeroDivisionError):
        weft.average(a, weights=np.zeros((3, 4))).wait_to_read()


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
def test_cov_and_corrcoef(dtype: str) -> None:
    x, y = sample(dtype, (3, 6)), sample(dtype, (2, 6), 1)
    a, b = weft.asarray(x), weft.asarray(y)
    agree(weft.cov(a), np.cov(x), close=True)
    agree(weft.cov(a, b), np.cov(x, y), close=True)
    agree(weft.cov(a, rowvar=False, bias=True), np.cov(x, rowvar=False, bias=True), close=True)
    agree(weft.cov(a[0]), np.cov(x[0]), close=True)
    agree(weft.cov(a[0], b[0], ddof=2), np.cov(x[0], y[0], ddof=2), close=True)
    agree(weft.corrcoef(a, b), np.corrcoef(x, y), close=True)
    with pytest.raises(ValueError, match="observations"):
        weft.cov(a, b[:, :3])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_maximum_is_numpys(dtype: str) -> None:
    x = sample(dtype, (4, 5))
    agree(weft.max(weft.asarray(x), axis=0), np.max(x, axis=0))
