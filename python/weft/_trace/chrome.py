"""Trace events, the JSON that Perfetto (https://ui.perfetto.dev) and chrome://tracing open.

The format is Google's "Trace Event Format". Ops are complete events in the rows of `lanes`; dependencies are flows. Ops
that were ready and not yet running are async events of a second process, "queued". Counters follow the pending ops,
their bytes and the running ops.
"""

from __future__ import annotations

import gzip
import json
from typing import IO, TYPE_CHECKING

import numpy as np

from weft._trace.curves import curves
from weft._trace.marks import marks_of
from weft._trace.record import NO_OP, NONE, Access, Kind, Outcome, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from weft._trace.lanes import Lane
    from weft._trace.views import Views

_ENGINE, _QUEUES = 1, 2  # process numbers
_SHORTEST_QUEUE = 1_000  # ns: shorter waits need no event of their own


def write_events(path: Path, views: Views) -> None:
    """Write trace events.

    Parameters
    ----------
    path : Path
        The file; ``.json.gz`` is compressed.
    views : Views
        The views to write. The ops of the critical path carry ``"critical": true``.
    """
    record = views.record
    compressed = path.suffix == ".gz"
    with gzip.open(path, "wt", 6, encoding="utf-8") if compressed else path.open("w", encoding="utf-8") as file:
        about = {"displayTimeUnit": "ns", "otherData": {"epoch": record.epoch, "dropped": record.dropped}}
        file.write(json.dumps(about)[:-1] + ', "traceEvents": [\n')
        _write(file, _events(views))
        file.write("\n]}\n")


def _write(file: IO[str], events: Iterable[str]) -> None:
    """Write the elements of a JSON array."""
    separator = ""
    for event in events:
        file.write(separator)
        file.write(event)
        separator = ",\n"


def _events(views: Views) -> Iterator[str]:
    """Yield every event as JSON."""
    lanes = views.spans.lanes
    yield from _names(lanes)
    rows = np.array([1, *np.cumsum([lane.depth for lane in lanes]) + 1])[views.spans.lane] + views.spans.row
    yield from _slices(views, rows)
    yield from _flows(views, rows)
    yield from _queued(views.record)
    yield from _counters(views.record)


def _names(lanes: list[Lane]) -> Iterator[str]:
    """Yield the names of processes and rows, top to bottom."""
    rows = [lane.label if not row else f"{lane.label} ({row + 1})" for lane in lanes for row in range(lane.depth)]
    for pid, name in ((_ENGINE, "weft"), (_QUEUES, "queued")):
        yield json.dumps({"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": name}})
        yield json.dumps({"ph": "M", "pid": pid, "tid": 0, "name": "process_sort_index", "args": {"sort_index": pid}})
    for at, name in enumerate(rows, 1):
        about = {"ph": "M", "pid": _ENGINE, "tid": at}
        yield json.dumps({**about, "name": "thread_name", "args": {"name": name}})
        yield json.dumps({**about, "name": "thread_sort_index", "args": {"sort_index": at}})


def _slices(views: Views, rows: npt.NDArray[np.int64]) -> Iterator[str]:
    """Yield a complete event for each span."""
    record, spans = views.record, views.spans
    ops = record.ops
    queued = record.queue_times().tolist()
    on_path = np.isin(np.arange(len(ops)), views.critical.ops).tolist()
    names = [json.dumps(name) for name in record.names]
    places = [json.dumps(place) for place in record.places]
    streams = {at: json.dumps(record.stream(at)) for at in np.unique(ops["stream"]).tolist()}
    kinds = [kind.name.lower() for kind in Kind]
    outcomes = [outcome.name.lower() for outcome in Outcome]
    touched = _accesses(record)
    marks = marks_of(record)
    columns: list[list[int]] = [
        ops[name].tolist() for name in ("name", "place", "kind", "priority", "bytes", "outcome", "stream", "moved")
    ]
    drawn: list[list[int]] = np.stack((spans.op, rows, spans.start, spans.end), 1).tolist()
    for op, row, start, end in drawn:
        name, place, kind, priority, held, outcome, stream, moved = (column[op] for column in columns)
        about = f'"op": {op}, "place": {places[place]}, "outcome": "{outcomes[outcome]}", "queue_us": {_us(queued[op])}'
        if priority:
            about += f', "priority": {priority}'
        if held:
            about += f', "bytes": {held}'
        if stream != NONE:
            about += f', "stream": {streams[stream]}'
        if moved:
            about += f', "moved": {moved}'
        if on_path[op]:
            about += ', "critical": true'
        if touched[op]:
            about += f', "accesses": {json.dumps(touched[op])}'
        if op in record.errors:
            about += f', "error": {json.dumps(record.errors[op])}'
        if op in marks:
            about += f', "doctor": {json.dumps(marks[op])}'
            yield json.dumps(
                {
                    "ph": "i",
                    "pid": _ENGINE,
                    "tid": row,
                    "ts": start / 1000,
                    "s": "t",
                    "name": marks[op].partition(":")[0],
                    "cat": "doctor",
                }
            )
        label = names[name] if record.names[name] else f'"op {op}"'
        yield (
            f'{{"ph": "X", "pid": {_ENGINE}, "tid": {row}, "ts": {_us(start)}, "dur": {_us(max(end - start, 1))}, '
            f'"name": {label}, "cat": "{kinds[kind]}", "args": {{{about}}}}}'
        )


def _flows(views: Views, rows: npt.NDArray[np.int64]) -> Iterator[str]:
    """Yield an arrow for each dependency between ops that ran, from the last moment of one to the first of the other.

    Both ends lie within their slices; time and row bind them to these.
    """
    spans, pairs = views.spans, views.dependencies
    at = np.full(len(views.record.ops), NO_OP, np.int64)
    at[spans.op] = np.arange(len(spans.op))  # of an op's two spans the one on the device, which ends later
    source, target = at[pairs[:, 0]], at[pairs[:, 1]]
    last = np.maximum(spans.end - 1, spans.start)
    shown = (source != NO_OP) & (target != NO_OP)
    # A device's clock is accurate to some microseconds: by it, an earlier op may have begun after the end.
    shown[shown] = spans.start[source[shown]] <= last[target[shown]]
    source, target = source[shown], target[shown]
    # Waits, and landings of device work, began before the end of the ops that they wait for: the arrow leads into them.
    arrives = np.clip(last[source], spans.start[target], last[target])
    leaves = np.minimum(last[source], arrives)
    columns = (rows[source], leaves, rows[target], arrives)
    for number, (left, leave, right, arrive) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        about = f'"pid": {_ENGINE}, "cat": "dependency", "name": "dependency", "id": {number}'
        yield f'{{"ph": "s", "tid": {left}, "ts": {_us(leave)}, {about}}}'
        yield f'{{"ph": "f", "bp": "e", "tid": {right}, "ts": {_us(arrive)}, {about}}}'


def _queued(record: Record) -> Iterator[str]:
    """Yield the queue time of each op that waited for a worker."""
    ops = record.ops
    for op in np.nonzero(record.queue_times() >= _SHORTEST_QUEUE)[0].tolist():
        about = f'"pid": {_QUEUES}, "tid": 0, "cat": "queue", "id": {op}, "name": {json.dumps(record.label(op))}'
        yield f'{{"ph": "b", "ts": {_us(int(ops["ready"][op]))}, {about}}}'
        yield f'{{"ph": "e", "ts": {_us(int(ops["started"][op]))}, {about}}}'


def _counters(record: Record) -> Iterator[str]:
    """Yield the pending ops, their bytes, and the running ops, at every change."""
    for curve in curves(record):
        for time, level in zip(curve.times.tolist(), curve.level.tolist(), strict=True):
            yield (
                f'{{"ph": "C", "pid": {_ENGINE}, "tid": 0, "ts": {_us(time)}, '
                f'"name": "{curve.label}", "args": {{"{curve.name}": {level}}}}}'
            )


def _accesses(record: Record) -> list[str]:
    """Return the accesses of each op in words."""
    words = [""] * len(record.ops)
    verbs = [access.name.lower() for access in Access]
    names = [record.variable(index) for index in range(len(record.variables))]
    columns = (record.accesses[name].tolist() for name in ("op", "variable", "kind", "version"))
    for op, variable, kind, version in zip(*columns, strict=True):
        before = f"{words[op]}, " if words[op] else ""
        words[op] = f"{before}{verbs[kind]} {names[variable]} v{version}"
    return words


def _us(nanoseconds: int) -> str:
    """Return a time in the format's unit, exactly."""
    whole, rest = divmod(nanoseconds, 1000)
    return f"{whole}.{rest:03}" if rest else str(whole)
