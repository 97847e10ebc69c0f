"""Captures on a GPU: what is replayed is what the same ops do when they are pushed."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, background
from weft import errors

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


def arrays(seed: int = 3) -> list[weft.NDArray]:
    rng = np.random.default_rng(seed)
    return [weft.asarray(rng.random(N).astype("float32"), device=DEVICE) for _ in range(4)]


def compare(program: Callable[[list[weft.NDArray]], Any], replays: int = 5) -> None:
    """Hold replays of a block, with an op of its own behind each, against the same ops as they are pushed."""
    eager, replayed = arrays(), arrays()
    with weft.cuda.capture("program") as graph:
        program(replayed)
    for _ in range(replays):
        program(eager)
        graph.replay()
        for each in (eager, replayed):
            each[0] *= 0.5
    assert graph.ops > 0
    for one, other in zip(eager, replayed, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def elementwise(x: list[weft.NDArray]) -> None:
    temporary = x[0] * x[1] + 1.0
    x[2][...] = weft.sqrt(temporary)
    x[3][: N // 2] = x[2][N // 2 :]
    x[3][N // 2 :] += x[0][: N // 2]
    x[1].copyfrom(x[3])
    x[0][::2] -= x[2][::2]


def kernels(x: list[weft.NDArray]) -> None:
    axpy = weft.cuda.RawKernel(SOURCE, "axpy")
    blocks = (N + 255) // 256
    axpy(blocks, 256, (weft.Read(x[0]), weft.Mutate(x[1]), 0.5, N))
    axpy(blocks, 256, (weft.Read(x[0]), weft.Mutate(x[2]), 0.25, N))
    axpy(blocks, 256, (weft.Read(x[2]), weft.Mutate(x[1]), 0.125, N))


def functions_of_cupys(x: list[weft.NDArray]) -> None:
    x[0][...] = weft.where(x[1] > 0.5, x[0], x[2])
    x[2] *= x[1].sum() / N
    x[3][...] = x[1] - x[2].max()
    x[1][...] = weft.concat([x[0][: N // 2], x[3][N // 2 :]])


def callables(x: list[weft.NDArray]) -> None:
    cupy = pytest.importorskip("cupy")

    @weft.task
    def mix(out: weft.Mutate, a: weft.Read, b: weft.Read) -> None:
        out += cupy.sin(a) * cupy.cos(b)

    mix(x[0], x[1], x[2])
    mix(x[3], x[1], x[2])
    mix(x[1], x[0], x[3])


def test_elementwise_ops() -> None:
    compare(elementwise)


def test_kernels() -> None:
    compare(kernels)


def test_functions_of_cupys() -> None:
    pytest.importorskip("cupy")
    compare(functions_of_cupys)


def test_callables() -> None:
    pytest.importorskip("cupy")
    compare(callables)


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    choices = rng.integers(0, 4, (40, 4))

    def program(x: list[weft.NDArray]) -> None:
        for kind, out, left, right in choices:
            if kind == 0:
                x[out][...] = x[left] * 0.5 + x[right] * 0.25
            elif kind == 1:
                x[out][100:] = x[left][:-100]
            else:
                x[out] += x[left] * x[right] * 0.125

    compare(program)


def test_temporaries_of_cupys_are_apart_from_others() -> None:
    cupy = pytest.importorskip("cupy")
    x, y = arrays()[:2]

    @weft.task
    def through(out: weft.Overwrite, a: weft.Read) -> None:
        temporary = a * 2.0
        out[...] = temporary + 1.0

    with weft.cuda.capture() as graph:
        through(y, x)
    for _ in range(20):
        theirs = cupy.full(N, 7.0, dtype="float32")
        graph.replay()
        np.testing.assert_array_equal(y.numpy(), x.numpy() * 2 + 1)
        assert float(theirs.sum()) == 7.0 * N
        del theirs


def test_other_threads_allocate_wait_and_compute_meanwhile() -> None:
    x, y, *_ = arrays()
    cupy = pytest.importorskip("cupy")
    stop, begun = threading.Event(), threading.Event()

    def work() -> float:
        try:
            total = weft.zeros(N, dtype="float32", device=DEVICE)
            while not stop.is_set():
                total += weft.ones(N, dtype="float32", device=DEVICE)
                total.wait_to_read(SOON)
                cupy.empty(N + 1)
                begun.set()
            return float(total[0].item())
        finally:
            begun.set()  # what was raised is told below

    busy = background(work)
    assert begun.wait(SOON)
    for _ in range(20):
        with weft.cuda.capture() as graph:
            y += x
            weft.empty(N, device=DEVICE)[...] = 1.0
        graph.replay()
        y.wait_to_read(SOON)
    stop.set()
    assert busy.result(SOON) > 0


def test_a_graph_outlives_its_arrays_and_frees_them() -> None:
    x, y, *_ = arrays()
    expected = y.numpy() + 100 * x.numpy().astype("float64")
    with weft.cuda.capture() as graph:
        y += x * 1.0
    del x
    gc.collect()
    for _ in range(100):
        graph.replay()
    del graph
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-4)


def test_values_that_are_not_known_are_refused() -> None:
    x = arrays()[0]
    before = x.numpy()
    with (  # noqa: PT012 - one statement is caught in the block
        pytest.raises(errors.CaptureError),
        weft.cuda.capture(),
    ):
        x += 1
        with pytest.raises(errors.CaptureError):
            x.numpy()
    np.testing.assert_array_equal(x.numpy(), before)


def test_a_callable_may_wait_for_the_device() -> None:
    pytest.importorskip("cupy")
    x, y, *_ = arrays()
    expected = x.numpy().astype("float64")

    @weft.task
    def wait(out: weft.Mutate) -> None:
        out += float(out.sum()) / N  # a copy to the host, for which the op waits

    with weft.cuda.capture() as graph:
        x *= 2
        y[...] = x
        wait(x)
        x += y
        y[...] = x
    for _ in range(3):
        doubled = expected * 2
        expected = doubled + doubled.mean() + doubled
        graph.replay()
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-3)
    np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_the_host_is_part_of_a_block() -> None:
    x, y, *_ = arrays()
    host = weft.zeros(N, dtype="float32")
    start = x.numpy()
    with weft.cuda.capture() as graph:
        x += 1
        host += x.to_device("cpu")
        y.copyfrom(host)
        y *= 2
    for _ in range(4):
        graph.replay()
    wanted = sum((start + np.float32(1) * turn for turn in range(1, 5)), np.zeros(N, "float32"))
    np.testing.assert_allclose(y.numpy(), wanted * 2, rtol=1e-5)


@pytest.mark.parametrize("keep", [False, True])
def test_a_programs_parts_are_graphs_where_they_lie_as_they_did(keep: bool) -> None:
    @weft.program
    def step(x: weft.NDArray, w: weft.NDArray) -> weft.NDArray:
        h = weft.tanh(x[: N // 2] * w[N // 2 :])
        w[: N // 2] -= h * 0.125
        w[N // 2 :] += weft.mean(h)
        return h + w[: N // 2]

    (x, w, *_), (_, v, *_) = arrays(), arrays()
    kept = []
    for _ in range(100 if keep else 20):
        found, wanted = step(x, w), step.__wrapped__(x, v)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
        kept += [found] * keep
    np.testing.assert_array_equal(w.numpy(), v.numpy())


def test_many_nodes() -> None:
    x = arrays()[0]
    with weft.cuda.capture() as graph:
        for _ in range(1000):
            x += 1.0
    assert graph.ops == 1000  # fused or not
    before = x.numpy()
    graph.replay()
    graph.replay()
    np.testing.assert_allclose(x.numpy(), before + 2000, rtol=1e-3)
