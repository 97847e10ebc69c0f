"""Which logical device an array is on: a label of the array, the first CPU unless it was made elsewhere.

Logical CPU devices share the machine's memory. The label belongs to the one array that was made with it: views of it
and results of ops on it are on the first CPU.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from weft._device import Device, cpu

if TYPE_CHECKING:
    from weft._core import NDArray

__all__ = ["as_device", "device_of", "place"]

_CPU = cpu()
_labels: dict[int, tuple[weakref.ref[NDArray], Device]] = {}  # by id: arrays compare by element and have no hash


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
    label = _labels.get(id(x))
    return _CPU if label is None else label[1]


def place(x: NDArray, device: Device) -> NDArray:
    """Label a new array with its device, and return it."""
    if device != _CPU:
        key = id(x)
        _labels[key] = weakref.ref(x, lambda _: _labels.pop(key, None)), device
    return x
