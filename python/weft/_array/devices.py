"""Which logical device an array is on: the first CPU unless it was made elsewhere.

Logical CPU devices share the machine's memory; under the ``per_device`` policy each has workers of its own. An op runs
on the device of what it writes, or else of what it reads first, and its results belong there; views are where their
memory is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._array.blas import add_device
from weft._device import Device, cpu

if TYPE_CHECKING:
    from weft._core import NDArray

__all__ = ["as_device", "device_of", "place"]

_CPU = cpu()


def as_device(device: Device | str | None) -> Device:
    """Return the device that `device` names, the first CPU for None.

    Raises
    ------
    ValueError
        If there is no such device.

    Examples
    --------
    >>> from weft._array.devices import as_device
    >>> as_device("cpu:1")
    weft.Device('cpu:1')
    """
    if device is None:
        return _CPU
    return device if isinstance(device, Device) else Device(device)


def device_of(x: NDArray) -> Device:
    """Return the device of an array.

    Examples
    --------
    >>> import weft
    >>> from weft._array.devices import device_of
    >>> device_of(weft.zeros(3, device="cpu:1"))
    weft.Device('cpu:1')
    """
    index = x._device
    return cpu(index) if index else _CPU


def place(x: NDArray, device: Device) -> NDArray:
    """Say on which device a new array is, before anything is pushed on it, and return it."""
    if device.index:
        add_device(x.engine, device.index)
    x._place(device.index)
    return x
