"""Arrays that are made out of few numbers: NumPy's elements, bit for bit."""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import numpy as np
import pytest

import weft

DTYPES = [None, int, float, bool, "i1", "u1", np.int16, "u2", np.dtype("i4"), "u8", "f2", np.float32, "f8", "c8", "c16"]
SEED = 20


def same(ours: Any, theirs: Any, what: Any) -> None:
    """Compare what two calls give: the elements' bits, or the class of what they raise."""
    found: list[Any] = []
    for call in (ours, theirs):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array = np.asarray(call())
            found.append((array.dtype, array.shape, array.tobytes()))
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            found.append(
                next(
                    kind for kind in (OverflowError, ArithmeticError, ValueError, Exception) if isinstance(error, kind)
                )
            )
    assert found[0] == found[1], what


def drawn(draw: random.Random) -> Any:
    kind = draw.randrange(8)
    if kind < 3:
        return draw.randrange(-20, 60)
    if kind < 6:
        return draw.choice([draw.uniform(-9, 9), round(draw.uniform(-3, 3), 1), draw.randrange(-9, 9) * 0.25])
    if kind == 6:
        return draw.choice([0, 0.0, -0.0, 1, True, 2**53 - 1, -(2**53), 2**40])
    return draw.choice([1e-310, 5e-324, 1e18, -1e300, 1e308, 3.5e38, math.inf, math.nan, 127, 128, 255, 256])


def test_ranges_are_numpys() -> None:
    draw, seen = random.Random(SEED), 0
    for _ in range(6000):
        given = [drawn(draw) for _ in range(draw.choice([1, 2, 3, 3]))]
        dtype = draw.choice(DTYPES)
        with np.errstate(all="ignore"):
            try:
                length = abs(
                    np.float64(given[-2] if len(given) > 2 else given[-1]) - (given[0] if len(given) > 1 else 0)
                )
                length = float(length / abs(given[2] if len(given) > 2 else 1))
            except ZeroDivisionError:
                length = 0
        if not length < 20_000:
            continue
        seen += 1
        same(
            lambda given=given, dtype=dtype: weft.arange(*given, dtype=dtype).numpy(),
            lambda given=given, dtype=dtype: np.arange(*given, dtype=dtype),
            (given, dtype),
        )
    assert seen > 2000


@pytest.mark.parametrize(
    "given",
    [
        (0,),
        (-3,),
        (5, 5),
        (5, 0),
        (5, 0, -1),
        (0, 5, -1),
        (0.0, 1.0, 0.1),
        (0, 1, 1e-3),
        (3, 0.5, -0.5),
        (8191,),
        (8193,),
        (20000,),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["i8", "u1", "f4", None], ids=str)
def test_ranges_at_their_ends(given: tuple[float, ...], dtype: str | None) -> None:
    same(lambda: weft.arange(*given, dtype=dtype).numpy(), lambda: np.arange(*given, dtype=dtype), given)


def test_a_step_of_nothing() -> None:
    for step in (0, 0.0, -0.0):
        with pytest.raises(ZeroDivisionError):
            weft.arange(0, 5, step)


def test_spaced_numbers_are_numpys() -> None:
    draw = random.Random(SEED)
    for _ in range(4000):
        start, stop = drawn(draw), drawn(draw)
        count, endpoint = draw.choice([0, 1, 2, 3, 7, 50, 1001]), draw.random() < 0.7
        dtype = draw.choice([None, None, "f4", np.float64, "i4", "c16"])
        if dtype == "i4" and not (abs(start) < 1e9 and abs(stop) < 1e9):
            continue  # what no integer holds is cast as the machine does
        same(
            lambda given=(start, stop, count, dtype, endpoint): weft.linspace(
                *given[:3], dtype=given[3], endpoint=given[4]
            ).numpy(),
            lambda given=(start, stop, count, dtype, endpoint): np.linspace(
                *given[:3], dtype=given[3], endpoint=given[4]
            ),
            (start, stop, count, dtype, endpoint),
        )


def test_diagonals_are_numpys() -> None:
    draw = random.Random(SEED)
    for dtype in ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", None, float]:
        for _ in range(40):
            rows, columns, k = (
                draw.randrange(6),
                draw.choice([None, *range(7)]),
                draw.choice([0, 0, 1, -1, 3, -5, 9, -(2**70)]),
            )
            ours = weft.eye(rows, columns, k, dtype) if dtype is not None else weft.eye(rows, columns, k)
            theirs = np.eye(rows, columns, max(-99, k), dtype or float)
            same(ours.numpy, lambda theirs=theirs: theirs, (rows, columns, k, dtype))
    assert weft.eye(200, dtype="f4").sum().item() == 200
    assert weft.identity(3).engine is weft.get_engine()


def test_filled_arrays_are_numpys() -> None:
    values = [0, 1, -1, 7, True, 2.5, -0.0, math.inf, math.nan, 1e300, 300, 1 + 2j]
    for dtype in DTYPES:
        for value in values:
            if isinstance(value, complex) and dtype is not None and np.dtype(dtype).kind not in "bc":
                continue  # weft drops no imaginary parts
            if np.dtype(dtype or float).kind in "iu" and value not in (0, 1, -1, 7, 2.5, 300):
                continue  # weft refuses what no integer is
            same(
                lambda value=value, dtype=dtype: weft.full((2, 3), value, dtype).numpy(),
                lambda value=value, dtype=dtype: np.full((2, 3), value, dtype),
                (value, dtype),
            )
        x = np.zeros((2, 0, 3), dtype or float)
        for name in ("ones_like", "zeros_like"):
            same(getattr(weft, name)(weft.asarray(x)).numpy, lambda name=name, x=x: getattr(np, name)(x), dtype)


def test_they_are_where_they_are_asked_for() -> None:
    for make in (weft.arange, weft.eye):
        assert make(3).device == weft.cpu(0)
        assert make(3, device="cpu:1").device == weft.cpu(1)
    with weft.Engine() as engine:
        assert weft.arange(3, engine=engine).engine is engine
        assert weft.linspace(0, 1, 3, engine=engine).engine is engine
        assert weft.eye(3, engine=engine).engine is engine
    with pytest.raises(weft.errors.EngineClosedError):
        weft.arange(3, engine=engine)
