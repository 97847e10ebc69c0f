"""Arrays on a GPU: `pytest -m gpu tests/gpu` on a machine that has one. Elsewhere each is skipped, with the reason."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON
from weft import errors

if TYPE_CHECKING:
    from conftest import RunScript

# What CuPy and PyTorch warn of is their own; what they compile and load at first takes its time.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default"), pytest.mark.timeout(45)]

DEVICE = weft.gpu(0)


def random(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(11).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "complex64"])
@pytest.mark.parametrize("size", [1, 1000, 1_000_003])
def test_arithmetic_is_numpys(dtype: str, size: int) -> None:
    a, b = (random(size) * 50).astype("int32").astype(dtype), (random(size) * 20).astype("int32").astype(dtype)
    x, y = weft.asarray(a, device=DEVICE), weft.asarray(b, device=DEVICE)
    for found, wanted in (
        (x + y, a + b),
        (x - y, a - b),
        (x == y, a == b),
        (-x, -a),
        (x[::-2] + y[::2], a[::-2] + b[::2]),
    ):
        np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_allclose((x * y).numpy(), a * b, rtol=1e-6)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sqrt", "cbrt", "arctan", "expm1", "log1p"])
def test_functions_are_numpys_to_a_few_ulps(name: str) -> None:
    host = np.abs(random(100_000)) + np.float32(0.1)
    found = getattr(weft, name)(weft.asarray(host, device=DEVICE)).numpy()
    # Against what is exact, for NumPy's own results in single precision are up to four away from that.
    exact = getattr(np, name)(host.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_max_ulp(found, exact, 3)


def test_layouts_and_casts() -> None:
    host = random(20, 30, 40)
    x = weft.asarray(host, device=DEVICE)
    np.testing.assert_array_equal((x.transpose((2, 0, 1)) + 1).numpy(), host.transpose(2, 0, 1) + 1)
    np.testing.assert_array_equal((x[:, ::3, ::-1] * x[:1, 0, :1]).numpy(), host[:, ::3, ::-1] * host[:1, 0, :1])
    np.testing.assert_array_equal(x.astype("int16").numpy(), host.astype("int16"))
    np.testing.assert_array_equal((x > 0).numpy(), host > 0)


def test_a_program_under_load_is_in_order() -> None:
    rng = np.random.default_rng(5)
    host = [random(50_000) for _ in range(6)]
    arrays = [weft.asarray(each, device=DEVICE) for each in host]
    for _ in range(300):
        out, left, right = rng.integers(0, 6, 3)
        kind = rng.integers(0, 3)
        if kind == 0:
            arrays[out][...] = arrays[left] * 0.5 + arrays[right] * 0.25
            host[out] = host[left] * np.float32(0.5) + host[right] * np.float32(0.25)
        elif kind == 1:
            arrays[out][100:] += arrays[out][:-100]
            host[out][100:] += host[out][:-100].copy()
        else:
            arrays[out] = arrays[left].to_device("cpu").to_device(DEVICE)
            host[out] = host[left].copy()
    for found, wanted in zip(arrays, host, strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_large_copies_from_pageable_memory() -> None:
    host = random(64 << 20, dtype="float32")  # 256 MiB
    x = weft.asarray(host, device=DEVICE)
    np.testing.assert_array_equal(x.to_device("cpu").numpy(), host)


def test_kernels_of_ones_own() -> None:
    source = r"""
    extern "C" __global__ void axpy(const float* x, float* y, float factor, unsigned count) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < count) y[i] += factor * x[i];
    }"""
    axpy = weft.cuda.RawKernel(source, "axpy")
    x, y = weft.ones(10_000, dtype="float32", device=DEVICE), weft.zeros(10_000, dtype="float32", device=DEVICE)
    for _ in range(1000):
        axpy(40, 256, (weft.Read(x), weft.Mutate(y), 1.0, 10_000))
    assert (y.numpy() == 1000.0).all()


def test_cupy_computes_the_rest() -> None:
    cupy = pytest.importorskip("cupy")
    host = random(200, 300)
    x = weft.asarray(host, device=DEVICE)
    # Some sums are small beside their terms.
    np.testing.assert_allclose(x.sum(axis=1).numpy(), host.sum(axis=1, dtype="float64"), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose((x @ x.T).numpy(), host @ host.T, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(weft.where(x > 0, x, 0.0).numpy(), np.where(host > 0, host, 0))
    theirs = cupy.asarray(x + 1)
    np.testing.assert_array_equal(cupy.asnumpy(theirs), host + 1)
    ours = weft.asarray(theirs)
    ours += 1
    ours.wait_to_read(SOON)
    np.testing.assert_array_equal(cupy.asnumpy(theirs), host + np.float32(1) + np.float32(1))

    @weft.task
    def double(out: weft.Mutate) -> None:
        out *= 2

    double(x)
    np.testing.assert_array_equal(x.numpy(), host * 2)


REDUCTIONS = [
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "std",
    "var",
    "all",
    "any",
    "argmax",
    "count_nonzero",
    "median",
    "sort",
]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_cupy_reduces(name: str) -> None:
    pytest.importorskip("cupy")
    host = random(30, 40, dtype="float64")
    x = weft.asarray(host, device=DEVICE)
    for axis in (0, 1):
        wanted = getattr(weft, name)(weft.asarray(host), axis=axis).numpy()
        np.testing.assert_allclose(getattr(weft, name)(x, axis=axis).numpy(), wanted, rtol=1e-12, atol=1e-12)


SOLVED = {
    "cholesky": weft.linalg.cholesky,
    "inv": weft.linalg.inv,
    "det": weft.linalg.det,
    "svdvals": weft.linalg.svdvals,
    "matrix_rank": weft.linalg.matrix_rank,
    "matrix_norm": weft.linalg.matrix_norm,
    "vector_norm": weft.linalg.vector_norm,
    "rfft": weft.fft.rfft,
    "cov": weft.cov,
    "modf": weft.modf,
    "solve": lambda each: weft.linalg.solve(each, each[0]),
    "sum where": lambda each: weft.sum(each, where=each > 0, initial=1.0),
    "einsum": lambda each: weft.einsum("ij,kj->ik", each, each),
    "cumulative_sum": lambda each: weft.cumulative_sum(each, axis=0),
    "rows": lambda each: each[[3, 1]],
}


@pytest.mark.parametrize("name", SOLVED)  # each with a time of its own: a library is loaded at its first use
def test_cupy_solves_and_transforms(name: str) -> None:
    pytest.importorskip("cupy")
    host = random(20, 20, dtype="float64")
    host = host @ host.T + 20 * np.eye(20)
    x, y = weft.asarray(host, device=DEVICE), weft.asarray(host)
    found, wanted = SOLVED[name](x), SOLVED[name](y)
    for one, other in zip(_listed(found), _listed(wanted), strict=True):
        assert one.device == DEVICE
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9)


def _listed(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_cupy_and_weft_hand_arrays_to_and_fro() -> None:
    cupy = pytest.importorskip("cupy")
    host, ours = random(1 << 20), []
    for step in range(30):
        with cupy.cuda.Stream(non_blocking=True):
            # The memory and the stream of each step are let go of while the device is at it.
            ours.append(weft.asarray(cupy.asarray(host) * np.float32(step)) - 1)
    for step, found in enumerate(ours):
        wanted = host * np.float32(step) - np.float32(1)
        np.testing.assert_array_equal(found.numpy(), wanted)
        np.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(found + 1) * 2), (wanted + np.float32(1)) * 2)
    np.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(weft.asarray(host, device=DEVICE) + 1)), host + 1)
    kernel = cupy.RawKernel('extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }', "twice")
    x = weft.ones(32, dtype="float32", device=DEVICE)
    weft.cuda.RawKernel(kernel)(1, 32, (weft.Mutate(x),))
    assert (x.numpy() == 2).all()


def test_torch_takes_and_gives() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA")
    host = random(1 << 22)
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            # Long enough on the device that whoever does not wait finds what was there before.
            theirs = torch.as_tensor(weft.asarray(host, device=DEVICE) * 2, device="cuda")
            np.testing.assert_array_equal(theirs.cpu().numpy(), host * 2)
            np.testing.assert_array_equal((weft.asarray(theirs * 3) + 1).numpy(), host * 2 * 3 + 1)
            given = torch.from_dlpack(weft.asarray(host, device=DEVICE) - 1)
            np.testing.assert_array_equal(given.cpu().numpy(), host - 1)
            np.testing.assert_array_equal((weft.from_dlpack(given * 2) + 0).numpy(), (host - 1) * 2)


def test_memory_is_flat() -> None:
    x = weft.ones(1 << 20, dtype="float32", device=DEVICE)
    for _ in range(50):
        x = x * 1.0 + 0.0
    before = _settled()
    for _ in range(2000):
        x = x * 1.0 + 0.0
    assert _settled() == before


def _settled() -> tuple[int, int]:
    """What is in use when all is done: frees may be on their way for a moment more, so the least of some looks."""
    weft.cuda.synchronize(DEVICE, SOON)
    gc.collect()
    looks = []
    for _ in range(50):
        stats = weft.cuda.memory_stats(DEVICE)
        looks.append((stats.in_use, stats.blocks))
        time.sleep(0.001)
    return min(looks)


def test_more_memory_than_there_is_is_refused_with_the_sizes() -> None:
    total = weft.cuda.memory_stats(DEVICE).total
    x = weft.zeros(2 * total, dtype="uint8", device=DEVICE)
    with pytest.raises(errors.CudaOutOfMemoryError, match=f"has no {2 * total} bytes .* of {total} bytes are free"):
        x.wait_to_read(SOON)
    del x
    assert (weft.ones(3, device=DEVICE) + 1).tolist() == [2.0, 2.0, 2.0]


def test_a_fault_names_its_kernel(script: RunScript) -> None:
    done = script(
        """
        import weft
        source = 'extern "C" __global__ void wild(float* x) { *(volatile float*)(1ull << 60) = x[0]; }'
        x = weft.ones(4, dtype="float32", device="cuda:0")
        weft.cuda.RawKernel(source, "wild")(1, 1, (weft.Mutate(x),))
        try:
            x.numpy()
        except weft.errors.CudaError as error:
            assert "wild" in str(error), error
        else:
            raise AssertionError
        """
    )
    assert done.returncode == 0, done.stderr
