"""The figures of a run: its use of time, and its actual and possible parallelism."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._trace.markup import table
from weft._trace.measures import covered, shared
from weft._trace.optional import need
from weft._trace.record import NO_OP, NONE, Kind, Outcome, Record
from weft._trace.units import amount, seconds

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._trace.critical import CriticalPath

_SHOWN = 8  # ops of the critical path, and names of failed ones, that a printed summary names
_COLUMNS = ("op", "kind", "count", "total", "mean", "longest", "mean queue", "critical")
_ON_DEVICES = ("mean issue", "moved")  # further columns, if anything ran on a device
_HELPER = "helper"  # weft-array's name for a worker that computes a part of another one's op
_ADDRESS = re.compile(r" at 0x[0-9a-f]+$")  # in the name of a deletion, for a variable that stood for an object


@dataclass(frozen=True, slots=True)
class OpSummary:
    """The ops of one name and kind. Times are nanoseconds.

    Parameters
    ----------
    name : str
        Their name.
    kind : str
        Their payload: ``"callable"``, ``"native"``, ``"compute"``, ``"copy"``, ``"async"``, ``"launch"``, ``"delete"``,
        ``"landing"`` (the end of a copy between the host and a device).
    count : int
        How many ran.
    total, longest : int
        Their durations, in total and at most: on their device, if they ran on one; for ops that Python computes there,
        the longer of that and of the call.
    queue : int
        How long they were ready before a worker took them, all together.
    critical : int
        How long those of the critical path ran.
    on_device : int
        How many ran on a device.
    issue : int
        How long workers took to issue these, all together.
    moved : int
        Bytes that copies from, to and between devices moved.
    """

    name: str
    kind: str
    count: int
    total: int
    longest: int
    queue: int
    critical: int
    on_device: int
    issue: int
    moved: int

    @property
    def mean(self) -> float:
        """The mean duration."""
        return self.total / self.count

    @property
    def mean_queue(self) -> float:
        """The mean time between ready and start."""
        return self.queue / self.count


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """The figures of a device. Times are nanoseconds.

    Parameters
    ----------
    name : str
        The device, ``"cuda:0"``.
    count : int
        How many ops ran there.
    busy : int
        For how long at least one of its streams worked.
    computing, copying : int
        For how long computation ran, and for how long copies did.
    overlap : int
        For how much of the time of copies something was computed there beside them.
    moved : int
        Bytes that copies moved.
    """

    name: str
    count: int
    busy: int
    computing: int
    copying: int
    overlap: int
    moved: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a trace. Print it to see them as tables. Times are nanoseconds.

    Parameters
    ----------
    ops : list of OpSummary
        By name and kind; those with the longest total time first.
    wall : int
        From the first push to the last end; 0 while nothing has begun.
    busy : int
        For how long threads and device streams worked, added up: nested ops count once, waits do not count.
    waited : int
        For how long threads outside the engine waited, added up.
    workers : int
        How many workers ran ops.
    critical : int
        The length of the critical path: no number of workers makes the run shorter.
    critical_path : list of str
        Names of its ops, first to last.
    copying, overlap : int
        For how long copies ran, and for how long of that something was computed beside them.
    count, failed, skipped, cancelled, pending, dropped : int
        Ops that were kept, of these those that failed, were skipped, were cancelled or had not ended, and ops that were
        over the limit of the trace.
    errors : list of str
        The failures, a line each.
    devices : list of DeviceSummary
        Devices with clocks of their own that ran ops.
    """

    ops: list[OpSummary]
    wall: int
    busy: int
    waited: int
    workers: int
    critical: int
    critical_path: list[str]
    copying: int
    overlap: int
    count: int
    failed: int
    skipped: int
    cancelled: int
    pending: int
    dropped: int
    errors: list[str]
    devices: list[DeviceSummary]

    @property
    def parallelism(self) -> float:
        """The average number of ops that ran side by side."""
        return self.busy / self.wall if self.wall else 0.0

    @property
    def possible_parallelism(self) -> float:
        """The average number that could have run side by side, with unlimited workers."""
        return self.busy / self.critical if self.critical else 0.0

    @property
    def overlap_fraction(self) -> float | None:
        """The part of the time of copies that was hidden behind computation; None without copies."""
        return self.overlap / self.copying if self.copying else None

    def __str__(self) -> str:
        """Return aligned text."""
        rows = [self._columns(), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        aligned = [
            "  ".join(
                cell.ljust(width) if at < 2 else cell.rjust(width) for at, (cell, width) in enumerate(row)
            )  # name and kind are words
            for row in (zip(cells, widths, strict=True) for cells in rows)
        ]
        rule = "  ".join("-" * width for width in widths)
        width = max(len(name) for name, _ in self._figures())
        figures = [f"{name.ljust(width)}  {value}" for name, value in self._figures()]
        return "\n".join([aligned[0], rule, *aligned[1:], "", *figures])

    def _repr_html_(self) -> str:
        """Return the tables as notebooks show them."""
        return table([self._columns()], self._rows()) + table([], self._figures())

    def __rich__(self) -> Any:
        """Return the tables that rich prints."""
        box, table, console = need("rich.box"), need("rich.table"), need("rich.console")
        ops = table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for at, name in enumerate(self._columns()):
            ops.add_column(name, justify="left" if at < 2 else "right", overflow="fold")
        for row in self._rows():
            ops.add_row(*map(_escaped, row))
        figures = table.Table.grid(padding=(0, 2))
        for name, value in self._figures():
            figures.add_row(f"[bold]{name}[/]", _escaped(value))
        return console.Group(ops, figures)

    def show(self) -> None:
        """Print the tables: by rich if it is installed, as plain text otherwise.

        Examples
        --------
        >>> import weft
        >>> with weft.Engine(workers=1) as engine, weft.trace(engine=engine) as trace:
        ...     engine.push(lambda: None, name="nothing")
        >>> trace.summary().show()  # doctest: +ELLIPSIS
        <BLANKLINE>
        ...nothing...
        """
        if find_spec("rich"):
            need("rich.console").Console().print(self)
        else:
            sys.stdout.write(f"{self}\n")

    def _columns(self) -> tuple[str, ...]:
        """Return the heads of the table of ops."""
        return (*_COLUMNS, *_ON_DEVICES) if self.devices else _COLUMNS

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table of ops."""
        return [
            (
                op.name,
                op.kind,
                f"{op.count:,}",
                seconds(op.total),
                seconds(op.mean),
                seconds(op.longest),
                seconds(op.mean_queue),
                seconds(op.critical) if op.critical else "",
                *(_on_device(op) if self.devices else ()),
            )
            for op in self.ops
        ]

    def _figures(self) -> list[tuple[str, str]]:
        """Return names and values of the figures below the table."""
        path, shown = self.critical_path, [*self.critical_path]
        if len(path) > _SHOWN:
            shown = [*path[: _SHOWN // 2], f"({len(path) - _SHOWN:,} more)", *path[-_SHOWN // 2 :]]
        figures = [
            ("ops", f"{self.count:,}"),
            ("wall time", seconds(self.wall)),
            ("busy time", f"{seconds(self.busy)} on {self.workers} {'worker' if self.workers == 1 else 'workers'}"),
            ("critical path", f"{seconds(self.critical)}: {' > '.join(shown)}" if path else "none"),
            ("parallelism", f"{self.parallelism:.2f} achieved, {self.possible_parallelism:.2f} possible"),
        ]
        if self.waited:
            figures.append(("waits", f"{seconds(self.waited)} outside the engine"))
        if self.overlap_fraction is not None:
            hidden = f"{self.overlap_fraction:.0%} of {seconds(self.copying)}"
            figures.append(("copies", f"{hidden} hidden behind computation"))
        figures += [(device.name, _told(device, self.wall)) for device in self.devices]
        outcomes = {name: getattr(self, name) for name in ("failed", "skipped", "cancelled", "pending")}
        figures += [(name, f"{count:,}") for name, count in outcomes.items() if count]
        times = Counter(self.errors).most_common(_SHOWN)
        figures += [("error", f"{line} ({count:,} times)" if count > 1 else line) for line, count in times]
        if self.dropped:
            figures.append(("not kept", f"{self.dropped:,} ops over the limit of the trace"))
        return figures


def summarize(record: Record, path: CriticalPath) -> Summary:
    """Return the figures of a record.

    Parameters
    ----------
    record : Record
        The record.
    path : CriticalPath
        Its critical path.

    Returns
    -------
    Summary
        All figures.
    """
    ops = record.ops
    work = record.began & ~record.waits
    start, end = ops["started"], record.ends()
    thread = np.where(ops["worker"] == NONE, ops["pusher"], ops["worker"])
    outside = record.began & record.waits & (ops["parent"] == NO_OP)
    nested = record.began & record.waits & (ops["parent"] != NO_OP)
    busy, ran_on = 0, 0
    landing = ops["kind"] == Kind.LANDING
    apart = work & (ops["kind"] == Kind.ASYNC)
    for at, who in enumerate(record.threads):
        mine = work & ~apart & ~landing & (thread == at)
        if mine.any():
            ran_on += who["kind"] == "worker"
            pauses = nested & (thread == at)
            busy += covered(start[mine], end[mine])
            busy -= shared((start[mine], end[mine]), (start[pauses], end[pauses]))
    busy += int((end - start)[apart].sum())
    streamed = record.on_device
    for stream in np.unique(ops["stream"][streamed]):
        mine = streamed & (ops["stream"] == stream)
        busy += covered(ops["device_started"][mine], ops["device_ended"][mine])
    last = max(int(end.max(initial=0)), int(ops["device_ended"].max(initial=0)))
    first = int(ops["pushed"].min()) if len(ops) else 0
    copies = work & (ops["kind"] == Kind.COPY)
    beside = work & ~copies & ~landing
    worked_from, worked_until = record.work()
    copying = (worked_from[copies], worked_until[copies])
    beside_copies = (worked_from[beside], worked_until[beside])
    told = ~record.waits & ~_unneeded(record)
    outcomes = np.bincount(ops["outcome"][told], minlength=len(Outcome))
    return Summary(
        ops=_by_name(record, path),
        wall=last - first if last else 0,  # before an op has begun
        busy=busy,
        waited=int((end - start)[outside].sum()),
        workers=ran_on,
        critical=path.length,
        critical_path=[_named(record.label(op), record.place(op)) for op in path.ops.tolist()],
        copying=covered(*copying),
        overlap=shared(copying, beside_copies),
        count=int(told.sum()),
        failed=int(outcomes[Outcome.FAILED]),
        skipped=int(outcomes[Outcome.SKIPPED]),
        cancelled=int(outcomes[Outcome.CANCELLED]),
        pending=int(outcomes[Outcome.PENDING]),
        dropped=record.dropped,
        errors=[f"{record.label(op)}: {line}" for op, line in sorted(record.errors.items())],
        devices=_devices(record),
    )


def _unneeded(record: Record) -> npt.NDArray[np.bool_]:
    """Return which ops are helpers that came too late: a running op requests them, and nothing waits for them."""
    ops = record.ops
    helps = np.array([name == _HELPER for name in record.names], bool)[ops["name"]]
    late: npt.NDArray[np.bool_] = ~record.began & (ops["outcome"] == Outcome.PENDING)
    idle: npt.NDArray[np.bool_] = late & helps & np.isin(ops["kind"], (Kind.COMPUTE, Kind.COPY))
    return idle


def _devices(record: Record) -> list[DeviceSummary]:
    """Return the figures of each device that ran ops."""
    ops = record.ops
    found: list[DeviceSummary] = []
    for name in dict.fromkeys(stream["device"] for stream in record.streams):
        streams = [at for at, stream in enumerate(record.streams) if stream["device"] == name]
        mine = record.on_device & np.isin(ops["stream"], streams)
        copies = mine & (ops["kind"] == Kind.COPY)
        times = [(ops["device_started"][which], ops["device_ended"][which]) for which in (mine, mine & ~copies, copies)]
        busy, computing, copying = (covered(*stretches) for stretches in times)
        moved, overlap = int(ops["moved"][copies].sum()), shared(times[1], times[2])
        found.append(DeviceSummary(name, int(mine.sum()), busy, computing, copying, overlap, moved))
    return sorted(found, key=lambda device: device.name)


def _on_device(op: OpSummary) -> tuple[str, str]:
    """Return the cells that only ops on devices have."""
    if not op.on_device:
        return "", ""
    rate = f"{amount(op.moved)}, {op.moved / op.total:.3g} GB/s" if op.moved and op.total else ""
    return seconds(op.issue / op.on_device), rate


def _told(device: DeviceSummary, wall: int) -> str:
    """Return a device's figures in words."""
    busy = f"busy for {seconds(device.busy)} ({device.busy / wall if wall else 0:.0%} of the wall time)"
    told = f"{busy}, computing for {seconds(device.computing)}"
    if not device.copying:
        return told
    hidden = f"{device.overlap / device.copying:.0%} of it hidden"
    return f"{told}, copying {amount(device.moved)} for {seconds(device.copying)}, {hidden}"


def _by_name(record: Record, path: CriticalPath) -> list[OpSummary]:
    """Return the figures of the ops of each name and kind, those that took longest first."""
    work = np.nonzero(record.began & ~record.waits)[0]
    took, queued = record.durations()[work], record.queue_times()[work]
    on_path = np.isin(work, path.ops)
    on_device = record.on_device[work]
    issue = np.where(on_device, (record.ends() - record.ops["started"])[work], 0)
    kinds = len(Kind)
    name, alike = _names(record, work)
    groups, group = np.unique(alike * kinds + record.ops["kind"][work], return_inverse=True)
    longest = np.zeros(len(groups), np.int64)
    np.maximum.at(longest, group, took)
    weights = (None, took, queued, took * on_path, on_device, issue, record.ops["moved"][work])
    count, total, queue, critical, launched, issued, moved = (
        np.bincount(group, weight, len(groups)) for weight in weights
    )
    keys: list[int] = groups.tolist()
    found = [
        OpSummary(
            name[key // kinds],
            Kind(key % kinds).name.lower(),
            int(count[at]),
            int(total[at]),
            int(longest[at]),
            int(queue[at]),
            int(critical[at]),
            int(launched[at]),
            int(issued[at]),
            int(moved[at]),
        )
        for at, key in enumerate(keys)
    ]
    return sorted(found, key=lambda op: -op.total)


def _names(record: Record, work: npt.NDArray[np.int64]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of rows, and the row of each op in a selection."""
    rows: dict[str, int] = {}
    pairs = record.ops["name"][work].astype(np.int64) << 32 | record.ops["place"][work]
    found, which = np.unique(pairs, return_inverse=True)
    listed: list[int] = found.tolist()
    row_of = [
        rows.setdefault(
            _named(record.names[pair >> 32], record.places[pair & 0xFFFFFFFF] if record.places else ""), len(rows)
        )
        for pair in listed
    ]
    return list(rows), np.array(row_of, np.int64)[which]


def _named(name: str, place: str) -> str:
    """Return the row name of an op: deletions without addresses, so that they share a row; lambdas with their lines."""
    if name == "<lambda>" and place:
        return f"{name} {place}"
    return _ADDRESS.sub("", name) if name.startswith("deletion of ") else name


def _escaped(text: str) -> str:
    """Return text escaped for rich."""
    escaped: str = need("rich.markup").escape(text)
    return escaped
