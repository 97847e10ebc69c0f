"""Threads of BLAS, which would otherwise take all cores for each of several workers."""

from __future__ import annotations

import os
import weakref
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft._core import Engine

__all__ = ["add_device", "share_cores"]

#: The devices beside the first for which engines of the ``per_device`` policy have workers of their own.
_devices: weakref.WeakKeyDictionary[Engine, set[int]] = weakref.WeakKeyDictionary()
#: The engines that have been given their share.
_seen: weakref.WeakSet[Engine] = weakref.WeakSet()


def share_cores(engine: Engine) -> None:
    """See to it, once for each engine, that its workers times the threads of BLAS do not exceed the cores.

    Called when the first op is pushed that has no ufunc, and so may call BLAS. The limit is that of the process, which
    is all that BLAS knows; it is only ever lowered, to no less than one, and whoever sets another one later has it.

    Examples
    --------
    >>> import weft
    >>> from weft._array.blas import share_cores
    >>> share_cores(weft.get_engine())
    """
    if engine in _seen:
        return
    _lower(engine)
    _seen.add(engine)


def add_device(engine: Engine, index: int) -> None:
    """Take note that an array was put on a device, which may bring an engine more workers.

    Examples
    --------
    >>> import weft
    >>> from weft._array.blas import add_device
    >>> add_device(weft.get_engine(), 1)
    """
    if engine.policy != "per_device" or index == 0:
        return
    devices = _devices.setdefault(engine, set())
    if index not in devices:
        devices.add(index)
        if engine in _seen:
            _lower(engine)


def _lower(engine: Engine) -> None:
    workers = engine.workers * (1 + len(_devices.get(engine, ())))
    if workers < 2:  # noqa: PLR2004 - one op at a time may have all cores
        return
    # Imported here: it takes milliseconds, and arithmetic does without.
    threadpoolctl: Any = import_module("threadpoolctl")  # ships no types
    limit = max(1, _cores() // workers)
    for library in threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers:
        threads = library.get_num_threads()
        if threads is not None and threads > limit:
            library.set_num_threads(limit)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
