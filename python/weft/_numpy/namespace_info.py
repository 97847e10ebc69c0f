"""`__array_namespace_info__`: the abilities of the array namespace, in the form of the Python array API standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from weft._call.devices import as_device
from weft._engine.labels import cpu
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from weft._call.calls import DType
    from weft._engine.labels import Device

Capabilities = TypedDict(
    "Capabilities", {"boolean indexing": bool, "data-dependent shapes": bool, "max dimensions": int | None}
)
DefaultDTypes = TypedDict(
    "DefaultDTypes", {"real floating": "DType", "complex floating": "DType", "integral": "DType", "indexing": "DType"}
)

_MAX_DIMENSIONS = 64  # NumPy's, as arrays are handed to it
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")  # float16 is not of the standard
_COMPLEX = ("complex64", "complex128")
_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


class ArrayNamespaceInfo:
    """What `weft.__array_namespace_info__()` returns.

    Examples
    --------
    >>> import weft
    >>> weft.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """

    __slots__ = ()

    def capabilities(self) -> Capabilities:
        """Return the standard's options, and whether each is there.

        Value-dependent shapes are: such functions wait for their operands.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_DIMENSIONS}

    def default_device(self) -> Device:
        """Return the device of arrays for which none is named."""
        return cpu()

    def default_dtypes(self, *, device: Device | str | None = None) -> DefaultDTypes:
        """Return the dtypes of arrays for which none is named, on every device the same."""
        as_device(device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def devices(self) -> list[Device]:
        """Return the devices of this machine. Beside the first CPU, `weft.cpu(i)` are labels of the same memory."""
        return [cpu()]

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Return the dtypes by name, all or those of a kind or several, on every device the same.

        Parameters
        ----------
        device : Device, optional
            The device.
        kind : str or tuple of str, optional
            "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric".

        Raises
        ------
        ValueError
            If there is no such kind.

        Examples
        --------
        >>> import weft
        >>> list(weft.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        as_device(device)
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        unknown = [each for each in kinds if each not in _KINDS]
        if unknown:
            raise ArgumentValueError(f"unknown kind of dtype {unknown[0]!r}: known are {', '.join(_KINDS)}")
        return {name: np.dtype(name) for each in kinds for name in _KINDS[each]}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Return the abilities of the array namespace, as the Python array API standard asks.

    Examples
    --------
    >>> import weft
    >>> weft.__array_namespace_info__().default_dtypes()["indexing"]
    dtype('int64')
    """
    return ArrayNamespaceInfo()
