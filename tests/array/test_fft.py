"""The fft extension, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from against import DTYPES, agree, sample

import weft
from weft import fft

REAL_ONLY = ("rfft", "ihfft")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")


def single(dtype: str) -> bool:
    return dtype in ("float16", "float32", "complex64")


def near(got: weft.NDArray, want: np.ndarray, dtype: str) -> None:
    """As `agree`, but NumPy transforms small integers in single precision, the standard's default being double."""
    kind = want.dtype.kind
    expected = {("c", True): "complex64", ("c", False): "complex128", ("f", True): "float32", ("f", False): "float64"}
    assert got.dtype == expected[kind, single(dtype)]
    assert got.shape == want.shape
    tolerance = 1e-4 if single(dtype) else 1e-10
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_axis(name: str, dtype: str) -> None:
    x = sample(dtype, (3, 6))
    a = weft.asarray(x)
    if name in REAL_ONLY and np.dtype(dtype).kind == "c":
        with pytest.raises(TypeError, match=dtype):
            getattr(fft, name)(a)
        return
    wide = x.astype(np.float64) if x.dtype.kind in "biu" else x
    for axis in (0, 1, -1):
        for n in (None, 1, 4, 9):
            for norm in ("backward", "ortho", "forward", None):
                want = getattr(np.fft, name)(wide, n, axis, norm)
                near(getattr(fft, name)(a, n=n, axis=axis, norm=norm), want, dtype)


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_many_axes(name: str, dtype: str) -> None:
    x = sample(dtype, (2, 3, 4))
    a = weft.asarray(x)
    wide = x.astype(np.float64) if x.dtype.kind in "biu" else x
    cases: list[dict[str, Any]] = [{}, {"axes": (0, 2)}, {"s": (4, 6), "axes": (-1, 0)}, {"norm": "ortho"}]
    if name.endswith("n"):
        cases += [{"axes": (1,)}, {"s": (2, 3, 4), "axes": (0, 1, 2)}, {"axes": None}]
    for options in cases:
        near(getattr(fft, name)(a, **options), getattr(np.fft, name)(wide, **options), dtype)
    agree(fft.fftn(a, s=(2, 5)), fft.fftn(a, s=(2, 5), axes=(1, 2)).numpy())


def test_round_trips() -> None:
    x = sample("float64", (4, 6))
    a = weft.asarray(x)
    agree(fft.irfft(fft.rfft(a)), x, close=True)
    agree(weft.real(fft.ifftn(fft.fftn(a))), x, close=True)
    agree(fft.irfftn(fft.rfftn(a)), x, close=True)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (0,), (2, 3, 4)])
def test_shifts(shape: tuple[int, ...]) -> None:
    x = sample("int32", shape)
    a = weft.asarray(x)
    for axes in (None, 0, (0, -1) if len(shape) > 1 else 0):
        agree(fft.fftshift(a, axes=axes), np.fft.fftshift(x, axes))
        agree(fft.ifftshift(a, axes=axes), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name: str) -> None:
    for n in (1, 4, 7):
        agree(getattr(fft, name)(n, d=0.5), getattr(np.fft, name)(n, 0.5))
        got = getattr(fft, name)(n, dtype="float32", device=weft.cpu())
        agree(got, getattr(np.fft, name)(n).astype("float32"))
    with pytest.raises(ValueError, match="n=0"):
        getattr(fft, name)(0)
    with pytest.raises(TypeError, match="int64"):
        getattr(fft, name)(4, dtype="int64")


def test_refused_at_the_call() -> None:
    a = weft.zeros((2, 3))
    for call in (
        lambda: fft.fft(a, n=0),
        lambda: fft.fft(weft.zeros(0)),
        lambda: fft.irfft(weft.zeros(1)),
        lambda: fft.fft(a, norm="loud"),  # type: ignore[arg-type]
        lambda: fft.fftn(a, s=(2,), axes=(0, 1)),
        lambda: fft.rfftn(weft.asarray(1.0)),
    ):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: fft.fft(a, axis=2), lambda: fft.fftn(a, axes=(0, 2)), lambda: fft.fftshift(a, axes=2)):
        with pytest.raises(np.exceptions.AxisError):
            call()


def test_arguments_are_numpys() -> None:
    a = np.random.default_rng(5).normal(size=(4, 6))
    x = weft.asarray(a)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        theirs, own = getattr(np.fft, name), getattr(weft.fft, name)
        np.testing.assert_array_equal(own(a=x, n=5, axis=0, norm="ortho").numpy(), theirs(a, 5, 0, "ortho"))
        np.testing.assert_array_equal(theirs(x, 5, 0, "ortho").numpy(), theirs(a, 5, 0, "ortho"))
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
        theirs, own = getattr(np.fft, name), getattr(weft.fft, name)
        expected = theirs(a, (4, 4), (1, 0), "forward")
        np.testing.assert_array_equal(own(a=x, s=(4, 4), axes=(1, 0), norm="forward").numpy(), expected)
        np.testing.assert_array_equal(own(x, (4, 4), (1, 0), "forward").numpy(), expected)
    np.testing.assert_array_equal(weft.fft.fftshift(x=x, axes=1).numpy(), np.fft.fftshift(a, 1))
    np.testing.assert_array_equal(weft.fft.fftfreq(n=5, d=0.1).numpy(), np.fft.fftfreq(5, 0.1))
    with pytest.raises(TypeError):
        weft.fft.fft(x, points=3)
