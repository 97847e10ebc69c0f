"""Several processes: collectives on arrays as ops, and the training and scheduling on them.

A `Communicator` stands on one of mpi4py's. Its collectives are ops like any other: they are pushed and only a reader
waits for them, they overlap with independent work, and they go in the order of the program, on all ranks.

mpi4py is imported when the first communicator is made, and comes with ``pip install mpi4py``.
"""

from __future__ import annotations

import importlib
from typing import Any

from weft.distributed._communicator import Communicator as Communicator
from weft.distributed._registry import find as find

__all__ = ["Communicator", "find"]


def __getattr__(name: str) -> Any:
    """Return `weft.distributed.dask`, which imports Dask, when it is asked for."""
    if name == "dask":
        return importlib.import_module("weft.distributed.dask")
    raise AttributeError(f"module 'weft.distributed' has no attribute {name!r}", name=name)
