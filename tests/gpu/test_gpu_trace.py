"""Traces on a GPU: device times lie within the block and in the order of what depends on what; copies run beside kernels."""

from __future__ import annotations

import numpy as np
import pytest
from spinning import MILLISECOND, SPIN

import weft
from conftest import SOON
from weft._trace.record import NONE, Kind

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default"), pytest.mark.timeout(45)]

DEVICE = weft.gpu(0)
CHUNK = 1 << 22  # numbers
#: Nanoseconds by which a device's clock and the host's may be apart: half of what the host needs to see an event of an
#: idle stream, some 10 us, at the best of four tries.
APART = 200_000
#: By how much the host's clock makes a span of the device's longer or shorter: two such errors, over at least 50 ms.
SCALE = 0.01
#: Nanoseconds that a GPU's clock tells apart, and single precision with it.
TICK = 2_000


def on_device(trace: weft.Trace) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    found: np.ndarray[tuple[int], np.dtype[np.void]] = trace.ops[trace.ops["stream"] != NONE]
    return found


def test_device_times_lie_within_the_block_and_in_order() -> None:
    x = weft.ones(CHUNK, dtype="float32", device=DEVICE)
    x = x * 1 + 1  # compiled
    weft.wait_all(SOON)
    with weft.trace() as trace:
        for _ in range(200):
            x = x * 1
        x.to_device("cpu")
    ops = on_device(trace)
    assert len(ops) == 201
    assert (ops["device_started"] < ops["device_ended"]).all()
    assert ops["device_started"].min() >= ops["started"].min() - APART
    assert ops["device_ended"].max() <= trace.duration * 1e9 + APART
    assert (ops["device_started"] >= ops["started"] - APART).all()
    assert (ops["device_ended"][:-1] <= ops["device_started"][1:] + TICK).all()
    copy = ops[-1]
    assert (copy["kind"], copy["moved"]) == (Kind.COPY, CHUNK * 4)
    summary = trace.summary().devices[0]
    assert (summary.name, summary.count, summary.moved) == ("cuda:0", 201, CHUNK * 4)
    chain = int((ops["device_ended"] - ops["device_started"]).sum())
    assert trace.summary().critical >= 0.9 * chain


def test_a_kernel_takes_as_long_on_the_clock_of_the_trace_as_it_spins() -> None:
    kernel = weft.cuda.RawKernel(SPIN, "spin")
    x = weft.zeros(1, dtype="float32", device=DEVICE)
    kernel(1, 1, (weft.Mutate(x), 1000))
    x.wait_to_read()
    # While the first one runs the others are issued, so that nothing of the host's is between their events.
    wanted = np.array([100, 20, 40, 80]) * MILLISECOND
    with weft.trace() as trace:
        for nanoseconds in wanted:
            kernel(1, 1, (weft.Mutate(x), int(nanoseconds)))
    ops = on_device(trace)
    took = ops["device_ended"] - ops["device_started"]
    assert len(ops) == 4
    assert float(x[0]) == 5
    np.testing.assert_allclose(took[1:], wanted[1:], rtol=SCALE)
    assert took[0] >= wanted[0] * (1 - SCALE)
    assert took.sum() < trace.duration * 1e9 + APART


def test_copies_overlap_kernels_in_a_pipeline() -> None:
    kernel = weft.cuda.RawKernel(SPIN, "spin")
    # The host copies nothing: 16 MiB take the link less than the kernel takes.
    host, results = (weft.cuda.empty_pinned((8, CHUNK), dtype="float32") for _ in range(2))
    host[...] = 1.0
    x = host[0].to_device(DEVICE)
    kernel(1, 1, (weft.Mutate(x), 1000))
    results[0].copyfrom(x)
    weft.wait_all(SOON)
    with weft.trace() as trace:
        for each, result in zip(host, results, strict=True):
            x = each.to_device(DEVICE)
            kernel(1, 1, (weft.Mutate(x), 2 * MILLISECOND))
            result.copyfrom(x)
    np.testing.assert_array_equal(results.numpy()[:, :2], [[2.0, 1.0]] * 8)
    ops = on_device(trace)
    assert len(ops) == 24
    kinds = {stream["kind"] for stream in trace.streams}
    assert {"compute", "copy in", "copy out"} <= kinds
    for first in range(0, 24, 3):
        copy_in, launch, copy_out = ops[first : first + 3]
        assert copy_in["device_ended"] <= launch["device_started"] + TICK
        assert launch["device_ended"] <= copy_out["device_started"] + TICK
    device = trace.summary().devices[0]
    assert device.moved == 16 * CHUNK * 4
    assert device.overlap > 0.2 * min(device.copying, device.computing), device


def test_a_long_trace_keeps_its_clock() -> None:
    kernel = weft.cuda.RawKernel(SPIN, "spin")
    x = weft.zeros(1, dtype="float32", device=DEVICE)
    kernel(1, 1, (weft.Mutate(x), 1000))
    x.wait_to_read()
    with weft.trace() as trace:
        for _ in range(12):
            kernel(1, 1, (weft.Mutate(x), 250 * MILLISECOND))
    ops = on_device(trace)
    assert (ops["device_ended"][:-1] <= ops["device_started"][1:] + TICK).all()
    assert ops["device_ended"].max() <= trace.duration * 1e9 + APART
    took = ops["device_ended"] - ops["device_started"]
    np.testing.assert_allclose(took[1:], 250 * MILLISECOND, rtol=SCALE)
