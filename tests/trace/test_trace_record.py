"""Records: columns of bytes become arrays that know their names."""

from __future__ import annotations

import numpy as np
import pytest
from records import Recording, random_run

from weft._trace.record import Kind, Outcome, Record


def test_columns_are_read_in_their_types() -> None:
    run = Recording()
    run.op("load", 100, 250, read="a", mutate="b", priority=-3, number=2**63, kind=Kind.COPY)
    record = run.record(duration=400, dropped=7)
    assert record.ops["number"][0] == 2**63
    assert (record.ops["priority"][0], record.ops["kind"][0], record.dropped) == (-3, Kind.COPY, 7)
    assert record.accesses[["op", "kind", "version"]].tolist() == [(0, 0, 0), (0, 1, 1)]
    assert (record.label(0), record.place(0), record.variable(1)) == ("load", "run.py:1", "b")


def test_arrays_of_a_record_cannot_be_changed() -> None:
    record = random_run(3, 1).record()
    with pytest.raises(ValueError, match="read-only"):
        record.ops["started"] = 0


def test_an_empty_record_is_read() -> None:
    record = Recording().record()
    assert len(record.ops) == len(record.accesses) == len(record.durations()) == 0


def test_what_runs_at_the_stop_ends_there_and_what_never_began_takes_no_time() -> None:
    run = Recording()
    run.op("runs", 100, 0, settled=0)
    run.op("pending", 0, 0, ready=0, pushed=50)
    run.op("skipped", 0, 0, settled=300, outcome=Outcome.SKIPPED)
    record = run.record(duration=500)
    assert record.began.tolist() == [True, False, False]
    assert record.ends().tolist() == [500, 0, 0]
    assert record.durations().tolist() == [400, 0, 0]


def test_an_op_on_a_device_takes_as_long_as_its_device_says() -> None:
    run = Recording()
    run.op("launch", 100, 110, kind=Kind.LAUNCH, stream=0, device_started=200, device_ended=900)
    assert run.record().durations().tolist() == [700]


def test_waits_take_no_time_and_stand_in_no_queue() -> None:
    run = Recording()
    run.op("wait", 100, 500, kind=Kind.WAIT, worker=None, ready=50)
    record = run.record()
    assert record.durations().tolist() == record.queue_times().tolist() == [0]
    assert record.thread(0) == 0


def test_queue_time_is_from_ready_to_start() -> None:
    run = Recording()
    run.op("a", 100, 150, ready=30)
    run.op("b", 100, 150, ready=130)  # clocks of two threads may differ by a little
    assert run.record().queue_times().tolist() == [70, 0]


def test_a_nameless_op_goes_by_its_position() -> None:
    run = Recording()
    run.op("", 1, 2)
    assert run.record().label(0) == "op 0"
    assert isinstance(Record.read(run.answer()).ops, np.ndarray)


def test_ops_that_were_computed_together_share_the_time() -> None:
    run = Recording()
    run.op("exp", 100, 410, mutate="a", kind=Kind.COMPUTE)
    run.op("multiply", 110, 400, read="a", mutate="b", kind=Kind.COMPUTE)
    run.op("elsewhere", 150, 420, mutate="d", kind=Kind.COMPUTE, worker=2)
    run.op("copy", 110, 400, read="b", mutate="c", kind=Kind.COPY)
    run.op("after", 410, 500, read="c", mutate="e", kind=Kind.COMPUTE)
    record = run.record()
    times = [(int(op["started"]), int(op["ended"])) for op in record.ops]
    assert times == [(100, 203), (203, 306), (150, 420), (306, 410), (410, 500)]
    assert (record.ops["ready"] <= record.ops["started"]).all()
    assert (record.ops["ended"] <= record.ops["settled"]).all()
    assert not record.ops.flags.writeable
    views = run.views()
    assert views.critical.length == 400
    assert [lane.depth for lane in views.spans.lanes] == [1, 1]


@pytest.mark.parametrize("kind", [Kind.CALLABLE, Kind.COPY])
def test_ops_inside_callables_keep_their_times(kind: Kind) -> None:
    run = Recording()
    outer = run.op("outer", 100, 400, kind=kind)
    run.op("inner", 200, 300, kind=Kind.COMPUTE, parent=outer)
    assert run.record().durations().tolist() == [300, 100]
