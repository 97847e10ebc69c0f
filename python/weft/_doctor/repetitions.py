"""Sequences of ops that are pushed again and again, and the savings of a program."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from weft._doctor.findings import Finding
from weft._doctor.glance import SHARE, TURNS
from weft._doctor.replayed import part_saved
from weft._doctor.sources import lines
from weft._trace.record import NONE, Kind, distinct

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from weft._doctor.run import Run

#: Where nothing is measured: seconds that the call of a program takes, and each of its ops; the part of an op's time that is saved as its results stay in
#: the cache; and the time between two pushes from which on it is a pause.
_CALL, _OP, _FUSED, _PAUSE = 1.2e-6, 5e-8, 0.25, 2e-5
#: Sequences that are recorded to measure a program's savings; those of others are estimated.
_MEASURED = 8
#: The longest sequence of pushes that may be a repetition, and pushes that are looked at.
_PERIOD = 512
#: The number of repeating stretches that are kept, and the least share of a longer stretch that a shorter period covers to be its period.
_STRETCHES, _ALIKE = 500, 0.8
_WINDOW = 100_000


def repeated_ops(run: Run) -> Iterator[Finding]:
    ops, record = run.ops, run.record
    measured = 0
    for pusher in distinct(ops["pusher"])[0].tolist():
        chosen = np.nonzero(
            (ops["pusher"] == pusher) & ~record.waits & run.top & (ops["place"] > 0) & (ops["kind"] != Kind.DELETE)
        )[0]
        chosen = chosen[:_WINDOW]
        word = ops["place"][chosen].astype(np.int64) << 32 | ops["name"][chosen]
        for begin, period, turns in repetitions(word):
            if period < 2 or turns < 2 * TURNS:
                continue
            part = chosen[begin : begin + period * turns]
            callables = np.isin(ops["kind"][part], (Kind.CALLABLE, Kind.ASYNC, Kind.NATIVE))
            span = float(max(run.ends[part].max(), run.pushed[part[-1]]) - run.pushed[part[0]]) / 1e9
            at_push = ops["worker"][part] == NONE
            gaps = np.diff(run.pushed[part]) / 1e9 - np.where(at_push, run.took[part], 0)[:-1]
            pushing = float(np.clip(gaps, 0, _PAUSE).sum())
            # Time of the processor for others meanwhile is no time of these ops.
            span = min(span, pushing + float(run.took[part].sum()))
            of_arrays = span - float(run.took[part[callables]].sum())  # a program saves nothing of a callable
            saved = pushing + _FUSED * float(run.took[part[~callables]].sum()) - turns * (_CALL + _OP * period)
            if callables.all() or of_arrays < SHARE * span or span <= 0:
                continue
            if measured < _MEASURED:
                measured += 1
                names: list[str] = [
                    record.names[name] for name in ops["name"][part[:period][~callables[:period]]].tolist()
                ]
                with suppress(Exception):  # the estimate has to do
                    share = part_saved(names, of_arrays / turns, run.workers)
                    if share is not None and share < SHARE:  # others may have had the processor
                        share = part_saved(names, of_arrays / turns, run.workers)
                    saved = saved if share is None else share * of_arrays
            if saved < SHARE * span:
                continue
            places = [run.place(int(op)) for op in part[:period]]
            file = Counter(file for file, _ in places).most_common(1)[0][0]
            numbers = [line for name, line in places if name == file]
            yield Finding(
                "repeated-ops",
                file,
                min(numbers),
                f"{lines(min(numbers), max(numbers))} push{'es' if min(numbers) == max(numbers) else ''} the same {period} ops "
                f"{turns:,} times; as a program they take about "
                f"{saved:.3g} s less of {span:.3g} s",
                "put them into a function below `@weft.program`, and call that",
                end_line=max(numbers),
                count=turns,
                seconds=saved,
            )


def repetitions(word: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yield begin, period and number of turns of stretches that repeat, each where it is longest, with its shortest period.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.repetitions import repetitions
    >>> list(repetitions(np.array([9, 1, 2, 1, 2, 1, 2, 7])))
    [(1, 2, 3)]
    >>> list(repetitions(np.array([1, 1, 2, 1, 1, 2, 1, 1, 2])))  # the pairs of 1 are no turns
    [(0, 3, 3)]
    """
    size = len(word)
    if size < 4:
        return
    order = np.argsort(word, kind="stable")
    same = word[order][1:] == word[order][:-1]
    gaps = (order[1:] - order[:-1])[same]
    near: list[int] = gaps[gaps <= _PERIOD].tolist()
    stretches: list[tuple[int, int, int]] = []
    for period in sorted(gap for gap, _ in Counter(near).most_common(16)):
        equal = np.concatenate(([False], word[period:] == word[:-period], [False]))
        edges = np.nonzero(equal[1:] != equal[:-1])[0]
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            turns = (end - begin) // period + 1
            if turns > 1:
                stretches.append((begin, period, turns))
    stretches.sort(key=lambda each: (-each[1] * each[2], each[1]))
    del stretches[_STRETCHES:]
    taken = np.zeros(size, np.bool_)
    for at, longest in enumerate(stretches):
        begin, period, turns = longest
        # Two turns repeat as one does, and may be a little longer. A repetition inside of a turn is much shorter than all turns.
        for other in stretches[at:]:
            if other[1] * other[2] < _ALIKE * longest[1] * longest[2]:
                break
            if other[1] < period and begin < other[0] + other[1] * other[2] and other[0] < begin + period * turns:
                begin, period, turns = other
        stop = begin + turns * period
        if not taken[begin:stop].any():
            taken[begin:stop] = True
            yield begin, period, turns
