"""Random fused programs against eager calls, bit for bit, on every kind of vectors that this processor has.

Set ``WEFT_RANDOM_PROGRAMS`` to run so many times as many.
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path
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
SIZES = (16, 63, 300, 1_000, 6_144, 6_145, 9_216 - 1, 12_288 + 193, 20_011, 70_003)
NUMBERS = (0.5, -0.0, 0.0, 2.0, 1.0, -1.5, float("inf"), 3)

#: Kinds of steps, and how often they are taken.
KINDS = {
    "binary": 10,
    "number": 6,
    "unary": 4,
    "in place": 3,
    "bits": 2,
    "rough": 1,
    "choose": 1,
    "cast": 1,
    "overlap": 1,
    "strided": 1,
    "broadcast": 1,
    "one element": 3,
}

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
UNARY: Sequence[Callable[[Any], Any]] = (
    weft.negative,
    weft.abs,
    weft.sqrt,
    weft.square,
    weft.reciprocal,
    weft.positive,
    lambda a: weft.nn.relu(a) if a.dtype.kind == "f" else a,
)
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


@dataclass
class Step:
    """One step: its arrays, by number, and its functions."""

    kind: str
    one: int
    other: int
    function: Callable[[Any, Any], Any]
    alone: Callable[[Any], Any]
    rough: Callable[[Any], Any]
    number: float
    dtype: str
    is_left: bool

    def made(self, a: Any, b: Any) -> Any:  # noqa: PLR0911 - one for each kind of step
        """Return its result from two arrays of one length."""
        n, function = a.shape[0], self.function
        if self.kind == "number":
            return function(self.number, a) if self.is_left else function(a, self.number)
        if self.kind == "unary":
            return self.alone(a)
        if self.kind == "rough":
            return self.rough(a)
        if self.kind == "choose":
            return weft.where(a > b, a, b)
        if self.kind == "cast":
            # The result of a number that is out of range is up to the compiler.
            return a if a.dtype.kind == "f" and self.dtype[0] == "i" else a.astype(self.dtype)
        if self.kind == "strided":
            return function(a[::-1], b)
        if self.kind == "broadcast":
            return function(a.reshape(1, n), b[:2].reshape(2, 1))[1]
        if self.kind == "one element":
            one = b[n // 3] if self.number else b[n // 3 : n // 3 + 1]
            return function(one, a) if self.is_left else function(a, one)
        if self.kind == "bits" and a.dtype == b.dtype and a.dtype.kind == "i":
            return ~(a & b) ^ (a | b)
        return function(a, b)

    def write(self, a: Any, b: Any) -> None:
        """Change the first of two arrays of one length."""
        n = a.shape[0]
        if self.kind == "overlap":
            a[n // 2 :] = a[: n - n // 2]
        elif a.dtype == b.dtype and a.dtype.kind == "f":
            a *= b
            a += self.number

    def run(self, arrays: list[Any]) -> None:
        """Do it; one more array is there after it."""
        a, b = arrays[self.one], arrays[self.other]
        if self.kind in {"overlap", "in place"}:
            self.write(a, b)
            arrays.append(a)
        else:
            made = self.made(a, b)
            arrays.append(a if made.dtype.kind == "b" else made)


def build(chance: random.Random, length: int) -> Callable[..., list[weft.NDArray]]:
    """Return a function of four arrays: its steps name arrays by number, so it does the same at every run."""
    steps: list[Step] = []
    for count in range(4, 4 + length):
        kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
        # The latest are named most.
        one, other = (count - 1 - min(int(chance.expovariate(0.5)), count - 1) for _ in range(2))
        functions = chance.choice(BINARY), chance.choice(UNARY), chance.choice(ROUGH)
        steps.append(
            Step(kind, one, other, *functions, chance.choice(NUMBERS), chance.choice(DTYPES[:4]), chance.random() < 0.5)
        )

    def function(*given: weft.NDArray) -> list[weft.NDArray]:
        arrays: list[Any] = list(given)
        for step in steps:
            step.run(arrays)
        return [array * 1 for array in arrays[-3:]]

    return function


def differs(seed: int, *, payloads: bool) -> str | None:
    """Say how the results of a random program differ from those of eager calls; None where they do not."""
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    n, length = chance.choice(SIZES), chance.choice((5, 20, 60, 200))
    # Most of one dtype, so that runs are long.
    main = chance.choice(DTYPES[:2] * 3 + DTYPES)
    dtypes = [main if chance.random() < 0.8 else chance.choice(DTYPES) for _ in range(4)]
    if "complex64" in dtypes or "bool" in dtypes:
        dtypes = ["float32"] * 4
    function = build(chance, length)
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


@pytest.mark.slow
@pytest.mark.parametrize("vectors", VECTORS)
def test_fused_programs_have_eager_bits(script: RunScript, vectors: str) -> None:
    source = f"""
    import sys
    sys.path[:0] = {sys.path!r} + [{str(Path(__file__).parent)!r}]
    from test_fused_bits import compare
    compare(range({PROGRAMS * MANY}), payloads={vectors != "plain"})
    """
    done = script(source, timeout=600, WEFT_VECTORS=vectors)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("n", [1, 100, 20_000])
def test_one_element_for_all_joins_fused_loops(n: int) -> None:
    """As where the rate of a step is an array without axes, given or computed, which a call may change."""

    def step(w: Any, g: Any, rate: Any, norms: Any) -> Any:
        norms += 1
        scale = rate / norms[0]
        g = g * scale
        g = g + rate * w
        g = -g * rate
        w += g
        return w * w - scale

    def outcome(call: Callable[..., Any]) -> list[bytes]:
        rng = np.random.default_rng(n)
        w, g = (weft.asarray(rng.normal(size=n).astype("f4")) for _ in range(2))
        norms, results = weft.ones(n, "float32"), []
        for rate in (0.5, 0.25, float("nan")):
            made = call(w, g, weft.asarray(np.float32(rate)), norms)
            results += [array.numpy().tobytes() for array in (made, w, norms)]
        return results

    program = weft.program(step)
    assert outcome(program) == outcome(step)
    if n > 1:
        (made,) = program.programs
        assert max(name.count("+") for name in made._compiled.names) >= 5, made._compiled.names
