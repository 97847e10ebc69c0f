"""Copies of one array's elements into another, cast where the dtypes differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._array.callables import cast
from weft._core import copy_elements, push_compute

if TYPE_CHECKING:
    from weft._core import NDArray

__all__ = ["copy_cast"]


def copy_cast(target: NDArray, x: NDArray) -> None:
    """Push the copy of `x` into `target`, to whose shape it broadcasts, casting without a check."""
    if x.dtype == target.dtype:
        copy_elements(target, x)
    elif target._elsewhere or x._elsewhere:
        from weft._cuda import transfers  # noqa: PLC0415 - for those alone who have a device

        transfers.copy_cast(target, x)
    else:
        push_compute(cast, (target,), (x,), name="astype")
