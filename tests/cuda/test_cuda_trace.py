"""Traces of ops on CUDA devices, end to end: streams, device times, bytes, what the views make of them; faults by line."""

from __future__ import annotations

import ctypes
import gzip
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from conftest import SOON
from weft._trace.record import NONE, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import RunScript

DEVICE, OTHER = weft.gpu(0), weft.gpu(1)
MILLISECOND = 1_000_000
SOURCE = 'extern "C" __global__ void twice(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= 2; }'


@pytest.fixture(autouse=True)
def driver(fake_cuda: dict[str, str]) -> Iterator[ctypes.CDLL]:
    """The driver, on which nothing takes any time but where a test says so."""
    library = ctypes.CDLL(fake_cuda["WEFT_CUDA_LIBRARY"])
    library.fake_cuda_speed.argtypes = [ctypes.c_longlong, ctypes.c_double]
    weft.zeros(1, device=DEVICE).wait_to_read()
    yield library
    library.fake_cuda_speed(0, 0.0)
    weft.wait_all(SOON)


def rows(trace: weft.Trace) -> list[tuple[str, str, int]]:
    """Name, stream and bytes of each op that ran on a device, in the order of the pushes."""
    streams = [f"{stream['device']} {stream['name'].split(' ')[0]}" for stream in trace.streams]
    on_device = trace.ops[trace.ops["stream"] != NONE]
    return [(trace.names[op["name"]], streams[op["stream"]], int(op["moved"])) for op in on_device]


@pytest.mark.usefixtures("cupy")
def test_every_kind_of_op_has_a_stream_and_times() -> None:
    kernel = weft.cuda.RawKernel(SOURCE, "twice")
    host = np.arange(1000, dtype=np.float32)
    kernel(1, 1, (weft.Mutate(weft.zeros(1, dtype="float32", device=DEVICE)), 1))  # compiled
    with weft.trace() as trace:
        x = weft.asarray(host, device=DEVICE)
        y = x + x
        kernel(1, 1, (weft.Mutate(y), 1000))
        total = weft.sum(y, initial=0.0)
        there = y.to_device(OTHER)
        result = there.to_device("cpu")
    np.testing.assert_array_equal(result.numpy(), host * 4)
    assert float(total) == pytest.approx(host.sum() * 4)
    assert rows(trace) == [
        ("copy", "cuda:0 copy", 4000),
        ("add", "cuda:0 compute", 0),
        ("twice", "cuda:0 compute", 0),
        ("sum", "cuda:0 compute", 0),
        ("copy", "cuda:1 peer", 4000),
        ("copy", "cuda:1 copy", 4000),
    ]
    assert {stream["kind"] for stream in trace.streams} == {"compute", "copy in", "copy out", "peer"}
    ops = trace.ops[trace.ops["stream"] != NONE]
    end = round(trace.duration * 1e9)
    assert (ops["device_started"] > 0).all()
    assert (ops["device_started"] <= ops["device_ended"]).all()
    assert (ops["device_ended"] <= end).all()
    assert (ops["device_started"] >= ops["started"] - MILLISECOND).all()  # clocks were compared
    chain = ops[[0, 1, 2, 4, 5]]
    assert (chain["device_ended"][:-1] <= chain["device_started"][1:] + 10_000).all()
    landings = trace.ops[trace.ops["kind"] == Kind.LANDING]
    assert (len(landings), set(landings["stream"].tolist())) == (2, {NONE})


def test_a_trace_lasts_until_devices_have_done_their_work(driver: ctypes.CDLL) -> None:
    x = weft.zeros(1000, device=DEVICE)
    y = x + 1  # compiled
    weft.wait_all(SOON)
    driver.fake_cuda_speed(30 * MILLISECOND, 0.0)
    with weft.trace() as trace:
        y = x + 1
        y += 1
    ops = trace.ops[trace.ops["stream"] != NONE]
    took = (ops["device_ended"] - ops["device_started"]) / MILLISECOND
    assert took.min() > 29, took
    assert trace.duration > 0.059
    assert ops["device_ended"][0] <= ops["device_started"][1]
    assert ops["ended"][1] < ops["device_started"][1]  # they were issued at once
    figures = {op.name: op for op in trace.summary().ops}
    assert figures["add"].on_device == 2
    assert figures["add"].total > 59 * MILLISECOND > figures["add"].issue
    assert trace.critical_path.tolist() == np.nonzero(trace.ops["stream"] != NONE)[0].tolist()
    assert trace.summary().critical > 59 * MILLISECOND


@pytest.mark.slow
def test_a_pipeline_on_two_devices_overlaps(driver: ctypes.CDLL, tmp_path: Path) -> None:
    bytes_each = 400_000
    host = np.ones(bytes_each // 4, np.float32)
    for device in (DEVICE, OTHER):
        (weft.asarray(host, device=device) * 2).to_device("cpu").wait_to_read()  # compiled, staged
    # So long that a busy host, which issues late, does not show.
    driver.fake_cuda_speed(40 * MILLISECOND, bytes_each / (32 * MILLISECOND))
    with weft.trace() as trace:
        results = [
            (weft.asarray(host, device=device) * 2).to_device("cpu") for _ in range(5) for device in (DEVICE, OTHER)
        ]
    assert all(float(result[0]) == 2 for result in results)
    summary = trace.summary()
    assert [device.name for device in summary.devices] == ["cuda:0", "cuda:1"]
    for device in summary.devices:
        assert (device.count, device.moved) == (15, 10 * bytes_each)
        assert device.copying >= 180 * MILLISECOND
        assert device.computing >= 40 * MILLISECOND
        assert device.overlap > device.copying / 3, device
        assert device.busy < device.copying + device.computing
    assert summary.overlap_fraction is not None
    assert 1 / 3 < summary.overlap_fraction <= 1
    text = str(summary)
    assert all(part in text for part in ("mean issue", "cuda:1", "of it hidden", "GB/s")), text

    trace.save(tmp_path / "run.json.gz")
    with gzip.open(tmp_path / "run.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    streams = {name for name in threads.values() if name.startswith("cuda:")}
    assert {"cuda:0 copy in", "cuda:0 copy out", "cuda:1 copy in", "cuda:1 copy out", "cuda:1 compute 0"} <= streams
    slices = [event for event in events if event["ph"] == "X" and threads[event["tid"]] == "cuda:0 copy in"]
    assert [(event["name"], event["cat"], event["args"]["moved"]) for event in slices] == [
        ("copy", "copy", bytes_each)
    ] * 5
    assert {event["args"]["stream"] for event in slices} == {"cuda:0 copy in"}
    trace.timeline(tmp_path / "run.html")
    assert "cuda:1 copy out" in (tmp_path / "run.html").read_text(encoding="utf-8")
    trace.timeline(tmp_path / "run.svg")
    assert "cuda:0 compute" in (tmp_path / "run.svg").read_text(encoding="utf-8")
    trace.graph(tmp_path / "run.dot")
    assert "multiply" in (tmp_path / "run.dot").read_text(encoding="utf-8")


def test_large_copies_are_one_run_each() -> None:
    host = np.zeros(5 << 20, np.uint8)  # five chunks: the poller's thread issues the last ones
    with weft.trace() as trace:
        x = weft.asarray(host, device=DEVICE)
        x.to_device("cpu").wait_to_read()
    assert rows(trace) == [("copy", "cuda:0 copy", 5 << 20)] * 2


def test_without_a_trace_there_are_no_times() -> None:
    x = weft.zeros(10, device=DEVICE)
    with weft.trace() as trace:
        pass
    x += 1
    weft.wait_all(SOON)
    assert (trace.ops["kind"] == Kind.WAIT).all()
    with weft.trace() as trace:
        weft.get_engine().push(lambda: None)
    assert trace.streams == []
    assert set(trace.ops["stream"].tolist()) == {NONE}


def test_a_trace_can_be_read_while_a_device_works(driver: ctypes.CDLL) -> None:
    x = weft.zeros(10, device=DEVICE)
    x += 1
    weft.wait_all(SOON)
    trace = weft.trace().start()
    x += 1
    weft.wait_all(SOON)
    driver.fake_cuda_speed(300 * MILLISECOND, 0.0)
    x += 1
    weft.get_engine().wait_for_all(SOON)
    assert len(trace.ops) >= 1
    seen = trace.ops[trace.ops["kind"] == Kind.LAUNCH]
    trace.stop()
    known = trace.ops[trace.ops["kind"] == Kind.LAUNCH]
    assert (known["device_ended"] > 0).all()
    assert len(known) == 2
    assert seen["device_ended"][0] == pytest.approx(known["device_ended"][0], abs=10_000)


def test_a_wait_that_lasts_names_the_op_that_does_not_end(
    driver: ctypes.CDLL, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = weft.get_engine()
    with weft.Engine(workers=1, stall_after=0.1) as engine:
        weft.set_engine(engine)
        try:
            x = weft.zeros(10, device=DEVICE)
            x += 1
            x.wait_to_read()
            assert not caplog.records
            driver.fake_cuda_speed(500 * MILLISECOND, 0.0)
            x += 1
            x.wait_to_read()
        finally:
            weft.set_engine(theirs)
    (told,) = [record.getMessage() for record in caplog.records if record.name == "weft"]
    assert told.startswith("cuda:0: op 'add' (#")
    assert "test_cuda_trace.py:" in told
    assert " was issued, and has not ended for 1" in told


FAULT = """
    import ctypes, os, sys
    import weft
    driver = ctypes.CDLL(os.environ["WEFT_CUDA_LIBRARY"])
    x = weft.zeros(10, dtype="float32", device="cuda:0")
    z = x + 1; z *= 2; z.wait_to_read()

    def work(code):
        y = x + 1; y.wait_to_read()
        driver.fake_cuda_order(0, code)
        y *= 2  # line 11
        return y
"""


def test_a_fault_names_the_op_and_its_line(script: RunScript, fake_cuda: dict[str, str]) -> None:
    done = script(
        FAULT
        + """
    with weft.trace() as trace:
        y = work(700)
        try:
            y.wait_to_read()
        except weft.errors.CudaError as error:
            said = str(error)
        else:
            raise AssertionError
    assert "op 'multiply' (#" in said and "script.py:11" in said and said.count("pushed at") >= 1, said
    assert "failed on cuda:0: cu" in said and "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in said, said
    assert len(trace.ops) >= 2 and "multiply" in trace.names  # the trace came out
    try:
        (x + 1).wait_to_read()  # whatever comes to the device says the same, and who failed with it
    except weft.errors.CudaError as error:
        assert str(error).startswith("op #") and str(error).endswith(f": {said}"), (said, error)
    else:
        raise AssertionError
    """,
        **fake_cuda,
    )
    assert done.returncode == 0, done.stderr


def test_a_refused_launch_is_told_once(script: RunScript, fake_cuda: dict[str, str]) -> None:
    done = script(
        FAULT
        + """
    y = work(1)
    try:
        y.wait_to_read()
    except weft.errors.CudaError as error:
        said = str(error)
        assert said.count("multiply") == 1 and said.count("pushed at") == 1, said
        assert "script.py:11: cuLaunchKernel answered CUDA_ERROR_INVALID_VALUE (1)" in said, said
        assert not getattr(error, "__notes__", None), error.__notes__
    else:
        raise AssertionError
    (x + 1).wait_to_read()  # the device is well
    """,
        **fake_cuda,
    )
    assert done.returncode == 0, done.stderr
