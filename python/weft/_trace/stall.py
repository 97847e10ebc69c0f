"""Stalls: the report when nothing finishes during a wait."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from weft._trace.units import seconds

if TYPE_CHECKING:
    from types import FrameType

_log = logging.getLogger("weft")
_PACKAGE = str(Path(__file__).parents[1])
_SHOWN = 10  # ops of each list, and of a chain


class Running(TypedDict):
    """A running op."""

    label: str
    place: str
    thread: int | None
    seconds: float


class Waiting(TypedDict):
    """An op or a wait, and the ops that it waits for."""

    label: str
    place: str
    variable: str
    blocked_by: list[str]


class Report(TypedDict):
    """The state that an engine reports: ``Engine._stall_report()``."""

    running: list[Running]
    waiting: list[Waiting]
    pending: int


def log_stall(engine: str, idle: float, report: Report) -> None:
    """Warn through the logger ``weft`` that nothing finishes.

    The core calls it, from a wait, once in each stall.

    Parameters
    ----------
    engine : str
        The engine's name.
    idle : float
        Seconds since an op finished.
    report : Report
        The running ops, and the waits.
    """
    name_running(report)
    _log.warning("%s", describe(engine, idle, report))


def name_running(report: Report) -> None:
    """Add the running function of the worker's thread to the labels of ops without a name.

    It calls no code of a user's and keeps no reference: the thread's frames have the name. A callable that is not a
    Python function has none.

    Parameters
    ----------
    report : Report
        The report to complete.
    """
    frames = sys._current_frames()
    named: dict[str, str] = {}
    for running in report["running"]:
        thread, label = running["thread"], running["label"]
        frame = frames.get(thread) if thread is not None else None
        if frame is not None and label.startswith("op #"):
            running["label"] = named[label] = f"{label} ({_outermost(frame)})"
    for waiting in report["waiting"]:
        waiting["blocked_by"] = [named.get(label, label) for label in waiting["blocked_by"]]


def _outermost(frame: FrameType) -> str:
    """Return the name of the function that a worker called, or of the one that weft called for it."""
    chain = [frame]
    while chain[-1].f_back is not None:
        chain.append(chain[-1].f_back)
    theirs = (frame for frame in reversed(chain) if not frame.f_code.co_filename.startswith(_PACKAGE))
    return next(theirs, chain[-1]).f_code.co_qualname


def log_device_stall(device: str, op: str, idle: float) -> None:
    """Warn through the logger ``weft`` that an issued op does not end on its device.

    The core calls it, from a wait for an array, once.

    Parameters
    ----------
    device : str
        The device, ``"cuda:0"``.
    op : str
        The op, with the place of its push.
    idle : float
        Seconds since the wait began.
    """
    _log.warning("%s: %s was issued, and has not ended for %s", device, op, seconds(idle * 1e9))


def describe(engine: str, idle: float, report: Report) -> str:
    """Return the message about a stall, a line for each op.

    Examples
    --------
    >>> from weft._trace.stall import describe
    >>> running = [{"label": "'load'", "place": "run.py:3", "thread": 1, "seconds": 31.5}]
    >>> waiting = [{"label": "'fit'", "place": "run.py:4", "variable": "'x'", "blocked_by": ["'load'"]}]
    >>> print(describe("default", 30.0, {"running": running, "waiting": waiting, "pending": 2}))
    engine default: no op has finished for 30 s, 2 are pending
      runs: 'load', for 31.5 s, pushed at run.py:3
      waits: 'fit', for 'x' of 'load', pushed at run.py:4
    """
    count = report["pending"]
    are = "is" if count == 1 else "are"
    lines = [f"engine {engine}: no op has finished for {seconds(idle * 1e9)}, {count:,} {are} pending"]
    if not report["running"]:
        lines.append("  nothing runs")
    lines += [
        f"  runs: {running['label']}, for {seconds(running['seconds'] * 1e9)}{_pushed(running['place'])}"
        for running in report["running"][:_SHOWN]
    ]
    for waiting in report["waiting"][:_SHOWN]:
        blockers = " and ".join(waiting["blocked_by"])
        of = f" of {blockers}" if blockers else ""
        lines.append(f"  waits: {waiting['label']}, for {waiting['variable']}{of}{_pushed(waiting['place'])}")
    for name in ("running", "waiting"):
        more = len(report[name]) - _SHOWN
        if more > 0:
            lines.append(f"  and {more:,} more that {'run' if name == 'running' else 'wait'}")
    return "\n".join(lines)


def _pushed(place: str) -> str:
    """Return the place of an op's push, as the end of a line."""
    return f", pushed at {place}" if place else ""
