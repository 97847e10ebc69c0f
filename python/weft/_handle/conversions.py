"""An array's values in Python's hands: scalars, lists, NumPy arrays, text. All of these methods wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import values
from weft._core import recording
from weft.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft._core import NDArray


def numpy(self: NDArray) -> npt.NDArray[Any]:
    """Wait, and return the values as an independent NumPy array.

    Returns
    -------
    numpy.ndarray
        A writable copy.

    Raises
    ------
    BaseException
        The error of the op that was to make the values.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([1, 2]).numpy()
    array([1, 2])
    """
    return values(self).copy()


def item(self: NDArray, *args: Any) -> bool | int | float | complex:
    """Wait, and return one element as a Python scalar.

    Parameters
    ----------
    *args : int or tuple of int
        Which element, where there are several: its position, or its indices.

    Raises
    ------
    ValueError
        If there are several elements and none is named.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([7]).item()
    7
    """
    if not args and self.size != 1:
        raise ArgumentValueError(
            f"can only convert an array of size 1 to a Python scalar, not one of shape {self.shape}"
        )
    found: bool | int | float | complex | None = None if args else self._element()
    if found is not None:
        return found
    elements = values(self)
    try:
        return elements.item(*args)  # type: ignore[no-any-return] # a number
    except IndexError as error:
        raise ArgumentIndexError(f"item(): {error}") from None


def tolist(self: NDArray) -> Any:
    """Wait, and return the values as nested lists of Python scalars.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return values(self).tolist()


def tobytes(self: NDArray) -> bytes:
    r"""Wait, and return the bytes of the elements in C order.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([1, 2], dtype="uint8").tobytes()
    b'\x01\x02'
    """
    return values(self).tobytes()


def __bool__(self: NDArray) -> bool:
    if self.size != 1:
        raise ArgumentValueError(
            f"The truth value of an array of shape {self.shape} is ambiguous. Use x.any() or x.all(), or x.size"
        )
    found = self._element()
    return bool(values(self).item() if found is None else found)


def __int__(self: NDArray) -> int:
    return int(_scalar(self))  # type: ignore[arg-type] # of a complex number, Python's own error


def __float__(self: NDArray) -> float:
    # As NumPy did until 2.4, any array of one element: losses of layers have the shape (1,), as SINGA's have.
    return float(item(self) if self.size == 1 else _scalar(self))  # type: ignore[arg-type] # as above


def __complex__(self: NDArray) -> complex:
    return complex(_scalar(self))


def __index__(self: NDArray) -> int:
    if self.ndim or self.dtype.kind not in "iu":
        raise ArgumentTypeError(
            "only integer scalar arrays can be converted to a scalar index, not an array of shape "
            f"{self.shape} and dtype {self.dtype}"
        )
    return int(_scalar(self))  # type: ignore[arg-type] # an integer


def _scalar(self: NDArray) -> bool | int | float | complex:
    if self.ndim:
        raise ArgumentTypeError(
            f"only 0-dimensional arrays can be converted to Python scalars, not one of shape {self.shape}"
        )
    return item(self)


def _is_known(self: NDArray) -> bool:
    """Return whether there are values to be printed: a recording's arrays, made or changed, have none."""
    return self._recording is None and self._gone is None and (recording() is None or not self._is_recorded())


class _Printed(np.ndarray[Any, Any]):
    """NumPy prints the name of a subclass before its elements, and indents by it."""


_Printed.__name__ = "NDArray"


def __repr__(self: NDArray) -> str:
    if not _is_known(self):
        return f"NDArray(<{self._gone or 'recorded'}>, shape={self.shape}, dtype={self.dtype})"
    return np.array_repr(values(self).view(_Printed))


def __str__(self: NDArray) -> str:
    if not _is_known(self):
        return repr(self)
    return np.array_str(values(self))


def __format__(self: NDArray, spec: str) -> str:
    return format(values(self), spec) if spec else str(self)


#: The methods that `methods.attach` gives to the class.
METHODS: tuple[Callable[..., Any], ...] = (
    *(numpy, item, tolist, tobytes),
    *(__bool__, __int__, __float__, __complex__, __index__),
    *(__repr__, __str__, __format__),
)
