"""The default engine: made at its first use, from the environment."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from weft._core import Engine
from weft.errors import ArgumentTypeError, ArgumentValueError

_engine: Engine | None = None
_lock = threading.RLock()  # reentrant: a signal handler or a finalizer may ask for the engine too


def get_engine() -> Engine:
    """Return the default engine, which `task` and `wait` use.

    It is made at the first call, of ``WEFT_WORKERS`` workers (by default as many as this process may use CPUs) and
    with the policy ``WEFT_POLICY`` (by default ``work_stealing``); its waits warn after ``WEFT_STALL_AFTER`` seconds
    without progress (30 by default; ``none`` for never), and its arrays have at most ``WEFT_RENAME_LIMIT`` storages at a
    time (2 by default). All are read from the environment then.

    Returns
    -------
    Engine
        The engine given to `set_engine` last, or else the one made here. It may have been closed since; after
        ``set_engine(None)`` the next call makes another.

    Raises
    ------
    ArgumentValueError
        If ``WEFT_WORKERS``, ``WEFT_POLICY``, ``WEFT_STALL_AFTER`` or ``WEFT_RENAME_LIMIT`` has an impossible value.

    Examples
    --------
    >>> import weft
    >>> weft.get_engine() is weft.get_engine()
    True
    """
    global _engine  # noqa: PLW0603 - the default engine is the one global that this package is about
    engine = _engine
    if engine is not None:
        return engine
    made = _from_environment()  # outside the lock; one too many costs nothing, as it has started no thread
    with _lock:
        if _engine is None:
            _engine = made
        return _engine


def set_engine(engine: Engine | None) -> Engine | None:
    """Make `engine` the default.

    Ops already pushed stay with the engine they were pushed on.

    Parameters
    ----------
    engine : Engine or None
        The new default. None makes the next `get_engine` create one from the environment.

    Returns
    -------
    Engine or None
        The default so far, still open; None if there was none yet.

    Raises
    ------
    ArgumentTypeError
        If `engine` is neither an engine nor None.

    Examples
    --------
    >>> import weft
    >>> with weft.Engine(policy="serial") as engine:
    ...     previous = weft.set_engine(engine)
    ...     weft.get_engine() is engine
    ...     _ = weft.set_engine(previous)
    True
    """
    global _engine
    if engine is not None and not isinstance(engine, Engine):
        raise ArgumentTypeError(f"set_engine() takes a weft.Engine or None, not {type(engine).__name__}")
    with _lock:
        previous, _engine = _engine, engine
    return previous


def _from_environment() -> Engine:
    """Make an engine as the environment says, naming the environment in errors."""
    settings: dict[str, Any] = {}
    workers = os.environ.get("WEFT_WORKERS")
    policy = os.environ.get("WEFT_POLICY")
    stall_after = os.environ.get("WEFT_STALL_AFTER")
    rename_limit = os.environ.get("WEFT_RENAME_LIMIT")
    if workers:
        try:
            settings["workers"] = int(workers)
        except ValueError:
            raise ArgumentValueError(
                f"the environment variable WEFT_WORKERS must be a number of at least 1, not {workers[:40]!r}"
            ) from None
    if rename_limit:
        try:
            settings["rename_limit"] = int(rename_limit)
        except ValueError:
            raise ArgumentValueError(
                f"the environment variable WEFT_RENAME_LIMIT must be a number from 1 to 64, not {rename_limit[:40]!r}"
            ) from None
    if policy:
        settings["policy"] = policy
    if stall_after:
        try:
            settings["stall_after"] = None if stall_after == "none" else float(stall_after)
        except ValueError:
            raise ArgumentValueError(
                f"the environment variable WEFT_STALL_AFTER must be a number of seconds or none, not {stall_after[:40]!r}"
            ) from None
    try:
        return Engine(name="default", **settings)
    except ArgumentValueError as error:
        if str(error).startswith("the environment variable "):  # one that all engines read
            raise
        given = ", ".join(f"WEFT_{key.upper()}={value}" for key, value in settings.items())
        raise ArgumentValueError(f"the environment ({given}) makes no engine: {error}") from None


def _after_fork_child() -> None:
    """Give the child a lock that no vanished thread holds."""
    global _lock  # noqa: PLW0603 - the lock guards that global
    _lock = threading.RLock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_child)
