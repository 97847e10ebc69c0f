"""Numbers past the range of a dtype: where NumPy wraps, clips, overflows to infinity or raises, arrays do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGERS = ("int8", "uint8", "int16", "uint32", "int64", "uint64")
NUMBERS = (300, -300, -1, 127, 128, 255, 256, 2**31, -(2**31) - 1, 2**63, -(2**63), 2**64 - 1)


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the dtype and the elements, or the kind of error."""
    try:
        with np.errstate(all="ignore"):
            found = call()
            elements = found.numpy() if isinstance(found, weft.NDArray) else np.asarray(found)
            return elements.dtype, elements.tobytes()
    except (OverflowError, ValueError) as error:
        return (OverflowError if isinstance(error, OverflowError) else ValueError,)


def agree(call: Callable[..., Any], *given: np.ndarray, name: str) -> None:
    """Compare a call with NumPy's: eagerly, in a program."""
    wanted = outcome(lambda: call(np, *(x.copy() for x in given)))
    arrays = [weft.asarray(x) for x in given]
    assert outcome(lambda: call(weft, *arrays)) == wanted, name
    assert outcome(lambda: weft.program(lambda *xs: call(weft, *xs))(*arrays)) == wanted, name


@pytest.mark.parametrize("dtype", INTEGERS)
def test_where_and_select_wrap(dtype: str) -> None:
    chosen, x = np.array([True, False, True]), np.array([1, 2, 3], dtype)
    for number in NUMBERS:
        agree(lambda xp, c, x, n=number: xp.where(c, x, n), chosen, x, name=f"where(c, x, {number})")
        agree(lambda xp, c, x, n=number: xp.where(c, n, x), chosen, x, name=f"where(c, {number}, x)")
        agree(lambda xp, c, x, n=number: xp.select([c], [x], n), chosen, x, name=f"select({number})")


def test_where_of_symbols_wraps() -> None:
    condition, x = (weft.symbol.Variable(name) for name in "cx")
    symbol = weft.where(condition, x, 300)
    given = {"c": weft.asarray([True, False]), "x": weft.asarray([1, 2], dtype="int8")}
    assert symbol.eval(**given)[0].tolist() == [1, 44]


def test_where_refuses_what_no_integers_hold() -> None:
    with pytest.raises(weft.errors.ArgumentOverflowError, match="larger than any integer"):
        weft.where(weft.asarray([True]), weft.asarray([1]), 2**64)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ends_past_the_range_leave_an_interval_open(dtype: str) -> None:
    x = np.array([0, 1, 100], dtype)
    for low in (None, 0, *NUMBERS):
        for high in (None, 50, *NUMBERS):
            if low is None and high is None:
                continue
            agree(lambda xp, x, low=low, high=high: xp.clip(x, low, high), x, name=f"clip({low}, {high})")


@pytest.mark.parametrize("values", [300, [300], 300.0, [300.0], 1e30, [1e30], float("nan"), [float("nan")], 1.5, [1.5]])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16"])
def test_what_is_put_into_integers_is_to_fit(values: Any, dtype: str) -> None:
    def assigned(xp: Any, x: Any, key: Any) -> Any:
        x = xp.copy(x)
        x[key] = values
        return x

    x = np.array([1, 2, 3], dtype)
    agree(lambda xp, x: xp.insert(x, 1, values), x, name="insert")
    agree(lambda xp, x: assigned(xp, x, slice(1)), x, name="a slice")
    agree(lambda xp, x: assigned(xp, x, [True, False, True]), x, name="a mask")
    made = outcome(lambda: weft.asarray(values, dtype=dtype))
    assert made == outcome(lambda: np.array(values, dtype)), "asarray"


@pytest.mark.parametrize("function", ["mean", "sum", "prod", "var", "std", "nanmean"])
def test_reductions_in_half_precision_overflow(function: str) -> None:
    for x in (np.full(3, 30000, np.int16), np.full(9, 60000, np.float16), np.full(5000, 100, np.float32)):
        for options in ({}, {"axis": 0}, {"keepdims": True}):
            for dtype in ("float16", None):
                given = {**options, **({} if dtype is None else {"dtype": dtype})}
                agree(lambda xp, x, given=given: getattr(xp, function)(x, **given), x, name=f"{function} {given}")
