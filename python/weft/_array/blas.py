"""Threads of BLAS, which would otherwise take all cores for each of several workers."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft._core import Engine

__all__ = ["share_cores"]

_seen: weakref.WeakSet[Engine] = weakref.WeakSet()


def share_cores(engine: Engine) -> None:
    """See to it, once for each engine, that its workers times the threads of BLAS do not exceed the cores.

    Called when the first op is pushed that may call BLAS. The limit is that of the process, which is all that BLAS
    knows; it is only ever lowered, and whoever sets another one later has it.

    Examples
    --------
    >>> import weft
    >>> from weft._array.blas import share_cores
    >>> share_cores(weft.get_engine())
    """
    if engine in _seen:
        return
    _seen.add(engine)
    if engine.workers < 2:
        return  # one op at a time may have all cores
    # Imported here: it takes milliseconds, and most programs multiply no matrices.
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415

    limit = max(1, _cores() // engine.workers)
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        threads = library.get_num_threads()
        if threads is not None and threads > limit:
            library.set_num_threads(limit)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
