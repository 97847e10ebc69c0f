"""Trace events: every file passes a strict reader, and says what happened."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
import trace_events
from records import Recording, random_run

from weft._trace.chrome import write_events
from weft._trace.record import Kind, Outcome
from weft._trace.views import Views

if TYPE_CHECKING:
    from pathlib import Path


def written(run: Recording, tmp_path: Path, suffix: str = "json") -> list[trace_events.Event]:
    path = tmp_path / f"run.{suffix}"
    write_events(path, run.views())
    return trace_events.read(path)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_random_runs_pass_the_strict_reader(tmp_path: Path, seed: int, suffix: str) -> None:
    run = random_run(300, seed, workers=3)
    events = written(run, tmp_path, suffix)
    views = run.views()
    slices = trace_events.of(events, "X")
    assert sorted(event["args"]["op"] for event in slices) == list(range(len(views.record.ops)))
    assert trace_events.arrows(events) == set(map(tuple, views.dependencies.tolist()))
    assert {event["args"]["op"] for event in slices if event["args"].get("critical")} == set(
        views.critical.ops.tolist()
    )
    assert len(trace_events.of(events, "b")) == (views.record.queue_times() >= 1000).sum()


def test_what_a_slice_says(tmp_path: Path) -> None:
    run = Recording()
    run.op(
        "load",
        1500,
        2501,
        mutate="a",
        kind=Kind.COPY,
        place="a.py:3",
        ready=400,
        priority=2,
        bytes=64,
        error="OSError: x",
    )
    (event,) = trace_events.of(written(run, tmp_path), "X")
    assert (event["name"], event["cat"], event["ts"], event["dur"]) == (
        "load",
        "copy",
        Decimal("1.5"),
        Decimal("1.001"),
    )
    assert event["args"] == {
        "op": 0,
        "place": "a.py:3",
        "outcome": "failed",
        "queue_us": Decimal("1.1"),
        "priority": 2,
        "bytes": 64,
        "critical": True,
        "accesses": "mutate a v1",
        "error": "OSError: x",
    }


def test_counters_say_how_many_ops_are_pending_and_run(tmp_path: Path) -> None:
    run = Recording()
    run.op("a", 2000, 4000, pushed=1000, settled=5000, bytes=10)
    run.op("b", 3000, 4000, pushed=1000, settled=4000, worker=2)
    counters = trace_events.of(written(run, tmp_path), "C")
    assert [(event["name"], event["ts"], event["args"]) for event in counters] == [
        ("running ops", 2, {"running": 1}),
        ("running ops", 3, {"running": 2}),
        ("running ops", 4, {"running": 0}),
        ("pending ops", 1, {"pending": 2}),
        ("pending ops", 4, {"pending": 1}),
        ("pending ops", 5, {"pending": 0}),
        ("pending bytes", 1, {"bytes": 10}),
        ("pending bytes", 5, {"bytes": 0}),
    ]


def test_names_of_any_letters_survive(tmp_path: Path) -> None:
    name = 'quote " backslash \\ newline \n </script> \u2028 \U0001f9f5'
    run = Recording()
    run.op(name, 1000, 2000, mutate="\u00e9", place=name)
    run.op("", 1000, 2000, worker=2)
    events = trace_events.of(written(run, tmp_path), "X")
    assert [event["name"] for event in events] == [name, "op 1"]
    assert events[0]["args"]["place"] == name


def test_ops_of_no_length_have_arrows_too(tmp_path: Path) -> None:
    run = Recording()
    run.op("write", 1000, 1000, mutate="a")
    run.op("read", 1000, 1000, read="a", worker=2)
    assert trace_events.arrows(written(run, tmp_path)) == {(0, 1)}


def test_what_never_ran_has_no_slice_and_no_arrow(tmp_path: Path) -> None:
    run = Recording()
    run.op("fails", 1000, 2000, mutate="a", error="ValueError: no")
    run.op("skipped", 0, 0, read="a", pushed=1500, settled=2000, outcome=Outcome.SKIPPED)
    events = written(run, tmp_path)
    assert [event["name"] for event in trace_events.of(events, "X")] == ["fails"]
    assert not trace_events.of(events, "s")


def test_device_ops_lead_from_their_device(tmp_path: Path) -> None:
    run = Recording()
    run.op("launch", 1000, 1100, mutate="a", kind=Kind.LAUNCH, stream=0, device_started=2000, device_ended=5000)
    run.op("use", 6000, 7000, read="a")
    events = written(run, tmp_path)
    names = {
        event["tid"]: event["args"]["name"] for event in trace_events.of(events, "M") if event["name"] == "thread_name"
    }
    (flow,) = trace_events.of(events, "s")
    assert (names[flow["tid"]], flow["ts"]) == ("stream 0", Decimal("4.999"))


def test_what_lands_a_devices_work_begins_before_it(tmp_path: Path) -> None:
    run = Recording()
    run.op("copy", 900, 950, mutate="a", kind=Kind.COPY, stream=0, device_started=2000, device_ended=5000)
    run.op("land copy", 1000, 6000, read="a", kind=Kind.LANDING)
    events = written(run, tmp_path)
    assert trace_events.arrows(events) == {(0, 1)}
    (leaves, arrives) = (trace_events.of(events, phase)[0]["ts"] for phase in "sf")
    assert leaves == arrives == Decimal("4.999")


def test_clocks_that_disagree_leave_no_arrow_in_the_air(tmp_path: Path) -> None:
    run = Recording()
    run.op("launch", 900, 950, mutate="a", kind=Kind.LAUNCH, stream=0, device_started=2000, device_ended=5000)
    run.op("overlaps", 1000, 3000, read="a", worker=2)
    run.op("too early", 1000, 1900, read="a")
    assert trace_events.arrows(written(run, tmp_path)) == {(0, 1)}


def test_an_empty_run_is_written(tmp_path: Path) -> None:
    assert {event["ph"] for event in written(Recording(), tmp_path)} == {"M"}


@pytest.mark.slow
def test_counters_of_long_runs_are_thinned_out(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    views = Views(random_run(20_000, 1).record())
    write_events(path, views)
    counters = [event["name"] for event in trace_events.of(trace_events.read(path), "C")]
    assert 10_000 < counters.count("pending ops") <= 20_000
