"""Observers of conversions, recordings and replays: there are none, but in runs of the doctor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._core import _watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._core import Engine, NDArray

#: Called with each object of NumPy's that becomes an array.
converted: Callable[[Any], object] | None = None
#: Called with the name of each function that is recorded, and with a function that says why.
recorded: Callable[[str, Callable[[], str]], object] | None = None
#: Called with each engine that is about to be traced.
tracing: Callable[[Engine], object] | None = None

#: Called for each replay that a program is asked for by hand: with the program, its arguments, and a function that runs it, in order if it is told so.
replaying: Callable[[Any, tuple[NDArray, ...], Callable[[bool], tuple[NDArray, ...]]], tuple[NDArray, ...]] | None = (
    None
)

#: The folder of the package.
PACKAGE = str(Path(__file__).parent.parent)


def watch(hook: Any, policy: str | None = None) -> None:
    """Let a hook hear of each push from now on, and of replays by hand if it has a function ``replay``; None ends both.

    Engines that are made meanwhile have the policy, if one is given.

    Examples
    --------
    >>> from weft._engine import observers
    >>> observers.watch(None)
    >>> observers.replaying is None
    True
    """
    global replaying  # noqa: PLW0603 - asked by each replay
    _watch(hook, policy)
    replaying = getattr(hook, "replay", None)


def caller() -> tuple[str, int]:
    """Return file and line of the nearest caller outside of the package.

    Examples
    --------
    >>> from weft._engine.observers import caller
    >>> caller()[1] > 0
    True
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
