"""Communicators: the link between arrays and MPI."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from weft._core import NDArray, Variable, _MpiCommunicator
from weft._engine.default import get_engine
from weft._engine.exit import after_drain
from weft.distributed import _calls, _mpi, _registry
from weft.distributed._ending import reason_of_exit
from weft.errors import CommunicatorError, CommunicatorTypeError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from weft._core import Engine
    from weft.distributed._nccl import Road

    Reduction: TypeAlias = Literal["sum", "mean", "max", "min"]

#: Seconds for calls to hear at the exit that they are given up on.
_SOON = 2.0


class Communicator:
    """Ranks that work together: collectives between them are ops on arrays.

    All ranks make it together, and then call the same collectives in the same order: each call returns immediately, and
    the ops run one after another on a thread of their own, as soon as their inputs are there.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The ranks; all of the job (``MPI.COMM_WORLD``) by default. It is duplicated: others' calls on it are not seen here.
    name : str, optional
        For messages, traces and saved graphs; the same on all ranks. By default that of `comm`.
    engine : Engine, optional
        The engine of its arrays; by default the default one.
    timeout : float, optional
        Seconds that a rank waits in a collective for the others before it gives up; by default the environment variable
        ``WEFT_COMM_TIMEOUT``, or 600.
    check : bool, optional
        Whether the ranks agree on each call before it starts: on its kind, order, shape and dtype. By default as the
        environment variable ``WEFT_COMM_CHECK`` says (1 or 0), or not.

    Attributes
    ----------
    rank, size : int
        Which rank this process is, and of how many.
    local_rank : int
        Which rank it is among those of its machine.
    name : str
        The name.
    variable : Variable
        What every collective mutates: who waits for it waits for all that were pushed.

    Raises
    ------
    CommunicatorError
        If there is no mpi4py or no MPI that threads may call, or MPI was initialised before this process was forked;
        or `comm` is none, was freed, or joins two groups.

    Notes ----- Arrays in the host's memory go by MPI, arrays on a GPU by NCCL, through CuPy's calls: on a stream, and
    on one device for each communicator.

    A collective that fails, on any rank, breaks the communicator on all: waits for it raise `CommunicatorError`, which
    names rank, op and line, and so does every later call.

    Examples
    --------
    ``mpiexec -n 2 python script.py`` prints the sum of both ranks; alone, there is one rank::

        comm = weft.distributed.Communicator()
        print(comm.all_reduce(weft.ones(2)))
    """

    def __init__(
        self,
        comm: Any = None,
        *,
        name: str | None = None,
        engine: Engine | None = None,
        timeout: float | None = None,
        check: bool | None = None,
    ) -> None:
        mpi = _mpi.module()
        comm = mpi.COMM_WORLD if comm is None else comm
        if not isinstance(comm, mpi.Comm):
            raise CommunicatorTypeError(f"a communicator is made of one of mpi4py's, not of {type(comm).__name__}")
        if comm == mpi.COMM_NULL:
            raise CommunicatorError("the communicator was freed, or this process is not in its group (MPI_COMM_NULL)")
        if comm.Is_inter():
            raise CommunicatorError("the communicator joins two groups: merge them (comm.Merge())")
        self._timeout = _mpi.time_limit(timeout)
        self._check = _mpi.checking() if check is None else check
        self.engine = get_engine() if engine is None else engine
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self._process = os.getpid()
        #: Where arrays on a GPU go; there is none before the first.
        self._road: Road | None = None
        self._comm = comm.Dup()
        self._control = comm.Dup()
        for each in (self._comm, self._control):
            each.Set_errhandler(mpi.ERRORS_RETURN)
        self.name = _registry.unused(name or comm.Get_name().removeprefix("MPI_COMM_").lower() or "group")
        neighbours = _mpi.neighbours(self._control)
        self.local_rank = sum(process is not None for process in neighbours[: self.rank])
        self._core = _MpiCommunicator(
            _mpi.library(),
            self.engine,
            self.name,
            mpi._handleof(self._comm),
            mpi._handleof(self._control),
            self.rank,
            neighbours,
            self._check,
            min(self._timeout, 1e9),
        )
        _registry.enter(self)
        after_drain(_leave_all)

    @property
    def variable(self) -> Variable:
        """The variable that every collective mutates."""
        return self._core.variable

    @property
    def broken(self) -> str | None:
        """Why no collective can be carried out any more; None while they can."""
        return self._core.broken

    def all_reduce(self, x: NDArray, op: Reduction = "sum", out: NDArray | None = None) -> NDArray:
        """Reduce the arrays of all ranks, element by element, and give the result to all.

        Parameters
        ----------
        x : NDArray
            This rank's array. It becomes the result, unless `out` is given.
        op : {"sum", "mean", "max", "min"}, default: "sum"
            How elements are put together; a mean of floating-point numbers alone.
        out : NDArray, optional
            Where to write the result instead.

        Returns
        -------
        NDArray
            The result: `x` or `out`; for a symbol, a new one.

        Raises
        ------
        CommunicatorError
            If the communicator is closed, broken, or was made before this process was forked.
        CommunicatorTypeError
            If MPI does not reduce this dtype.
        CommunicatorValueError
            If the array to be written to is read-only, of another shape, or overlaps `x` in part.
        """
        # In place, where the tape knows nothing of it, it goes without the dispatcher's walk.
        if out is None and type(x) is NDArray and self._core.reduce_in_place(x, op):
            return x
        return _calls.all_reduce(self, x, op, out)

    def broadcast(self, x: NDArray, root: int = 0) -> NDArray:
        """Give all ranks one rank's array: `x` of rank `root` is written to `x` of all others, and returned.

        Parameters
        ----------
        x : NDArray
            The array to give, or to write to; of one shape and dtype on all ranks.
        root : int, default: 0
            The rank that gives.
        """
        return _calls.broadcast(self, x, root)

    def all_gather(self, x: NDArray, out: NDArray | None = None) -> NDArray:
        """Give all ranks the arrays of all: the result has a new first axis, along which the ranks lie.

        Parameters
        ----------
        x : NDArray
            This rank's array, of one shape and dtype on all ranks.
        out : NDArray, optional
            Where to write the result.
        """
        return _calls.all_gather(self, x, out)

    def reduce_scatter(self, x: NDArray, op: Reduction = "sum", out: NDArray | None = None) -> NDArray:
        """Reduce the arrays of all ranks, and give each rank its part of the result.

        Parameters
        ----------
        x : NDArray
            This rank's array. Its first axis holds one part for each rank: it goes away if there is one element for each,
            as after `all_gather`; of a multiple, each rank has its share.
        op : {"sum", "mean", "max", "min"}, default: "sum"
            As for `all_reduce`.
        out : NDArray, optional
            Where to write the result.
        """
        return _calls.reduce_scatter(self, x, op, out)

    def all_to_all(self, x: NDArray, out: NDArray | None = None) -> NDArray:
        """Exchange parts: the `i`-th part of the result, along the first axis, is rank `i`'s part for this one.

        Parameters
        ----------
        x : NDArray
            This rank's parts for all ranks, of equal lengths along the first axis.
        out : NDArray, optional
            Where to write the result.
        """
        return _calls.all_to_all(self, x, out)

    def send(self, x: NDArray, dest: int, tag: int = 0) -> None:
        """Send an array to another rank, which receives it by `recv`. Sends go in order; they do not wait for collectives.

        Parameters
        ----------
        x : NDArray
            The array.
        dest : int
            The rank that receives it.
        tag : int, default: 0
            A number below 16,384, for the receiver to tell messages apart.
        """
        _calls.send(self, x, dest, tag)

    def recv(self, x: NDArray, source: int, tag: int = 0) -> NDArray:
        """Receive an array that another rank sends, into `x`, which is returned.

        Parameters
        ----------
        x : NDArray
            Where to write it, of the shape and dtype of the sent array.
        source : int
            The rank that sends it.
        tag : int, default: 0
            The number that it is sent with.
        """
        return _calls.recv(self, x, source, tag)

    def barrier(self) -> None:
        """Push an op that ends when all ranks have come to it; ``comm.wait()`` waits for it."""
        _calls.barrier(self)

    def split(self, color: int | None, key: int = 0, *, name: str | None = None) -> Communicator | None:
        """Split the ranks into groups, each with a communicator of its own. All ranks call it, and wait for each other.

        Parameters
        ----------
        color : int or None
            Ranks of the same color come into one group; a rank of None into none.
        key : int, default: 0
            The order of the new numbers of a group's ranks; in the order of this communicator where it is equal.
        name : str, optional
            The name of the group.

        Returns
        -------
        Communicator or None
            The group of this rank.
        """
        self._refuse()
        mpi = _mpi.module()
        color, key = None if color is None else _calls.whole(color, "color="), _calls.whole(key, "key=")
        if color is not None and color < 0:
            raise CommunicatorError(f"a color is a number of at least 0, or None, not {color}")
        self.wait()  # earlier pushes come first: the split is a collective, too
        made = self._control.Split(mpi.UNDEFINED if color is None else color, key)
        if made == mpi.COMM_NULL:
            return None
        try:
            return Communicator(
                made, name=name or f"{self.name}.{color}", engine=self.engine, timeout=self._timeout, check=self._check
            )
        finally:
            made.Free()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all that was pushed on this communicator is complete on this rank.

        Raises
        ------
        CommunicatorError
            If it has failed, here or on another rank.
        WaitTimeoutError
            If the time ran out. The ops go on.
        """
        for variable in self._core.variables:
            self.engine.wait_for_var(variable, timeout)
        if self._road is not None:
            self._road.token.wait_to_read(timeout)  # the ops are done when their work is on a stream

    def close(self) -> None:
        """Wait for all pushed calls, and give MPI's resources back. Later calls raise; closing twice does nothing.

        Where another rank has broken the communicator, nothing is waited for.
        """
        if not _registry.is_open(self) or os.getpid() != self._process:
            return
        try:
            if self._core.broken is None:
                self.wait()
        finally:
            _registry.leave(self)
            whole = self._core.broken is None
            self._core.close()
            if self._road is not None:
                self._road.end(whole=whole)
            if whole and not _mpi.module().Is_finalized():
                self._comm.Free()
                self._control.Free()

    def __enter__(self) -> Self:
        """Return the communicator, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._core.fail(f"rank {self.rank} has left the communicator's block with {type(error).__name__}: {error}")
            with suppress(CommunicatorError):
                self.close()
            return
        self.close()

    def _refuse(self) -> None:
        self._core.refuse()

    def __repr__(self) -> str:
        """Return name, rank and state."""
        state = "" if _registry.is_open(self) else ", closed"
        if self._core.broken is not None:
            state = ", broken"
        return f"<weft.distributed.Communicator {self.name!r}, rank {self.rank} of {self.size}{state}>"

    def __reduce__(self) -> tuple[Any, tuple[str, int, int]]:
        """Pickle by name: the process that unpickles it has made one of the same name, or is told so when it uses it."""
        if not _registry.is_open(self):
            raise CommunicatorError(f"communicator {self.name!r} is closed: there is nothing to pickle")
        return _registry.unpickled, (self.name, self.rank, self.size)


def _leave_all() -> None:
    """Tell the other ranks, at the exit, that this one ends, and let go of calls that still wait for them."""
    reason = reason_of_exit()
    own = [_registry.find(name) for name in _registry.names()]
    for comm in own:
        if comm._process != os.getpid():
            continue
        if not comm._core.idle:
            comm._core.fail(f"rank {comm.rank} has ended{f' with {reason}' if reason else ''}")
        else:
            comm._core.leave(reason)
    until = time.monotonic() + _SOON
    while time.monotonic() < until and not all(comm._core.idle for comm in own):
        time.sleep(0.001)
