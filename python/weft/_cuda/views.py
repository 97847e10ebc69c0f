"""CuPy arrays on the memory of weft's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._cuda.streams import cupy

if TYPE_CHECKING:
    from weft._array.rules import DType

__all__ = ["view"]


def view(
    address: int,
    nbytes: int,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    device: int,
    keeper: object,
) -> Any:  # noqa: ANN401 - CuPy has no types
    """Return a CuPy array on device memory, which `keeper` keeps.

    Parameters
    ----------
    address : int
        Where the memory begins.
    nbytes : int
        How long it is.
    offset : int
        Where the first element lies in it, in bytes.
    shape, strides, dtype
        The array's, the strides in bytes.
    device : int
        The device's number.
    keeper : object
        What the array holds as long as it lives.
    """
    library = cupy()
    memory = library.cuda.UnownedMemory(address, nbytes, keeper, device)
    pointer = library.cuda.MemoryPointer(memory, offset)
    return library.ndarray(shape, dtype, memptr=pointer, strides=strides)
