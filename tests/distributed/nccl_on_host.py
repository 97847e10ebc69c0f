"""Stands in for CuPy's NCCL where memory of devices is the host's, and streams do everything at once: by MPI.

It holds its callers to NCCL's rules: all ranks know the same, a call is on a stream, buffers are of devices.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
from mpi4py import MPI

available = True
#: Calls, with their streams.
seen: list[tuple[str, int]] = []
#: Messages of the groups that have begun.
_group: list[list[tuple[Any, ...]]] = []

_DTYPES = ["i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
_REDUCE = [np.add, np.multiply, np.maximum, np.minimum]


class NcclError(RuntimeError):
    """What NCCL refuses."""


def get_unique_id() -> tuple[int, ...]:
    """128 characters of C's."""
    return tuple(int(each) for each in np.frombuffer(os.urandom(128), np.int8))


def groupStart() -> None:  # noqa: N802 - CuPy's
    """Messages wait for the end of the group."""
    assert not _group
    _group.append([])


def groupEnd() -> None:  # noqa: N802 - CuPy's
    """All messages of the group at once."""
    MPI.Request.Waitall([call(*args) for call, *args in _group.pop()])


def _at(pointer: int, count: int, kind: int) -> np.ndarray[Any, Any]:
    """What lies there."""
    assert pointer or not count
    dtype = np.dtype(_DTYPES[kind])
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(pointer), dtype)


class NcclCommunicator:
    """Of all ranks, one device for each."""

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:  # noqa: N803 - CuPy's
        assert len(commId) == 128
        assert all(-128 <= each < 128 for each in commId)
        self._comm: Any = MPI.COMM_WORLD.Dup()
        assert (self._comm.size, self._comm.rank) == (ndev, rank)
        assert len(set(self._comm.allgather(commId))) == 1

    def _reduced(self, sendbuf: int, count: int, datatype: int, op: int) -> np.ndarray[Any, Any]:
        if count == 13:
            raise NcclError("NCCL_ERROR_INVALID_USAGE: an unlucky count")
        every = self._comm.allgather(_at(sendbuf, count, datatype).copy())
        return _REDUCE[op].reduce(np.stack(every), axis=0, dtype=every[0].dtype)

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:  # noqa: N802
        seen.append(("allReduce", stream))
        _at(recvbuf, count, datatype)[:] = self._reduced(sendbuf, count, datatype, op)

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:  # noqa: N802
        seen.append(("reduceScatter", stream))
        every = self._reduced(sendbuf, recvcount * self._comm.size, datatype, op)
        _at(recvbuf, recvcount, datatype)[:] = every.reshape(self._comm.size, -1)[self._comm.rank]

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        seen.append(("broadcast", stream))
        given = _at(sendbuff, count, datatype).copy() if self._comm.rank == root else None
        _at(recvbuff, count, datatype)[:] = self._comm.bcast(given, root)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:  # noqa: N802
        seen.append(("allGather", stream))
        every = self._comm.allgather(_at(sendbuf, count, datatype).copy())
        _at(recvbuf, count * self._comm.size, datatype)[:] = np.concatenate(every)

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._message(self._comm.Isend, _at(sendbuf, count, datatype), peer, "send", stream)

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._message(self._comm.Irecv, _at(recvbuf, count, datatype), peer, "recv", stream)

    def _message(self, call: Any, where: np.ndarray[Any, Any], peer: int, name: str, stream: int) -> None:
        seen.append((name, stream))
        if not _group:
            call(where.view(np.uint8), peer).Wait()
        else:
            _group[-1].append((call, where.view(np.uint8), peer))

    def destroy(self) -> None:
        seen.append(("destroy", 0))
        self._comm.Free()

    def abort(self) -> None:
        seen.append(("abort", 0))
