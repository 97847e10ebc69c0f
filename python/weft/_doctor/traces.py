"""Traces of all engines of a run, for advice.

A trace takes some tenths of a microsecond from each op. Where ops are so short that this is more than a small part of the run, an
engine is traced now and then: a stretch of its ops, and then a pause that is as much longer as it takes. A stretch ends in the core
by itself, so nothing depends on when this thread has its turn. Records are read at the end.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from weft._core import Engine
from weft._doctor.glance import habits_in
from weft._doctor.habits import Habits
from weft._engine import observers
from weft._engine.default import get_engine
from weft.errors import WeftError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from weft._core import _Recording
    from weft._doctor.findings import Finding, Report

#: Kinds that a trace shows.
TIMED = frozenset({"wait-in-loop", "repeated-ops", "short-task", "one-buffer", "too-many-threads"})

#: Ops of one engine that are looked at, those of the first stretch, and of one behind a pause, each with twice as many as the last, at most.
_LIMIT, _FIRST, _STRETCH = 300_000, 500, 8_000
#: Seconds that a trace takes from an op while it runs, and the part of a run that traces may take, with their beginnings and ends.
_RECORD, _SHARE = 4e-7, 0.03
#: Seconds between two looks at how many ops were traced.
_TICK = 0.005
#: Seconds of the process for which ops of a trace that is full may pend.
_PENDING = 0.2
#: Seconds for which another trace of an engine is left alone at least.
_YIELDED = 1.0


class _Traced:
    """An engine that is traced, all the time or now and then. Times are the process's own: it may share its processors.

    Parameters
    ----------
    engine : Engine
        The engine.

    Raises
    ------
    WeftError
        If it has another trace, or it is closed.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine, self.workers = engine, engine.workers
        self._answers: list[_Recording] = []
        #: Ops of traces that were read.
        self.ops = 0
        #: Seconds of the process without a trace.
        self.paused = 0.0
        self._left = _LIMIT
        #: Ops of the trace, 0 in a pause; and of the next one.
        self._size, self._next = 0, _FIRST
        self._begun = self._ended = self._resumes = 0.0
        #: Seconds that the beginning of the trace took; and once it is full, ops that were pushed until then, and when that was.
        self._cost = 0.0
        self._full: tuple[int, float] | None = None
        self._begin(_FIRST)

    def _begin(self, size: int) -> None:
        self._full = None
        started = time.thread_time()
        self.engine._trace_start(size, None, sample=True)
        self._size, self._begun, self._cost = size, time.process_time(), time.thread_time() - started
        if self._ended:
            self.paused += self._begun - self._ended

    def end(self, pause: float = 0.0) -> float:
        """Keep the trace, and trace again after a pause. Return the seconds that it took."""
        if not self._size:
            return 0.0
        self._size = 0
        started = time.thread_time()
        self._ended = time.process_time()
        self._resumes = self._ended + pause
        answer = self.engine._trace_stop()
        self._answers.append(answer)
        ops = len(answer["ops"]["kind"])
        self._left -= ops
        return self._cost + time.thread_time() - started + _RECORD * ops

    def findings(self, kinds: frozenset[str]) -> Iterator[Finding]:
        """Yield the habits in all that was traced, which is not kept."""
        while self._answers:
            answer = self._answers.pop(0)
            self.ops += len(answer["ops"]["kind"])
            shown = kinds & habits_in(answer, self.workers)
            if shown:  # most show none, and need none of that
                from weft._doctor.advice import advice_of  # noqa: PLC0415
                from weft._trace.record import Record  # noqa: PLC0415

                yield from advice_of(Record.read(answer), self.workers, shown)

    def _pends(self, now: float) -> bool:
        """Whether ops of a trace that is full have not run: their times would be missing."""
        stats = self.engine.stats()
        self._full = pushed, since = self._full or (stats["pushed"], now)
        return stats["pushed"] - stats["pending"] < pushed and now - since < _PENDING

    def look(self) -> None:
        """Pause where the trace takes too much, and go on where it has paused for long enough."""
        now = time.process_time()
        if not self._size:
            if now >= self._resumes and self._left > 0:
                self._begin(min(self._next, self._left))
            return
        room = self.engine._trace_room()
        if room is None or room > self._size // 8 or self._pends(now):
            return
        size, lasted = self._size, now - self._begun
        pause = self.end() / _SHARE - lasted
        if pause > 0:
            self._resumes, self._next = now + pause, min(2 * size, _STRETCH)
        elif self._left > 0:
            self._begin(min(4 * size, self._left))


class Traces:
    """Traces the default engine, and those that are made meanwhile.

    Parameters
    ----------
    kinds : iterable of str
        Kinds of findings to look for.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kinds = frozenset(kinds)
        self._traced: list[_Traced] = []
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._habits = Habits()
        self._untraced = 0

    def start(self, *, timed: bool) -> None:
        """Start to listen; to trace, too, if times are not changed by it."""
        if timed and self._kinds & TIMED:
            self.trace(get_engine())
            # New engines are heard of in no other way, and nothing is left of this at the end.
            Engine.__init__ = self._made  # type: ignore[method-assign]
            observers.tracing = self._yield
            threading.Thread(target=self._look, name="weft-doctor", daemon=True).start()
        if "copied-each-turn" in self._kinds:
            observers.converted = self._habits.converted
        if "recording-storm" in self._kinds:
            observers.recorded = self._habits.recorded

    @property
    def _made(self) -> Any:
        def made(engine: Engine, *_: object, **__: object) -> None:
            self.trace(engine)

        return made

    def trace(self, engine: Engine) -> None:
        """Trace an engine, unless it has another trace."""
        with self._lock:
            try:
                self._traced.append(_Traced(engine))
            except WeftError:
                self._untraced += 1

    def _yield(self, engine: Engine) -> None:
        """Make room for another trace of an engine."""
        with self._lock:
            for traced in self._traced:
                if traced.engine is engine:
                    traced.end(_YIELDED)

    def _look(self) -> None:
        while not self._ends.wait(_TICK):
            with self._lock:
                if self._ends.is_set():  # meanwhile: a trace that begins now would not be ended
                    return
                for traced in self._traced:
                    with suppress(WeftError):  # closed, or with another trace
                        traced.look()

    def finish(self, report: Report) -> None:
        """Stop, and add the findings."""
        observers.converted = observers.recorded = observers.tracing = None
        if "__init__" in vars(Engine):
            del Engine.__init__
        self._ends.set()
        with self._lock:
            paused = 0.0
            for traced in self._traced:
                with suppress(WeftError):
                    traced.end()
                paused = max(paused, traced.paused)
                for finding in traced.findings(self._kinds):
                    report.add(finding)
                report.count("traced ops", traced.ops)
        report.count("milliseconds without a trace", int(1000 * paused))
        for finding in self._habits.findings():
            report.add(finding)
        report.count("engines with another trace", self._untraced)
