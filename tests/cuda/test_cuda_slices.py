"""Slices of arrays on a CUDA device: written side by side, in order where they overlap. And memory that is pinned."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import PARALLEL, SERIAL, SOON
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import MakeEngine

pytestmark = pytest.mark.usefixtures("fake_cuda")

DEVICE = weft.gpu(0)
LENGTH = 240


def cut(rng: np.random.Generator, length: int | None = None) -> slice:
    """A slice, often one of twenty blocks, sometimes strided or backwards; of so many elements, if it is to fit."""
    if length is None and rng.integers(3):
        at = 12 * int(rng.integers(20))
        return slice(at, at + 12)
    step = int(rng.integers(1, 4))
    count = int(rng.integers(0, LENGTH // step + 1)) if length is None else length
    step = step if count * step <= LENGTH else 1
    start = int(rng.integers(0, LENGTH - count * step + 1))
    if count and not rng.integers(4):
        stop = start - 1 if start else None
        return slice(start + (count - 1) * step, stop, -step)
    return slice(start, start + count * step, step)


@pytest.mark.parametrize(("policy", "workers"), [SERIAL, *PARALLEL])
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_over_slices(seed: int, policy: Any, workers: int, make_engine: MakeEngine) -> None:
    engine, rng = make_engine(workers, policy), np.random.default_rng(seed)
    wanted = [rng.integers(0, 100, LENGTH).astype(np.float64) for _ in range(3)]
    found = [weft.asarray(values.copy(), device=DEVICE, engine=engine) for values in wanted]
    copies = []
    for _ in range(150):
        a, b = (int(at) for at in rng.integers(0, 3, 2))
        to = cut(rng)
        length = len(range(*to.indices(LENGTH)))
        at = cut(rng, length)
        match int(rng.integers(7)):
            case 0:
                found[a][to] = found[b][at]
                wanted[a][to] = wanted[b][at].copy()
            case 1:
                found[a][to] += found[b][at]
                wanted[a][to] += wanted[b][at].copy()
            case 2:
                weft.subtract(found[a][to], 3.0, out=found[a][to])
                wanted[a][to] -= 3.0
            case 3:
                host = rng.integers(0, 100, length).astype(np.float64)
                found[a][to] = host
                wanted[a][to] = host
            case 4:
                copies.append((found[a][to].to_device("cpu"), wanted[a][to].copy()))
            case 5:
                found[a] = found[a] * 0.5 + found[b]
                wanted[a] = wanted[a] * 0.5 + wanted[b]
            case _:
                found[a][...] = 7.0
                wanted[a][...] = 7.0
    for x, values in [*zip(found, wanted, strict=True), *copies]:
        np.testing.assert_array_equal(x.numpy(), values)


class Gate:
    """An op that waits until it is let go on."""

    def __init__(self) -> None:
        self.open, self.begun = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.begun.set()
        assert self.open.wait(SOON)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def test_a_slice_is_written_while_an_op_has_another(gate: Gate, make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x = weft.zeros(8, device=DEVICE, engine=engine)
    x.wait_to_read(SOON)
    engine.push(gate.wait, mutate_vars=[x[:4]])
    assert gate.begun.wait(SOON)
    x[4:] = 1.0
    y = x[4:] + 1.0
    y.wait_to_read(SOON)
    x[4:].wait_to_read(SOON)
    whole, across = x + 0.0, x[3:5] + 0.0
    assert not any(z.is_ready() for z in (whole, across))
    gate.open.set()
    assert (whole.tolist(), across.tolist(), y.tolist()) == ([0.0] * 4 + [1.0] * 4, [0.0, 1.0], [2.0] * 4)


def test_an_op_that_has_the_whole_has_each_slice(gate: Gate, make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x = weft.zeros(8, device=DEVICE, engine=engine)
    engine.push(gate.wait, mutate_vars=[x])
    x[4:] = 1.0
    assert gate.begun.wait(SOON)
    assert not x[4:].is_ready()
    gate.open.set()
    assert x.tolist() == [0.0] * 4 + [1.0] * 4


def test_a_failure_is_that_of_its_slice(make_engine: MakeEngine) -> None:
    def fail() -> None:
        raise KeyError("first half")

    engine = make_engine(2)
    x = weft.zeros(8, device=DEVICE, engine=engine)
    engine.push(fail, mutate_vars=[x[:4]])
    x[4:] = 1.0
    assert x[4:].tolist() == [1.0] * 4
    for failed in (x[:4], x[2:6], x):
        with pytest.raises(KeyError, match="first half"):
            failed.numpy()
    x[...] = 2.0
    assert x.tolist() == [2.0] * 8


def test_kernels_are_ordered_by_the_slices_that_they_are_given(gate: Gate, make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    source = """
    extern "C" __global__ void add(float* x, float term, int count) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < count) x[i] += term;
    }
    """
    add = weft.cuda.RawKernel(source, "add")
    x = weft.zeros(300, dtype="float32", device=DEVICE, engine=engine)
    x.wait_to_read(SOON)
    engine.push(gate.wait, mutate_vars=[x[200:]])
    for first in (0, 100, 200, 50):
        add(1, 128, (weft.Mutate(x[first : first + 100]), float(first + 1), 100))
    assert x[:50].tolist() == [1.0] * 50
    assert x[100:200].tolist() == [152.0] * 50 + [101.0] * 50
    assert not x[200:].is_ready()
    gate.open.set()
    assert x[200:].tolist() == [201.0] * 100


def test_callables_are_given_streams_for_their_slices(gate: Gate, make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x = weft.zeros(8, device=DEVICE, engine=engine)
    x.wait_to_read(SOON)
    engine.push(gate.wait, mutate_vars=[x[4:]])
    streams: list[Any] = []
    engine.push(lambda: streams.append(weft.cuda.current_stream()), mutate_vars=[x[:4]])
    x[:4].wait_to_read(SOON)
    assert streams[0][0] == DEVICE
    gate.open.set()


def pipeline(d: weft.NDArray, e: weft.NDArray, host: weft.NDArray, out: weft.NDArray, chunk: int) -> None:
    for at in range(0, host.shape[0], chunk):
        d[at : at + chunk] = host[at : at + chunk]
        weft.exp(d[at : at + chunk], out=e[at : at + chunk])
        out[at : at + chunk] = e[at : at + chunk]


def test_a_pipeline_over_slices_goes_on_beside_an_op_on_one_of_them(gate: Gate, make_engine: MakeEngine) -> None:
    engine, values = make_engine(2), np.linspace(0.0, 1.0, 400)
    host, out = weft.asarray(values, engine=engine), weft.zeros(400, engine=engine)
    d, e = (weft.zeros(400, device=DEVICE, engine=engine) for _ in range(2))
    weft.wait(d, e, out, timeout=SOON)
    engine.push(gate.wait, mutate_vars=[d[:100]])
    pipeline(d, e, host, out, 100)
    np.testing.assert_allclose(out[100:].numpy(), np.exp(values[100:]), rtol=1e-12)
    assert not out[:100].is_ready()
    gate.open.set()
    np.testing.assert_allclose(out.numpy(), np.exp(values), rtol=1e-12)


def pinned_bytes() -> int:
    return weft.cuda.memory_stats(DEVICE).pinned


def test_pinned_arrays_are_copied_from_and_to_without_staging(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    weft.cuda.memory_trim()
    host = weft.cuda.empty_pinned((10, 5000), engine=engine)
    out = weft.cuda.empty_pinned((10, 5000), "float64", engine=engine)
    values = np.random.default_rng(3).random((10, 5000))
    host[...] = values
    held = pinned_bytes()
    assert 2 * values.nbytes <= held <= 2 * values.nbytes * 9 / 8
    d, e = (weft.empty((10, 5000), device=DEVICE, engine=engine) for _ in range(2))
    pipeline(d, e, host, out, 1)
    np.testing.assert_allclose(out.numpy(), np.exp(values), rtol=1e-12)
    assert pinned_bytes() == held, "no block for staging"
    staged = host.numpy().copy()
    d[...] = staged
    d.wait_to_read(SOON)
    assert pinned_bytes() > held


def test_pinned_arrays_are_arrays_of_the_host() -> None:
    x = weft.cuda.empty_pinned(3, "int32")
    assert (x.device, x.dtype, x.shape) == (weft.cpu(), np.int32, (3,))
    x[...] = [1, 2, 3]
    assert (x + 1).tolist() == [2, 3, 4]
    assert weft.cuda.empty_pinned((0, 2)).shape == (0, 2)


def test_pinned_memory_comes_back() -> None:
    weft.cuda.memory_trim()
    before = pinned_bytes()
    for _ in range(5):
        x = weft.cuda.empty_pinned(100_000)
        x[...] = 1.0
        y = x.to_device(DEVICE)
        del x
        assert y[-1].item() == 1.0
    weft.wait_all(SOON)
    del y
    weft.cuda.memory_trim()
    assert pinned_bytes() <= before + 4096


@pytest.mark.parametrize("shape", [-1, (2, -3)])
def test_there_is_no_pinned_array_of_a_negative_length(shape: Any) -> None:
    with pytest.raises(ValueError, match="negative dimensions"):
        weft.cuda.empty_pinned(shape)


def test_memory_that_others_have_pinned_goes_straight(fake_cuda: dict[str, str]) -> None:
    driver = ctypes.CDLL(fake_cuda["WEFT_CUDA_LIBRARY"])
    start = ctypes.c_void_p()
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuMemHostAlloc(ctypes.byref(start), ctypes.c_size_t(80_000), 1) == 0
    assert start.value is not None
    values = np.frombuffer((ctypes.c_char * 80_000).from_address(start.value), dtype=np.float64)
    values[:] = np.arange(10_000.0)
    weft.cuda.memory_trim()
    before = pinned_bytes()
    host = weft.asarray(values, copy=False)
    d = host.to_device(DEVICE)
    d += 1.0
    host[...] = d
    host.wait_to_read(SOON)
    assert pinned_bytes() == before
    assert values.tolist() == np.arange(1.0, 10_001.0).tolist()


def test_many_slices_leave_nothing_behind(make_engine: MakeEngine) -> None:
    engine, rng = make_engine(2), np.random.default_rng(1)
    x = weft.zeros(1000, device=DEVICE, engine=engine)
    ends = rng.integers(0, 1001, (3000, 2))
    for start, end in np.sort(ends, axis=1):
        x[start:end] += 1.0
    wanted = np.zeros(1000)
    for start, end in np.sort(ends, axis=1):
        wanted[start:end] += 1.0
    assert x.tolist() == wanted.tolist()
    assert engine.pending == 0


def test_errors_are_told_before_anything_is_pushed() -> None:
    x = weft.zeros(8, device=DEVICE)
    with pytest.raises((ValueError, errors.WeftError)):
        x[:4] = weft.zeros(5, device=DEVICE)
    assert x.version == 1
