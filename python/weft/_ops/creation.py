"""Creation functions: arrays from values, and from other arrays' shapes.

Functions that compute their elements push an op and return. Functions of given values copy these at the call, as the
caller may change them later, or share the memory if asked to by ``copy=False``.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import numpy as np

from weft._call.backends import adopter_of
from weft._call.devices import as_device, device_of, new, place
from weft._call.filling import fill, filling_loop
from weft._call.operands import ArrayLike, as_array, engine_of, host_array
from weft._call.scalars import element
from weft._call.views import view
from weft._core import NDArray, fresh_copy, fresh_filled, tape_hear_view, tape_hears, wrap
from weft._ops.dtypes import astype
from weft._registry.avals import as_dtype, scalar_dtype
from weft._registry.levels import Examples, is_examples
from weft._registry.op import get_op
from weft._registry.shapes import as_index, as_shape
from weft._registry.symbol_hook import compose, is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._call.devices import Where
    from weft._core import Engine
    from weft._registry.avals import DType
    from weft._registry.shapes import AnyShape

__all__ = [
    "array", "asarray", "empty", "empty_like", "from_dlpack", "full", "full_like", "ones", "ones_like", "zeros",
    "zeros_like",
]  # fmt: skip


def asarray(
    obj: ArrayLike,
    /,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Where = None,
    copy: bool | None = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return an array of given values.

    Parameters
    ----------
    obj : array-like
        An NDArray, a NumPy array or scalar, a Python scalar, a (nested) sequence, or an object with a buffer or DLPack.
    dtype : dtype-like, optional
        The dtype; by default that of `obj`, and int64, float64 or complex128 for Python numbers.
    device : Device or str, optional
        The device.
    copy : bool, optional
        True copies. None copies all but NDArrays and memory of devices, since the owner of `obj` may change it later.
        False shares memory.
    engine : Engine, optional
        The engine of a new array; by default the default one.

    Returns
    -------
    NDArray
        The array.

    Raises
    ------
    TypeError
        If arrays cannot have the elements' dtype.
    ValueError
        If `copy` is False and only a copy can do, or the values do not form an array.

    Examples
    --------
    >>> import weft
    >>> weft.asarray([[1, 2], [3, 4]], dtype=weft.float32)
    NDArray([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    wanted = None if dtype is None else as_dtype(dtype)
    where = as_device(device)
    if isinstance(obj, NDArray):
        moved = device is not None and where != device_of(obj)
        if copy is False and (moved or wanted not in (None, obj.dtype)):
            raise ArgumentValueError(
                f"unable to avoid a copy: the array has the dtype {obj.dtype} and is on {device_of(obj)}, and the dtype "
                f"{wanted or obj.dtype} on {where} is asked for"
            )
        return astype(obj, wanted or obj.dtype, copy=bool(copy), device=device)
    if is_examples(obj):
        return obj if wanted is None else astype(obj, wanted)
    if (adopter := adopter_of(obj)) is not None:
        return asarray(adopter.adopt(obj, engine or engine_of()), dtype=dtype, device=device, copy=copy)
    if isinstance(obj, list | tuple) and _is_heard(obj):
        from weft._ops.joining import stack  # noqa: PLC0415 - which is a function of arrays

        parts = [asarray(each, engine=engine) for each in cast("Any", obj)]
        return asarray(stack(parts), dtype=dtype, device=device, copy=copy)
    if copy is False and isinstance(obj, bool | int | float | complex | list | tuple):
        raise ArgumentValueError("unable to avoid a copy: Python numbers and sequences have no memory to share")
    own = copy is not False
    if dtype is None and device is None and own and type(cast("Any", obj)) is np.ndarray:
        found = fresh_copy(cast("Any", obj), engine or engine_of())
        if found is not None:
            return found
    return place(wrap(host_array(obj, wanted, copy=own), engine or engine_of(), own=own, shared=not own), where)


def _is_heard(nest: Any) -> bool:
    """Return whether it holds an array with a gradient for the tape, or one of many examples: then it is a stack."""
    if nest.__class__ in _NUMBERS:
        return False
    if isinstance(nest, NDArray):
        return nest._known and tape_hears((nest,))
    return isinstance(nest, Examples) or (
        isinstance(nest, list | tuple) and any(map(_is_heard, cast("list[Any]", nest)))
    )


def array(
    obj: ArrayLike,
    /,
    dtype: npt.DTypeLike | None = None,
    *,
    copy: bool | None = True,
    ndmin: SupportsIndex = 0,
    device: Where = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return a new array of given values: `asarray` with NumPy's default of ``copy=True``, and at least `ndmin` axes.

    Examples
    --------
    >>> import weft
    >>> weft.array([1, 2])
    NDArray([1, 2])
    """
    found = asarray(obj, dtype=dtype, device=device, copy=copy, engine=engine)
    missing = as_index(ndmin, "ndmin") - found.ndim
    return found if missing <= 0 else _shown(found, (1,) * missing + found.shape, (0,) * missing + found.strides)


def _shown(x: NDArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> NDArray:
    """Return a view of all elements of `x`, in their order."""
    result = view(x, shape, strides)
    if x._heard:
        tape_hear_view(get_op("reshape"), x, result, {"shape": shape})
    return result


def from_dlpack(x: Any, /, *, device: Where = None, copy: bool | None = None) -> NDArray:
    """Return an array over the memory of another library's array.

    Parameters
    ----------
    x : object
        An object with ``__dlpack__`` and ``__dlpack_device__``.
    device : Device or str, optional
        The device.
    copy : bool, optional
        True copies; otherwise memory is shared, and `x` must not be changed by others while ops read it.

    Returns
    -------
    NDArray
        The array; read-only if the exporter says so.

    Raises
    ------
    TypeError
        If arrays cannot have its dtype.
    BufferError
        If its memory cannot be reached from the CPU, or not without a copy.

    Examples
    --------
    >>> import numpy, weft
    >>> weft.from_dlpack(numpy.arange(3))
    NDArray([0, 1, 2])
    """
    where = as_device(device)
    if isinstance(x, NDArray):
        return astype(x, x.dtype, device=device) if copy else _shown(x, x.shape, x.strides)
    if adopter_of(x) is not None:
        return asarray(x, device=device, copy=copy)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(f"from_dlpack() takes an object with __dlpack__, not {type(x).__name__}")
    found = np.from_dlpack(x, copy=True) if copy else np.from_dlpack(x)
    as_dtype(found.dtype)
    return place(wrap(found, engine_of(), shared=not copy), where)


def empty(
    shape: AnyShape, dtype: npt.DTypeLike | None = None, *, device: Where = None, engine: Engine | None = None
) -> NDArray:
    """Return an array of undefined elements.

    Parameters
    ----------
    shape : int or sequence of int
        The lengths of the axes.
    dtype : dtype-like, optional
        The dtype; by default float64.
    device : Device or str, optional
        The device.
    engine : Engine, optional
        The engine; by default the default one.

    Raises
    ------
    ValueError
        If a length is negative.

    Examples
    --------
    >>> import weft
    >>> weft.empty((2, 3)).shape
    (2, 3)
    """
    where = as_device(device)
    return new(*checked(shape, _FLOAT if dtype is None else as_dtype(dtype)), engine or engine_of(), where)


def full(
    shape: AnyShape,
    fill_value: ArrayLike,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Where = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return an array of equal elements.

    Parameters
    ----------
    shape : int or sequence of int
        The lengths of the axes.
    fill_value : scalar or array-like
        The element, or an array that is broadcast.
    dtype : dtype-like, optional
        The dtype; by default that of `fill_value`.
    device, engine : optional
        As of `empty`.

    Raises
    ------
    ValueError
        If a length is negative, or `fill_value` does not broadcast to `shape`.
    OverflowError
        If the integer `fill_value` is out of the range of `dtype`.

    Examples
    --------
    >>> import weft
    >>> weft.full(3, 7)
    NDArray([7, 7, 7])
    """
    if device is None and fill_value.__class__ in _NUMBERS:
        wanted = scalar_dtype(fill_value.__class__) if dtype is None else as_dtype(dtype)
        made = _filled(shape, element(fill_value, wanted), engine, wanted)
        if made is not None:
            return made
    owner = engine or engine_of(fill_value)
    where = as_device(device)
    scalar = isinstance(fill_value, bool | int | float | complex) and not isinstance(fill_value, np.generic)
    value: Any = fill_value if scalar else as_array(fill_value, engine=owner)
    own = scalar_dtype(value.__class__) if scalar else value.dtype
    result = new(*checked(shape, own if dtype is None else as_dtype(dtype)), owner, where)
    fill(result, value)
    return result


def zeros(
    shape: AnyShape, dtype: npt.DTypeLike | None = None, *, device: Where = None, engine: Engine | None = None
) -> NDArray:
    """Return an array of zeros, as `full` does.

    Examples
    --------
    >>> import weft
    >>> weft.zeros(2)
    NDArray([0., 0.])
    """
    made = _filled(shape, 0, engine) if dtype is None and device is None else None
    if made is not None:
        return made
    return full(shape, 0, _FLOAT if dtype is None else dtype, device=device, engine=engine)


def ones(
    shape: AnyShape, dtype: npt.DTypeLike | None = None, *, device: Where = None, engine: Engine | None = None
) -> NDArray:
    """Return an array of ones, as `full` does.

    Examples
    --------
    >>> import weft
    >>> weft.ones(2)
    NDArray([1., 1.])
    """
    made = _filled(shape, 1, engine) if dtype is None and device is None else None
    if made is not None:
        return made
    return full(shape, 1, _FLOAT if dtype is None else dtype, device=device, engine=engine)


def _filled(shape: AnyShape, value: complex, engine: Engine | None, dtype: DType | None = None) -> NDArray | None:
    """Return an array, of float64 by default, by the shortest way; None where a shape is to be read, or this thread records."""
    dtype = dtype or _FLOAT
    given = not value if dtype.kind == "b" else value  # the loop of truth values negates its input
    return fresh_filled(filling_loop(dtype), shape, given, engine or engine_of())


def empty_like(x: ArrayLike, /, dtype: npt.DTypeLike | None = None, *, device: Where = None) -> NDArray:
    """Return an array of undefined elements, of the shape of `x`, and of its dtype and device unless others are given.

    Examples
    --------
    >>> import weft
    >>> weft.empty_like(weft.zeros(2)).shape
    (2,)
    """
    x = as_array(x)
    where = device_of(x) if device is None else device
    return empty(x.shape, x.dtype if dtype is None else dtype, device=where, engine=x.engine)


def full_like(
    x: ArrayLike, /, fill_value: ArrayLike, dtype: npt.DTypeLike | None = None, *, device: Where = None
) -> NDArray:
    """Return an array of equal elements, of the shape of `x`, and of its dtype and device unless others are given.

    Examples
    --------
    >>> import weft
    >>> weft.full_like(weft.zeros(2), 7)
    NDArray([7., 7.])
    """
    x = as_array(x)
    if is_symbol(x):
        like = compose(get_op("zeros_like"), (x,), {})
        like = like if dtype is None else astype(like, dtype, device=device)
        if isinstance(fill_value, bool | int | float) and fill_value == 0:
            return like
        return compose(get_op("setitem"), (like, fill_value), {"key": (Ellipsis,)})  # type: ignore[no-any-return] # as above
    where = device if device is not None or x._device == 0 else device_of(x)
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype, device=where, engine=x.engine)


def zeros_like(x: ArrayLike, /, dtype: npt.DTypeLike | None = None, *, device: Where = None) -> NDArray:
    """Return an array of zeros, of the shape of `x`, and of its dtype and device unless others are given.

    Examples
    --------
    >>> import weft
    >>> weft.zeros_like(weft.asarray([1, 2]))
    NDArray([0, 0])
    """
    return full_like(x, 0, dtype, device=device)


def ones_like(x: ArrayLike, /, dtype: npt.DTypeLike | None = None, *, device: Where = None) -> NDArray:
    """Return an array of ones, of the shape of `x`, and of its dtype and device unless others are given.

    Examples
    --------
    >>> import weft
    >>> weft.ones_like(weft.asarray([1, 2]))
    NDArray([1, 1])
    """
    return full_like(x, 1, dtype, device=device)


def checked(shape: AnyShape, dtype: DType) -> tuple[tuple[int, ...], DType]:
    """Return the shape as a tuple, and the dtype; ValueError if there can be no such array."""
    lengths = tuple(map(operator.index, shape)) if isinstance(shape, tuple) else as_shape(shape)
    for length in lengths:
        if length < 0:
            raise ArgumentValueError(f"negative dimensions are not allowed: the shape {lengths}")
    if math.prod(lengths) * dtype.itemsize > sys.maxsize:
        raise ArgumentValueError(
            f"array is too big: the shape {lengths} of {dtype} takes more bytes than can be addressed"
        )
    return lengths, dtype


_FLOAT = np.dtype(np.float64)
_NUMBERS = frozenset([bool, int, float, complex])
