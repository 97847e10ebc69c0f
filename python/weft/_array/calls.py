"""`dispatch.call` for ops whose number of results is known where they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft._array.dispatch import call

if TYPE_CHECKING:
    from weft._core import Engine, NDArray
    from weft.ops import Op

__all__ = ["DType", "Elements", "one", "several"]

DType: TypeAlias = np.dtype[Any]
Elements: TypeAlias = np.ndarray[Any, Any]


def one(op: Op, *arrays: Any, out: NDArray | None = None, engine: Engine | None = None, **attributes: Any) -> NDArray:  # noqa: ANN401 - as `call`
    """Push an op of one result and return that."""
    result: NDArray = call(op, *arrays, out=out, engine=engine, **attributes)
    return result


def several(op: Op, *arrays: Any, **attributes: Any) -> tuple[NDArray, ...]:  # noqa: ANN401 - as `call`
    """Push an op of several results and return them."""
    results: tuple[NDArray, ...] = call(op, *arrays, **attributes)
    return results
