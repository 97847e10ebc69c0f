"""The stream of an op, made the current one for the libraries that the op's callable uses."""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weft._core import Nested
from weft.errors import CudaUnavailableError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

#: Pairs of a device and a stream with objects that a thread keeps.
_STREAMS = 64


class _Handle:
    """A stream by the CUDA stream protocol. The engine's streams outlive their users."""

    __slots__ = ("_address",)

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._address)


def cupy() -> Any:
    """Return CuPy.

    Raises
    ------
    CudaUnavailableError
        If it is not installed.
    """
    try:
        return import_module("cupy")
    except ImportError as error:
        raise CudaUnavailableError(
            f"CuPy cannot be imported ({error}), and ops on CUDA arrays that have no kernel of weft's call its functions: "
            "pip install cupy-cuda13x, or cupy-cuda12x for a driver for CUDA 12"
        ) from None


def _made(cuda: Any, device: int, stream: int) -> Nested:
    """Return a context that makes a device and a stream of it CuPy's current ones on this thread."""
    its_device = cuda.Device(device)
    if not hasattr(cuda.Stream, "from_external"):  # CuPy 13 and older
        return Nested(its_device, cuda.ExternalStream(stream, device))
    # CuPy refuses a stream that is not of the runtime's current device.
    with its_device:
        return Nested(its_device, cuda.Stream.from_external(_Handle(stream)))


class _Known(threading.local):
    """Those of this thread, by CuPy, device and stream: to make one takes microseconds."""

    def __init__(self) -> None:
        self.found: dict[tuple[Any, int, int], list[Nested]] = {}


_known = _Known()


def on(device: int, stream: int) -> Nested:
    """Return a context that makes a device and a stream of it CuPy's current ones on this thread.

    Parameters
    ----------
    device : int
        The device's number.
    stream : int
        The stream's address.
    """
    if len(_known.found) > _STREAMS:  # streams of other libraries come and go
        _known.found.clear()
    cuda = cupy().cuda
    known = _known.found.setdefault((cuda, device, stream), [])
    for each in known:
        if not each._entered:
            return each
    known.append(_made(cuda, device, stream))
    return known[-1]


def current(device: int, stream: int) -> AbstractContextManager[Any]:
    """Return a context that makes a stream CuPy's current one on this thread. Without CuPy there is nothing to do."""
    is_there = "cupy" in sys.modules or find_spec("cupy") is not None  # to look for it takes as long as many ops
    return on(device, stream) if is_there else nullcontext()
