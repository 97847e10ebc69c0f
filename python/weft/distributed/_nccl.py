"""Collectives of arrays on GPUs: NCCL's, by way of CuPy, behind the same communicator.

NCCL's calls put work on a stream and return. So a collective here is an op that runs on the stream of its arrays: the
device waits for its inputs, and its fence is there for the waits of others. NCCL asks that all ranks make the same
calls in the same order: each mutates the communicator's variable, as MPI's do, and an array of one byte on the device,
which orders the streams.

The ranks find each other by MPI: the first collective sends NCCL's identifier round. They also meet by MPI before each:
that op needs no array, so it goes ahead of the devices' pending work, and a rank that does not come is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray, cuda_current_stream, push_compute
from weft._program.unrecorded import outside
from weft.distributed import _mpi
from weft.errors import (
    CommunicatorError,
    CommunicatorTypeError,
    CommunicatorUnavailableError,
    CommunicatorValueError,
    CudaUnavailableError,
)

if TYPE_CHECKING:
    from weft._engine.labels import Device
    from weft._registry.avals import DType
    from weft.distributed._communicator import Communicator

#: NCCL's numbers of dtypes, and how many of them an element is. These it reduces.
_REDUCED = {
    "int8": (0, 1),
    "uint8": (1, 1),
    "int32": (2, 1),
    "uint32": (3, 1),
    "int64": (4, 1),
    "uint64": (5, 1),
    "float16": (6, 1),
    "float32": (7, 1),
    "float64": (8, 1),
    "complex64": (7, 2),
    "complex128": (8, 2),
}
#: Those that it moves alone, as bytes.
_MOVED = {"bool": (1, 1), "int16": (1, 2), "uint16": (1, 2)}
#: NCCL's numbers of reductions; a mean is a sum that is divided afterwards.
_OPERATIONS = {"sum": 0, "mean": 0, "max": 2, "min": 3}
#: Bytes of the identifier that all ranks must know.
_UNIQUE = 128


def _module() -> Any:
    """Return CuPy's NCCL.

    Raises
    ------
    CommunicatorUnavailableError
        If there is no CuPy, or it has none.
    """
    from weft._cuda.streams import cupy  # noqa: PLC0415 - only devices need it

    hint = "or reduce x.to_device(weft.cpu(0)), which MPI carries"
    try:
        found = getattr(cupy().cuda, "nccl", None)
    except CudaUnavailableError as error:
        raise CommunicatorUnavailableError(
            f"arrays on a GPU travel by NCCL, which CuPy brings: {error}; {hint}"
        ) from error
    if found is None or not getattr(found, "available", True):
        raise CommunicatorUnavailableError(
            f"arrays on a GPU travel by NCCL, and this CuPy has none: pip install nvidia-nccl-cu13 (or -cu12), {hint}"
        )
    return found


def check(name: str, x: NDArray) -> None:
    """Raise unless NCCL can move this array."""
    _module()
    if x.dtype.name not in _REDUCED and x.dtype.name not in _MOVED:
        known = ", ".join([*_REDUCED, *_MOVED])
        raise CommunicatorTypeError(f"{name}(): NCCL has no type for dtype {x.dtype}: known are {known}")


def _number(reduction: str, dtype: DType) -> tuple[int, int, int]:
    """Return NCCL's number of a dtype, how many an element is, and its number of the reduction."""
    _mpi.check_operation(reduction, dtype)
    if dtype.name not in _REDUCED:
        raise CommunicatorTypeError(f"NCCL has no {reduction} of dtype {dtype}: reduce x.astype('int32')")
    kind, times = _REDUCED[dtype.name]
    return kind, times, _OPERATIONS[reduction]


class Road:
    """NCCL's communicator beside one of weft's, on one device.

    Parameters
    ----------
    comm : Communicator
        The ranks.
    device : Device
        This rank's.
    """

    def __init__(self, comm: Communicator, device: Device) -> None:
        import weft  # noqa: PLC0415 - it imports this module

        self.device = device
        #: Each call mutates it, so that streams follow each other.
        self.token = weft.zeros(1, dtype="uint8", device=device)
        self._made: Any = None
        rank, size = comm.rank, comm.size
        known = np.zeros(_UNIQUE, np.uint8)
        if rank == 0:
            known[:] = [each & 0xFF for each in _module().get_unique_id()]
        unique = weft.asarray(known)
        comm._core.push(
            "NCCL, of broadcast(root=0)", "broadcast", _mpi.datatype_of(unique.dtype), _UNIQUE, unique, peer=0
        )

        def begin(_token: object) -> None:
            told = tuple(unique.numpy().view(np.int8).tolist())  # as C has characters
            self._made = _module().NcclCommunicator(size, told, rank)

        push_compute(begin, (), (), (self.token,), name=f"NCCL, {size} ranks", variable=comm.variable)

    @property
    def made(self) -> Any:
        """CuPy's communicator, for ops behind the one that makes it."""
        if self._made is None:
            raise CommunicatorError("NCCL's communicator is closed")
        return self._made

    def end(self, *, whole: bool) -> None:
        """Give NCCL's resources back; `whole` says whether all ranks do."""
        made, self._made = self._made, None
        if made is not None:
            (made.destroy if whole else made.abort)()


def _road(comm: Communicator, device: Device) -> Road:
    """Return a communicator's way over a device, which its first use makes."""
    if comm._road is None:
        comm._road = outside(partial(Road, comm, device))
    if comm._road.device != device:
        raise CommunicatorValueError(
            f"communicator {comm.name!r} works on {comm._road.device}, and an array is on {device}: NCCL takes one GPU for "
            "each rank"
        )
    return comm._road


def push(
    comm: Communicator,
    verb: str,
    work: str,
    count: int,
    target: NDArray | None,
    source: NDArray | None,
    *,
    reduction: str | None = None,
    peer: int = 0,
    tag: int = 0,
) -> None:
    """Push one of NCCL's calls.

    Parameters
    ----------
    comm : Communicator
        The ranks.
    verb : str
        The call, in words.
    work : str
        The kind of the call.
    count : int
        Elements that a rank gives to each other, or to all.
    target, source : NDArray or None
        Where to and where from, contiguous on a device; in place where there is one alone.
    reduction : str, optional
        The reduction.
    peer : int, default: 0
        The root of a broadcast; the other end of a message.
    tag : int, default: 0
        Of a message: NCCL knows none.
    """
    if tag:
        raise CommunicatorValueError(f"NCCL's messages have no tags, and tag={tag} was given: leave it out")
    array = target if target is not None else source
    assert array is not None, "there is something to move"  # a barrier is MPI's
    kind, times, operation = 1, array.itemsize, 0
    if reduction is not None:
        kind, times, operation = _number(reduction, array.dtype)
        if array.dtype.kind == "c" and operation:
            raise CommunicatorTypeError(f"NCCL has no {reduction} of dtype {array.dtype}")
    road = _road(comm, array.device)
    call = _Call(work, count * times, kind, operation, peer)
    if work not in {"send", "recv"}:
        # A kernel of NCCL's that waits for a rank waits for ever. So the ranks meet by MPI first: its waits have an
        # end; if they check, they agree there on the contents of these words.
        comm._core.push(f"{verb} of {array.dtype} {array.shape} on GPUs", "barrier", 0, 0)
    outputs = () if target is None else (target,)
    inputs = () if source is None else (source,)
    in_place = source is None and work != "recv" and not (work == "broadcast" and peer != comm.rank)
    named = f"{verb}, {array.nbytes:,} bytes, {comm.size} ranks, NCCL"

    def run(*views: Any) -> None:
        stream = cuda_current_stream()
        assert stream is not None, "its arrays are on a device"  # so it runs on a stream of theirs
        places = [view.data.ptr for view in views]
        if in_place:
            to = at = places[0]
        elif target is None:
            to, at = 0, places[1]
        else:
            to, at = places[0], places[2] if source is not None else places[0]
        made = road.made
        try:
            call(made, comm.size, at, to, stream[1])
        except RuntimeError as error:
            reason = f"rank {comm.rank} in {verb} of {array.dtype} {array.shape}: NCCL says {error}"
            comm._core.fail(reason)
            raise CommunicatorError(reason) from error

    mutated = (*outputs, road.token) if in_place else (road.token,)
    push_compute(run, () if in_place else outputs, inputs, mutated, name=named, variable=comm.variable)


@dataclass(frozen=True, slots=True)
class _Call:
    """One of NCCL's calls, apart from where its arrays lie. Moves count bytes."""

    work: str
    count: int
    kind: int
    operation: int
    peer: int

    def __call__(self, made: Any, ranks: int, at: int, to: int, stream: int) -> None:
        """Put it on a stream."""
        count, kind = self.count, self.kind
        if self.work == "all_reduce":
            made.allReduce(at, to, count, kind, self.operation, stream)
        elif self.work == "reduce_scatter":
            made.reduceScatter(at, to, count, kind, self.operation, stream)
        elif self.work == "broadcast":
            made.broadcast(at, to, count, kind, self.peer, stream)
        elif self.work == "all_gather":
            made.allGather(at, to, count, kind, stream)
        elif self.work == "send":
            made.send(at, count, kind, self.peer, stream)
        elif self.work == "recv":
            made.recv(to, count, kind, self.peer, stream)
        else:
            self._exchange(made, ranks, at, to, stream)

    def _exchange(self, made: Any, ranks: int, at: int, to: int, stream: int) -> None:
        nccl = _module()
        nccl.groupStart()
        try:
            for rank in range(ranks):
                made.send(at + rank * self.count, self.count, self.kind, rank, stream)
                made.recv(to + rank * self.count, self.count, self.kind, rank, stream)
        finally:
            nccl.groupEnd()
