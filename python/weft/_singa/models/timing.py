"""How long iterations take, op by op: the table of `print_time_profiling`."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from weft._engine.recorder import Trace
from weft._program.summary import aligned
from weft._trace.units import seconds
from weft.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._core import Engine

T = TypeVar("T")
_PACKAGE = str(Path(__file__).parents[2])


def place_outside() -> str:
    """Return ``file:line`` of the innermost call that is not the package's own: where ops pushed now are said to be pushed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Times:
    """Times of a method or a graph that runs again and again.

    Parameters
    ----------
    skipped : int
        How many first runs are not counted.

    Attributes
    ----------
    runs : int
        How many were counted.
    seconds : float
        How long they took together, each with the wait for its end.
    places : set of str
        Where the walk back begins, as ``file:line``: ops that are pushed there are not the forward propagation's.
    """

    def __init__(self, skipped: int) -> None:
        self._left = skipped
        self.places: set[str] = set()
        self.runs = 0
        self.seconds = 0.0
        self._ops: dict[tuple[str, str], list[float]] = {}  # by name and place: how many, and nanoseconds

    def measure(self, run: Callable[[], T], engine: Engine) -> T:
        """Return the results of `run`, after its ops have run, and count their times."""
        engine.wait_for_all()
        if self._left > 0:
            self._left -= 1
            return run()
        trace = Trace(engine=engine)
        try:
            with suppress(TraceError):  # another trace records the engine: then there is the time of the whole alone
                trace.start()
            start = perf_counter()
            answer = run()
            engine.wait_for_all()
            self.seconds += perf_counter() - start
            self.runs += 1
        finally:
            is_recorded = trace._recording
            if is_recorded:
                trace.stop()
        if is_recorded:
            self._count(trace)
        return answer

    def _count(self, trace: Trace) -> None:
        record = trace._seen().record
        took = record.durations()
        for op in range(len(took)):
            if took[op]:
                entry = self._ops.setdefault((record.label(op), record.place(op)), [0, 0.0])
                entry[0] += 1
                entry[1] += int(took[op])

    def lines(self, verbosity: int) -> list[str]:
        """Return the times as lines of text: each iteration; forward and backward; from verbosity 2 on, each op."""
        if not self.runs:
            return [
                "no iteration was timed: SetVerbosity(1) before those that are to be, and SetSkipIteration(0) for all"
            ]
        found = [f"{self.runs} iterations, {_shown(self.seconds / self.runs)} each"]
        places = {place.removeprefix(str(Path.cwd()) + "/") for place in self.places}
        back = sum(took for (_, place), (_, took) in self._ops.items() if place in places)
        total = sum(took for _, took in self._ops.values())
        if places:
            found.append(f"forward propagation    {_shown((total - back) / self.runs / 1e9)}")
            found.append(f"backward and update    {_shown(back / self.runs / 1e9)}")
        if verbosity > 1:
            rows: list[tuple[str, ...]] = [("op", "per iteration", "time", "share", "pushed at")]
            rows += [
                (name, f"{count / self.runs:g}", _shown(took / self.runs / 1e9), f"{took / total:.1%}", place)
                for (name, place), (count, took) in sorted(self._ops.items(), key=lambda item: -item[1][1])
            ]
            found.append(aligned(rows))
        return found


def _shown(took: float) -> str:
    """Return seconds in a unit that suits them."""
    return seconds(took * 1e9)
