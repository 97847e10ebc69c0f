"""Copies of one array's elements into another, with a cast between different dtypes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from weft._call.backends import backend_of
from weft._call.callables import cast
from weft._core import Loop, NDArray, bare, copy_elements, push_compute

if TYPE_CHECKING:
    from weft._registry.avals import DType


@cache
def cast_loop(x: DType, wanted: DType) -> Loop | None:
    """Return the loop that casts elements without the GIL; None for pairs of dtypes that NumPy has to cast."""
    return Loop.cast(x, wanted)


@cache
def choose_loop(dtype: DType) -> Loop:
    """Return the loop that takes elements of one array where a mask is true, and of another one elsewhere."""
    return Loop.choose(dtype)


def copy_cast(target: NDArray, x: NDArray) -> None:
    """Push the copy of `x`, broadcast, into `target`, with an unchecked cast."""
    if x.__class__ is not NDArray:
        x = bare(x)  # another thread may move a tensor meanwhile
    if x.dtype == target.dtype:
        copy_elements(target, x)
    elif target._elsewhere or x._elsewhere:
        backend_of(target, x).copy_cast(target, x)
    elif (loop := cast_loop(x.dtype, target.dtype)) is not None:
        loop.push((target,), (x,))
    else:
        push_compute(cast, (target,), (x,), name="astype")
