"""Lists of arrays in MXNet's files (``.params``): read with every length checked, and written."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIST = 0x112
#: The first word of an array, since 0.9, 0.11 and 1.5: before, its number of axes.
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_SPARSE = {1: "row_sparse", 2: "csr"}
_MOST_AXES = 32
_BFLOAT16 = 12
_DTYPES = {
    at: np.dtype(name)
    for at, name in enumerate(
        [
            "float32",
            "float64",
            "float16",
            "uint8",
            "int32",
            "int8",
            "int64",
            "bool",
            "int16",
            "uint16",
            "uint32",
            "uint64",
        ]
    )
}


class _Reader:
    """Bytes of a file, taken from the front."""

    def __init__(self, data: memoryview, name: str) -> None:
        self._data = data
        self._name = name
        self._at = 0
        self._part = "its head"

    def within(self, part: str) -> None:
        """Name the part that is read from here on."""
        self._part = part

    def fail(self, why: str) -> CheckpointError:
        """Return the error for a file that is damaged here."""
        return CheckpointError(f"{self._name} is damaged: {why} (in {self._part}, before byte {self._at})")

    @property
    def left(self) -> int:
        """The number of bytes that have not been taken."""
        return len(self._data) - self._at

    def take(self, count: int) -> memoryview:
        """Take so many bytes."""
        if count > self.left:
            raise self.fail(f"it ends {count - self.left} bytes too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def numbers(self, kind: str, count: int = 1) -> tuple[int, ...]:
        """Take so many numbers."""
        layout = struct.Struct(f"<{count}{kind}")
        return layout.unpack(self.take(layout.size))

    def number(self, kind: str) -> int:
        """Take a number."""
        return self.numbers(kind)[0]


def read_arrays(data: bytes, name: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file, by name; those without names are called by their numbers.

    Parameters
    ----------
    data : bytes
        The bytes of the file.
    name : str
        Its name in messages.

    Raises
    ------
    CheckpointError
        If it is no such file, is damaged, or has arrays that are sparse.

    Examples
    --------
    >>> import numpy
    >>> from weft._mxnet.arrays import read_arrays, write_arrays
    >>> read_arrays(write_arrays({"arg:w": numpy.ones(2, "float32")}), "w.params")
    {'arg:w': array([1., 1.], dtype=float32)}
    """
    if data[:4] == b"PK\x03\x04":
        return _read_zip(data, name)
    reader = _Reader(memoryview(data), name)
    if len(data) < 24 or reader.number("Q") != _LIST:  # three numbers of eight bytes
        raise CheckpointError(f"{name} is no list of arrays of MXNet's: it does not begin as such a file")
    reader.number("Q")
    count = reader.number("Q")
    if count > reader.left // 4:
        raise reader.fail(f"it says that it has {count} arrays, and {reader.left} bytes follow")
    arrays = [_read_array(reader, at) for at in range(count)]
    reader.within("its names")
    names = _read_names(reader, count)
    if reader.left:
        raise reader.fail(f"{reader.left} bytes follow behind the last name")
    return dict(zip(names, arrays, strict=True))


def _read_zip(data: bytes, name: str) -> dict[str, np.ndarray[Any, Any]]:
    """Read a file of MXNet 2's: NumPy's own format."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return {each: file[each] for each in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{name} is damaged: {error}") from error


def _read_array(reader: _Reader, at: int) -> np.ndarray[Any, Any]:
    reader.within(f"array {at}")
    first = reader.number("I")
    if first in {_V2, _V3}:
        kind = reader.number("i")
        if kind in _SPARSE:
            raise CheckpointError(
                f"{reader._name}: array {at} is sparse ({_SPARSE[kind]}), and only dense arrays are read: save it by "
                "tostype('default') in MXNet"
            )
        if kind > 0 or kind < -1:
            raise reader.fail(f"there is no storage of kind {kind}")
        axes = reader.number("i")
        lengths = _lengths(reader, axes, "q")
    elif first == _V1:
        axes = reader.number("I")
        lengths = _lengths(reader, axes, "q")
    else:
        axes = first
        lengths = _lengths(reader, axes, "I")
    if axes < 0 or (axes == 0 and first != _V3):
        return np.zeros(0, np.float32)  # an array that was never made
    reader.numbers("i", 2)  # where it was
    number = reader.number("i")
    dtype = np.dtype(np.uint16) if number == _BFLOAT16 else _DTYPES.get(number)
    if dtype is None:
        raise reader.fail(f"there is no dtype of number {number}")
    size = dtype.itemsize
    for length in lengths:
        size *= length
    elements = np.frombuffer(reader.take(size), dtype.newbyteorder("<"))
    try:
        found = elements.reshape(lengths)
    except ValueError as error:  # of no elements, and too many of them to count
        raise reader.fail(f"no array has the shape {lengths}: {error}") from None
    if number == _BFLOAT16:
        return (found.astype(np.uint32) << 16).view(np.float32)
    return found.astype(dtype)


def _lengths(reader: _Reader, axes: int, kind: str) -> tuple[int, ...]:
    if axes > _MOST_AXES:
        raise reader.fail(f"an array has {axes} axes")
    lengths = reader.numbers(kind, max(axes, 0))
    if any(each < 0 for each in lengths):
        raise reader.fail(f"an array has the shape {lengths}")
    return lengths


def _read_names(reader: _Reader, count: int) -> list[str]:
    given = reader.number("Q")
    if given not in {0, count}:
        raise reader.fail(f"{count} arrays have {given} names")
    if not given:
        return [str(at) for at in range(count)]
    found: list[str] = []
    for _ in range(given):
        raw = bytes(reader.take(reader.number("Q")))
        try:
            found.append(raw.decode())
        except UnicodeDecodeError:
            raise reader.fail(f"{raw[:40]!r} is no name") from None
    if len(set(found)) < count:
        twice = sorted({each for each in found if found.count(each) > 1})
        raise reader.fail(f"two arrays are named {', '.join(twice)}")
    return found


def write_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Return the file of these arrays, as MXNet 1.x writes it: scalars have the shape (1,) there.

    Raises
    ------
    CheckpointError
        If a dtype is none of MXNet's.

    Examples
    --------
    >>> import numpy
    >>> from weft._mxnet.arrays import write_arrays
    >>> len(write_arrays({"w": numpy.ones(2, "float32")}))
    81
    """
    numbers = {dtype: at for at, dtype in _DTYPES.items()}
    parts = [struct.pack("<3Q", _LIST, 0, len(arrays))]
    for name, array in arrays.items():
        number = numbers.get(array.dtype)
        if number is None:
            raise CheckpointError(f"{name!r} has the dtype {array.dtype}, which MXNet's files have not")
        shape = array.shape or (1,)
        parts.append(struct.pack(f"<Iii{len(shape)}q3i", _V2, 0, len(shape), *shape, 1, 0, number))
        parts.append(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    parts.append(struct.pack("<Q", len(arrays)))
    for name in arrays:
        raw = name.encode()
        parts.append(struct.pack("<Q", len(raw)) + raw)
    return b"".join(parts)
