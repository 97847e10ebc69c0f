"""Communicators on two and three ranks: few launches that each run many checks."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunScript

sys.path.insert(0, str(Path(__file__).parent))
import checks_collectives
import checks_differing
import checks_training
from launching import launch, needs_mpi, outcomes

pytestmark = needs_mpi

ROOMS = {room.__name__: tuple(room.CHECKS) for room in (checks_collectives, checks_differing, checks_training)}
#: Which ranks run what.
RUNS = [(ranks, room) for ranks in (2, 3) for room in ROOMS]


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "room", "check"), [(n, room, each) for n, room in RUNS for each in ROOMS[room]])
def test_check(ranks: int, room: str, check: str) -> None:
    found, text = outcomes(ranks, room)
    for rank in range(ranks):
        assert found.get((check, rank), f"rank {rank} never came to it:\n{text}") == "passed"


def written(path: Path, source: str) -> str:
    """Write a script and return its name."""
    name = path / "script.py"
    name.write_text(textwrap.dedent(source), encoding="utf-8")
    return str(name)


def test_an_exception_that_nobody_catches_ends_the_others(tmp_path: Path) -> None:
    source = """
        import weft
        comm = weft.distributed.Communicator(timeout=60)
        x = weft.ones(3)
        comm.all_reduce(x)
        if comm.rank == 1:
            raise LookupError("no data")
        comm.all_reduce(x)
        x.numpy()
        """
    done = launch(2, written(tmp_path, source))
    assert done.returncode != 0
    assert "LookupError: no data" in done.stderr
    assert "rank 1 has ended with LookupError: no data at" in done.stderr
    assert "rank 0 was in collective 2 of communicator 'world', all_reduce(sum) of float64 (3,) at" in done.stderr


def test_a_rank_that_dies_is_named(tmp_path: Path) -> None:
    source = """
        import os, weft
        comm = weft.distributed.Communicator(timeout=60)
        comm.barrier()
        comm.wait()
        if comm.rank == 1:
            os._exit(1)
        try:
            comm.all_reduce(weft.ones(3)).numpy()
        except weft.errors.CommunicatorError as error:
            print(error, flush=True)
        os._exit(0)
        """
    done = launch(2, written(tmp_path, source), options=("-disable-auto-cleanup",))
    assert "rank 1 (process " in done.stdout, done
    assert "has died; rank 0 was in collective 2" in done.stdout


def test_a_rank_that_ends_early_is_named(tmp_path: Path) -> None:
    source = """
        import weft
        comm = weft.distributed.Communicator(timeout=60)
        x = comm.all_reduce(weft.ones(3))
        if comm.rank == 0:
            comm.all_reduce(x)
        """
    done = launch(2, written(tmp_path, source))
    assert "rank 1 has ended; rank 0 was in collective 2" in done.stderr, done


def test_an_interrupt_ends_a_wait_for_others(tmp_path: Path) -> None:
    source = """
        import _thread, threading, weft
        comm = weft.distributed.Communicator(timeout=60)
        comm.barrier()
        comm.wait()
        if comm.rank == 0:
            try:
                threading.Timer(0.2, _thread.interrupt_main).start()
                comm.all_reduce(weft.ones(3)).numpy()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            comm._comm.send(None, dest=1)
        else:
            comm._comm.recv(source=0)
            comm.all_reduce(weft.ones(3)).numpy()
        """
    done = launch(2, written(tmp_path, source))
    assert "interrupted" in done.stdout, done


def test_mpi4py_is_asked_for_when_it_is_missing(script: RunScript) -> None:
    done = script(
        """
        import sys, weft
        sys.modules["mpi4py"] = None
        try:
            weft.distributed.Communicator()
        except ImportError as error:
            assert isinstance(error, weft.errors.CommunicatorError)
            assert "pip install mpi4py" in str(error), error
        else:
            raise SystemExit("it was made without mpi4py")
        """
    )
    assert done.returncode == 0, done.stderr


def test_an_mpi_without_threads_is_refused(script: RunScript) -> None:
    done = script(
        """
        import mpi4py, weft
        mpi4py.rc.thread_level = "single"
        try:
            weft.distributed.Communicator()
        except weft.errors.CommunicatorError as error:
            assert "without threads" in str(error), error
        else:
            raise SystemExit("it was made without threads")
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_one_process_alone_is_one_rank(script: RunScript) -> None:
    done = script(
        """
        import weft
        with weft.distributed.Communicator() as comm:
            assert (comm.rank, comm.size) == (0, 1)
            print(comm.all_reduce(weft.ones(2)))
        """
    )
    assert done.stdout == "[1. 1.]\n", done


def test_importing_weft_imports_no_mpi(script: RunScript) -> None:
    done = script("import sys, weft; assert not {'mpi4py', 'dask'} & set(sys.modules), sys.modules")
    assert done.returncode == 0, done.stderr
