"""mpi4py, as far as communicators need it: found when it is asked for, never at import."""

from __future__ import annotations

import functools
import importlib
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._core import _MpiLibrary
from weft.errors import (
    ArgumentValueError,
    CommunicatorError,
    CommunicatorTypeError,
    CommunicatorUnavailableError,
    CommunicatorValueError,
)

if TYPE_CHECKING:
    from weft._registry.avals import DType

#: Seconds that a rank waits for the others by default.
_PATIENCE = 600.0

#: MPI's names of the dtypes that it can send.
_DATATYPES = {
    "bool": "C_BOOL",
    "int8": "INT8_T",
    "int16": "INT16_T",
    "int32": "INT32_T",
    "int64": "INT64_T",
    "uint8": "UINT8_T",
    "uint16": "UINT16_T",
    "uint32": "UINT32_T",
    "uint64": "UINT64_T",
    "float16": "UINT16_T",  # as bits: no MPI of these days computes with it
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}

#: MPI's names of the reductions, and the kinds of dtypes that they take. A mean is a sum that is divided afterwards.
_OPERATIONS = {"sum": ("SUM", "iufc"), "mean": ("SUM", "fc"), "max": ("MAX", "iuf"), "min": ("MIN", "iuf")}


#: The process in which MPI was initialised, in one that was forked from it.
_initialised_in: list[int] = []


def _note_fork() -> None:
    found = sys.modules.get("mpi4py.MPI")
    if not _initialised_in and found is not None and found.Is_initialized():
        _initialised_in.append(os.getppid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def module() -> Any:
    """Return ``mpi4py.MPI``, initialised so that threads may call it.

    Raises
    ------
    CommunicatorUnavailableError
        If there is no mpi4py, or it finds no MPI.
    CommunicatorError
        If threads may not call this MPI, or this process was forked from one that had initialised it.
    """
    if _initialised_in:
        raise CommunicatorError(
            f"MPI was initialised in process {_initialised_in[0]}, and this process was forked from it: MPI survives no fork. "
            "Have mpiexec start the processes, or fork before MPI is initialised"
        )
    return _initialised()


@functools.cache
def _initialised() -> Any:
    try:
        found = importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise CommunicatorUnavailableError(
            f"mpi4py cannot be imported ({error}): pip install mpi4py brings it, and pip install mpich an MPI where "
            "the system has none"
        ) from error
    except RuntimeError as error:
        raise CommunicatorUnavailableError(f"mpi4py finds no MPI ({error}): pip install mpich brings one") from error
    if not found.Is_initialized():
        found.Init_thread(found.THREAD_MULTIPLE)
    if found.Query_thread() < found.THREAD_SERIALIZED:
        raise CommunicatorError(
            "this MPI was initialised without threads, and collectives run on a thread of their own: let mpi4py "
            'initialise it (mpi4py.rc.thread_level = "multiple"), or ask for MPI_THREAD_MULTIPLE or _SERIALIZED'
        )
    return found


@functools.cache
def library() -> _MpiLibrary:
    """Return MPI's functions, to be called without the GIL."""
    mpi = module()
    multiple = mpi.Query_thread() >= mpi.THREAD_MULTIPLE
    return _MpiLibrary(mpi.__file__, int(mpi.IN_PLACE), mpi.ANY_SOURCE, mpi._handleof(mpi.BYTE), multiple)


@functools.cache
def datatype_of(dtype: DType) -> int:
    """Return MPI's handle of a dtype.

    Raises
    ------
    CommunicatorTypeError
        If MPI has no such type.
    """
    mpi = module()
    name = _DATATYPES.get(dtype.name)
    found = None if name is None else getattr(mpi, name, None)
    if found is None or found == mpi.DATATYPE_NULL:
        raise CommunicatorTypeError(f"MPI has no type for dtype {dtype}: known are {', '.join(_DATATYPES)}")
    handle: int = mpi._handleof(found)
    return handle


@functools.cache
def operation_of(op: str, dtype: DType) -> int:
    """Return MPI's handle of a reduction.

    Raises
    ------
    CommunicatorValueError
        If there is no such reduction.
    CommunicatorTypeError
        If there is none of this dtype.
    """
    check_operation(op, dtype)
    assert dtype.name != "float16", "it is reduced by weft"  # MPI would add bits
    mpi = module()
    handle: int = mpi._handleof(getattr(mpi, _OPERATIONS[op][0]))
    return handle


def check_operation(op: str, dtype: DType) -> None:
    """Raise unless arrays of this dtype can be reduced by `op`."""
    if op not in _OPERATIONS:
        raise CommunicatorValueError(f"op= is one of {', '.join(map(repr, _OPERATIONS))}, not {op!r}")
    if dtype.kind not in _OPERATIONS[op][1]:
        hint = (
            ": reduce x.astype('float64')"
            if op == "mean"
            else ": reduce x.astype('int64')"
            if dtype.kind == "b"
            else ""
        )
        raise CommunicatorTypeError(f"MPI has no {op} of dtype {dtype}{hint}")


def neighbours(comm: Any) -> list[int | None]:
    """Return the process of each rank of this machine, None for the others; all ranks call it."""
    places: list[tuple[str, int]] = comm.allgather((_machine(), os.getpid()))
    return [process if machine == _machine() else None for machine, process in places]


@functools.cache
def _machine() -> str:
    """Return the key that tells machines apart, and containers of one machine, which do not see each other's processes."""
    try:
        space = Path("/proc/self/ns/pid").readlink()
    except OSError:
        space = Path()
    return f"{socket.gethostname()} {space}"


def checking() -> bool:
    """Return whether ranks are to agree on each call, as ``WEFT_COMM_CHECK`` says."""
    text = os.environ.get("WEFT_COMM_CHECK", "")
    if text not in {"", "0", "1"}:
        raise ArgumentValueError(f"the environment variable WEFT_COMM_CHECK is 0 or 1, not {text[:40]!r}")
    return text == "1"


def time_limit(seconds: float | None) -> float:
    """Return how long a rank waits for the others: `seconds`, or the value of ``WEFT_COMM_TIMEOUT``."""
    said: object = seconds
    if said is None:
        said = os.environ.get("WEFT_COMM_TIMEOUT") or _PATIENCE
    try:
        found = float(said)  # type: ignore[arg-type] # it refuses other types
    except (TypeError, ValueError):
        found = -1.0
    if not found > 0.0:  # nan is not
        raise ArgumentValueError(f"timeout= (or WEFT_COMM_TIMEOUT) is a positive number of seconds, not {said!r}")
    return found
