"""CUDA arrays in other libraries' hands, and theirs in ours, without a copy and without a wait for the device.

Whoever takes an array gets a stream with it, behind which the values are there: ``__cuda_array_interface__`` of version 3
names it, and DLPack's exporter makes the consumer's stream wait for it. What the consumer then reads is not ordered with
what is pushed later: use it inside an op, or before the array is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._array.rules import as_dtype
from weft._array.shapes import contiguous_strides
from weft._core import cuda_export, cuda_wrap
from weft._cuda.streams import on
from weft._cuda.views import view

if TYPE_CHECKING:
    from weft._core import Engine, NDArray

__all__ = ["adopt", "capsule", "interface"]


def interface(x: NDArray) -> dict[str, Any]:
    """Return ``__cuda_array_interface__`` of an array that is on a device."""
    address, _, _, stream, _ = cuda_export(x)
    return {
        "version": 3,
        "shape": x.shape,
        "typestr": x.dtype.str,
        "data": (address + x._offset, x.readonly),
        "strides": None if x._contiguous else x.strides,
        "stream": stream,
    }


def capsule(x: NDArray, stream: Any, options: dict[str, Any]) -> object:  # noqa: ANN401 - CuPy's
    """Return a DLPack capsule of an array that is on a device, as CuPy makes it."""
    address, nbytes, device, own, keeper = cuda_export(x)
    shown = view(address, nbytes, x._offset, x.shape, x.strides, x.dtype, device, keeper)
    with on(device, own):
        found: object = shown.__dlpack__(stream=stream, **options)
    return found


def adopt(x: Any, engine: Engine) -> NDArray:  # noqa: ANN401 - CuPy's, torch's or Numba's array
    """Return an array on the memory of an object that has ``__cuda_array_interface__``.

    Raises
    ------
    TypeError
        If arrays cannot have its dtype.
    """
    found: dict[str, Any] = x.__cuda_array_interface__
    dtype = as_dtype(np.dtype(found["typestr"]))
    shape: tuple[int, ...] = found["shape"]
    address, readonly = found["data"]
    return cuda_wrap(
        address,
        shape,
        found.get("strides") or contiguous_strides(shape, dtype.itemsize),
        dtype,
        readonly=readonly,
        index=_index(x),
        stream=found.get("stream"),
        keeper=x,
        engine=engine,
    )


def _index(x: Any) -> int:  # noqa: ANN401 - as above
    """Return the number of the device that an object is on; the first where it does not tell."""
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[1])
    device = getattr(x, "device", None)
    found = getattr(device, "id", getattr(device, "index", None))
    return found if isinstance(found, int) else 0
