"""The record of a trace: the columns from the core, as arrays with named fields.

A record is read once and never changes. All else in this package is computed from it, so that a trace has many views
after the run. All times are nanoseconds since the start of the trace; 0 stands for an event that has not happened.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

#: In `worker` and `stream`: none.
NONE = 65535
#: In `parent`: the op was not pushed inside another one.
NO_OP = -1

#: The core's name for the second op of a copy from or to the host.
_LANDING = "land copy"

#: A structured array.
Ops: TypeAlias = "np.ndarray[Any, Any]"


class Kind(IntEnum):
    """The kind of an op's payload."""

    CALLABLE = 0
    NATIVE = 1
    COMPUTE = 2
    COPY = 3
    ASYNC = 4
    LAUNCH = 5
    WAIT = 6
    DELETE = 7
    #: The end of a copy from or to the host, which waits for the device: in the core an async op.
    LANDING = 8


class Outcome(IntEnum):
    """The outcome of an op."""

    PENDING = 0
    DONE = 1
    FAILED = 2
    SKIPPED = 3
    CANCELLED = 4


class Access(IntEnum):
    """The access of an op to a variable."""

    READ = 0
    MUTATE = 1
    OVERWRITE = 2


class Thread(TypedDict):
    """A thread that pushed, waited or ran ops."""

    name: str
    kind: str
    lane: int
    ident: int


class Stream(TypedDict):
    """A stream of a device."""

    device: str
    name: str
    kind: str


class Traced(TypedDict):
    """A variable that ops used."""

    id: int
    name: str | None
    bytes: int


OPS = np.dtype(
    [
        ("number", "u8"),
        ("name", "u4"),
        ("place", "u4"),
        ("kind", "u1"),
        ("lane", "u2"),
        ("priority", "i4"),
        ("bytes", "u8"),
        ("pusher", "u2"),
        ("worker", "u2"),
        ("parent", "i8"),
        ("pushed", "i8"),
        ("ready", "i8"),
        ("started", "i8"),
        ("ended", "i8"),
        ("settled", "i8"),
        ("outcome", "u1"),
        ("stream", "u2"),
        ("device_started", "i8"),
        ("device_ended", "i8"),
        ("moved", "u8"),
    ]
)
ACCESSES = np.dtype([("op", "u4"), ("variable", "u4"), ("kind", "u1"), ("version", "u8")])


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """The record of one engine.

    Parameters
    ----------
    epoch : float
        Seconds since 1970 at the start.
    duration : int
        Nanoseconds from start to stop.
    dropped : int
        Ops over the limit, which were not kept.
    names, places : list of str
        Tables for the numbers in `ops`: names of ops, and ``file:line`` of pushes, below the working directory
        relative to it.
    threads : list of Thread
        The table of pushers and workers in `ops`.
    streams : list of Stream
        The table of streams in `ops`.
    variables : list of Traced
        The table of variables in `accesses`.
    ops : ndarray
        One element for each op, in the order of pushes.
    accesses : ndarray
        One element for each access, with the version that a read saw, or a mutation made.
    errors : dict of int to str
        For ops that failed, by their index, one line.
    """

    epoch: float
    duration: int
    dropped: int
    names: list[str]
    places: list[str]
    threads: list[Thread]
    streams: list[Stream]
    variables: list[Traced]
    ops: Ops
    accesses: Ops
    errors: dict[int, str]

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Record:
        """Return the record in the core's answer.

        Parameters
        ----------
        answer : mapping
            The result of ``Engine._trace_stop()``: columns are bytes.

        Returns
        -------
        Record
            Its arrays are read-only.
        """
        plain = {name: answer[name] for name in ("epoch", "duration", "dropped", "names", "threads", "streams")}
        return cls(
            **plain,
            places=[_near(place) for place in answer["places"]],
            variables=answer["variables"],
            ops=_shared_out(_with_landings(_table(OPS, answer["ops"]), answer["names"])),
            accesses=_table(ACCESSES, answer["accesses"]),
            errors=answer["errors"],
        )

    @property
    def began(self) -> npt.NDArray[np.bool_]:
        """Which ops have started to run."""
        found: npt.NDArray[np.bool_] = self.ops["started"] > 0
        return found

    @property
    def waits(self) -> npt.NDArray[np.bool_]:
        """Which entries are waits and not work."""
        found: npt.NDArray[np.bool_] = self.ops["kind"] == Kind.WAIT
        return found

    @property
    def on_device(self) -> npt.NDArray[np.bool_]:
        """Which ops have run on a device, and when is known."""
        found: npt.NDArray[np.bool_] = self.ops["device_ended"] > 0
        return found

    def work(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the start and the end of each op's work: on its device, if known."""
        on_device = self.on_device
        start = np.where(on_device, self.ops["device_started"], self.ops["started"])
        return start, np.where(on_device, self.ops["device_ended"], self.ends())

    def ends(self) -> npt.NDArray[np.int64]:
        """Return the end of each op that began; for ops still running at the stop, that moment."""
        ended = self.ops["ended"]
        return np.where(self.began, np.maximum(np.where(ended > 0, ended, self.duration), self.ops["started"]), 0)

    def durations(self) -> npt.NDArray[np.int64]:
        """Return the duration of each op; 0 for waits, for landings, and for ops that never ran.

        Launches and copies ran on their device. An op computed by Python there has the longer time of the device and of
        the call.
        """
        start, end = self.work()
        python = ~np.isin(self.ops["kind"], (Kind.LAUNCH, Kind.COPY))
        took = np.where(python, np.maximum(end - start, self.ends() - self.ops["started"]), end - start)
        return np.where(self.began & ~self.waits & (self.ops["kind"] != Kind.LANDING), took, 0)

    def queue_times(self) -> npt.NDArray[np.int64]:
        """Return the time for which each op was ready before a worker took it."""
        return np.where(self.began & ~self.waits, np.maximum(self.ops["started"] - self.ops["ready"], 0), 0)

    def label(self, op: int) -> str:
        """Return the name of an op, or its position if it has none."""
        name = self.names[int(self.ops["name"][op])]
        return name or f"op {op}"

    def place(self, op: int) -> str:
        """Return the place of an op's push, or nothing if unknown."""
        return self.places[int(self.ops["place"][op])] if self.places else ""

    def thread(self, op: int) -> int:
        """Return the index of an op's thread: that of its worker, or else of its pusher."""
        worker = int(self.ops["worker"][op])
        return int(self.ops["pusher"][op]) if worker == NONE else worker

    def stream(self, index: int) -> str:
        """Return the name of a stream with that of its device."""
        if index >= len(self.streams):
            return f"stream {index}"
        stream = self.streams[index]
        return f"{stream['device']} {stream['name']}"

    def variable(self, index: int) -> str:
        """Return the name of a variable, or its number if it has none."""
        variable = self.variables[index]
        return variable["name"] or f"#{variable['id']}"


def distinct(numbers: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the different numbers, in order, and the place of the first of each.

    NumPy's own function imports its masked arrays, which takes longer than to read a short trace.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._trace.record import distinct
    >>> numbers, first = distinct(np.array([7, 3, 7, 5]))
    >>> numbers.tolist(), first.tolist()
    ([3, 5, 7], [1, 3, 0])
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first], order[is_first]


def _near(place: str) -> str:
    """Return a place relative to the working directory, if it is below that."""
    here = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118 - pathlib leaves out the last separator
    return place.removeprefix(here)


def column(dtype: np.dtype[np.void], columns: Mapping[str, bytes], name: str) -> npt.NDArray[Any]:
    """Return one column of the core's answer: of its ops, or of its accesses."""
    return np.frombuffer(columns[name], dtype[name])


def _table(dtype: np.dtype[np.void], columns: Mapping[str, bytes]) -> Ops:
    """Return columns of bytes as one read-only structured array."""
    parts = {name: column(dtype, columns, name) for name in dtype.names or ()}
    table = np.zeros(len(next(iter(parts.values()))), dtype)
    for name, part in parts.items():
        table[name] = part
    table.flags.writeable = False
    return table


def _with_landings(ops: Ops, names: list[str]) -> Ops:
    """Return the ops, with a kind of their own for the ends of copies."""
    if _LANDING not in names:
        return ops
    found = ops.copy()
    found["kind"][(ops["kind"] == Kind.ASYNC) & (ops["name"] == names.index(_LANDING))] = Kind.LANDING
    found.flags.writeable = False
    return found


def _shared_out(ops: Ops) -> Ops:
    """Return the ops, with equal parts of the time for those computed together, in the order of pushes.

    Array ops that follow each other go through the cache together, block by block: the core gives one start and one end
    for all. Counted whole, each would seem to take as long as all of them.
    """
    computed = np.nonzero(
        np.isin(ops["kind"], (Kind.COMPUTE, Kind.COPY))
        & (ops["ended"] > 0)
        & (ops["worker"] != NONE)
        & (ops["stream"] == NONE)
    )[0]
    # Ops pushed inside a callable on a copy lane ran inside it, and not together with it.
    computed = computed[~np.isin(ops["parent"][computed], computed)]
    order = computed[np.lexsort((ops["started"][computed], ops["worker"][computed]))]
    worker, start, end = (ops[name][order] for name in ("worker", "started", "ended"))
    until = np.zeros_like(end)
    for at in distinct(worker)[0].tolist():
        until[worker == at] = np.maximum.accumulate(end[worker == at])
    alone = np.ones(len(order) + 1, np.bool_)  # the first op of a group that overlaps on one worker
    alone[1:-1] = (worker[1:] != worker[:-1]) | (start[1:] >= until[:-1])
    if alone.all():
        return ops
    shared = ops.copy()
    bounds = np.nonzero(alone)[0]
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if last - first > 1:
            group = np.sort(order[first:last])
            edges = np.linspace(start[first], until[last - 1], len(group) + 1).astype(np.int64)
            shared["started"][group], shared["ended"][group] = edges[:-1], edges[1:]
            # As everywhere, no op is ready after its start or settled before its end.
            shared["ready"][group] = np.minimum(shared["ready"][group], edges[:-1])
            shared["settled"][group] = np.maximum(shared["settled"][group], edges[1:])
    shared.flags.writeable = False
    return shared
