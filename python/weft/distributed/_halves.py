"""Reductions of half precision, which MPI does not know: parts are exchanged as bits, and reduced here in single precision.

As many bytes travel as in a reduction of MPI's own: each rank reduces its part of all arrays, and gives it to the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.copies import copy_cast
from weft._call.views import view
from weft._core import beside, push_compute
from weft.distributed import _mpi

if TYPE_CHECKING:
    from weft._core import NDArray
    from weft.distributed._communicator import Communicator

_BY: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


def push(work: str, result: NDArray, x: NDArray, comm: Communicator, reduction: str) -> None:
    """Push a reduction over all ranks of `x` into `result`: all of it, or this rank's part."""
    ranks = comm.size
    part = -(-x.size // ranks)
    datatype = _mpi.datatype_of(x.dtype)
    given, theirs = beside(x, (ranks, part), x.dtype), beside(x, (ranks, part), x.dtype)
    push_compute(_pad, (given,), (x,), name="pad")
    comm._core.push(f"all_to_all for {work}({reduction})", "all_to_all", datatype, part, theirs, given)
    own = beside(x, (part,), x.dtype)
    by = _BY[reduction]

    def reduce(out: np.ndarray[Any, Any], parts: np.ndarray[Any, Any]) -> None:
        out[...] = by(parts.astype(np.float32), axis=0)

    push_compute(reduce, (own,), (theirs,), name=f"{reduction} of halves")
    if work == "reduce_scatter":
        _write(result, own)
        return
    every = beside(x, (ranks, part), x.dtype)
    comm._core.push(f"all_gather for {work}({reduction})", "all_gather", datatype, part, every, own)
    _write(result, view(every, (x.size,), (x.itemsize,)))


def _pad(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    """Write the elements of an array row after row, and zeros behind them."""
    rows = out.reshape(-1)
    rows[: x.size] = x.reshape(-1)
    rows[x.size :] = 0


def _write(result: NDArray, row: NDArray) -> None:
    """Write elements that lie in a row to an array of any shape."""
    if result._contiguous:
        copy_cast(view(result, row.shape, row.strides), row)
        return

    def spread(out: np.ndarray[Any, Any], elements: np.ndarray[Any, Any]) -> None:
        out[...] = elements.reshape(out.shape)

    push_compute(spread, (result,), (row,), name="copy")
