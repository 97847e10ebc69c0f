"""Single elements, and arrays of none but one: what a script for NumPy takes for granted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft._ops import indexing


def test_two_elements_are_swapped() -> None:
    x = weft.asarray([1, 2, 3])
    x[0], x[1] = x[1], x[0]
    assert x.tolist() == [2, 1, 3]


def test_bubble_sort() -> None:
    x = weft.asarray([5, 3, 8, 1])
    for end in range(len(x) - 1, 0, -1):
        for i in range(end):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
    assert x.tolist() == [1, 3, 5, 8]


@pytest.mark.parametrize("key", [(1, 2), (-1, 0), (np.int64(1), 2), (np.array(1), 0)], ids=repr)
def test_integers_name_a_value(key: Any) -> None:
    values = np.arange(6.0).reshape(2, 3)
    x = weft.asarray(values)
    element = x[key]
    x[...] = -1
    assert element.shape == ()
    assert element.item() == values[key]


def test_a_value_is_taken_in_its_turn() -> None:
    with weft.Engine(workers=1) as engine:
        x = weft.zeros(3, engine=engine)
        x += 1
        element = x[1]
        x += 1
        assert element.item() == 1
        assert not element._shares_buffer(x)


def test_an_ellipsis_names_a_view() -> None:
    x = weft.asarray([1, 2])
    shown = x[0, ...]
    x[0] = 5
    assert shown.item() == 5
    assert weft.asarray(7)[...].shape == ()


def test_iteration_gives_values() -> None:
    x = weft.asarray([3, 1, 2])
    first, second, third = x
    x[...] = 0
    assert (first.item(), second.item(), third.item()) == (3, 1, 2)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_signed_integers_are_compared_with_uint64(dtype: str, name: str) -> None:
    signed = np.array([-1, 0, 5], dtype)
    unsigned = np.array([2**64 - 1, 0, 4], np.uint64)
    x, y = weft.asarray(signed), weft.asarray(unsigned)
    assert getattr(weft, name)(x, y).tolist() == getattr(np, name)(signed, unsigned).tolist()
    assert getattr(weft, name)(y, x).tolist() == getattr(np, name)(unsigned, signed).tolist()


WITHOUT_AXES = [
    *("sum", "prod", "max", "min", "all", "any", "ptp", "count_nonzero", "cumsum", "cumprod", "argmax", "argmin"),
    *("argsort", "nansum", "nanmean", "nanmax", "nanargmax", "squeeze"),
]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_an_array_without_axes_has_the_first_and_the_last(name: str, axis: int) -> None:
    expected = np.asarray(getattr(np, name)(np.array(3.0), axis=axis))
    found = getattr(weft, name)(weft.asarray(3.0), axis=axis)
    assert (found.shape, found.dtype, found.tolist()) == (expected.shape, expected.dtype, expected.tolist())


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ["mean", "var", "std", "average", "median", "nanmedian", "quantile", "nanpercentile"])
def test_averages_of_an_array_without_axes_have_no_first(name: str, axis: int) -> None:
    q = [0.5] if name in {"quantile", "nanpercentile"} else []
    for module, x in ((np, np.array(3.0)), (weft, weft.asarray(3.0))):
        with pytest.raises(np.exceptions.AxisError, match=f"axis {axis} is out of bounds for array of dimension 0"):
            getattr(module, name)(x, *q, axis=axis)
        assert getattr(module, name)(x, *q) is not None


def test_booleans_have_no_spread() -> None:
    with pytest.raises(weft.errors.ArgumentTypeError, match="ptp: booleans have no difference"):
        weft.ptp(weft.asarray([True, False]))


def test_an_array_without_axes_has_no_second() -> None:
    for name in WITHOUT_AXES:
        with pytest.raises(np.exceptions.AxisError):
            getattr(weft, name)(weft.asarray(3.0), axis=1)


@pytest.mark.parametrize("k", [2**62, 2**63, 2**70, -(2**63), -(2**70), 3, -2])
def test_a_diagonal_outside_of_the_matrix(k: int) -> None:
    assert not weft.eye(2, 3, k=k).numpy().any()


def test_what_lies_between_elements_of_lent_memory_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lent = np.zeros(8)
    even, odd = weft.asarray(lent[::2], copy=False), lent[1::2]  # of which another array may be made
    scatter = indexing._scatter

    def slowly(*args: Any) -> None:
        odd[...] = 7.0  # as an op of that array does it meanwhile
        scatter(*args)

    monkeypatch.setattr(indexing, "_scatter", slowly)
    even[weft.asarray([1, 3])] = 5.0
    even.wait_to_read()
    assert lent.tolist() == [0.0, 7.0, 5.0, 7.0, 0.0, 7.0, 5.0, 7.0]
