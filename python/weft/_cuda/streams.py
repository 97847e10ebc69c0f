"""The stream of an op, made the current one for the libraries that the op's callable uses."""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weft.errors import CudaUnavailableError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Self

#: Pairs of a device and a stream whose objects a thread keeps.
_STREAMS = 64


class _Handle:
    """A stream by the CUDA stream protocol. The engine's streams outlive those who use them."""

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


class _Current:
    """A device and a stream of it, CuPy's current ones on this thread while it is entered."""

    __slots__ = ("_device", "_spare", "_stream")

    def __init__(self, cuda: Any, device: int, stream: int, spare: list[_Current]) -> None:
        self._device = cuda.Device(device)
        if hasattr(cuda.Stream, "from_external"):
            # CuPy refuses a stream that is not of the runtime's current device.
            with self._device:
                self._stream = cuda.Stream.from_external(_Handle(stream))
        else:  # CuPy 13 and older
            self._stream = cuda.ExternalStream(stream, device)
        self._spare = spare

    def __enter__(self) -> Self:
        self._device.__enter__()
        self._stream.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._stream.__exit__(*error)
        finally:
            self._device.__exit__(*error)
            self._spare.append(self)


class _Spare(threading.local):
    """Those of this thread that nobody has entered, by CuPy, device and stream: to make one takes microseconds."""

    def __init__(self) -> None:
        self.found: dict[tuple[Any, int, int], list[_Current]] = {}


_spare = _Spare()


def on(device: int, stream: int) -> AbstractContextManager[Any]:
    """Make a device and a stream of it CuPy's current ones on this thread, and return what ends that.

    Parameters
    ----------
    device : int
        The device's number.
    stream : int
        The stream's address.
    """
    if len(_spare.found) > _STREAMS:  # streams of other libraries come and go
        _spare.found.clear()
    cuda = cupy().cuda
    spare = _spare.found.setdefault((cuda, device, stream), [])
    return (spare.pop() if spare else _Current(cuda, device, stream, spare)).__enter__()


def enter(device: int, stream: int) -> AbstractContextManager[Any]:
    """Make a stream CuPy's current one on this thread, and return what ends that. Without CuPy there is nothing to do."""
    is_there = "cupy" in sys.modules or find_spec("cupy") is not None  # to look for it takes as long as many ops
    return on(device, stream) if is_there else nullcontext()
