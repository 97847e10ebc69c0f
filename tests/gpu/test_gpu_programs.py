"""Programs on a GPU: a replay gives, bit for bit, what the function gives, whatever else is under way."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON

if TYPE_CHECKING:
    from collections.abc import Callable

# What CuPy warns of is its own; what it compiles and loads at first takes its time.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default"), pytest.mark.timeout(45)]

DEVICE = weft.gpu(0)
N = 100_000
SOURCE = """
extern "C" __global__ void axpy(const float* x, float* y, float factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += factor * x[i];
}
"""
AXPY = weft.cuda.RawKernel(SOURCE, "axpy")


def arrays() -> list[weft.NDArray]:
    rng = np.random.default_rng(3)
    found = [weft.asarray(rng.random(N).astype("float32"), device=DEVICE) for _ in range(3)]
    return [*found, weft.asarray(rng.random(N).astype("float32"))]


def elementwise(x: weft.NDArray, y: weft.NDArray, z: weft.NDArray, host: weft.NDArray) -> Any:
    h = weft.tanh(x * y) + 1.0
    z += h * 0.5
    z[: N // 2] = h[N // 2 :]
    x[::2] -= z[1::2]
    return h - z, x[::3], host * 2.0


def copies(x: weft.NDArray, y: weft.NDArray, z: weft.NDArray, host: weft.NDArray) -> Any:
    host += (x * 2.0).to_device("cpu")
    y[...] = host  # from the host, as soon as it has arrived there
    z[1::2] = host[: N // 2]
    back = (host * 0.5).to_device(DEVICE)
    host[...] = 0.0  # not before the device has read it
    host[: N // 4] = back[: N // 4]
    return back * y, host + 1.0


def kernels(x: weft.NDArray, y: weft.NDArray, z: weft.NDArray, host: weft.NDArray) -> Any:
    AXPY(N // 256 + 1, 256, (weft.Read(x), weft.Mutate(y), np.float32(0.5), N))
    part = y[: N // 2] + x[N // 2 :]
    AXPY(N // 512 + 1, 256, (weft.Read(part), weft.Mutate(z), np.float32(2.0), N // 2))
    return part * 2.0, host - 1.0


def cupys(x: weft.NDArray, y: weft.NDArray, z: weft.NDArray, host: weft.NDArray) -> Any:
    pytest.importorskip("cupy")
    y[...] = weft.sort(x)
    # Of whole numbers: in what order CuPy's libraries add may differ from one run to the next.
    matrix = weft.floor(z[:40_000] * 8.0).reshape(200, 200)
    z[:40_000] = weft.reshape(matrix @ matrix.T, (40_000,)) * 2.0**-13
    return weft.cumsum(weft.floor(y * 64.0)) * 0.5, weft.max(z), host


@pytest.mark.parametrize("function", [elementwise, copies, kernels, cupys])
@pytest.mark.parametrize("sequential", [False, True])
def test_replays_give_what_calls_give(function: Callable[..., Any], sequential: bool) -> None:
    program = weft.program(function, sequential=sequential)
    eager, recorded = arrays(), arrays()
    wanted = [function(*eager) for _ in range(5)]
    found = [program(*recorded) for _ in range(5)]
    for ours, theirs in zip([*found, recorded], [*wanted, eager], strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.device == other.device
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert len(program.programs) == 1


def test_memory_of_replays_goes_back() -> None:
    program, given = weft.program(elementwise), arrays()
    program(*given)
    weft.wait_all(SOON)
    gc.collect()
    weft.cuda.synchronize(DEVICE)
    before = weft.cuda.memory_stats(DEVICE).in_use
    for _ in range(100):
        program(*given)
    weft.wait_all(SOON)
    gc.collect()
    weft.cuda.synchronize(DEVICE)
    assert weft.cuda.memory_stats(DEVICE).in_use <= before + program.programs[0].nbytes + 4 * N


def test_a_block_with_ops_of_the_host() -> None:
    x, y = weft.ones(N, device=DEVICE), weft.zeros(N)
    with weft.capture("both") as both:
        x *= 2.0
        y += x.to_device("cpu")
    for _ in range(4):
        both.replay()
    assert x[0].item() == 16.0
    assert (y.numpy() == 30.0).all()
