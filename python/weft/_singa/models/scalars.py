"""Numbers beside arrays, as SINGA takes them: none of them has a say in the dtype of the result."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np

T = TypeVar("T")


def plain(value: T) -> T:
    """Return a number of NumPy's as Python's, which takes the dtype of the array beside it; anything else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._singa.models.scalars import plain
    >>> type(plain(np.sqrt(2.0)))
    <class 'float'>
    """
    if isinstance(value, np.generic):
        return cast("Any", value).item()  # type: ignore[no-any-return]
    return value
