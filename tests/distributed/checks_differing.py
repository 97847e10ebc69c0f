"""What ranks that differ come to: an error on each, within a time limit, that names rank, op and line."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import weft
from weft.distributed import Communicator
from weft.errors import CommunicatorError

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS: dict[str, Callable[[Communicator], None]] = {}


def check(function: Callable[[Communicator], None]) -> Callable[[Communicator], None]:
    """List a check."""
    CHECKS[function.__name__] = function
    return function


def breaks(comm: Communicator, call: Callable[[], object], *texts: str) -> str:
    """Make a call that breaks the communicator, and hold its message to these texts."""

    def whole() -> None:
        call()
        comm.wait()

    with pytest.raises(CommunicatorError) as caught:
        whole()
    message = str(caught.value)
    assert all(text in message for text in texts), (message, texts)
    assert comm.broken is not None
    with pytest.raises(CommunicatorError, match="is broken"):
        comm.barrier()
    return message


@check
def another_shape(comm: Communicator) -> None:
    comm.all_reduce(weft.ones(2))
    x = weft.ones(3 if comm.rank else 4)
    texts = (
        "differ in collective 2",
        "rank 0 calls all_reduce(sum) of float64 (4,) at",
        "(3,) at",
        "checks_differing.py",
    )
    breaks(comm, lambda: comm.all_reduce(x), *texts)
    with pytest.raises(CommunicatorError):
        x.numpy()
    x[...] = 1.0  # an overwrite makes it whole again
    assert float(x.sum()) == x.size


@check
def another_dtype(comm: Communicator) -> None:
    x = weft.ones(3, dtype="float32" if comm.rank else "float64")
    breaks(comm, lambda: comm.all_reduce(x), "float32 (3,)", "float64 (3,)", "rank 0 calls")


@check
def another_order(comm: Communicator) -> None:
    def call() -> None:
        x = weft.ones(3)
        if comm.rank:
            comm.barrier()
        comm.all_reduce(x)
        if not comm.rank:
            comm.barrier()

    breaks(comm, call, "rank 0 calls all_reduce(sum)", "barrier at", "collective 1")


@check
def another_root(comm: Communicator) -> None:
    breaks(comm, lambda: comm.broadcast(weft.ones(3), min(comm.rank, 1)), "broadcast(root=0)", "broadcast(root=1)")


@check
def another_message(comm: Communicator) -> None:
    if comm.rank == 0:
        comm.send(weft.ones(3), 1)
        with pytest.raises(CommunicatorError):
            comm.all_reduce(weft.ones(1)).wait_to_read()
    elif comm.rank == 1:
        breaks(
            comm, lambda: comm.recv(weft.ones(4), 0), "rank 0 sends float64 (3,) at", "recv(source=0) of float64 (4,)"
        )
    else:
        breaks(comm, lambda: comm.all_reduce(weft.ones(1)), "rank 1 has given up")


@check
def an_exception_before_a_collective(comm: Communicator) -> None:
    x = weft.ones(3)
    if comm.rank == 0:

        def boom() -> None:
            raise KeyError("boom")

        x.engine.push(boom, mutate_vars=[x])
        comm.all_reduce(x)
        with pytest.raises(KeyError, match="boom"):
            x.numpy()
    else:
        breaks(comm, lambda: comm.all_reduce(x), "rank 0 has given up", "did not take part in all_reduce(sum)", ".py:")


@check
def no_memory_for_a_collective(comm: Communicator) -> None:
    limits, size = resource.getrlimit(resource.RLIMIT_AS), 1 << 28
    x = weft.empty(size // 8)  # which takes memory where it is first needed
    if comm.rank == 0:
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + size // 4, limits[1]))
        try:
            comm.all_reduce(x)
            with pytest.raises(MemoryError, match="unable to allocate"):
                x.wait_to_read()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        assert comm._core.idle
        with pytest.raises(CommunicatorError, match="is broken: rank 0 had no memory for all_reduce"):
            comm.barrier()
    else:
        breaks(comm, lambda: comm.all_reduce(x), "rank 0 has given up", "had no memory for all_reduce(sum)")


def _address_space() -> int:
    """Return how many bytes this process has mapped."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


@check
def an_exception_in_the_block(comm: Communicator) -> None:
    if comm.rank == 0:
        with pytest.raises(ZeroDivisionError), comm:
            _ = 1 // 0
    else:
        breaks(comm, lambda: comm.all_reduce(weft.ones(3)), "rank 0 has given up", "ZeroDivisionError")


@check
def a_rank_that_does_not_come(comm: Communicator) -> None:
    # The root alone is hasty: a rank that gave up before it would name the root.
    with Communicator(comm._comm, name="hasty", timeout=60.0 if comm.rank else 0.2) as hasty:
        if comm.rank == 1:
            comm._comm.recv(source=0)  # busy elsewhere, until the others have given up
            breaks(hasty, hasty.barrier, "rank 0 has given up" if comm.size == 2 else "has given up")
        else:
            texts = ("rank 1 has not come within 0.2 s", "barrier at") if comm.rank == 0 else ("rank 1",)
            breaks(hasty, hasty.barrier, *texts)
            if comm.rank == 0:
                comm._comm.send(None, dest=1)


@check
def without_agreement_the_time_limit_tells(comm: Communicator) -> None:
    with Communicator(comm._comm, name="unchecked", timeout=0.2, check=False) as unchecked:
        if comm.rank == 0:
            texts = (
                "has not come within 0.2 s",
                "WEFT_COMM_CHECK=1",
                "collective 1 of communicator 'unchecked'",
                ".py:",
            )
            breaks(unchecked, lambda: unchecked.all_reduce(weft.ones(3)), *texts)
            comm._comm.send(None, dest=1)
        else:
            if comm.rank == 1:
                comm._comm.recv(source=0)

            def late() -> None:
                for _ in range(2):  # what rank 0 had sent before it gave up may be enough for the first
                    unchecked.all_reduce(weft.ones(3))

            breaks(unchecked, late, "has")


def refused(call: Callable[[], object]) -> str:
    """What a call that is refused says."""
    with pytest.raises(CommunicatorError) as raised:
        call()
    return str(raised.value)


@check
def a_child_may_not(comm: Communicator) -> None:
    comm.barrier()
    comm.wait()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            told = [refused(lambda: comm.all_reduce(weft.ones(1))), refused(Communicator)]
            status = 0 if all("forked" in each and str(os.getppid()) in each for each in told) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert float(comm.all_reduce(weft.ones(1))[0]) == comm.size
