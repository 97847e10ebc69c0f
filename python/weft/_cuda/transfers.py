"""Copies of arrays to, from and between CUDA devices, for all layouts.

Only contiguous elements travel. Other elements are packed at the source, and unpacked at the target.
"""

from __future__ import annotations

from weft._call.operands import share
from weft._core import NDArray, beside, copy_elements as _copy_elements, cuda_copy
from weft._cuda.elementwise import casting, copying


def compact(x: NDArray) -> NDArray:
    """Return a contiguous copy of an array, where it is, without waiting."""
    result = beside(x, x.shape, x.dtype)
    if x._elsewhere:
        copying(x.dtype).push((result,), (x,))
    else:
        _copy_elements(result, x)
    return result


def copy_elements(target: NDArray, x: NDArray) -> None:
    """Push the copy of `x`, broadcast, to `target`, which has its dtype; one of them is on a CUDA device."""
    direct = target._contiguous and x._contiguous and target.shape == x.shape
    if target._device == x._device:
        if direct and not share(target, x):
            cuda_copy(target, x)
        else:
            copying(x.dtype).push((target,), (x,))
        return
    source = x if x._contiguous else compact(x)
    if direct or (target._contiguous and target.shape == x.shape):
        cuda_copy(target, source)
        return
    arrived = beside(target, x.shape, x.dtype)
    cuda_copy(arrived, source)
    _copy_elements(target, arrived)


def copy_cast(target: NDArray, x: NDArray) -> None:
    """Push the copy of `x` into `target`, broadcast to its shape, with an unchecked cast.

    Elements are cast on a device: on that of `x` if they become smaller, else on that of `target`.
    """
    if x._device == target._device:
        casting(x.dtype, target.dtype).push((target,), (x,))
        return
    on_device = x._elsewhere and (not target._elsewhere or target.dtype.itemsize < x.dtype.itemsize)
    if on_device:
        cast = beside(x, x.shape, target.dtype)
        casting(x.dtype, target.dtype).push((cast,), (x,))
        copy_elements(target, cast)
    else:
        arrived = beside(target, x.shape, x.dtype)
        copy_elements(arrived, x)
        casting(x.dtype, target.dtype).push((target,), (arrived,))
