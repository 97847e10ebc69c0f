"""The process's exit and forks, as the engine has to hear of them."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import time
from multiprocessing.util import Finalize, register_after_fork
from typing import TYPE_CHECKING

from weft._core import _after_fork_child, _after_fork_parent, _before_fork, _exit_drain, _exit_failed, _watch_forks
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

# multiprocessing closes its queues at priority 10; ops may still put into them.
_BEFORE_QUEUES_CLOSE = 100

_afterwards: list[Callable[[], None]] = []
_drained: list[int] = []  # the process that has


def install() -> None:
    r"""Register the calls at the exit and round the forks of this process; starts no thread.

    Examples
    --------
    >>> import os, subprocess, sys
    >>> program = "import weft; weft.get_engine().push(lambda: print('drained'))"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    'drained\n'
    """
    # A child of multiprocessing runs no atexit callbacks, only finalizers. One that was forked clears these first, and
    # then calls the functions registered for it.
    finalizer = _drain_before_queues_close(_drain)
    register_after_fork(_drain, _drain_before_queues_close)
    atexit.register(_drain_instead_of, finalizer)
    if _watch_forks():
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_parent, after_in_child=_after_fork_child)


def exit_timeout() -> float | None:
    """Return how many seconds the drain at exit may take, from ``WEFT_EXIT_TIMEOUT``.

    Returns
    -------
    float or None
        The seconds; None, without limit, if the variable is unset or empty.

    Raises
    ------
    ArgumentValueError
        If the variable holds no number of at least 0.

    Examples
    --------
    >>> import os
    >>> from weft._engine.exit import exit_timeout
    >>> os.environ["WEFT_EXIT_TIMEOUT"] = "2.5"
    >>> exit_timeout()
    2.5
    >>> del os.environ["WEFT_EXIT_TIMEOUT"]
    """
    text = os.environ.get("WEFT_EXIT_TIMEOUT")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0.0:  # nan is not
        raise ArgumentValueError(
            f"the environment variable WEFT_EXIT_TIMEOUT must be a number of seconds of at least 0, not {text[:40]!r}"
        )
    return None if seconds == float("inf") else seconds


def after_drain(function: Callable[[], None]) -> None:
    """Call a function once, when all pushed ops have run at the exit.

    Examples
    --------
    >>> from weft._engine.exit import after_drain
    >>> after_drain(lambda: None)
    """
    if function not in _afterwards:
        _afterwards.append(function)


def has_drained() -> bool:
    """Return whether this process exits and has run all pushed ops.

    Examples
    --------
    >>> from weft._engine.exit import has_drained
    >>> has_drained()
    False
    """
    return bool(_drained) and _drained[-1] == os.getpid()


def _drain() -> None:
    """Run all pushed ops, and then the functions that follow."""
    try:
        _run_pushed()
    finally:
        _drained.append(os.getpid())
        while _afterwards:
            _afterwards.pop()()


def _run_pushed() -> None:
    """Run all pushed ops, as far as the environment allows."""
    try:
        timeout = exit_timeout()
    except ArgumentValueError as error:
        timeout = None
        _complain(f"{error}; waiting for pending ops without a limit")
    # The user who asked for an end was told its cost; the traceback of this line would say nothing more.
    with contextlib.suppress(KeyboardInterrupt):
        told = _exit_drain(None if timeout is None else max(0.0, _deadline(timeout) - time.monotonic()))
        if told and _decides_status():
            _exit_failed()


def _decides_status() -> bool:
    """Return whether an untold failure may change the status of this process."""
    if not sys.orig_argv:  # Python is embedded in another program with a status of its own
        return False
    if hasattr(sys, "last_value"):  # an exception has ended the program, and the status says so
        return False
    text = os.environ.get("WEFT_EXIT_STATUS") or "1"
    if text not in ("0", "1"):
        _complain(
            f"the environment variable WEFT_EXIT_STATUS must be 0 or 1, not {text[:40]!r}; an op failed: status 1"
        )
    return text != "0"


# A spawned child drains twice, as a finalizer and at the exit: it complains once, and the limit covers both.
@functools.cache
def _complain(text: str) -> None:
    if sys.stderr is not None:  # an exception here would drop the pending ops
        sys.stderr.write(f"weft: {text}\n")


@functools.cache
def _deadline(timeout: float) -> float:
    return time.monotonic() + timeout


def _drain_before_queues_close(drain: Callable[[], None]) -> Finalize:
    return Finalize(None, drain, exitpriority=_BEFORE_QUEUES_CLOSE)


def _drain_instead_of(finalizer: Finalize) -> None:
    finalizer.cancel()
    _drain()
