"""What the tests of array functions share: seeded samples of every dtype, and the comparison with NumPy's result."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
NUMBERS = INTEGERS + FLOATS + COMPLEX
DTYPES = ("bool", *NUMBERS)


def sample(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small values of a dtype, different for each seed."""
    generator = np.random.default_rng([seed, len(shape), *shape])
    kind = np.dtype(dtype).kind
    if kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return generator.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
    values = generator.standard_normal(shape)
    if kind == "c":
        values = values + 1j * generator.standard_normal(shape)
    return np.asarray(values).astype(dtype)


def agree(got: Any, want: Any, *, close: bool = False) -> None:
    """Assert that an array, or a tuple of them, is what NumPy gives: shape, dtype and values, bit for bit unless `close`."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            agree(one, other, close=close)
        return
    assert isinstance(got, weft.NDArray)
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    found = got.numpy()
    if close:
        rtol, atol = {2: (2e-3, 2e-3), 4: (1e-4, 1e-5), 8: (1e-9, 1e-12)}[
            np.real(want).dtype.itemsize if want.dtype.kind in "fc" else 8
        ]
        np.testing.assert_allclose(found, want, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(found, want, strict=True)
