"""Traces of all engines of a run, for advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import Engine
from weft._doctor.advice import Habits, advice_of
from weft._engine import observers
from weft._engine.default import get_engine
from weft._engine.recorder import Trace
from weft.errors import WeftError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft._doctor.findings import Report

#: Kinds that a trace shows.
TIMED = frozenset({"wait-in-loop", "repeated-ops", "short-task", "one-buffer"})

#: Ops of one engine that are looked at.
_LIMIT = 300_000


class Traces:
    """Traces the default engine, and those that are made meanwhile.

    Parameters
    ----------
    kinds : iterable of str
        Kinds of findings to look for.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kinds = frozenset(kinds)
        self._traces: list[tuple[Trace, int]] = []
        self._habits = Habits()
        self._untraced = 0

    def start(self, *, timed: bool) -> None:
        """Start to listen; to trace, too, if times are what they would be without."""
        if timed and self._kinds & TIMED:
            self.trace(get_engine())
            # Of what a class makes nobody hears in another way, and nothing is left of this at the end.
            Engine.__init__ = self._made  # type: ignore[method-assign]
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
        """Trace an engine, unless somebody else does."""
        try:
            self._traces.append((Trace(engine=engine, limit=_LIMIT).start(), engine.workers))
        except WeftError:
            self._untraced += 1

    def finish(self, report: Report) -> None:
        """Stop, and add what was found."""
        observers.converted = observers.recorded = None
        if "__init__" in vars(Engine):
            del Engine.__init__
        for trace, workers in self._traces:
            try:
                trace._stop(wait=False)
            except WeftError:
                self._untraced += 1
                continue
            record = trace._seen().record
            for finding in advice_of(record, workers, self._kinds):
                report.add(finding)
            report.count("traced ops", len(record.ops))
            report.count("ops over the limit of traces", record.dropped)
        for finding in self._habits.findings():
            report.add(finding)
        report.count("engines that somebody else traces", self._untraced)
