"""Batches as other libraries make them: torch's tensors, and other objects that offer their memory."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from weft._core import NDArray
from weft._numpy import namespace
from weft._registry.symbol_hook import is_symbol

#: DLPack's number of the host's memory.
_HOST = 1


def as_batch(x: Any) -> Any:
    """Return another library's array as weft's, with its values of now; lists, tuples and dicts with their items.

    NumPy's arrays, and objects that are no arrays, stay as they are. An array that is on a GPU stays there.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._singa.models.batches import as_batch
    >>> class Theirs:  # as torch's: neither the dtype nor the methods are NumPy's
    ...     shape, dtype = (2,), "theirs.float32"
    ...     def __array__(self, dtype=None, copy=None):
    ...         return np.ones(2, np.float32)
    >>> as_batch([Theirs(), 3])
    [NDArray([1., 1.], dtype=float32), 3]
    """
    if type(x) in {list, tuple}:
        return type(x)(map(as_batch, x))
    if type(x) is dict:
        return _each(cast("Any", x))
    return _copied(x) if _is_foreign(x) else x


def _each(named: dict[Any, Any]) -> dict[Any, Any]:
    return {key: as_batch(each) for key, each in named.items()}


def _is_foreign(x: Any) -> bool:
    return (
        hasattr(x, "shape")
        and not isinstance(x, NDArray)
        and not is_symbol(x)
        and not isinstance(getattr(x, "dtype", None), np.dtype)
    )


def _copied(x: Any) -> Any:
    """Return another library's array as weft's, in memory of its own: the next batch may lie in the same."""
    where = getattr(x, "__dlpack_device__", None)
    if hasattr(x, "__array__") and (where is None or int(where()[0]) == _HOST):
        return namespace.asarray(np.array(x))
    return x if where is None else namespace.from_dlpack(x).copy()
