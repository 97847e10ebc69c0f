"""The device of an array: the first CPU unless the caller chose another.

Logical CPU devices share the machine's memory; under the ``per_device`` policy each has workers of its own. An op runs
on the device of its output, or else of its first input, and its results belong there; views belong to the device of
their memory. Other kinds of devices have memory of their own (`backends`): an array is there from the beginning, and
only a copy brings other arrays there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._call.backends import backend_named
from weft._core import copy_elements, empty
from weft._engine.labels import Device, cpu, numbered
from weft._registry.symbol_hook import UnknownFactError, is_symbol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from weft._core import Engine, NDArray, Outline
    from weft._registry.avals import DType

    #: A device or its name; None is the first CPU.
    Where: TypeAlias = Device | str | None

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
    return numbered(number) if number else _CPU


def new(shape: Sequence[int], dtype: DType, engine: Engine, device: Device) -> NDArray:
    """Return a new array of undefined elements on a device.

    Examples
    --------
    >>> import weft
    >>> from weft._call.devices import new
    >>> new((2, 3), weft.float32, weft.get_engine(), weft.cpu(1)).device
    weft.Device('cpu:1')
    """
    if device.kind != "cpu":
        return backend_named(device.kind).empty(shape, dtype, engine, device.index)
    return place(empty(shape, dtype, engine), device)


def place(x: NDArray, device: Device) -> NDArray:
    """Put a new array of the host on a device before its first use, and return it there.

    On a device with memory of its own the result is another array, a copy.
    """
    if device.kind != "cpu":
        moved = backend_named(device.kind).empty(x.shape, x.dtype, x.engine, device.index)
        copy_elements(moved, x)
        return moved
    x._place(device._number)
    return x
