"""Sorting, against NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from against import DTYPES, agree, sample

import weft

if TYPE_CHECKING:
    from conftest import MakeEngine


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (9,), (3, 4), (2, 3, 4), (2, 0)])
def test_sort(dtype: str, shape: tuple[int, ...]) -> None:
    x = sample(dtype, shape)
    a = weft.asarray(x)
    for axis in range(-len(shape), len(shape)):
        agree(weft.sort(a, axis=axis), np.sort(x, axis))
        agree(weft.argsort(a, axis=axis), np.argsort(x, axis, kind="stable"))
        agree(weft.sort(a, axis=axis, descending=True), np.flip(np.sort(x, axis), axis))
        agree(weft.sort(a, axis=axis, stable=False), np.sort(x, axis))
    agree(weft.sort(a, axis=None), np.sort(x, None))


def test_descending_is_stable() -> None:
    x = weft.asarray([1, 3, 1, 2, 3])
    agree(weft.argsort(x, descending=True), np.array([1, 4, 3, 0, 2]))
    signs = weft.sort(weft.asarray([0.0, -0.0, 1.0]), descending=True).numpy()
    np.testing.assert_array_equal(np.signbit(signs), [False, False, True])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), [((5_000,), 0), ((150, 40), 0), ((40, 150), 1)])
def test_equal_elements_of_other_bits_keep_their_order(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    bits = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    x = np.random.default_rng(7).integers(-3, 3, shape).astype(dtype)
    x[x == -1] = -0.0
    missing = x == 2
    x[missing] = np.nan
    x.view(bits)[missing] += np.arange(missing.sum()).astype(bits) % 50  # NaN of many kinds
    backwards = np.flip(np.sort(np.flip(x, axis), axis, kind="stable"), axis)
    ascending = np.sort(x, axis, kind="stable")
    a = weft.asarray(x)
    for found, expected in ((weft.sort(a, axis), ascending), (weft.sort(a, axis, descending=True), backwards)):
        np.testing.assert_array_equal(found.numpy().view(bits), expected.view(bits))
    a = a.copy()
    a.sort(axis)
    np.testing.assert_array_equal(a.numpy().view(bits), ascending.view(bits))


def test_halves_with_zeros_of_both_signs_and_nan() -> None:
    """Of which NumPy's fastest sort leaves some out of place."""
    draw = np.random.default_rng(96)
    x = draw.standard_normal(20_000).astype(np.float16)
    x[::7], x[1::5], x[2::5] = np.nan, -0.0, 0.0
    a, expected = weft.asarray(x), np.sort(x, kind="stable")
    for found in (weft.sort(a), weft.sort(a, stable=False), weft.sort(a.reshape(1, -1), axis=1)[0]):
        np.testing.assert_array_equal(found.numpy(), expected)
    for stable in (True, False):
        sorted_in_place = a.copy()
        sorted_in_place.sort(stable=stable)
        np.testing.assert_array_equal(sorted_in_place.numpy(), expected)


def test_sort_leaves_its_operand() -> None:
    x = weft.asarray([3, 1, 2])
    weft.sort(x).wait_to_read()
    agree(x, np.array([3, 1, 2]))


def test_partition_and_lexsort() -> None:
    x = sample("int32", (4, 7))
    a = weft.asarray(x)
    agree(weft.sort(weft.partition(a, 3, axis=1)[:, :3]), np.sort(x, 1)[:, :3])
    agree(weft.take_along_axis(a, weft.argpartition(a, (1, 4), axis=1), axis=1)[:, 4], np.sort(x, 1)[:, 4])
    agree(weft.lexsort([a[0], a[1]]), np.lexsort([x[0], x[1]]))
    with pytest.raises(ValueError, match="kth"):
        weft.partition(a, 7, axis=1)
    with pytest.raises(ValueError, match=r"\(7,\), \(2,\)"):
        weft.lexsort([a[0], weft.zeros(2)])
    with pytest.raises(ValueError):
        weft.lexsort([])


def test_no_such_axis() -> None:
    for function in (weft.sort, weft.argsort):
        with pytest.raises(np.exceptions.AxisError):
            function(weft.zeros((2, 3)), axis=2)
    with pytest.raises(np.exceptions.AxisError):
        weft.sort(weft.asarray(1))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_long_vectors(make_engine: MakeEngine, dtype: str, workers: int) -> None:
    """Of which an idle worker sorts a part: the bits are those of a stable sort whoever does."""
    engine = make_engine(workers)
    draw = np.random.default_rng(11)
    bits = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    drawn = (draw.standard_normal(50_000) * 1e6).astype(dtype if dtype[0] != "u" else "int32").astype(dtype)
    few = draw.integers(0, 5, 40_000).astype(dtype)
    kinds = [drawn, few, np.zeros(30_000, dtype), np.arange(30_000).astype(dtype)[::-1].copy()]
    if dtype[0] == "f":
        mixed = drawn.copy()
        mixed[::7], mixed[1::14], mixed[3::11] = 0.0, -0.0, np.nan
        missing = np.isnan(mixed)
        mixed.view(bits)[missing] += np.arange(missing.sum()).astype(bits) % 50
        kinds += [mixed, np.full(30_000, np.nan, dtype), np.where(few == 0, np.array(-0.0, dtype), few)]
    for x in kinds:
        a = weft.asarray(x, engine=engine)
        np.testing.assert_array_equal(weft.sort(a).numpy().view(bits), np.sort(x, kind="stable").view(bits))
        np.testing.assert_array_equal(weft.argsort(a).numpy(), np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(weft.sort(a[::-2]).numpy().view(bits), np.sort(x[::-2], kind="stable").view(bits))
        agree(a, x)


def test_a_program_sorts_long_vectors() -> None:
    ordered = weft.program(lambda x: weft.sort(x * 2.0))
    for seed in (1, 2):
        x = np.random.default_rng(seed).standard_normal(20_000)
        agree(ordered(weft.asarray(x)), np.sort(x * 2.0))


@pytest.mark.parametrize("kind", ["stable", "mergesort", "Stable", "merge"])
def test_kinds_of_stable_sorts(kind: str) -> None:
    x = np.random.default_rng(0).integers(0, 4, 500)
    found = weft.argsort(weft.asarray(x), kind=kind)  # type: ignore[call-arg] # NumPy's name
    np.testing.assert_array_equal(found.numpy(), np.argsort(x, kind=kind))


@pytest.mark.parametrize("kind", ["foo", ""])
def test_other_kinds_of_sorts_are_refused(kind: str) -> None:
    x = weft.asarray([2, 1])
    for call in (
        lambda: weft.sort(x, kind=kind),  # type: ignore[call-arg] # NumPy's name
        lambda: weft.argsort(x, kind=kind),  # type: ignore[call-arg] # NumPy's name
        lambda: np.sort(x, kind=kind),
        lambda: x.sort(kind=kind),
    ):
        with pytest.raises(ValueError, match="the kind of a sort"):
            call()
