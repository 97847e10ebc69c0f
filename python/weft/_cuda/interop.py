"""CUDA arrays in other libraries' hands, and theirs in ours, without a copy and without a wait for the device.

The consumer of an array gets a stream with it, behind which the values are there: ``__cuda_array_interface__`` of
version 3 names it, and DLPack's exporter makes the consumer's stream wait for it. PyTorch does not read the name, so
the default stream and PyTorch's current one are made to wait as well. Its reads are not ordered with later pushes: use
the array inside an op, or before it is changed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import device_of
from weft._core import cuda_export, cuda_wrap
from weft._cuda.streams import on
from weft._cuda.views import check_aligned, view
from weft._registry.avals import as_dtype
from weft._registry.shapes import contiguous_strides

if TYPE_CHECKING:
    from weft._core import Engine, NDArray

#: CUDA's legacy default stream, as the interface names it.
_DEFAULT_STREAM = 1


def _torch_streams(index: int) -> list[int]:
    """Return PyTorch's current stream of a device, if PyTorch uses CUDA and it is not the default one."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    stream: int = torch.cuda.current_stream(index).cuda_stream
    return [stream] if stream else []


def _behind(x: Any, found: dict[str, Any], index: int) -> int | None:
    """Return the stream behind which the values are there; None where they are there already."""
    if "stream" in found:
        stream: int | None = found["stream"]
        return stream
    # Before version 3 this was not said, and PyTorch does not yet.
    theirs = type(x).__module__.partition(".")[0] == "torch"
    return next(iter(_torch_streams(index) if theirs else ()), _DEFAULT_STREAM)


def interface(x: NDArray) -> dict[str, Any]:
    """Return ``__cuda_array_interface__`` of an array that is on a device."""
    address, _, _, stream, _ = cuda_export(x, [_DEFAULT_STREAM, *_torch_streams(device_of(x).index)])
    return {
        "version": 3,
        "shape": x.shape,
        "typestr": x.dtype.str,
        "data": (address + x._offset, x.readonly),
        "strides": None if x._contiguous else x.strides,
        "stream": stream,
    }


def capsule(x: NDArray, stream: Any, options: dict[str, Any]) -> object:
    """Return a DLPack capsule of an array that is on a device, as CuPy makes it."""
    address, nbytes, device, own, keeper = cuda_export(x)
    shown = view(address, nbytes, x._offset, x.shape, x.strides, x.dtype, device, keeper)
    with on(device, own):
        found: object = shown.__dlpack__(stream=stream, **options)
    return found


def adopt(x: Any, engine: Engine) -> NDArray:
    """Return an array on the memory of an object that has ``__cuda_array_interface__``.

    Raises
    ------
    TypeError
        If arrays cannot have its dtype.
    ValueError
        If its elements do not lie at multiples of their size.
    """
    found: dict[str, Any] = x.__cuda_array_interface__
    dtype = as_dtype(np.dtype(found["typestr"]))
    shape: tuple[int, ...] = found["shape"]
    address, readonly = found["data"]
    strides: tuple[int, ...] = found.get("strides") or contiguous_strides(shape, dtype.itemsize)
    check_aligned(address, shape, strides, dtype)
    index = _index(x)
    return cuda_wrap(
        address,
        shape,
        strides,
        dtype,
        readonly=readonly,
        index=index,
        stream=_behind(x, found, index),
        keeper=x,
        engine=engine,
    )


def _index(x: Any) -> int:
    """Return the number of the device that an object is on; the first where it does not tell."""
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[1])
    device = getattr(x, "device", None)
    found = getattr(device, "id", getattr(device, "index", None))
    return found if isinstance(found, int) else 0
