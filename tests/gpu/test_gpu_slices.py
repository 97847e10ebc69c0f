"""Slices of arrays on a GPU, and pinned memory: `pytest -m gpu tests/gpu` on a machine that has one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from spinning import MILLISECOND, SPIN

import weft
from conftest import SOON

# What CuPy warns of is its own; what it compiles and loads at first takes its time.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default"), pytest.mark.timeout(45)]

DEVICE = weft.gpu(0)
BLOCK = 50_000
LENGTH = 20 * BLOCK
LONG = 50 * MILLISECOND
#: Looks, 10 ms apart, that see the same: to pin a block takes less.
STEADY = 20


def cut(rng: np.random.Generator) -> slice:
    """A block, or any slice."""
    if rng.integers(2):
        at = BLOCK * int(rng.integers(20))
        return slice(at, at + BLOCK)
    start, stop = np.sort(rng.integers(0, LENGTH + 1, 2))
    return slice(int(start), int(stop), int(rng.integers(1, 4)))


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_over_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted = [rng.integers(0, 100, LENGTH).astype(np.float64) for _ in range(3)]
    found = [weft.asarray(values.copy(), device=DEVICE) for values in wanted]
    copies = []
    for _ in range(300):
        a, b = (int(at) for at in rng.integers(0, 3, 2))
        to = cut(rng)
        at = slice(0, len(range(*to.indices(LENGTH))))
        match int(rng.integers(5)):
            case 0:
                found[a][to] = found[b][at]
                wanted[a][to] = wanted[b][at].copy()
            case 1:
                found[a][to] += found[b][at]
                wanted[a][to] += wanted[b][at].copy()
            case 2:
                host = rng.integers(0, 100, at.stop).astype(np.float64)
                found[a][to] = host
                wanted[a][to] = host
            case 3:
                copies.append((found[a][to].to_device("cpu"), wanted[a][to].copy()))
            case _:
                found[a] = found[a] * 0.5 + found[b]
                wanted[a] = wanted[a] * 0.5 + wanted[b]
    for x, values in [*zip(found, wanted, strict=True), *copies]:
        np.testing.assert_array_equal(x.numpy(), values)


def seconds(x: weft.NDArray, slices: list[slice]) -> float:
    """The time of one long kernel of one block on each of these slices."""
    spin = weft.cuda.RawKernel(SPIN, "spin")
    spin(1, 1, (weft.Mutate(x), 1))
    weft.cuda.synchronize(DEVICE, SOON)
    start = time.perf_counter()
    for each in slices:
        spin(1, 32, (weft.Mutate(x[each]), LONG))
    weft.cuda.synchronize(DEVICE, SOON)
    return time.perf_counter() - start


def test_kernels_on_disjoint_slices_overlap_and_others_do_not() -> None:
    x = weft.zeros(400, dtype="float32", device=DEVICE)
    beside = seconds(x, [slice(at, at + 100) for at in range(0, 400, 100)])
    in_turn = seconds(x, [slice(at, at + 100) for at in range(0, 200, 50)])
    assert LONG * 1e-9 <= beside < 2 * LONG * 1e-9, beside
    assert in_turn >= 4 * LONG * 1e-9, in_turn


@pytest.mark.parametrize("is_pinned", [True, False])
def test_a_pipeline_over_slices(is_pinned: bool) -> None:
    def empty() -> weft.NDArray:
        return weft.cuda.empty_pinned(LENGTH) if is_pinned else weft.empty(LENGTH)

    values = np.random.default_rng(1).random(LENGTH)
    x, y = empty(), empty()
    x[...] = values
    d, e = (weft.empty(LENGTH, device=DEVICE) for _ in range(2))
    for _ in range(3):
        for at in range(0, LENGTH, BLOCK):
            d[at : at + BLOCK] = x[at : at + BLOCK]
            weft.exp(d[at : at + BLOCK], out=e[at : at + BLOCK])
            y[at : at + BLOCK] = e[at : at + BLOCK]
    np.testing.assert_allclose(y.numpy(), np.exp(values), rtol=1e-14)


def pinned() -> int:
    """Bytes that are pinned once nobody pins ahead, which copies of tests before this one may have asked for."""
    looks = [weft.cuda.memory_stats(DEVICE).pinned]
    while len(looks) < STEADY or len(set(looks[-STEADY:])) > 1:
        time.sleep(0.01)
        looks.append(weft.cuda.memory_stats(DEVICE).pinned)
    return looks[-1]


def test_pinned_memory_is_not_staged() -> None:
    weft.cuda.memory_trim()
    x = weft.cuda.empty_pinned(LENGTH)
    x[...] = 1.0
    before = pinned()
    d = x.to_device(DEVICE)
    x[...] = d + 1.0
    assert x[-1].item() == 2.0
    assert pinned() == before


def test_memory_that_cupy_has_pinned_goes_straight() -> None:
    cupyx: Any = pytest.importorskip("cupyx")
    weft.cuda.memory_trim()
    theirs = cupyx.empty_pinned(LENGTH)
    theirs[:] = 3.0
    before = pinned()
    x = weft.asarray(theirs, copy=False)
    x[...] = x.to_device(DEVICE) * 2.0
    x.wait_to_read(SOON)
    assert (theirs == 6.0).all()
    assert pinned() == before
