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


def test_ends_past_the_range_of_a_symbol_leave_its_interval_open() -> None:
    """Their dtypes are known when there are arrays."""
    for dtype in INTEGERS:
        x = np.array([0, 1, 100], dtype)
        for low, high in [
            (None, 50),
            (0, None),
            *((None, each) for each in NUMBERS),
            *((each, None) for each in NUMBERS),
        ]:
            symbol = weft.clip(weft.symbol.Variable("x"), low, high)
            wanted = outcome(lambda x=x, low=low, high=high: np.clip(x, low, high))
            name = f"clip({low}, {high}) of {dtype}"
            assert outcome(lambda symbol=symbol, x=x: symbol.eval(x=weft.asarray(x))[0]) == wanted, name


SCALARS = tuple(
    np.dtype(kind).type(value)
    for kind, value in [
        *(("int8", -5), ("int16", -129), ("int64", 300), ("int64", 2**40), ("uint8", 200), ("uint16", 40_000)),
        *(("uint64", 2**64 - 5), ("float16", 6e4), ("float32", 2.75), ("float32", 1e30), ("float64", -300.5)),
        *(("float64", np.nan), ("float32", np.inf), ("float64", -np.inf), ("bool", True)),
    ]
)
WRITES: dict[str, Callable[[Any, Any], None]] = {
    "slice": lambda x, value: x.__setitem__(slice(0, 1), value),
    "element": lambda x, value: x.__setitem__(0, value),
    "all": lambda x, value: x.__setitem__(..., value),
    "list": lambda x, value: x.__setitem__([0, 2], value),
    "mask": lambda x, value: x.__setitem__([True, False, True], value),
    "fill": lambda x, value: x.fill(value),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float16"])
def test_scalars_of_numpy_are_written_as_numpy_writes_them(dtype: str, write: str) -> None:
    """Through a view, one is a number to signed integers, which are to have it; else it is cast as an array is."""

    def written(xp: Any, x: Any, value: Any) -> Any:
        x = xp.copy(x)
        WRITES[write](x, value)
        return x

    for value in SCALARS:
        casts = np.dtype(dtype).kind == "u" or write in {"list", "mask"}
        if dtype in INTEGERS and casts and value.dtype.kind == "f" and not 0 <= float(value) <= np.iinfo(dtype).max:
            continue  # C leaves open what a floating-point number becomes
        agree(lambda xp, x, value=value: written(xp, x, value), np.array([1, 2, 3], dtype), name=f"{value!r}")


@pytest.mark.parametrize("value", [np.nan, np.inf, np.float32("nan"), np.float64("inf")])
def test_what_is_no_integer_is_refused_by_an_error_of_the_package(value: Any) -> None:
    with pytest.raises(weft.errors.WeftError, match=r"cannot assign (NaN|inf) to an array of int8"):
        weft.zeros(2, dtype="int8")[:] = value


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


@pytest.mark.parametrize(
    "call",
    [
        lambda xp: xp.zeros(10**20),
        lambda xp: xp.eye(10**20),
        lambda xp: xp.linspace(0, 1, 10**20),
        lambda xp: xp.tile(xp.arange(3.0), 10**20),
        lambda xp: xp.diag(xp.arange(3.0), 10**20),
    ],
)
def test_shapes_past_every_machine_are_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        call(np)
    with pytest.raises(weft.errors.ArgumentValueError, match="too big"):
        call(weft)
