"""Loops over a very short last axis walk by blocks of a longer one: the elements, and their bits, are NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 20261128
#: The broadcast axis is the last one. Lengths of the others are round, prime, and far apart.
SHAPES = [
    (300, 300, 2),
    (101, 103, 3),
    (7, 5000, 2),
    (5000, 7, 2),
    (10_007, 2),
    (40_000, 16),
    (2, 3, 9_000, 2),
    (17_000, 1, 2),
]


def values(shape: tuple[int, ...], dtype: str, seed: int = SEED) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = rng.integers(1, 100, shape) if np.dtype(dtype).kind in "iu" else rng.uniform(0.5, 2.0, shape)
    return found.astype(dtype)


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "divide": lambda _, x, y: x / y[..., None],
    "divide by": lambda _, x, y: y[..., None] / x,
    "compare": lambda _, x, y: x < y[..., None],
    "several results": lambda np, x, y: np.divmod(x, y[..., None])[1],
    "backwards": lambda _, x, y: x[::-1] * y[::-1, ..., None],
    "casts": lambda _, x, y: x + y[..., None].astype("float32"),
    "every other": lambda np, x, y: np.sqrt(x[..., :2] * y[..., None]),
    "choose": lambda np, x, y: np.where(x > y[..., None], x, y[..., None]),
    "transposed": lambda np, x, y: np.exp(np.moveaxis(x, -1, 0)) + y,
    "fused": lambda _, x, y: (x - y[..., None]) * y[..., None] + x,
    "copied": lambda np, x, y: np.broadcast_to(y[..., None], x.shape) + 0,
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("call", CALLS)
def test_the_bits_are_those_of_numpy(call: str, shape: tuple[int, ...], dtype: str) -> None:
    x, y = values(shape, dtype), values(shape[:-1], dtype, SEED + 1)
    with np.errstate(all="ignore"):
        wanted = CALLS[call](np, x, y)
    found = CALLS[call](weft, weft.asarray(x), weft.asarray(y)).numpy()
    assert found.dtype == wanted.dtype
    assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()


@pytest.mark.parametrize("shape", SHAPES)
def test_in_place_and_recorded(shape: tuple[int, ...]) -> None:
    x, y = values(shape, "float64"), values(shape[:-1], "float64", SEED + 1)
    target, divisor = weft.asarray(x), weft.asarray(y)
    target /= divisor[..., None]
    target[..., 0] -= divisor

    @weft.program
    def again(x: Any, y: Any) -> Any:
        return (x * y[..., None] + 1) / y[..., None]

    wanted = x / y[..., None]
    wanted[..., 0] -= y
    assert target.numpy().tobytes() == wanted.tobytes()
    for _ in range(2):
        assert again(weft.asarray(x), divisor).numpy().tobytes() == ((x * y[..., None] + 1) / y[..., None]).tobytes()
