"""Arrays that are written as keys: what NumPy's objects of the same names give."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import weft

KEYS: list[Any] = [
    np.s_[1:4],
    np.s_[1:4, 0, [7, 8]],
    np.s_[0:1:5j],
    np.s_[-1:1:6j, [0] * 3, 5, 6],
    np.s_[np.array([1, 2, 3]), 0, 0, np.array([4, 5, 6])],
    np.s_[5:0:-2, 1.5],
    np.s_[np.float32([1, 2]), 3.0],
    np.s_[np.int8([1, 2]), 3],
    np.s_[np.int8([1, 2]), np.int16(3), True],
    np.s_["0,2", [1, 2, 3], [4, 5, 6]],
    np.s_["1,2", [1, 2, 3], [4, 5, 6]],
    np.s_["0,2,0", [1, 2, 3], [4, 5, 6]],
    np.s_["1,2,0", [1, 2, 3], [4, 5, 6]],
    np.s_["0,3,-1", [1, 2], [[4, 5], [6, 7]]],
    np.s_["0,3,1", [1, 2], [[4, 5]]],
    np.s_["0,2", 1:3, 4:6],
    np.s_["1,2,0", 1:3, 4:6],
    np.s_["-1", [[1, 2], [3, 4]], [[5], [6]]],
    np.s_[[1, 2], 0.5j],
    np.s_[np.zeros((2, 2)), np.ones((1, 2))],
    np.s_[1:3, 4:6],
    np.s_["", [1]],
    np.s_["r", [1]],
    np.s_["0,x", [1]],
    np.s_[[1], "0"],
    np.s_[()],
    np.s_[np.zeros((2, 2)), [1, 2]],
    np.s_[[1, 2], [1, 2, 3]],
]


def given(key: Any) -> Any:
    return (
        tuple(map(given, key)) if isinstance(key, tuple) else weft.asarray(key) if isinstance(key, np.ndarray) else key
    )


@pytest.mark.parametrize("name", ["r_", "c_"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_what_is_joined(name: str, key: Any) -> None:
    expected = None
    if not (isinstance(key, tuple) and key and isinstance(key[0], str) and key[0] == "r"):  # weft has no matrices
        with contextlib.suppress(ValueError):
            expected = np.asarray(getattr(np, name)[key])
    if expected is None:
        with pytest.raises(weft.errors.WeftError) as caught:
            getattr(weft, name)[given(key)]
        assert isinstance(caught.value, ValueError)
        return
    found = getattr(weft, name)[given(key)]
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("name", ["mgrid", "ogrid"])
@pytest.mark.parametrize(
    "key", [np.s_[0:3], np.s_[0:2, 0:3], np.s_[0:1:4j, -1:1:0.5], np.s_[:3, 5:0:-1, 1:2], np.s_[0:0, 0:2]], ids=str
)
def test_grids(name: str, key: Any) -> None:
    found, expected = getattr(weft, name)[key], getattr(np, name)[key]
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    for ours, theirs in zip(
        *((each if isinstance(each, tuple) else (each,)) for each in (found, expected)), strict=True
    ):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_joining_has_a_gradient() -> None:
    x = weft.asarray([1.0, 2.0])
    found = weft.autograd.grad(lambda x: (weft.r_[x, 0, 2 * x] ** 2).sum() + weft.c_[x, x][:, 1].sum())(x)
    np.testing.assert_allclose(found.numpy(), 10 * x.numpy() + 1)


def test_ends_may_be_arrays() -> None:
    n = weft.asarray([1, 2, 3]).sum()
    assert weft.mgrid[0:n].shape == weft.r_[0:n].shape == (6,)
    assert weft.s_[1:2, ...] == np.s_[1:2, ...]
    assert repr(weft.c_) == "weft.c_"


@pytest.mark.parametrize("name", ["mgrid", "ogrid", "r_", "c_"])
def test_what_is_no_range(name: str) -> None:
    with pytest.raises(weft.errors.ArgumentTypeError):
        getattr(weft, name)[1:]
    if name.endswith("grid"):
        with pytest.raises(weft.errors.ArgumentTypeError):
            getattr(weft, name)[3]
