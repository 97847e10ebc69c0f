"""The stream of an op, made the current one for the libraries that the op's callable uses."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weft.errors import CudaUnavailableError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["cupy", "enter", "on"]


class _Handle:
    """A stream by the CUDA stream protocol. The engine's streams outlive those who use them."""

    __slots__ = ("_address",)

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._address)


def cupy() -> Any:  # noqa: ANN401 - a module without types
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


def on(device: int, stream: int) -> AbstractContextManager[Any]:
    """Make a device and a stream of it CuPy's current ones on this thread, and return what ends that.

    Parameters
    ----------
    device : int
        The device's number.
    stream : int
        The stream's address.
    """
    cuda = cupy().cuda
    entered = ExitStack()
    # CuPy refuses a stream that is not of the runtime's current device.
    entered.enter_context(cuda.Device(device))
    if hasattr(cuda.Stream, "from_external"):
        entered.enter_context(cuda.Stream.from_external(_Handle(stream)))
    else:  # CuPy 13 and older
        entered.enter_context(cuda.ExternalStream(stream, device))
    return entered


def enter(device: int, stream: int) -> AbstractContextManager[Any]:
    """Make a stream CuPy's current one on this thread, and return what ends that. Without CuPy there is nothing to do."""
    return nullcontext() if find_spec("cupy") is None else on(device, stream)
