"""The methods and properties of NDArray, given to the class by `attach`.

Blocking points are those at which Python needs values: `numpy`, `item`, `tolist`, ``bool()`` and its like, ``in``,
printing. Everything else pushes, or returns a view.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.backends import backend_of
from weft._call.devices import as_device, device_of
from weft._call.filling import assign, check_assigned, fill
from weft._call.operands import ArrayLike, as_array, is_host, share, values
from weft._call.outputs import check_writable
from weft._call.scalars import assigned
from weft._call.views import view
from weft._core import NDArray, push_compute, set_dispatch, tape_hear_view, tape_hears
from weft._engine.array_waits import await_array
from weft._engine.recover import recover_one
from weft._handle import conversions
from weft._handle.flat import Flat
from weft._handle.operators import dispatch_operator, divmod_of
from weft._numpy.hints import INSTEAD_OF_METHODS, refuse
from weft._ops.dtypes import astype
from weft._ops.indexing import take
from weft._ops.manipulation import is_first_fastest
from weft._ops.parts import imag, real
from weft._ops.patches import hear_view
from weft._ops.rounding import round as rounded
from weft._ops.sorting import is_stable, sort_stably, sort_values
from weft._registry.avals import as_dtype
from weft._registry.op import get_op
from weft._registry.shapes import AnyShape, as_shape, axis_index, is_index
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from weft._engine.labels import Device
    from weft._ops.manipulation import Order

_RESHAPE = get_op("reshape")
_PERMUTE = get_op("permute_dims")


def attach() -> None:
    """Give NDArray its methods and its operators their dispatcher; once, when weft is imported."""
    if hasattr(NDArray, "numpy"):
        return
    from weft._numpy import namespace  # noqa: PLC0415 - its modules import the class that `attach` is to complete
    from weft._ops.matrices import trace  # noqa: PLC0415 - of the namespace's name is the recorder

    set_dispatch(dispatch_operator)
    for function in _METHODS:
        function.__qualname__ = f"NDArray.{function.__name__}"
        setattr(NDArray, function.__name__, function)
    for name in _FUNCTIONS:
        setattr(NDArray, name, getattr(namespace, name))
    setattr(NDArray, "trace", trace)
    setattr(NDArray, "__await__", await_array)
    setattr(NDArray, "recover", recover_one)
    refuse(NDArray, INSTEAD_OF_METHODS)
    for name, get in _PROPERTIES.items():
        setattr(NDArray, name, property(get, doc=get.__doc__))


def copyto(self: NDArray, *targets: Any) -> Any:
    """Copy the values to other arrays, to all of them at the same time.

    Parameters
    ----------
    *targets : NDArray or numpy.ndarray
        Where to; the values are broadcast, and cast by "same_kind". For a NumPy array this waits.

    Returns
    -------
    NDArray or numpy.ndarray, or tuple of them
        The target; several as a tuple.

    Raises
    ------
    TypeError
        If there is no target, or one is another thing, or of a dtype that the values do not cast to.
    ValueError
        If a target is read-only, or the values do not broadcast to its shape. Nothing is copied then.

    Examples
    --------
    >>> import weft
    >>> x = weft.zeros(2)
    >>> weft.asarray([1.0, 2.0]).copyto(x)
    NDArray([1., 2.])
    """
    if not targets:
        raise ArgumentTypeError("copyto() takes at least one array to copy to")
    for target in targets:
        _check_copied(self, target)
    for target in targets:  # each reads this array and writes another: none waits for the one before
        if isinstance(target, NDArray):
            assign(target, self)
    for target in targets:
        if is_host(target):
            np.copyto(target, values(self))
    return targets[0] if len(targets) == 1 else targets


def _check_copied(x: NDArray, target: Any) -> None:
    """Raise the error that a copy of `x` to `target` would raise."""
    if isinstance(target, NDArray):
        check_writable(target)
    elif not is_host(target):
        raise ArgumentTypeError(f"copyto() takes NDArrays and NumPy arrays, not {target.__class__.__name__}")
    elif not target.flags.writeable:
        raise ArgumentValueError(
            f"output array is read-only: a NumPy array of shape {target.shape} and dtype {target.dtype}"
        )
    if not np.can_cast(x.dtype, target.dtype, "same_kind"):
        raise ArgumentTypeError(
            f"Cannot cast array data from {x.dtype!r} to {target.dtype!r} according to the rule 'same_kind'"
        )
    check_assigned(target.dtype, target.shape, x)


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
    self[...] = src
    return self


def copy(self: NDArray, order: Order = "C") -> NDArray:
    """Return a new array of the same values, without waiting; its elements lie in C order, or by "F" in the other one.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([1, 2]).copy()
    NDArray([1, 2])
    """
    if order != "C" and is_first_fastest(self, order):
        return astype(self.transpose(), self.dtype).transpose()
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
        raise ArgumentValueError(f"arrays on the CPU have no streams: stream must be None, not {stream!r}")
    where = as_device(device)
    return self if where == device_of(self) else astype(self, self.dtype, device=where)


def _fill(self: NDArray, value: ArrayLike) -> None:
    """Overwrite all elements with one value, without waiting."""
    check_writable(self)
    scalar = assigned(value, self.dtype)
    fill(self, as_array(value, self) if scalar is None else scalar)


def partition(self: NDArray, kth: AnyShape, axis: SupportsIndex = -1) -> None:
    """Bring the elements that belong to some places there in place, smaller ones before them, without waiting.

    Examples
    --------
    >>> import weft
    >>> x = weft.asarray([3, 1, 2])
    >>> x.partition(0)
    >>> x[0].item()
    1
    """
    check_writable(self)
    at, places = axis_index(axis, self.ndim), as_shape(kth)
    length = self.shape[at]
    if any(not -length <= place < length for place in places):
        raise ArgumentValueError(f"kth={places} is out of bounds for axis {at} of length {length}")
    push_compute(partial(_partition_in_place, axis=at, kth=places), (), (), (self,), name="partition")


def _partition_in_place(x: Any, *, axis: int, kth: tuple[int, ...]) -> None:
    x[...] = np.partition(x, kth, axis=axis)


def _view(self: NDArray, dtype: npt.DTypeLike | None = None, *lengths: object) -> NDArray:
    """Return the same memory as another array, its bytes read as elements of another dtype.

    Parameters
    ----------
    dtype : dtype-like, optional
        By default that of the array.
    *lengths
        None: a shape is not taken, as it is by PyTorch's method of the name.

    Raises
    ------
    TypeError
        If a shape was given.
    ValueError
        If the bytes along the last axis are not a whole number of such elements, or do not lie one after the other; on a
        device with memory of its own also if elements would not lie at multiples of their size.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([1.0], dtype="float32").view("int32")
    NDArray([1065353216], dtype=int32)
    """
    if lengths or is_index(dtype):
        given = ", ".join(map(str, (dtype, *lengths)))
        raise ArgumentTypeError(
            f"view() takes a dtype, and {given} was given: for another shape write x.reshape({given})"
        )
    wanted = self.dtype if dtype is None else as_dtype(dtype)
    shape, strides = self.shape, self.strides
    if wanted.itemsize == self.itemsize:
        return _viewed(self, shape, strides, wanted)  # with its elements in the same places
    if not shape or (shape[-1] > 1 and strides[-1] != self.itemsize):
        raise ArgumentValueError(
            f"a view as {wanted} of {self.dtype} needs a last axis with one element after the other: the shape is "
            f"{shape} and the strides are {strides}"
        )
    count, rest = divmod(shape[-1] * self.itemsize, wanted.itemsize)
    if rest:
        raise ArgumentValueError(
            f"the last axis of {shape[-1]} elements of {self.dtype} is no whole number of {wanted}"
        )
    shape, strides = (*shape[:-1], count), (*strides[:-1], wanted.itemsize)
    if self._elsewhere and wanted.itemsize > self.itemsize:
        backend_of(self).check_view(self._offset, shape, strides, wanted)
    return _viewed(self, shape, strides, wanted)


def _viewed(x: NDArray, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray:
    result = view(x, shape, strides, 0, dtype)
    if x._heard:
        hear_view(x, result)
    return result


def __round__(self: NDArray, ndigits: SupportsIndex | None = None) -> NDArray:
    return rounded(self, 0 if ndigits is None else ndigits)


def sort(self: NDArray, axis: SupportsIndex = -1, kind: str | None = None, *, stable: bool = True) -> None:
    """Sort in place along an axis, without waiting; `kind` is NumPy's name for how, "stable" or another.

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
    stable = stable if kind is None else is_stable(kind)
    if tape_hears((self,)):
        from weft._ops.sorting import sort as sorted_copy  # noqa: PLC0415 - the method has its name

        assign(self, sorted_copy(self.copy(), at, stable=stable))  # the gradient needs the copy's order
        return
    push_compute(partial(_sort_in_place, axis=at, stable=stable), (), (), (self,), name="sort")


def _sort_in_place(x: Any, *, axis: int, stable: bool) -> None:
    host: np.ndarray[Any, Any] = x  # if it is NumPy's
    if isinstance(x, np.ndarray):
        by = sort_stably if stable else sort_values
        by(host, axis)
    else:  # CuPy sorts no views in place, and always stably
        x[...] = np.sort(x, axis=axis)


def flatten(self: NDArray, order: Order = "C") -> NDArray:
    """Return a copy with all elements in one axis, in C order or another.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([[1, 2], [3, 4]]).flatten()
    NDArray([1, 2, 3, 4])
    """
    from weft._ops.manipulation import ravel, reshaped  # noqa: PLC0415 - which are functions of arrays

    if order != "C":
        shown = ravel(self, order)
        return shown.copy() if share(shown, self) else shown
    return reshaped(self, self.size, "C", copy=True)


def reshape(self: NDArray, *shape: Any, order: Order = "C", copy: bool | None = None) -> NDArray:
    """Return the elements in another shape, as `weft.reshape`.

    Examples
    --------
    >>> import weft
    >>> weft.arange(4).reshape(2, -1)
    NDArray([[0, 1],
             [2, 3]])
    """
    if copy is None and order == "C":
        shown = self._reshaped(shape[0] if len(shape) == 1 and shape[0].__class__ is tuple else shape)
        if shown is not None:
            if self._heard:
                tape_hear_view(_RESHAPE, self, shown)
            return shown
    from weft._ops.manipulation import reshaped  # noqa: PLC0415 - which is a function of arrays

    return reshaped(self, shape[0] if len(shape) == 1 else shape, order, copy)


def transpose(self: NDArray, *axes: Any) -> NDArray:
    """Return a view with the axes in another order, by default reversed.

    Examples
    --------
    >>> import weft
    >>> weft.zeros((2, 3, 4)).transpose(2, 0, 1).shape
    (4, 2, 3)
    """
    from weft._ops.manipulation import transpose as transposed  # noqa: PLC0415 - the method has its name

    return transposed(self, axes[0] if len(axes) == 1 and not is_index(axes[0]) else axes or None)


def _take(self: NDArray, indices: ArrayLike, axis: SupportsIndex | None = None, out: NDArray | None = None) -> NDArray:
    """Return the elements, or the slices along an axis, at given positions, as `weft.take`."""
    return take(self, indices, axis=axis, out=out)


def _repeat(self: NDArray, repeats: ArrayLike, axis: SupportsIndex | None = None) -> NDArray:
    """Return each element, or slice along an axis, several times, as `weft.repeat`."""
    from weft._ops.joining import repeat  # noqa: PLC0415 - as in `attach`

    return repeat(self, repeats, axis=axis)


def __len__(self: NDArray) -> int:
    if not self.ndim:
        raise ArgumentTypeError("len() of unsized object")
    return self.shape[0]


def __iter__(self: NDArray) -> Iterator[NDArray]:
    if not self.ndim:
        raise ArgumentTypeError("iteration over a 0-d array")
    return (self[index] for index in range(self.shape[0]))


def __contains__(self: NDArray, value: ArrayLike) -> bool:
    found: Any = self == value
    return bool(np.any(values(found))) if isinstance(found, NDArray) else bool(found)


def __divmod__(self: NDArray, other: Any) -> Any:
    return divmod_of(self, other)


def __rdivmod__(self: NDArray, other: Any) -> Any:
    return divmod_of(other, self)


def _transposed(self: NDArray) -> NDArray:
    """Return a view of a matrix with its axes swapped; of any other array, with all axes reversed."""
    result = self._flipped()
    if self._heard:
        tape_hear_view(_PERMUTE, self, result, {"axes": None})
    return result


def _matrix_transposed(self: NDArray) -> NDArray:
    """Return a view with the last two axes swapped."""
    if self.ndim < 2:  # a matrix
        raise ArgumentValueError(f"matrix transpose with ndim < 2 is undefined: the shape is {self.shape}")
    shape, strides = self.shape, self.strides
    result = self._strided((*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2]))
    if self._heard:
        axes = (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)
        tape_hear_view(_PERMUTE, self, result, {"axes": axes})
    return result


_fill.__name__, _astype.__name__, _take.__name__, _repeat.__name__ = "fill", "astype", "take", "repeat"
_view.__name__ = "view"

_METHODS: tuple[Callable[..., Any], ...] = (
    *conversions.METHODS,
    *(__len__, __iter__, __contains__, __divmod__, __rdivmod__),
    *(copyto, copyfrom, copy, _astype, to_device, _fill, sort, partition, _view, __round__),
    *(flatten, reshape, transpose, _take, _repeat),
)
#: The functions that are methods too.
_FUNCTIONS = (
    *("clip", "conj", "conjugate", "round"),
    *("ravel", "squeeze", "swapaxes", "diagonal", "dot"),
    *("argmax", "argmin", "argsort", "nonzero", "searchsorted"),
    *("all", "any", "cumprod", "cumsum", "max", "mean", "min", "prod", "ptp", "std", "sum", "var"),
)
_PROPERTIES: dict[str, Callable[[NDArray], Any]] = {
    "T": _transposed,
    "mT": _matrix_transposed,
    "device": device_of,
    "flat": Flat,
    "imag": imag,
    "real": real,
}
