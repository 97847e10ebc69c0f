"""``x.flat``: an array as if it had one axis, to read and to write, for any layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import values
from weft._core import NDArray
from weft._ops.manipulation import ravel

if TYPE_CHECKING:
    from collections.abc import Iterator


class Flat:
    """The elements of an array in C order. Made by ``x.flat``.

    Examples
    --------
    >>> import weft
    >>> x = weft.zeros((2, 2))
    >>> x.flat[1:3] = 5
    >>> x
    NDArray([[0., 5.],
             [5., 0.]])
    """

    __slots__ = ("_array",)

    def __init__(self, array: NDArray) -> None:
        self._array = array

    def __len__(self) -> int:
        """Return the number of elements."""
        return self._array.size

    def __getitem__(self, key: Any) -> NDArray:
        """Return elements, a copy of them as in NumPy."""
        found = ravel(self._array)[key]
        return found.copy() if found._shares_buffer(self._array) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Push a write of elements, without waiting."""
        array = self._array
        if isinstance(key, NDArray):
            key = values(key)
        places = np.arange(array.size)[key]
        if array.ndim:
            array[tuple(np.unravel_index(places, array.shape))] = value
        elif np.size(places):
            array[()] = value

    def __iter__(self) -> Iterator[NDArray]:
        """Return the elements one by one."""
        flat = ravel(self._array)
        return (flat[at] for at in range(flat.size))
