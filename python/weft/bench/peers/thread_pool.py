"""``multiprocessing.pool.ThreadPool.map``: no dependencies, so one call per run of ops on distinct variables.

With its own choice of chunks a pool task is a loop over many ops; with chunks of one, an op is handed over by itself,
as by a push.
"""

from __future__ import annotations

from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class MapPool:
    """Runs numbered ops, a barrier after each block.

    Parameters
    ----------
    workers : int
        Threads of the pool.
    chunksize : int or None
        Ops per pool task; None leaves the choice to the pool.
    """

    def __init__(self, workers: int, chunksize: int | None) -> None:
        self._pool = ThreadPool(workers)
        self._chunksize = chunksize

    def map_blocks(self, step: Callable[[int], object], ops: int, block: int) -> None:
        """Call ``step(id)`` for each op; ops of one block may run in any order, blocks follow each other."""
        for first in range(0, ops, block):
            self._pool.map(step, range(first, min(first + block, ops)), self._chunksize)

    def close(self) -> None:
        """Stop the threads."""
        self._pool.close()
        self._pool.join()
