"""One run of ``weft doctor``, in a process of its own: ``python -m weft._command.doctor_run WHAT ANSWER KINDS [-m] SCRIPT ...``."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
import traceback
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._command.running import INTERRUPTED
from weft._command.scripts import run_program
from weft._core import Scope, _watch_drain
from weft._doctor.check import Checker
from weft._doctor.findings import Report
from weft._doctor.orders import OPS, WANTED, Logged, OrderLog
from weft._doctor.traces import Traces
from weft._engine.observers import watch

if TYPE_CHECKING:
    from types import FrameType

#: Seconds that pending ops have to end after the script.
_TO_END = 60.0


class _Once:
    """Writes the answer, once, in the process that was started for it."""

    def __init__(self, what: str, answer: Path, kinds: frozenset[str]) -> None:
        self._what, self._answer, self._kinds = what, answer, kinds
        self._pid, self._written = os.getpid(), False
        self.status = 0
        self.failure = ""
        self._hook: Any = None
        self._traces: Traces | None = None
        self._eager = Scope(eager=True)  # it ends with the last reference
        self._forks = 0

    def begin(self) -> None:
        """Start to look."""
        if sys.platform != "win32":
            os.register_at_fork(after_in_parent=self._forked, after_in_child=partial(watch, None))
        if self._what == "advice":
            self._traces = Traces(self._kinds)
            self._traces.start(timed=True)
            return
        self._eager.__enter__()
        if self._what == "check":
            self._hook = Checker(self._kinds, logs=bool(self._kinds & {"undeclared-read", "nondeterministic"}))
            watch(self._hook)
        else:
            wanted = self._answer.with_name(WANTED)
            # Written by the process that has started this one.
            self._hook = OrderLog(pickle.loads(wanted.read_bytes()) if wanted.exists() else None)  # noqa: S301
            watch(self._hook, self._what)

    def _forked(self) -> None:
        self._forks += 1

    def end(self) -> None:
        """Stop to look, and write the findings."""
        if self._written or os.getpid() != self._pid:
            return
        self._written = True
        report, log = Report(), []
        try:
            if self.status != INTERRUPTED:
                _watch_drain(_TO_END)
        finally:
            watch(None)
            suspects = False
            if isinstance(self._hook, Checker):
                self._hook.finish(report)
                suspects = self._hook.suspects
            if self._traces is not None:
                self._traces.finish(report)
            else:
                report.count("forked children, which were not checked", self._forks)
            if self._hook is not None:
                log = [row(each) for each in self._hook.log[:OPS]]
            findings = [fields(each) for each in report.findings]
            answer = {
                "findings": findings,
                "checked": report.checked,
                "log": log,
                "status": self.status,
                "failure": self.failure or f"exit status {self.status}",
                "suspects": suspects,
            }
            self._answer.write_bytes(pickle.dumps(answer))

    def failed(self, error: BaseException) -> None:
        """Keep the words and the line of the exception that ended the script."""
        self.failure = "".join(traceback.format_exception_only(error)).strip()
        if frames := traceback.extract_tb(error.__traceback__):
            self.failure += f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def fields(finding: Any) -> dict[str, Any]:
    """Return the parts that make a finding again."""
    return {
        name: getattr(finding, name)
        for name in ("kind", "file", "line", "message", "advice", "end_line", "count", "seconds")
    }


def row(logged: Logged) -> tuple[Any, ...]:
    """Return the parts that make an entry again."""
    return astuple(logged)


def main(arguments: list[str]) -> int:
    """Run a script once, and write the findings."""
    what, answer, kinds, *rest = arguments
    module = rest[:1] == ["-m"]
    program, *given = rest[module:]
    once = _Once(what, Path(answer), frozenset(kinds.split(",")))

    def interrupt(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it may be sent twice
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    once.begin()
    atexit.register(once.end)
    try:
        once.status = run_program(program, given, module=module, on_error=once.failed)
    except KeyboardInterrupt:
        once.status = INTERRUPTED
    once.end()
    return once.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
