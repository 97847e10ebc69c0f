"""Slow habits, read from the trace of a run and from its conversions and recordings."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import _fingerprint
from weft._doctor.findings import Finding
from weft._doctor.guards import is_host
from weft._doctor.sources import loop_around, split_place
from weft._engine.observers import caller
from weft._trace.record import NONE, Access, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from weft._trace.record import Record

#: So often something is done before it is a habit.
_TURNS = 5
_MANY = 50
#: The part of the time that is worth a word, and seconds.
_SHARE = 0.1
_LEAST = 5e-4
#: Seconds that the call of a program takes, and each of its ops; the part of an op's time that is saved as its results stay in
#: the cache; and what is longer between two pushes than a push.
_CALL, _OP, _FUSED, _PAUSE = 1.2e-6, 5e-8, 0.25, 2e-5
#: The longest sequence of pushes whose repetition is looked for, and pushes that are looked at.
_PERIOD = 512
_WINDOW = 100_000
#: Bytes of an array that are compared from turn to turn.
_SAMPLE = 1 << 15
#: Conversions that are remembered.
_CONVERSIONS = 4096


def _file(place: str) -> tuple[str, int]:
    file, line = split_place(place)
    return (os.path.abspath(file) if file else "", line)  # noqa: PTH100 - without a look at links


class Habits:
    """Conversions and recordings of a run, as they happen."""

    def __init__(self) -> None:
        self._converted: dict[tuple[str, int, int], list[Any]] = {}
        self._recorded: dict[tuple[str, str, int], list[Any]] = {}

    def converted(self, array: Any) -> None:
        """Note that the values of a NumPy array become an array's."""
        if not is_host(array) or array.nbytes == 0:
            return
        key = (*caller(), array.__array_interface__["data"][0])
        known = self._converted.get(key)
        if known is None:
            if len(self._converted) < _CONVERSIONS:
                self._converted[key] = [array.nbytes, array.shape, Counter({_sample(array): 1})]
        else:
            known[2][_sample(array)] += 1

    def recorded(self, name: str, why: Callable[[], str]) -> None:
        """Note that a function was recorded."""
        key = (name, *caller())
        known = self._recorded.setdefault(key, [0, ""])
        known[0] += 1
        known[1] = why()

    def findings(self) -> Iterator[Finding]:
        """Yield what is done again and again."""
        for (file, line, _), (nbytes, shape, seen) in self._converted.items():
            value, count = seen.most_common(1)[0]
            if count >= _TURNS and value is not None:
                seconds = (count - 1) * _copy_time(nbytes)
                yield Finding(
                    "copied-each-turn",
                    file,
                    line,
                    f"a NumPy array of shape {shape} is converted {count:,} times, and its values are the same each time",
                    "convert it once, before the loop: `x = weft.asarray(a)`, and use `x` in it",
                    count=count,
                    seconds=seconds,
                )
        for (name, file, line), (count, why) in self._recorded.items():
            if count >= _TURNS:
                yield Finding(
                    "recording-storm",
                    file,
                    line,
                    f"`{name}` was recorded {count} times: {why}",
                    "pass what changes as an array (`weft.asarray(...)`) instead of a number, or pad arrays to one shape",
                    count=count,
                )


def _sample(array: Any) -> int | None:
    """Return a number of some of an array's bytes."""
    if array.dtype.hasobject:
        return None
    flat = (
        array.reshape(-1)
        if array.flags.c_contiguous
        else np.ascontiguousarray(array[tuple([slice(0, 64)] * array.ndim)]).reshape(-1)
    )
    count = max(1, _SAMPLE // max(1, array.itemsize))
    return hash((_fingerprint(flat[:count].view(np.uint8)), _fingerprint(flat[-count:].view(np.uint8))))


def _copy_time(nbytes: int) -> float:
    """Return the seconds that a copy of so many bytes takes, measured once."""
    source = np.zeros(min(nbytes, 1 << 22), np.uint8)
    begun = time.perf_counter()
    for _ in range(3):
        source.copy()
    return (time.perf_counter() - begun) / 3 * max(1.0, nbytes / source.size) + 1e-6


def advice_of(record: Record, workers: int, kinds: Iterable[str]) -> list[Finding]:
    """Return what a trace tells of slow habits.

    Parameters
    ----------
    record : Record
        The trace.
    workers : int
        Workers of its engine.
    kinds : iterable of str
        Kinds that are looked for.
    """
    if not len(record.ops):
        return []
    run = _Run(record, max(1, workers))
    looks: dict[str, Callable[[_Run], Iterator[Finding]]] = {
        "wait-in-loop": _waits_in_loops,
        "repeated-ops": _repeated_ops,
        "short-task": _short_tasks,
        "one-buffer": _one_buffers,
    }
    return [finding for kind in kinds if kind in looks for finding in looks[kind](run)]


@dataclass
class _Run:
    """A trace, and what several looks need of it."""

    record: Record
    workers: int

    def __post_init__(self) -> None:
        ops = self.record.ops
        self.ops = ops
        self.took: npt.NDArray[np.float64] = self.record.durations() / 1e9
        self.pushed = ops["pushed"].astype(np.int64)
        self.ends = self.record.ends().astype(np.int64)
        self.top = ops["parent"] == -1
        self.accesses: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for op, variable, kind, _ in self.record.accesses.tolist():
            self.accesses[op].append((variable, kind))

    def place(self, op: int) -> tuple[str, int]:
        return _file(self.record.place(op))

    def finish_times(self, chosen: npt.NDArray[np.int64]) -> float:
        """Return the seconds that ops take from the first to the last, if nobody waits between their pushes."""
        written: dict[int, float] = {}
        read: dict[int, float] = {}
        critical = 0.0
        for op in chosen.tolist():
            begins = 0.0
            for variable, kind in self.accesses[op]:
                begins = max(begins, written.get(variable, 0.0))
                if kind != Access.READ:
                    begins = max(begins, read.get(variable, 0.0))
            ends = begins + float(self.took[op])
            critical = max(critical, ends)
            for variable, kind in self.accesses[op]:
                if kind == Access.READ:
                    read[variable] = max(read.get(variable, 0.0), ends)
                else:
                    written[variable] = ends
        return max(critical, float(self.took[chosen].sum()) / self.workers)


def _waits_in_loops(run: _Run) -> Iterator[Finding]:
    record, ops = run.record, run.ops
    waits = np.nonzero((ops["kind"] == Kind.WAIT) & run.top & (run.ends > 0))[0]
    groups: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for wait in waits.tolist():
        groups[(*run.place(wait), int(ops["pusher"][wait]))].append(wait)
    told: list[tuple[str, int, int]] = []
    ordered = sorted(groups.items(), key=lambda item: -sum(_length(run, wait) for wait in item[1]))
    for (file, line, pusher), group in ordered:
        loop = loop_around(file, line)
        if len(group) < _TURNS or loop is None:
            continue
        if any(file == other and first <= line <= last for other, first, last in told):
            continue
        waited = sum(_length(run, wait) for wait in group)
        first, last = int(run.pushed[group[0]]), int(run.ends[group[-1]])
        inside = (run.pushed <= last) & (ops["pusher"] == pusher) & ~record.waits & record.began
        begun = _turn_begin(run, group, inside)
        inside &= run.pushed >= begun
        span = (last - min(begun, first)) / 1e9
        needed = max(run.finish_times(np.nonzero(inside)[0]), span - waited)
        cost = span - needed
        if cost < max(_LEAST, _SHARE * span):
            continue
        told.append((file, *loop))
        yield Finding(
            "wait-in-loop",
            file,
            line,
            f"the loop of lines {loop[0]}-{loop[1]} waits here {len(group):,} times, so the ops of one turn end before those of the "
            f"next begin, which do not need them: about {cost:.3g} s of {span:.3g} s",
            "keep the arrays or handles in a list, and wait once, behind the loop: `weft.wait(*results)`",
            count=len(group),
            seconds=cost,
        )


def _length(run: _Run, wait: int) -> float:
    return max(0.0, float(run.ends[wait] - run.pushed[wait]) / 1e9)


def _turn_begin(run: _Run, group: list[int], inside: npt.NDArray[np.bool_]) -> int:
    """Return when the first turn of a loop began: with the pushes before its wait, as many as between the next two."""
    between = int((inside & (run.pushed > run.pushed[group[0]]) & (run.pushed < run.pushed[group[1]])).sum())
    before = run.pushed[inside & (run.pushed < run.pushed[group[0]])]
    return int(before[-between:][0]) if between and len(before) else int(run.pushed[group[0]])


def _repeated_ops(run: _Run) -> Iterator[Finding]:
    ops, record = run.ops, run.record
    for pusher in np.unique(ops["pusher"]).tolist():
        chosen = np.nonzero(
            (ops["pusher"] == pusher) & ~record.waits & run.top & (ops["place"] > 0) & (ops["kind"] != Kind.DELETE)
        )[0]
        chosen = chosen[:_WINDOW]
        word = ops["place"][chosen].astype(np.int64) << 32 | ops["name"][chosen]
        for begin, period, turns in _repetitions(word):
            if period < 2 or turns < 2 * _TURNS:
                continue
            part = chosen[begin : begin + period * turns]
            callables = np.isin(ops["kind"][part], (Kind.CALLABLE, Kind.ASYNC, Kind.NATIVE))
            span = float(max(run.ends[part].max(), run.pushed[part[-1]]) - run.pushed[part[0]]) / 1e9
            at_push = ops["worker"][part] == NONE
            gaps = np.diff(run.pushed[part]) / 1e9 - np.where(at_push, run.took[part], 0)[:-1]
            pushing = float(np.clip(gaps, 0, _PAUSE).sum())
            # What somebody else had of the processor meanwhile is no time of these ops.
            span = min(span, pushing + float(run.took[part].sum()))
            saved = pushing + _FUSED * float(run.took[part].sum()) - turns * (_CALL + _OP * period)
            if callables.all() or saved < _SHARE * span:
                continue
            places = [run.place(int(op)) for op in part[:period]]
            file = Counter(file for file, _ in places).most_common(1)[0][0]
            lines = [line for name, line in places if name == file]
            yield Finding(
                "repeated-ops",
                file,
                min(lines),
                f"lines {min(lines)}-{max(lines)} push the same {period} ops {turns:,} times; as a program they take about "
                f"{saved:.3g} s less of {span:.3g} s",
                "put them into a function below `@weft.program`, and call that",
                end_line=max(lines),
                count=turns,
                seconds=saved,
            )


def _repetitions(word: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yield begin, period and number of turns of stretches that repeat, each where it is longest, with its shortest period.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.advice import _repetitions
    >>> list(_repetitions(np.array([9, 1, 2, 1, 2, 1, 2, 7])))
    [(1, 2, 3)]
    """
    size = len(word)
    if size < 4:
        return
    order = np.argsort(word, kind="stable")
    same = word[order][1:] == word[order][:-1]
    gaps = (order[1:] - order[:-1])[same]
    taken = np.zeros(size, np.bool_)
    near: list[int] = gaps[gaps <= _PERIOD].tolist()
    periods = [gap for gap, _ in Counter(near).most_common(16)]
    for period in sorted(periods):
        equal = np.concatenate(([False], word[period:] == word[:-period], [False]))
        edges = np.nonzero(equal[1:] != equal[:-1])[0]
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            turns = (end - begin) // period + 1
            stop = begin + turns * period
            if turns > 1 and not taken[begin:stop].any():
                taken[begin:stop] = True
                yield begin, period, turns


def _short_tasks(run: _Run) -> Iterator[Finding]:
    ops = run.ops
    chosen = np.nonzero((ops["kind"] == Kind.CALLABLE) & run.record.began & (ops["ended"] > 0))[0]
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for op in chosen.tolist():
        groups[run.place(op)].append(op)
    for (file, line), group in groups.items():
        if len(group) < _MANY:
            continue
        took = float(np.percentile(run.took[group], 25))
        gaps = np.diff(run.pushed[group]) / 1e9
        push = float(np.percentile(gaps, 25))
        if took >= push or took > 5e-5:
            continue
        name = run.record.label(group[0])
        cost = len(group) * push * (1 - 1 / 16)
        yield Finding(
            "short-task",
            file,
            line,
            f"`{name}` takes {took * 1e6:.3g} us, and to push it takes {push * 1e6:.3g} us, {len(group):,} times",
            "do more in one call: give it a slice or a list of what it is called for, or call it as a function",
            count=len(group),
            seconds=cost,
        )


def _one_buffers(run: _Run) -> Iterator[Finding]:
    ops = run.ops
    readers: dict[int, list[int]] = defaultdict(list)
    writer: dict[int, int] = {}
    delays: dict[tuple[str, int], list[float]] = defaultdict(list)
    names: dict[tuple[str, int], str] = {}
    for op in range(len(ops)):
        if run.record.waits[op] or not run.record.began[op]:
            continue
        accesses = run.accesses[op]
        for variable, kind in accesses:
            if kind == Access.OVERWRITE and readers[variable]:
                others = [
                    int(run.ends[writer[other]]) for other, _ in accesses if other in writer and other != variable
                ]
                others += [
                    int(run.ends[reader])
                    for other, way in accesses
                    if other != variable and way != Access.READ
                    for reader in readers[other]
                ]
                could = max([int(run.pushed[op]), *others])
                delay = (max(int(run.ends[reader]) for reader in readers[variable]) - could) / 1e9
                if delay > 0:
                    delays[run.place(op)].append(delay)
                    names[run.place(op)] = run.record.label(op)
        for variable, kind in accesses:
            if kind == Access.READ:
                readers[variable].append(op)
            else:
                readers[variable], writer[variable] = [], op
    span = run.record.duration / 1e9
    for place, each in delays.items():
        if len(each) >= _TURNS and sum(each) > max(_LEAST, _SHARE * span):
            yield Finding(
                "one-buffer",
                *place,
                f"`{names[place]}` overwrites memory whose last values others still read: it waited for them {len(each):,} times, "
                f"{sum(each):.3g} s together",
                "give it two or three buffers in turn, or let it return a new array",
                count=len(each),
                seconds=sum(each),
            )
