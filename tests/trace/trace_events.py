"""A strict reader of the Trace Event Format, for what weft writes: complete events, flows, async events, counters, names."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = {
    "M": {"ph", "pid", "tid", "name", "args"},
    "X": {"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"},
    "s": {"ph", "pid", "tid", "name", "cat", "ts", "id"},
    "f": {"ph", "pid", "tid", "name", "cat", "ts", "id", "bp"},
    "b": {"ph", "pid", "tid", "name", "cat", "ts", "id"},
    "e": {"ph", "pid", "tid", "name", "cat", "ts", "id"},
    "C": {"ph", "pid", "tid", "name", "ts", "args"},
}
METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}

Event = dict[str, Any]


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def read(path: Path) -> list[Event]:
    """Return the events of a file, after checking every one and what they say together."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(text.decode("utf-8"), parse_float=Decimal, parse_constant=refuse)
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert document["displayTimeUnit"] in {"ms", "ns"}
    events: list[Event] = document["traceEvents"]
    for event in events:
        assert set(event) == FIELDS[event["ph"]], event
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        assert event["name"]
        for time in ("ts", "dur"):
            if time in event:
                assert isinstance(event[time], int | Decimal), event
                assert event[time] >= 0, event
    check_names(events)
    check_slices(events)
    check_flows(events)
    check_async(events)
    check_counters(events)
    return events


def of(events: list[Event], phase: str) -> list[Event]:
    """Return the events of a phase."""
    return [event for event in events if event["ph"] == phase]


def check_names(events: list[Event]) -> None:
    for event in of(events, "M"):
        assert set(event["args"]) == {METADATA[event["name"]]}, event
    named = {(event["pid"], event["tid"]) for event in of(events, "M") if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in of(events, "X")} <= named
    processes = {event["pid"] for event in of(events, "M") if event["name"] == "process_name"}
    assert {event["pid"] for event in events} <= processes


def check_slices(events: list[Event]) -> None:
    """Slices of a row lie beside or within each other."""
    rows = defaultdict(list)
    for event in of(events, "X"):
        assert event["dur"] > 0, event
        rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in rows.values():
        open_: list[Decimal] = []
        for start, end in sorted(slices, key=lambda item: (item[0], -item[1])):
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or end <= open_[-1], (start, end)
            open_.append(end)


def enclosing(slices: list[Event], flow: Event) -> Event:
    """Return the slice that a flow event is bound to: of those of its row the last one that is open at its time."""
    at = bisect_right(slices, flow["ts"], key=lambda event: event["ts"])
    for event in map(slices.__getitem__, range(at - 1, -1, -1)):
        if flow["ts"] < event["ts"] + event["dur"]:
            return event
    raise AssertionError(f"bound to nothing: {flow}")


def arrows(events: list[Event]) -> set[tuple[int, int]]:
    """Return the ops that flows lead from and to."""
    rows = defaultdict(list)
    for event in sorted(of(events, "X"), key=lambda event: event["ts"]):
        rows[event["tid"]].append(event)
    ends = {(event["cat"], event["id"]): event for event in of(events, "f")}
    pairs = ((event, ends[event["cat"], event["id"]]) for event in of(events, "s"))
    return {tuple(enclosing(rows[flow["tid"]], flow)["args"]["op"] for flow in pair) for pair in pairs}


def check_flows(events: list[Event]) -> None:
    starts, ends = (
        {(event["cat"], event["id"], event["name"]): event for event in of(events, phase)} for phase in "sf"
    )
    assert len(starts) == len(of(events, "s"))
    assert len(ends) == len(of(events, "f"))
    assert set(starts) == set(ends)
    assert all(event["bp"] == "e" for event in ends.values())
    assert all(starts[key]["ts"] <= ends[key]["ts"] for key in starts)
    arrows(events)


def check_async(events: list[Event]) -> None:
    key = ("pid", "cat", "id", "name")
    begins, ends = ({tuple(event[field] for field in key): event for event in of(events, phase)} for phase in "be")
    assert len(begins) == len(of(events, "b"))
    assert set(begins) == set(ends)
    assert all(begins[which]["ts"] <= ends[which]["ts"] for which in begins)


def check_counters(events: list[Event]) -> None:
    series = defaultdict(list)
    for event in of(events, "C"):
        assert all(isinstance(value, int) and value >= 0 for value in event["args"].values()), event
        series[event["name"]].append(event["ts"])
    for times in series.values():
        assert times == sorted(set(times))
