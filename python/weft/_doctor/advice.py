"""Slow habits, read from the trace of a run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from weft._doctor.blas import too_many_threads
from weft._doctor.findings import Finding
from weft._doctor.glance import LEAST, MANY, SHARE, SHORT, TURNS
from weft._doctor.repetitions import repeated_ops
from weft._doctor.run import Run
from weft._doctor.sources import function_around, lines, loop_around
from weft._trace.record import Access, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from weft._trace.record import Record


def advice_of(record: Record, workers: int, kinds: Iterable[str]) -> list[Finding]:
    """Return the findings of a trace about slow habits.

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
    run = Run(record, max(1, workers))
    looks: dict[str, Callable[[Run], Iterator[Finding]]] = {
        "wait-in-loop": _waits_in_loops,
        "repeated-ops": repeated_ops,
        "short-task": _short_tasks,
        "one-buffer": _one_buffers,
        "too-many-threads": too_many_threads,
    }
    return [finding for kind in kinds if kind in looks for finding in looks[kind](run)]


def _waits_in_loops(run: Run) -> Iterator[Finding]:
    record, ops = run.record, run.ops
    # To await a variable is an op that says so.
    awaits = np.isin(ops["name"], [at for at, name in enumerate(record.names) if name.startswith("await ")])
    waits = np.nonzero(((ops["kind"] == Kind.WAIT) | awaits) & run.top & (run.ends > 0))[0]
    groups: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for wait in waits.tolist():
        groups[(*run.place(wait), int(ops["pusher"][wait]))].append(wait)
    told: list[tuple[str, int, int]] = []
    ordered = sorted(groups.items(), key=lambda item: -sum(_length(run, wait) for wait in item[1]))
    for (file, line, pusher), group in ordered:
        loop, around = loop_around(file, line), "the loop of"
        if loop is None:
            loop, around = function_around(file, line), "the function of"
        if len(group) < TURNS or loop is None:
            continue
        if any(file == other and first <= line <= last for other, first, last in told):
            continue
        waited = sum(_length(run, wait) for wait in group)
        first, last = int(run.pushed[group[0]]), int(run.ends[group[-1]])
        inside = (run.pushed <= last) & (ops["pusher"] == pusher) & ~record.waits & ~awaits & record.began
        # Turns push: where all was pushed before, waits for one after the other cost nothing.
        between = np.searchsorted(np.sort(run.pushed[inside]), run.pushed[group])
        if 2 * np.count_nonzero(np.diff(between)) < len(group) - 1:
            continue
        begun = _turn_begin(run, group, inside)
        inside &= run.pushed >= begun
        span = (last - min(begun, first)) / 1e9
        needed = max(run.finish_times(np.nonzero(inside)[0]), span - waited)
        cost = span - needed
        if cost < max(LEAST, SHARE * span):
            continue
        told.append((file, *loop))
        yield Finding(
            "wait-in-loop",
            file,
            line,
            f"{around} {lines(*loop)} waits here {len(group):,} times, so the ops of one turn end before those of the "
            f"next begin, which do not need them: about {cost:.3g} s of {span:.3g} s",
            "keep the arrays or handles in a list, and wait once, behind the loop: `weft.wait(*results)`",
            count=len(group),
            seconds=cost,
        )


def _length(run: Run, wait: int) -> float:
    return max(0.0, float(run.ends[wait] - run.pushed[wait]) / 1e9)


def _turn_begin(run: Run, group: list[int], inside: npt.NDArray[np.bool_]) -> int:
    """Return when the first turn of a loop began: with the pushes before its wait, as many as between the next two."""
    between = int((inside & (run.pushed > run.pushed[group[0]]) & (run.pushed < run.pushed[group[1]])).sum())
    before = run.pushed[inside & (run.pushed < run.pushed[group[0]])]
    return int(before[-between:][0]) if between and len(before) else int(run.pushed[group[0]])


def _short_tasks(run: Run) -> Iterator[Finding]:
    ops = run.ops
    chosen = np.nonzero((ops["kind"] == Kind.CALLABLE) & run.record.began & (ops["ended"] > 0))[0]
    for (file, line), group in run.by_place(chosen).items():
        if len(group) < MANY:
            continue
        took = float(np.percentile(run.took[group], 25))
        gaps = np.diff(run.pushed[group]) / 1e9
        push = float(np.percentile(gaps, 25))
        if took >= push or took > SHORT:
            continue
        name = run.record.label(group[0])
        cost = len(group) * push * (1 - 1 / 16)
        yield Finding(
            "short-task",
            file,
            line,
            f"`{name}` takes {took * 1e6:.3g} us, and to push it takes {push * 1e6:.3g} us, {len(group):,} times",
            "do more in one call: give it a slice or a list of its arguments, or call it as a function",
            count=len(group),
            seconds=cost,
        )


def _one_buffers(run: Run) -> Iterator[Finding]:
    if not run.overwrites_again:
        return
    readers: dict[int, list[int]] = defaultdict(list)
    writer: dict[int, int] = {}
    delays: dict[tuple[str, int], list[float]] = defaultdict(list)
    names: dict[tuple[str, int], str] = {}
    pushed: list[int] = run.pushed.tolist()
    ends: list[int] = run.ends.tolist()
    for op in np.nonzero(run.record.began & ~run.record.waits)[0].tolist():
        accesses = run.accesses[op]
        for variable, kind in accesses:
            if kind == Access.OVERWRITE and readers[variable]:
                others = [ends[writer[other]] for other, _ in accesses if other in writer and other != variable]
                others += [
                    ends[reader]
                    for other, way in accesses
                    if other != variable and way != Access.READ
                    for reader in readers[other]
                ]
                could = max([pushed[op], *others])
                delay = (max(ends[reader] for reader in readers[variable]) - could) / 1e9
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
        if len(each) >= TURNS and sum(each) > max(LEAST, SHARE * span):
            yield Finding(
                "one-buffer",
                *place,
                f"`{names[place]}` overwrites memory while others still read its last values: it waited for them {len(each):,} times, "
                f"{sum(each):.3g} s together",
                "give it two or three buffers in turn, or let it return a new array",
                count=len(each),
                seconds=sum(each),
            )
