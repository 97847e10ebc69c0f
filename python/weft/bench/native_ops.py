"""Native ops that need no compiler: functions of the C library that take one pointer and return 0.

``abs`` called with 0 does nothing. ``sigfillset`` fills a signal set, which reads as a raised flag. ``atoi`` reads a number: of
digits that are all 0 it makes 0, one multiplication after the other, so it computes for as long as there are digits.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: At least a signal set's on every system.
FLAG_BYTES = 128


class NativeOps:
    """Addresses of the functions, and the same functions through ctypes.

    Parameters
    ----------
    library : ctypes.CDLL
        The C library.

    Raises
    ------
    AttributeError
        If it lacks one of them.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self.no_op = _function(library, "abs")
        self.raise_flag = _function(library, "sigfillset")
        self.read_digits = _function(library, "atoi")
        self.no_op_address = _address(self.no_op)
        self.raise_flag_address = _address(self.raise_flag)
        self.read_digits_address = _address(self.read_digits)


class Kernel:
    """Work for ``read_digits``: tasks that compute for as long as one likes.

    Parameters
    ----------
    native : NativeOps
        Whose function is called.
    most : int
        Digits of the longest task.
    """

    def __init__(self, native: NativeOps, most: int) -> None:
        self._text = ctypes.create_string_buffer(b"0" * most)
        self._most = most
        if native.read_digits(self.data(most)) != 0:
            raise ArithmeticError("the C library reads zeros as another number")

    def data(self, digits: int) -> int:
        """Return the function's argument, to read so many digits; it lives as long as this object."""
        return ctypes.addressof(self._text) + self._most - digits


def load() -> NativeOps | None:
    """Return the ops, or None where the C library has no such functions, as on Windows."""
    try:
        return NativeOps(ctypes.CDLL(ctypes.util.find_library("c")))
    except (AttributeError, OSError, TypeError):
        return None


def _function(library: ctypes.CDLL, name: str) -> Callable[[int | None], int]:
    function: Any = library[name]  # a copy of its own: attributes are shared with other users of the library
    function.argtypes = [ctypes.c_void_p]
    function.restype = ctypes.c_int32
    found: Callable[[int | None], int] = function
    return found


def _address(function: Callable[[int | None], int]) -> int:
    found: Any = function
    address = ctypes.cast(found, ctypes.c_void_p).value
    if address is None:
        raise AttributeError("a function of the C library has no address")
    return address
