"""Runs of scripts under the doctor, in this process."""

from __future__ import annotations

import linecache
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft._core import Scope
from weft._doctor.check import Checker
from weft._doctor.findings import KINDS, Finding, Report
from weft._doctor.orders import Difference, Logged, OrderLog, differences, findings_of
from weft._doctor.session import CHECKED
from weft._engine.observers import watch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Seeds of orders.
SEEDS = range(1, 9)
ADVICE = [kind for kind, severity in KINDS.items() if severity == "advice"]


def execute(path: Path) -> None:
    """Run a script as ``__main__``, quietly."""
    source = path.read_text(encoding="utf-8")
    linecache.checkcache(str(path))
    scope: dict[str, Any] = {"__name__": "__main__", "print": lambda *_: None}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        exec(compile(source, str(path), "exec"), scope)
        weft.wait_all()


def logged(path: Path, policy: str, base: Iterable[Logged]) -> list[Logged]:
    """Run a script in an order, and return what the ops did that another run has logged."""
    hook = OrderLog({(one.thread, one.number) for one in base})
    previous = weft.set_engine(weft.Engine(policy=policy))
    try:
        watch(hook, policy)
        with Scope(eager=True):
            execute(path)
    finally:
        watch(None)
        weft.set_engine(previous)
    return hook.log


def check(path: Path, checker: Checker) -> None:
    """Run a script, and let a checker look."""
    try:
        watch(checker)
        with Scope(eager=True):
            execute(path)
    finally:
        watch(None)


def examined(path: Path, *, advice: bool = True, seeds: Iterable[int] = SEEDS) -> list[Finding]:
    """Return what the command finds in a script. It has a default engine of its own, which it may close."""
    previous = weft.set_engine(weft.Engine())
    try:
        return _findings(path, seeds, advice=advice)
    finally:
        weft.set_engine(previous)


def _findings(path: Path, seeds: Iterable[int], *, advice: bool) -> list[Finding]:
    report = Report()
    checker = Checker(CHECKED, logs=True)
    try:
        check(path, checker)
    finally:
        checker.finish(report)
    if checker.log:
        found: dict[tuple[str, str, int], Difference] = {}
        for seed in seeds:
            if found:
                break
            found = {**differences(checker.log, logged(path, f"shuffled:{seed}", checker.log))[0], **found}
        again = differences(checker.log, logged(path, "serial", checker.log))[0] if found else {}
        report.findings += findings_of(found, again, report.findings)
    if advice:
        with weft.doctor(only=ADVICE) as told:
            execute(path)
        report.findings += told.findings
    return report.findings
