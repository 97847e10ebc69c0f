"""Element-wise functions write every element, wherever the elements of their outputs lie.

Some of NumPy's loops leave elements out where those of an output do not lie one after the other. NumPy hardly ever calls them so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from against import DTYPES, sample

import weft
from weft._core import Loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Shapes of which some are walked along their short axis, some along their long one.
SHAPES = ((2, 100), (16, 16), (5, 131), (3, 67))
SPECIAL = (np.inf, -np.inf, np.nan, -0.0)
UFUNCS = [op.name for op in map(weft.ops.get_op, weft.ops.list_ops()) if op.ufunc is not None and op.ufunc.nout == 1]


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Values of a dtype, some of them no finite numbers."""
    array = sample(dtype, shape, seed)
    if array.dtype.kind == "f":
        array.flat[seed :: 3 + seed] = np.resize(SPECIAL, array.size)[: len(array.flat[seed :: 3 + seed])]
    return array


#: Steps of inputs, in elements: NumPy has loops of their own for several of them.
STEPS = (2, 3, 4, 5)


def places(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[weft.NDArray]:
    """Arrays of a shape with gaps between their elements, all of which have a value that no result has everywhere."""
    rows, columns = shape
    noise = np.frombuffer(np.full(6 * rows * columns * dtype.itemsize, 1, np.uint8).tobytes(), dtype)[
        : 6 * rows * columns
    ]
    yield weft.asarray(noise[: 2 * rows * columns].reshape(rows, 2 * columns).copy())[:, ::2]
    yield weft.asarray(noise[: rows * columns].reshape(columns, rows).copy()).T
    yield weft.asarray(noise[: rows * columns].reshape(shape).copy())[::-1, ::-1]
    yield weft.asarray(noise.reshape(rows, columns, 6).copy())[:, :, 3]


def check(found: weft.NDArray, want: np.ndarray, what: str) -> None:
    got = found.numpy()
    assert got.dtype == want.dtype, what
    if got.shape == want.shape and got.tobytes() == want.tobytes():
        return  # the same bits: most are, and what follows takes longer than what is tested
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    # NumPy's own bits depend on where elements lie, in the last place.
    digits = 4e-3 if want.dtype == np.float16 else 1e-5 if want.dtype in (np.float32, np.complex64) else 1e-12
    np.testing.assert_allclose(got, want, rtol=digits, atol=digits, err_msg=what)


def expected(function: Callable[..., Any], arrays: list[np.ndarray]) -> np.ndarray | None:
    """What NumPy gives for arrays in rows; None where it has no such function."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(*arrays))
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("name", UFUNCS)
def test_every_element_is_written(name: str) -> None:
    op = weft.ops.get_op(name)
    assert op.ufunc is not None
    for dtype in DTYPES:
        for shape in SHAPES:
            arrays = [values(dtype, shape, seed) for seed in range(op.ufunc.nin)]
            want = expected(op.ufunc, arrays)
            if want is None:
                break
            what = f"{name} of {dtype} {shape}"
            turned = [weft.asarray(np.ascontiguousarray(x.T)).T for x in arrays]
            check(op(*turned), want, f"{what}, transposed")
            given = [weft.asarray(x) for x in arrays]
            for number, place in enumerate(places(shape, want.dtype)):
                check(op(*given, out=place), want, f"{what}, out= of layout {number}")
                for step in STEPS if shape == SHAPES[0] else ():
                    spread = [weft.asarray(np.repeat(x, step, axis=1))[:, ::step] for x in arrays]
                    place[...] = 0
                    check(op(*spread, out=place), want, f"{what}, inputs {step} apart, out= of layout {number}")
                place[...] = 0
                masked = np.where(np.arange(shape[1]) % 5 > 0, want, np.zeros((), want.dtype))
                check(
                    op(*given, out=place, where=np.arange(shape[1]) % 5 > 0),
                    masked,
                    f"{what}, where= and layout {number}",
                )


PREDICATES = ("isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf")


@pytest.mark.parametrize("name", PREDICATES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_programs_and_symbols_write_every_element(name: str, dtype: str) -> None:
    function: Any = getattr(weft, name)
    symbolic: Any = getattr(weft.symbol, name, function)
    for shape in SHAPES:
        x = values(dtype, shape, 0)
        want = getattr(np, name)(np.ascontiguousarray(x.T))

        @weft.program
        def turned(x: weft.NDArray) -> weft.NDArray:
            return function(x.T)

        @weft.program
        def fused(x: weft.NDArray) -> weft.NDArray:
            return weft.logical_not(function(-x.T))

        for _ in range(3):
            check(turned(weft.asarray(x)), want, f"{name} of {dtype} {shape}, program")
            opposite = ~getattr(np, name)(-np.ascontiguousarray(x.T))
            check(fused(weft.asarray(x)), opposite, f"{name} of {dtype} {shape}, fused")
        symbol = symbolic(weft.symbol.Variable("x").T)
        check(symbol.eval(x=weft.asarray(x))[0], want, f"{name} of {dtype} {shape}, symbol")


def test_loops_that_are_wrong_with_gaps_are_found() -> None:
    x = np.full(100, np.nan)
    strided = np.zeros((100, 2), np.bool_)[:, 0]
    np.isnan(x, out=strided)
    loop = Loop.of(np.isnan, (x.dtype, strided.dtype))
    assert loop is not None
    assert loop.takes_gaps == bool(strided.all()), "NumPy's own loop says which it is"
    add = Loop.of(np.add, (x.dtype,) * 3)
    assert add is not None
    assert add.takes_gaps
