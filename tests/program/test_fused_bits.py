"""Random fused programs against eager calls, bit for bit, on every kind of vectors that this processor has.

Set ``WEFT_RANDOM_PROGRAMS`` to run so many times as many.
"""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from conftest import RunScript

MANY = int(os.environ.get("WEFT_RANDOM_PROGRAMS", "1"))
PROGRAMS = 40
CALLS = 3
VECTORS = ("plain", "sse2", "avx2", "avx512")
DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "complex64")
#: Most are large enough to be fused: some fill blocks and tiles, others do not.
SIZES = (16, 1_000, 6_144, 6_145, 9_216 - 1, 12_288 + 193, 20_011, 70_003)
NUMBERS = (0.5, -0.0, 0.0, 2.0, 1.0, -1.5, float("inf"), 3)

BINARY: Sequence[Callable[[Any, Any], Any]] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a / b,
    weft.maximum,
    weft.minimum,
)
UNARY: Sequence[Callable[[Any], Any]] = (weft.negative, weft.abs, weft.sqrt, weft.square, weft.reciprocal, weft.positive)
ROUGH: Sequence[Callable[[Any], Any]] = (weft.tanh, weft.exp, weft.isnan, weft.floor)


def numbers(rng: np.random.Generator, dtype: str, n: int, *, payloads: bool) -> npt.NDArray[Any]:
    """Return numbers of every kind: zeros of both signs, infinities, subnormal ones, and such as are none."""
    if dtype == "bool":
        return rng.random(n) < 0.5
    if dtype[0] in "iu":
        return rng.integers(0, 100, n).astype(dtype)
    values: npt.NDArray[Any] = rng.normal(size=n).astype(dtype)
    if dtype == "complex64":
        return values + np.complex64(1j) * rng.normal(size=n).astype(dtype)
    odd = [0.0, -0.0, np.inf, -np.inf, float(np.finfo(dtype).smallest_subnormal), float(np.finfo(dtype).max), np.nan]
    at = rng.random(n) < 0.3
    values[at] = rng.choice(np.array(odd, dtype), int(at.sum()))
    if payloads and dtype != "float16":
        bits = values.view(f"u{values.itemsize}")
        none = np.isnan(values)
        bits[none] |= rng.integers(1, 1 << 20, int(none.sum())).astype(bits.dtype)
        bits[none & (rng.random(n) < 0.5)] |= bits.dtype.type(1 << (8 * values.itemsize - 1))
    return values


def build(chance: random.Random, n: int, length: int) -> Callable[..., list[weft.NDArray]]:
    """Return a function of four arrays: its steps name arrays by number, so it does the same at every run."""
    steps: list[Callable[[list[Any]], None]] = []
    count = 4
    for _ in range(length):
        kind = chance.choices(
            ("binary", "number", "unary", "in place", "rough", "choose", "cast", "overlap", "strided", "broadcast"),
            (10, 6, 4, 3, 1, 1, 1, 1, 1, 1),
        )[0]
        # The latest are named most.
        one, other = (count - 1 - min(int(chance.expovariate(0.5)), count - 1) for _ in range(2))
        function, alone, rough = chance.choice(BINARY), chance.choice(UNARY), chance.choice(ROUGH)
        value, dtype, left = chance.choice(NUMBERS), chance.choice(DTYPES[:4]), chance.random() < 0.5

        def step(
            arrays: list[Any],
            kind: str = kind,
            one: int = one,
            other: int = other,
            function: Callable[[Any, Any], Any] = function,
            alone: Callable[[Any], Any] = alone,
            rough: Callable[[Any], Any] = rough,
            value: float = value,
            dtype: str = dtype,
            left: bool = left,  # noqa: FBT001 - bound early
        ) -> None:
            a, b = arrays[one], arrays[other]
            made: Any = None
            if kind == "binary":
                made = function(a, b)
            elif kind == "number":
                made = function(value, a) if left else function(a, value)
            elif kind == "unary":
                made = alone(a)
            elif kind == "in place":
                if a.dtype == b.dtype and a.dtype.kind == "f":
                    a *= b
                    a += value
            elif kind == "rough":
                made = rough(a)
            elif kind == "choose":
                made = weft.where(a > b, a, b)
            elif kind == "cast":
                made = a.astype(dtype) if a.dtype.kind in "fiub" and not (a.dtype.kind == "f" and dtype[0] == "i") else a
            elif kind == "overlap":
                a[n // 2 :] = a[: n - n // 2]
            elif kind == "strided":
                made = function(a[::-1], b)
            else:
                made = (function(a.reshape(1, n), b[:2].reshape(2, 1)))[1]
            if made is not None and made.dtype.kind != "b":
                arrays.append(made)
            else:
                arrays.append(a)

        steps.append(step)
        count += 1

    def function(*given: weft.NDArray) -> list[weft.NDArray]:
        arrays: list[Any] = list(given)
        for step in steps:
            step(arrays)
        return [array + 0 if array is one else array for array in arrays[-3:] for one in given[:1]]

    return function


def differs(seed: int, *, payloads: bool) -> str | None:
    """Say how what a random program gives differs from what eager calls do; None where it does not."""
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    n, length = chance.choice(SIZES), chance.choice((5, 20, 60, 200))
    # Most of one dtype, so that runs are long.
    main = chance.choice(DTYPES[:2] * 3 + DTYPES)
    dtypes = [main if chance.random() < 0.8 else chance.choice(DTYPES) for _ in range(4)]
    if "complex64" in dtypes or "bool" in dtypes:
        dtypes = ["float32"] * 4
    function = build(chance, n, length)
    values = [numbers(rng, dtype, n, payloads=payloads) for dtype in dtypes]

    def outcome(call: Callable[..., list[weft.NDArray]]) -> list[npt.NDArray[Any]]:
        given = [weft.asarray(value.copy()) for value in values]
        seen: list[npt.NDArray[Any]] = []
        for _ in range(CALLS):
            seen += [array.numpy().copy() for array in call(*given)]
        return [*seen, *(array.numpy().copy() for array in given)]

    for at, (found, wanted) in enumerate(zip(outcome(weft.program(function)), outcome(function), strict=True)):
        if found.tobytes() != wanted.tobytes():
            bits = f"u{found.itemsize}"
            places = np.flatnonzero(found.view(bits) != wanted.view(bits))
            return f"seed {seed}, n {n}, length {length}, {dtypes}: {at} at {places[:5]} of {len(places)}: {found[places[:3]]} {wanted[places[:3]]}"
    return None


def compare(seeds: range, *, payloads: bool) -> None:
    """Compare many programs."""
    said = [said for seed in seeds if (said := differs(seed, payloads=payloads))]
    assert not said, "\n".join([f"{len(said)} of {len(seeds)} programs", *said])


@pytest.mark.parametrize("vectors", VECTORS)
def test_fused_programs_have_eager_bits(script: RunScript, vectors: str) -> None:
    source = f"""
    import sys
    sys.path[:0] = {sys.path!r} + [{os.path.dirname(__file__)!r}]
    from test_fused_bits import compare
    compare(range({PROGRAMS * MANY}), payloads={vectors != "plain"})
    """
    done = script(source, timeout=600, WEFT_VECTORS=vectors)
    assert done.returncode == 0, done.stderr
