"""`weft.doctor`: a block that checks its ops."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from weft._core import Scope, _watch_drain, _watch_origins
from weft._doctor.findings import Report, parse_kinds
from weft._engine.observers import watch
from weft._trace.marks import Mark, set_marks
from weft.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from weft._doctor.check import Checker
    from weft._doctor.traces import Traces

#: Kinds that need ops to run one at a time.
CHECKED = frozenset({"undeclared-write", "undeclared-read", "first-nan"})

#: The block that is open.
_open: list[Doctor] = []
_lock = threading.Lock()


def doctor(*, only: str | Iterable[str] | None = None) -> Doctor:
    """Check the ops that are pushed inside a ``with`` block, and report errors and slow habits.

    Ops run one at a time, in the order of their pushes, and the first calls of programs op by op, unless `only` names kinds of advice alone:
    then the block runs as it would without, and is traced. Findings from other orders of the ops, and advice about time beside
    errors, take several runs: the command ``weft doctor`` makes them.

    Parameters
    ----------
    only : str or iterable of str, optional
        Kinds of findings to look for; by default all.

    Returns
    -------
    Doctor
        The block; its ``as`` is the `Report`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `only` names no kinds of findings.

    See Also
    --------
    eager : Programs op by op, without checks.

    Examples
    --------
    >>> import numpy as np, warnings, weft
    >>> warnings.simplefilter("ignore", weft.errors.UndeclaredAccessWarning)
    >>> totals = np.zeros(2)
    >>> @weft.task
    ... def add(x: weft.Read[np.ndarray]) -> None:
    ...     totals[0] += x.sum()
    >>> with weft.doctor() as report:
    ...     done = add(np.ones(3))
    >>> report.findings[0].kind, report.findings[0].advice
    ('undeclared-write', 'take it as `totals: weft.Mutate`, or declare it by `@weft.task(mutates=[totals])`')
    """
    return Doctor(only)


class Doctor:
    """A ``with`` block that checks its ops. Made by `doctor`.

    Parameters
    ----------
    only : str or iterable of str, optional
        Kinds of findings to look for.
    """

    def __init__(self, only: str | Iterable[str] | None = None) -> None:
        self._kinds = parse_kinds(only)
        self._report = Report()
        self._checker: Checker | None = None
        self._traces: Traces | None = None
        self._eager: Scope | None = None
        self._pid = 0

    def __enter__(self) -> Report:
        """Begin to check."""
        with _lock:
            if _open:
                raise TraceError("another weft.doctor() is open, and one process has one at a time")
            _open.append(self)
        self._pid = os.getpid()
        try:
            checks = self._kinds & CHECKED
            # An import of weft does without these, and advice without checks.
            if checks:
                from weft._doctor.check import Checker  # noqa: PLC0415

                _watch_drain(None)
                _watch_origins()
                self._checker = Checker(checks)
                self._eager = Scope(eager=True)
                self._eager.__enter__()
                watch(self._checker)
            if self._kinds - CHECKED - {"nondeterministic"}:
                from weft._doctor.traces import Traces  # noqa: PLC0415

                self._traces = Traces(self._kinds)
                self._traces.start(timed=not checks)
        except BaseException:
            self._end()
            raise
        return self._report

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the pushed ops, and complete the report."""
        try:
            if os.getpid() == self._pid and (exc_value is None or isinstance(exc_value, Exception)):
                _watch_drain(None)
        finally:
            self._end()

    def _end(self) -> None:
        watch(None)
        if self._eager is not None:
            self._eager.__exit__(None, None, None)
            self._eager = None
        with _lock:
            if self in _open:
                _open.remove(self)
        if os.getpid() != self._pid:
            return
        if self._checker is not None:
            self._checker.finish(self._report)
        if self._traces is not None:
            self._traces.finish(self._report)
        self._report.sort()
        set_marks(Mark(one.file, one.line, f"{one.kind}: {one.message}") for one in self._report.findings)


def _after_fork_child() -> None:
    """Check nothing in a child: its engines start over, and the report is the parent's."""
    global _lock  # noqa: PLW0603 - the lock guards that list
    _lock = threading.Lock()
    if _open:
        watch(None)
        _open.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_child)
