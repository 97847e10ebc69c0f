"""What the views make of ops on devices: made-up records, whose figures are known."""

from __future__ import annotations

import numpy as np
import pytest
from records import Recording

from weft._trace.curves import curves
from weft._trace.lanes import Lane, spans
from weft._trace.record import Kind
from weft._trace.views import Views

STREAMS = [("cuda:1", "compute 0", "compute"), ("cuda:0", "copy in", "copy in"), ("cuda:0", "compute 0", "compute")]


def device_op(run: Recording, name: str, start: int, end: int, stream: int, kind: Kind, **columns: int | str) -> int:
    """Add an op that a worker issued within 100 ns, just before its work began."""
    times = {"stream": stream, "device_started": start, "device_ended": end}
    return run.op(name, start - 200, start - 100, kind=kind, **times, **columns)


@pytest.fixture
def run() -> Recording:
    """Two chunks, copied and computed on one device; something else on the other."""
    run = Recording(workers=1)
    run.streams = [dict(zip(("device", "name", "kind"), stream, strict=True)) for stream in STREAMS]
    device_op(run, "copy", 1000, 3000, 1, Kind.COPY, overwrite="x", moved=4000)
    run.op("land copy", 900, 3100, kind=Kind.ASYNC, read="h")
    device_op(run, "add", 3000, 6000, 2, Kind.LAUNCH, mutate="x")
    device_op(run, "copy", 3500, 5500, 1, Kind.COPY, overwrite="y", moved=4000)
    device_op(run, "add", 6000, 9000, 2, Kind.LAUNCH, mutate="y")
    device_op(run, "exp", 1000, 2000, 0, Kind.LAUNCH, mutate="z")
    return run


def test_lanes_are_streams_by_device_and_name(run: Recording) -> None:
    found = spans(run.record())
    assert found.lanes == [
        Lane("weft-0.0", "worker", 2),
        Lane("cuda:0 compute 0", "stream", 1),
        Lane("cuda:0 copy in", "stream", 1),
        Lane("cuda:1 compute 0", "stream", 1),
        Lane("async", "async", 1),
    ]
    assert found.start[found.lane == 1].tolist() == [3000, 6000]


def test_the_summary_goes_by_the_devices_clocks(run: Recording) -> None:
    summary = run.views().summary
    assert (summary.copying, summary.overlap) == (4000, 1000 + 2000)
    zero, one = summary.devices
    assert (zero.name, zero.count, zero.moved, zero.busy) == ("cuda:0", 4, 8000, 8000)
    assert (zero.computing, zero.copying, zero.overlap) == (6000, 4000, 2000)
    assert (one.name, one.count, one.busy, one.copying, one.overlap) == ("cuda:1", 1, 1000, 0, 0)
    figures = {op.name: op for op in summary.ops}
    copy, add, land = figures["copy"], figures["add"], figures["land copy"]
    assert (copy.total, copy.moved, copy.issue, copy.on_device) == (4000, 8000, 200, 2)
    assert (add.total, add.longest, add.moved, add.issue) == (6000, 3000, 0, 200)
    assert (land.kind, land.total, land.on_device) == ("landing", 0, 0)
    # Five issues, three of them beside others; the streams; no landing.
    assert summary.busy == 4 * 100 + 8000 + 4000 - 2000 - 2000 + 2000 + 1000
    text = str(summary)
    assert "8 kB, 2 GB/s" in text
    assert "busy for 8 us (98% of the wall time), computing for 6 us, copying 8 kB for 4 us, 50% of it hidden" in text


def test_the_critical_path_goes_by_the_devices_clocks(run: Recording) -> None:
    views = run.views()
    assert [views.record.label(op) for op in views.critical.ops.tolist()] == ["copy", "add"]
    assert views.critical.length == 5000


def test_ops_run_while_their_device_works(run: Recording) -> None:
    running = curves(run.record())[0]
    assert int(running.level.max()) == 2
    assert (running.times.min(), running.times.max()) == (1000, 9000)


def test_what_python_computes_on_a_device_takes_as_long_as_the_longer_of_both() -> None:
    run = Recording()
    run.op("slow call", 1000, 9000, kind=Kind.CALLABLE, stream=0, device_started=2000, device_ended=3000)
    run.op("slow work", 1000, 2000, kind=Kind.COMPUTE, stream=0, device_started=3000, device_ended=9000)
    run.op("launch", 1000, 9000, kind=Kind.LAUNCH, stream=0, device_started=2000, device_ended=3000)
    assert run.record().durations().tolist() == [8000, 6000, 1000]


def test_copies_on_devices_are_not_shared_out() -> None:
    run = Recording()
    for at in range(3):  # large ones, which their worker does not wait for
        device_op(run, "copy", 1000 + 1000 * at, 2000 + 1000 * at, 0, Kind.COPY)
        run.ops[-1] |= {"started": 100 + at, "ended": 5000, "settled": 5000}
    record = run.record()
    assert record.ops["started"].tolist() == [100, 101, 102]
    assert np.array_equal(record.durations(), [1000, 1000, 1000])


def test_a_record_without_devices_says_nothing_of_them() -> None:
    run = Recording()
    run.op("add", 10, 20, kind=Kind.COMPUTE)
    summary = Views(run.record()).summary
    assert summary.devices == []
    assert "mean issue" not in str(summary)
