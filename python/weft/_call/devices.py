"""Which device an array is on: the first CPU unless it was made elsewhere.

Logical CPU devices share the machine's memory; under the ``per_device`` policy each has workers of its own. An op runs
on the device of its output, or else of its first input, and its results belong there; views are where their memory is.
A CUDA device has memory of its own: an array is on it from the beginning, and nothing else gets there but by a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._call.symbol_hook import UnknownFactError, is_symbol
from weft._core import _FIRST_CUDA_DEVICE, copy_elements, cuda_empty, empty
from weft._engine.labels import Device, cpu, gpu

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from weft._core import Engine, NDArray, Outline
    from weft._registry.avals import DType

    #: A device or its name; None is the first CPU.
    Where: TypeAlias = Device | str | None

__all__ = ["as_device", "device_of", "new", "place"]

_CPU = cpu()


def as_device(device: Where) -> Device:
    """Return the device that `device` names, the first CPU for None.

    Raises
    ------
    ValueError
        If there is no such device.

    Examples
    --------
    >>> from weft._call.devices import as_device
    >>> as_device("cpu:1")
    weft.Device('cpu:1')
    """
    if device is None:
        return _CPU
    return device if isinstance(device, Device) else Device(device)


def device_of(x: NDArray | Outline) -> Device:
    """Return the device of an array.

    Examples
    --------
    >>> import weft
    >>> from weft._call.devices import device_of
    >>> device_of(weft.zeros(3, device="cpu:1"))
    weft.Device('cpu:1')
    """
    try:
        number = x._device
    except AttributeError:
        if is_symbol(x):
            raise UnknownFactError("where a symbol will be computed is not known") from None
        raise
    if number >= _FIRST_CUDA_DEVICE:
        return gpu(number - _FIRST_CUDA_DEVICE)
    return cpu(number) if number else _CPU


def new(shape: Sequence[int], dtype: DType, engine: Engine, device: Device) -> NDArray:
    """Return a new array of undefined elements on a device.

    Examples
    --------
    >>> import weft
    >>> from weft._call.devices import new
    >>> new((2, 3), weft.float32, weft.get_engine(), weft.cpu(1)).device
    weft.Device('cpu:1')
    """
    if device.kind == "cuda":
        return cuda_empty(shape, dtype, engine, device.index)
    return place(empty(shape, dtype, engine), device)


def place(x: NDArray, device: Device) -> NDArray:
    """Say on which device a new array of the host is, before anything else is done with it, and return it there.

    On a CUDA device it becomes another array, to which its values are copied.
    """
    if device.kind == "cuda":
        moved = cuda_empty(x.shape, x.dtype, x.engine, device.index)
        copy_elements(moved, x)
        return moved
    x._place(device._number)
    return x
