"""The stream of an op, made the current one for the libraries that the op's callable uses."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weft.errors import CudaUnavailableError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["cupy", "enter"]


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
            "pip install cupy-cuda12x"
        ) from None


def enter(device: int, stream: int) -> AbstractContextManager[Any]:
    """Make a stream CuPy's current one on this thread, and return what ends that. Without CuPy there is nothing to do."""
    if find_spec("cupy") is None:
        return nullcontext()
    entered: AbstractContextManager[Any] = cupy().cuda.ExternalStream(stream, device)
    entered.__enter__()
    return entered
