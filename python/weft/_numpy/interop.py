"""Arrays in other libraries' hands: NumPy's `__array__`, DLPack, the array API's namespace, pickle and copy.

Exports without a copy are read-only: a write would race with ops that are pushed later. NumPy's functions and ufuncs on
NDArrays are in `numpy_functions` and `numpy_ufuncs`.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.backends import backend_of
from weft._call.devices import as_device, device_of, place
from weft._call.operands import read_only
from weft._core import NDArray, Scope, tape_entry, tape_leaf, wrap
from weft._engine.default import get_engine
from weft._numpy.functions import __array_function__
from weft._numpy.ufuncs import __array_ufunc__
from weft._ops.dtypes import astype
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import numpy.typing as npt

#: Versions of the array API standard that the namespace has in full.
_API_VERSIONS = frozenset(["2021.12", "2022.12", "2023.12", "2024.12"])
_CPU = (1, 0)  # kDLCPU; logical devices are one device to DLPack
_SIGNALS_READ_ONLY = (1, 0)  # the first version of DLPack that can say so


def attach() -> None:
    """Give NDArray the methods of this module; done once, when weft is imported."""
    methods: tuple[Callable[..., object], ...] = (
        __array__,
        __array_namespace__,
        __dlpack__,
        __dlpack_device__,
        __reduce__,
        __copy__,
        __deepcopy__,
        __array_ufunc__,
        __array_function__,
    )
    for method in methods:
        method.__qualname__ = f"NDArray.{method.__name__}"
        setattr(NDArray, method.__name__, method)
    setattr(NDArray, "__array_interface__", property(__array_interface__))


def __array__(self: NDArray, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
    """Wait, and return the values as a NumPy array: a read-only view where neither `dtype` nor `copy` asks for more.

    Inside an op that was pushed with the array among its accesses there is no wait; if it changes the array, the view
    may be written to.

    Examples
    --------
    >>> import numpy, weft
    >>> numpy.asarray(weft.asarray([1, 2])).flags.writeable
    False
    """
    return np.array(self._values(), dtype, copy=copy)


def __array_interface__(self: NDArray) -> dict[str, Any]:
    """Wait, and describe the memory, read-only, to libraries that know NumPy's older protocol alone, as Pillow.

    Raises
    ------
    AttributeError
        If the array is on a device with memory of its own.
    """
    x = self._now
    if x._elsewhere:
        raise AttributeError(f"an array on {device_of(x)} has no memory that the CPU reads: copy it to the CPU first")
    shown = read_only(x._values())
    x._stay()
    return {**shown.__array_interface__, "strides": None if x._contiguous else shown.strides}


def __array_namespace__(self: NDArray, /, *, api_version: str | None = None) -> ModuleType:  # noqa: ARG001
    """Return `weft`, which is a namespace of the Python array API standard.

    Raises
    ------
    ValueError
        If `api_version` is one that the namespace does not follow.
    """
    if api_version is not None and api_version not in _API_VERSIONS:
        raise ArgumentValueError(f"weft follows the array API standard up to {max(_API_VERSIONS)}, not {api_version!r}")
    return sys.modules["weft"]


def __dlpack__(
    self: NDArray,
    /,
    *,
    stream: object = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """Wait, and return a DLPack capsule of the memory: read-only, or a copy.

    A consumer older than DLPack 1.0 cannot be told that memory is read-only and gets a copy, unless ``copy=False``.

    Raises
    ------
    BufferError
        If the memory cannot be given as is asked.
    """
    x = self._now
    if x._elsewhere:
        if dl_device is not None and tuple(dl_device) != __dlpack_device__(x):
            raise BufferError(f"an array on {device_of(x)} cannot be exported to the DLPack device {dl_device}")
        given = {"max_version": max_version, "copy": copy}
        return backend_of(x).capsule(x, stream, {name: value for name, value in given.items() if value is not None})
    if stream is not None:
        raise ArgumentValueError(f"arrays on the CPU have no streams: stream must be None, not {stream!r}")
    if dl_device is not None and tuple(dl_device) != _CPU:
        raise BufferError(f"an array on the CPU, {_CPU}, cannot be exported to the DLPack device {dl_device}")
    x.wait_to_read()
    array: Any = read_only(x._storage())
    signals = max_version is not None and tuple(max_version) >= _SIGNALS_READ_ONLY
    if not signals and copy is None:
        array = array.copy()
    return array.__dlpack__(max_version=max_version, copy=copy)


def __dlpack_device__(self: NDArray, /) -> tuple[int, int]:
    """Return DLPack's number of the kind of device, and of the device."""
    x = self._now
    return (backend_of(x).dlpack, device_of(x).index) if x._elsewhere else _CPU


def __reduce__(self: NDArray) -> tuple[Callable[..., NDArray], tuple[npt.NDArray[Any], str]]:
    """Wait, and pickle the values; they come back on the default engine, on the same device."""
    x = self._now
    x.wait_to_read()
    return _unpickle, (read_only(x._storage()), str(device_of(x)))


def _unpickle(array: npt.NDArray[Any], device: str = "cpu") -> NDArray:
    # Out-of-band buffers may belong to others: then they are read-only.
    return place(wrap(array if array.flags.writeable else array.copy(), get_engine()), as_device(device))


def __copy__(self: NDArray) -> NDArray:
    """Return a new array of the same values, without waiting."""
    return astype(self, self.dtype)


def __deepcopy__(self: NDArray, memo: dict[int, object]) -> NDArray:  # noqa: ARG001
    """Return a new array of the same values, without waiting; of one with `requires_grad`, one that requires it, too."""
    found = tape_entry(self)
    if found is None or found[0].leaf is None:
        return __copy__(self)
    with Scope(paused=True):
        result = __copy__(self)
    tape_leaf(result, weakref.ref(result), found[0].stores)
    return result
