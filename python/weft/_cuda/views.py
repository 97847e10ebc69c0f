"""Memory of devices as elements: CuPy arrays on the memory of weft's, and where elements may lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._cuda.streams import cupy
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from weft._registry.avals import DType


def check_aligned(start: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> None:
    """Refuse elements that do not lie at multiples of their size: a kernel that reads one makes the device unusable for good.

    Parameters
    ----------
    start : int
        How many bytes the first element lies behind an address that is a multiple of all sizes.
    shape, strides, dtype
        The array's, the strides in bytes.

    Raises
    ------
    ArgumentValueError
        If an element lies elsewhere.
    """
    steps = (stride for length, stride in zip(shape, strides, strict=True) if length > 1)
    if 0 not in shape and any(place % dtype.itemsize for place in (start, *steps)):
        raise ArgumentValueError(
            f"a CUDA device reads elements of {dtype} only at multiples of {dtype.itemsize} bytes, and these begin "
            f"{start % dtype.itemsize} bytes behind one and have strides of {tuple(strides)}: copy the array first"
        )


def view(
    address: int,
    nbytes: int,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    device: int,
    keeper: object,
) -> Any:
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
        An object that the array holds as long as it lives.
    """
    library = cupy()
    memory = library.cuda.UnownedMemory(address, nbytes, keeper, device)
    pointer = library.cuda.MemoryPointer(memory, offset)
    return library.ndarray(shape, dtype, memptr=pointer, strides=strides)
