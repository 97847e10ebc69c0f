"""Writes of values into arrays, with the casts of NumPy's assignment: a scalar by a native loop, an array by a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.backends import backend_of
from weft._call.copies import copy_cast
from weft._call.listening import hear_write
from weft._call.outputs import broadcast_or_none
from weft._call.scalars import element
from weft._call.views import view
from weft._core import Loop, NDArray, tape_hears
from weft._registry.op import register_op
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.avals import Aval, DType

_loops: dict[DType, Loop] = {}


def fill(target: NDArray, value: Any) -> None:
    """Push the write of a Python scalar, or of an array that is broadcast, to all of `target`.

    Examples
    --------
    >>> import weft
    >>> from weft._call.filling import fill
    >>> x = weft.zeros(2)
    >>> fill(x, 3)
    >>> x
    NDArray([3., 3.])
    """
    if isinstance(value, NDArray):
        assign(target, value)
        return
    dtype = target.dtype
    value = element(value, dtype)
    if target._known and tape_hears((target,)):
        _hear_write(target, value, lambda: fill(target, value))
        return
    if target._elsewhere:
        backend_of(target).fill(target, value)
        return
    filling_loop(dtype).push((target,), (not value if dtype.kind == "b" else value,))


def filling_loop(dtype: DType) -> Loop:
    """Return the loop that copies its input, or negates truth values: NumPy has no loop that only writes."""
    loop = _loops.get(dtype)
    if loop is None:
        found = Loop.of(np.logical_not if dtype.kind == "b" else np.positive, (dtype, dtype))
        assert found is not None, dtype  # every dtype of weft's has one
        loop = _loops[dtype] = found
    return loop


def assign(target: NDArray, x: NDArray) -> None:
    """Push the copy of `x` to all of `target`, cast as by NumPy's assignment.

    Raises
    ------
    ValueError
        If `x` does not broadcast to the shape of `target`.
    TypeError
        If imaginary parts would be dropped.

    Examples
    --------
    >>> import weft
    >>> from weft._call.filling import assign
    >>> x = weft.zeros((2, 2))
    >>> assign(x, weft.asarray([1, 2]))
    >>> x
    NDArray([[1., 2.],
             [1., 2.]])
    """
    check_assigned(target.dtype, target.shape, x)
    if (target._known or x._known) and tape_hears((target, x)):
        _hear_write(target, x, lambda: assign(target, x))
        return
    extra = x.ndim - target.ndim
    if extra > 0:  # leading axes of length 1, which NumPy allows
        x = view(x, x.shape[extra:], x.strides[extra:])
    copy_cast(target, x)


def _hear_write(target: NDArray, value: Any, push: Callable[[], None]) -> None:
    hear_write(_ASSIGN, target, (value,), {}, push)


def _assign_rule(value: Aval) -> Aval:
    return value


@register_op("assign", infer=_assign_rule)
def _ASSIGN(out: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> None:  # noqa: N802 - an op
    np.copyto(out, value)


def check_assigned(dtype: DType, shape: tuple[int, ...], x: NDArray) -> None:
    """Raise NumPy's errors unless `x` may be assigned to elements of `dtype` in the shape `shape`."""
    trimmed = x.shape
    while len(trimmed) > len(shape) and trimmed[0] == 1:
        trimmed = trimmed[1:]
    if broadcast_or_none(shape, trimmed) != shape:
        raise ArgumentValueError(f"could not broadcast input array from shape {x.shape} into shape {shape}")
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise ArgumentTypeError(
            f"cannot assign an array of dtype {x.dtype} to one of {dtype}: take real() or imag() first"
        )
