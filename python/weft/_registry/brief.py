"""Values of users in messages: any object may be given, of any size."""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = ["brief"]

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2
_SHORT.maxstring = _SHORT.maxother = 80  # a line of a message


def brief(value: Any) -> str:
    """Return the representation of a value, with dots for the most of a long one.

    Examples
    --------
    >>> from weft._registry.brief import brief
    >>> brief(list(range(100_000)))
    '[0, 1, 2, 3, 4, 5, ...]'
    """
    return _SHORT.repr(value)
