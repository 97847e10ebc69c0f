"""CUDA devices: their presence, their memory, and waiting for them.

An array is on a device from the beginning (``weft.zeros(n, device=weft.gpu(0))``), or gets there as a copy
(``x.to_device(weft.gpu(0))``). Importing this module opens nothing: the driver is loaded when it is first asked for.
``WEFT_CUDA_LIBRARY`` names the driver's library where it is not in its usual place, as in some containers;
``WEFT_NVRTC_LIBRARY`` that of NVRTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weft import _core
from weft._core import RawKernel
from weft._cuda.kernels import RawModule
from weft._engine.default import get_engine
from weft._engine.labels import Device, gpu
from weft._ops.creation import checked
from weft._program.capture import capture
from weft._program.program import Program as Graph
from weft._registry.avals import as_dtype
from weft.errors import ArgumentTypeError, ArgumentValueError, CudaUnavailableError

if TYPE_CHECKING:
    from typing import SupportsIndex

    import numpy.typing as npt

    from weft._core import Engine, NDArray
    from weft._registry.shapes import AnyShape

__all__ = [
    "Graph", "MemoryStats", "RawKernel", "RawModule", "capture", "current_stream", "device_count", "empty_pinned",
    "is_available", "memory_stats", "memory_trim", "synchronize",
]  # fmt: skip


class MemoryStats(NamedTuple):
    """Bytes of a device's memory. Made by `memory_stats`.

    Attributes
    ----------
    in_use, peak : int
        Held by arrays; the most that was held at the same time.
    blocks : int
        How many blocks that is.
    held : int
        Held by weft's pool on the device, in use or kept for reuse: an eighth of its memory is kept at most.
    free, total : int
        Not in anybody's use, other processes counted; all there is.
    pinned : int
        Pinned memory of the host, in use or kept for reuse.
    lost : int
        Bytes that the driver refused to take back. They are gone until the process ends.
    """

    in_use: int
    peak: int
    blocks: int
    held: int
    free: int
    total: int
    pinned: int
    lost: int


def is_available() -> bool:
    """Return whether there is a CUDA device to be used. Opens the driver, and never raises.

    Examples
    --------
    >>> import weft
    >>> isinstance(weft.cuda.is_available(), bool)
    True
    """
    try:
        return _core.cuda_device_count() > 0
    except CudaUnavailableError:
        return False


def device_count() -> int:
    """Return how many CUDA devices there are; 0 without a driver.

    Examples
    --------
    >>> import weft
    >>> weft.cuda.device_count() >= 0
    True
    """
    try:
        return _core.cuda_device_count()
    except CudaUnavailableError:
        return 0


def empty_pinned(shape: AnyShape, dtype: npt.DTypeLike | None = None, *, engine: Engine | None = None) -> NDArray:
    """Return an array of the host's in pinned memory, of undefined elements.

    It is an array like any other on the CPU, and every device reaches its memory by itself: copies from and to it run at
    the speed of the link, beside kernels and beside each other. Copies from and to other memory go through pinned
    blocks, which some thread fills or empties.

    Pinned memory is taken from all other processes; take as much as copies need at the same time, and use it again. It is not
    there in a forked child.

    Parameters
    ----------
    shape : int or sequence of int
        The lengths of the axes.
    dtype : dtype-like, optional
        The dtype; by default float64.
    engine : Engine, optional
        The engine; by default the default one.

    Raises
    ------
    CudaUnavailableError
        If there is no device.
    CudaError
        If the system has no more memory to be pinned.
    ValueError
        If a length is negative.
    """
    lengths, exact = checked(shape, np.dtype(np.float64) if dtype is None else as_dtype(dtype))
    return _core.cuda_empty_pinned(lengths, exact, engine or get_engine())


def synchronize(device: Device | str | SupportsIndex | None = None, timeout: float | None = None) -> None:
    """Wait for all that was pushed on the default engine, and until a device has done it.

    Parameters
    ----------
    device : Device, str or int, optional
        The device; by default all that are in use.
    timeout : float, optional
        The most seconds to wait.

    Raises
    ------
    CudaUnavailableError
        If there is no such device.
    WaitTimeoutError
        If the time runs out.
    BaseException
        The exception of an op, if it was not told yet.
    """
    get_engine().wait_for_all(timeout)
    if device is not None:
        _core.cuda_synchronize(_index(device), timeout)


def memory_stats(device: Device | str | SupportsIndex = 0) -> MemoryStats:
    """Return the bytes of a device's memory.

    Parameters
    ----------
    device : Device, str or int, default: 0
        The device.

    Raises
    ------
    CudaUnavailableError
        If there is no such device.
    """
    return MemoryStats(**_core.cuda_memory_stats(_index(device)))


def memory_trim() -> None:
    """Give the memory that devices keep for reuse back, and pinned memory of the host."""
    _core.cuda_trim()


def current_stream() -> tuple[Device, int] | None:
    """Return the device and the stream of the op that this thread runs, or None if that is no op on a device.

    The stream is a ``cudaStream_t`` as an integer. Launches of the op's callable there come after all that the op's
    accesses ask for, and before all that asks for the op. CuPy's current stream is that one already.

    Examples
    --------
    >>> import weft
    >>> weft.cuda.current_stream() is None
    True
    """
    found = _core.cuda_current_stream()
    return None if found is None else (gpu(found[0]), found[1])


def _index(device: Device | str | SupportsIndex) -> int:
    if isinstance(device, str):
        device = Device(device)
    if not isinstance(device, Device):
        try:
            device = gpu(device)
        except ArgumentTypeError:
            raise ArgumentTypeError(
                f"a CUDA device is a weft.Device, a string or an integer, not {type(device).__name__}"
            ) from None
    if device.kind != "cuda":
        raise ArgumentValueError(f"{device} is no CUDA device: name one as weft.gpu(0)")
    return device.index
