"""What NDArray has beside its operators, given to the class by `attach`.

Blocking points are those at which Python needs values: `numpy`, `item`, `tolist`, ``bool()`` and its like, ``in``,
printing. Everything else pushes, or returns a view.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._array import conversions
from weft._array.devices import as_device, device_of
from weft._array.dispatch import hear_view
from weft._array.dtypes import astype
from weft._array.filling import assign, fill
from weft._array.indexing import get_item, set_item, take
from weft._array.operands import ArrayLike, as_array, check_writable, is_host, values
from weft._array.operators import dispatch_operator, divmod_of
from weft._array.parts import imag, real
from weft._array.shapes import axis_index
from weft._array.waiting import await_array, wait_all
from weft._core import NDArray, push_compute, set_dispatch, tape_hears
from weft.ops import get_op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from weft._device import Device

__all__ = ["attach", "wait_all"]


def attach() -> None:
    """Give NDArray its methods and its operators their dispatcher; once, when weft is imported."""
    if hasattr(NDArray, "numpy"):
        return
    from weft._array import (  # noqa: PLC0415 - these import what `attach` is to complete
        elementwise,
        manipulation,
        products,
        searching,
        sorting,
        statistical,
    )

    set_dispatch(dispatch_operator)
    for function in _METHODS:
        function.__qualname__ = f"NDArray.{function.__name__}"
        setattr(NDArray, function.__name__, function)
    for module, names in {
        elementwise: ("clip", "conj", "conjugate", "round"),
        manipulation: ("ravel", "squeeze", "swapaxes"),
        products: ("diagonal", "dot", "trace"),
        searching: ("argmax", "argmin", "nonzero", "searchsorted"),
        sorting: ("argsort",),
        statistical: (
            "all",
            "any",
            "cumprod",
            "cumsum",
            "max",
            "mean",
            "min",
            "prod",
            "ptp",
            "std",
            "sum",
            "var",
        ),
    }.items():
        for name in names:
            if hasattr(module, name):
                setattr(NDArray, name, getattr(module, name))
    setattr(NDArray, "__await__", await_array)  # noqa: B010 - the class is made elsewhere, without it
    setattr(NDArray, "__getitem__", get_item)  # noqa: B010 - as above
    setattr(NDArray, "__setitem__", set_item)  # noqa: B010 - as above
    from weft._tape.leaves import requires_grad  # noqa: PLC0415 - as above

    setattr(NDArray, "requires_grad", requires_grad)  # noqa: B010 - as above
    for name, get in _PROPERTIES.items():
        setattr(NDArray, name, property(get, doc=get.__doc__))


def copyto(self: NDArray, dst: Any) -> Any:  # noqa: ANN401 - an array of either kind
    """Copy the values to another array.

    Parameters
    ----------
    dst : NDArray or numpy.ndarray
        Where to; the values are broadcast, and cast by "same_kind". For a NumPy array this waits.

    Returns
    -------
    NDArray or numpy.ndarray
        `dst`.

    Raises
    ------
    TypeError
        If `dst` is another thing, or of a dtype that the values do not cast to.
    ValueError
        If `dst` is read-only, or the values do not broadcast to its shape.

    Examples
    --------
    >>> import weft
    >>> x = weft.zeros(2)
    >>> weft.asarray([1.0, 2.0]).copyto(x)
    NDArray([1., 2.])
    """
    if is_host(dst):
        np.copyto(dst, values(self))
        return dst
    if not isinstance(dst, NDArray):
        raise TypeError(f"copyto() takes an NDArray or a NumPy array, not {dst.__class__.__name__}")
    check_writable(dst)
    if not np.can_cast(self.dtype, dst.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast array data from {self.dtype!r} to {dst.dtype!r} according to the rule 'same_kind'"
        )
    assign(dst, self)
    return dst


def copyfrom(self: NDArray, src: ArrayLike) -> NDArray:
    """Overwrite this array with other values, without waiting.

    Parameters
    ----------
    src : array-like
        The values; they are broadcast and cast. All but an NDArray are copied at the call.

    Returns
    -------
    NDArray
        This array.

    Raises
    ------
    ValueError
        If this array is read-only, or `src` does not broadcast to its shape.

    Examples
    --------
    >>> import weft
    >>> weft.zeros(2).copyfrom([1, 2])
    NDArray([1., 2.])
    """
    set_item(self, ..., src)
    return self


def copy(self: NDArray) -> NDArray:
    """Return a new array of the same values, without waiting.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([1, 2]).copy()
    NDArray([1, 2])
    """
    return astype(self, self.dtype)


def _astype(
    self: NDArray, dtype: npt.DTypeLike, /, *, copy: bool = True, device: Device | str | None = None
) -> NDArray:
    """Return the elements cast to a dtype, as `weft.astype`."""
    return astype(self, dtype, copy=copy, device=device)


def to_device(self: NDArray, device: Device | str, /, *, stream: object = None) -> NDArray:
    """Return the array on a device: itself if it is there, a copy otherwise.

    Parameters
    ----------
    device : Device or str
        The device.
    stream : None
        Arrays on the CPU have no streams.

    Examples
    --------
    >>> import weft
    >>> weft.zeros(2).to_device(weft.cpu(1)).device
    weft.Device('cpu:1')
    """
    if stream is not None:
        raise ValueError(f"arrays on the CPU have no streams: stream must be None, not {stream!r}")
    where = as_device(device)
    return self if where == device_of(self) else astype(self, self.dtype, device=where)


def _fill(self: NDArray, value: ArrayLike) -> None:
    """Overwrite all elements with one value, without waiting."""
    check_writable(self)
    scalar = isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)
    fill(self, value if scalar else as_array(value, self))


def sort(self: NDArray, axis: SupportsIndex = -1, *, stable: bool = True) -> None:
    """Sort in place along an axis, without waiting.

    Examples
    --------
    >>> import weft
    >>> x = weft.asarray([3, 1, 2])
    >>> x.sort()
    >>> x
    NDArray([1, 2, 3])
    """
    check_writable(self)
    at = axis_index(axis, self.ndim)
    if tape_hears((self,)):
        from weft._array.sorting import sort as sorted_copy  # noqa: PLC0415 - the method has its name

        assign(self, sorted_copy(self.copy(), at, stable=stable))  # whose order its gradient needs
        return
    push_compute(partial(_sort_in_place, axis=at, stable=stable), (), (), (self,), name="sort")


def _sort_in_place(x: Any, *, axis: int, stable: bool) -> None:  # noqa: ANN401 - NumPy's or CuPy's
    if isinstance(x, np.ndarray):
        x.sort(axis=axis, stable=stable)
    else:  # CuPy sorts no views in place, and always stably
        x[...] = np.sort(x, axis=axis)


def flatten(self: NDArray) -> NDArray:
    """Return a copy with all elements in one axis, in C order.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([[1, 2], [3, 4]]).flatten()
    NDArray([1, 2, 3, 4])
    """
    from weft._array.manipulation import reshape as reshaped  # noqa: PLC0415 - the method has its name

    return reshaped(self, self.size, copy=True)


def reshape(self: NDArray, *shape: Any, copy: bool | None = None) -> NDArray:  # noqa: ANN401 - lengths, or a tuple of them
    """Return the elements in another shape, as `weft.reshape`.

    Examples
    --------
    >>> import weft
    >>> weft.arange(4).reshape(2, -1)
    NDArray([[0, 1],
             [2, 3]])
    """
    from weft._array.manipulation import reshape as reshaped  # noqa: PLC0415 - the method has its name

    return reshaped(self, shape[0] if len(shape) == 1 else shape, copy=copy)


def transpose(self: NDArray, *axes: Any) -> NDArray:  # noqa: ANN401 - axes, or a tuple of them
    """Return a view with the axes in another order, by default reversed.

    Examples
    --------
    >>> import weft
    >>> weft.zeros((2, 3, 4)).transpose(2, 0, 1).shape
    (4, 2, 3)
    """
    from weft._array.manipulation import transpose as transposed  # noqa: PLC0415 - the method has its name

    return transposed(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], SupportsIndex) else axes or None)


def _take(self: NDArray, indices: ArrayLike, axis: SupportsIndex | None = None, out: NDArray | None = None) -> NDArray:
    """Return the elements, or the slices along an axis, at given positions, as `weft.take`."""
    return take(self, indices, axis=axis, out=out)


def _repeat(self: NDArray, repeats: ArrayLike, axis: SupportsIndex | None = None) -> NDArray:
    """Return each element, or slice along an axis, several times, as `weft.repeat`."""
    from weft._array.joining import repeat  # noqa: PLC0415 - as in `attach`

    return repeat(self, repeats, axis=axis)


def __len__(self: NDArray) -> int:  # noqa: N807 - a method
    if not self.ndim:
        raise TypeError("len() of unsized object")
    return self.shape[0]


def __iter__(self: NDArray) -> Iterator[NDArray]:  # noqa: N807 - a method
    if not self.ndim:
        raise TypeError("iteration over a 0-d array")
    return (get_item(self, index) for index in range(self.shape[0]))


def __contains__(self: NDArray, value: ArrayLike) -> bool:  # noqa: N807 - a method
    return bool(np.any(values(dispatch_operator("equal", self, value))))


def __delitem__(self: NDArray, key: object) -> None:  # noqa: ARG001, N807 - a method
    raise ValueError(f"cannot delete array elements: the array has the shape {self.shape}")


def __divmod__(self: NDArray, other: Any) -> Any:  # noqa: ANN401, N807 - an operand of any class
    return divmod_of(self, other)


def __rdivmod__(self: NDArray, other: Any) -> Any:  # noqa: ANN401, N807 - an operand of any class
    return divmod_of(other, self)


def _transposed(self: NDArray) -> NDArray:
    """Return a view of a matrix with its axes swapped; of any other array, with all axes reversed."""
    result = self._strided(self.shape[::-1], self.strides[::-1])
    if self._known:
        hear_view(get_op("permute_dims"), self, result, {"axes": tuple(reversed(range(self.ndim)))})
    return result


def _matrix_transposed(self: NDArray) -> NDArray:
    """Return a view with the last two axes swapped."""
    if self.ndim < 2:  # noqa: PLR2004 - a matrix
        raise ValueError(f"matrix transpose with ndim < 2 is undefined: the shape is {self.shape}")
    shape, strides = self.shape, self.strides
    result = self._strided((*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2]))
    if self._known:
        axes = (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)
        hear_view(get_op("permute_dims"), self, result, {"axes": axes})
    return result


_fill.__name__, _astype.__name__, _take.__name__, _repeat.__name__ = "fill", "astype", "take", "repeat"

_METHODS: tuple[Callable[..., Any], ...] = (
    *conversions.METHODS,
    *(__len__, __iter__, __contains__, __delitem__, __divmod__, __rdivmod__),
    *(copyto, copyfrom, copy, _astype, to_device, _fill, sort),
    *(flatten, reshape, transpose, _take, _repeat),
)
_PROPERTIES: dict[str, Callable[[NDArray], Any]] = {
    "T": _transposed,
    "mT": _matrix_transposed,
    "device": device_of,
    "imag": imag,
    "real": real,
}
