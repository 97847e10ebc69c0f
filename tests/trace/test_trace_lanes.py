"""Lanes and rows, and figures about stretches of time."""

from __future__ import annotations

import random

import numpy as np
import pytest
from records import Recording, random_run

from weft._trace.curves import curves
from weft._trace.lanes import Lane, spans
from weft._trace.measures import covered, levels, shared, thinned
from weft._trace.record import Kind


@pytest.mark.parametrize("seed", range(10))
def test_nothing_overlaps_within_a_row(seed: int) -> None:
    rng = random.Random(seed)
    run = Recording()
    for _ in range(100):
        start = rng.randint(1, 500)
        kind = rng.choice([Kind.CALLABLE, Kind.ASYNC, Kind.COPY])
        run.op("op", start, start + rng.choice([0, 5, 80]), worker=rng.choice([1, 2]), kind=kind)
    found = spans(run.record())
    assert sorted(found.op.tolist()) == list(range(100))
    for row in set(zip(found.lane.tolist(), found.row.tolist(), strict=True)):
        mine = (found.lane == row[0]) & (found.row == row[1])
        assert (found.start[mine][1:] >= found.end[mine][:-1]).all()
        assert row[1] < found.lanes[row[0]].depth


def test_lanes_are_threads_then_workers_then_streams_then_async_ops() -> None:
    run = Recording(workers=11)
    run.op("token", 1, 50, kind=Kind.ASYNC, worker=1)
    run.op("launch", 5, 6, kind=Kind.LAUNCH, worker=11, stream=3, device_started=20, device_ended=40)
    run.op("two", 1, 5, worker=3)
    run.op("wait", 1, 50, kind=Kind.WAIT, worker=None)
    found = spans(run.record())
    assert found.lanes == [
        Lane("MainThread", "thread", 1),
        Lane("weft-0.2", "worker", 1),
        Lane("weft-0.10", "worker", 1),
        Lane("stream 3", "stream", 1),
        Lane("async", "async", 1),
    ]
    assert found.op.tolist() == [3, 2, 1, 1, 0]  # the launch, then the run on the stream


def test_what_runs_inside_another_op_lies_below_it() -> None:
    run = Recording()
    run.op("outer", 10, 100)
    run.op("inner", 20, 30)
    run.op("inner", 40, 100)
    found = spans(run.record())
    assert (found.lanes[0].depth, found.op.tolist(), found.row.tolist()) == (2, [0, 1, 2], [0, 1, 1])


def test_an_empty_record_has_no_lanes() -> None:
    found = spans(Recording().record())
    assert (found.lanes, len(found.op)) == ([], 0)


@pytest.mark.parametrize("seed", range(10))
def test_measures_count_moments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (
        (start, start + rng.integers(0, 9, 12)) for start in (rng.integers(0, 80, 12), rng.integers(0, 80, 12))
    )
    during = [
        {moment for start, end in zip(*stretches, strict=True) for moment in range(start, end)}
        for stretches in (one, other)
    ]
    assert covered(*one) == len(during[0])
    assert shared(one, other) == len(during[0] & during[1])
    times, level = levels(*one)
    assert (np.diff(times) > 0).all()
    for moment in range(100):
        at = np.searchsorted(times, moment, "right") - 1
        assert (level[at] if at >= 0 else 0) == ((one[0] <= moment) & (moment < one[1])).sum()


def test_thinned_levels_keep_their_heights() -> None:
    times, level = np.arange(10_000), np.zeros(10_000, np.int64)
    level[1234] = 99
    few, kept = thinned(times, level, 100)
    assert (len(few), kept.max()) == (100, 99)
    assert (np.diff(few) > 0).all()
    assert thinned(times, level, 10_000)[0] is times


def test_curves_follow_what_runs_and_what_is_pending() -> None:
    run = Recording()
    run.op("a", 20, 40, pushed=10, settled=45)
    run.op("b", 30, 60, pushed=10, settled=60, worker=2)
    run.op("wait", 10, 60, kind=Kind.WAIT, worker=None)
    found = curves(run.record())
    assert [(curve.name, curve.times.tolist(), curve.level.tolist()) for curve in found] == [
        ("running", [20, 30, 40, 60], [1, 2, 1, 0]),
        ("pending", [10, 45, 60], [2, 1, 0]),
    ]
    run.op("c", 70, 80, bytes=4096)
    assert [curve.name for curve in curves(run.record())] == ["running", "pending", "bytes"]


def test_a_random_run_ends_with_nothing_pending() -> None:
    assert all(curve.level[-1] == 0 and curve.level.min() >= 0 for curve in curves(random_run(200, 3).record()))
