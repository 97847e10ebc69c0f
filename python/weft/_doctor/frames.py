"""The frames that push: their names for arrays, and the arrays of their modules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from weft._doctor.guards import as_row, is_array, is_mapping
from weft._engine.observers import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

#: Frames that are looked at, and items of a list or a dict.
_FRAMES, _ITEMS = 8, 16


def pushers() -> Iterator[FrameType]:
    """Yield the frames outside of the package, from the innermost one."""
    frame: FrameType | None = sys._getframe(1)
    left = _FRAMES
    while frame is not None and left:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            left -= 1
            yield frame
        frame = frame.f_back


def globals_of_pusher() -> Iterator[tuple[str, Any]]:
    """Yield the arrays among the globals of the module that pushes, with expressions that reach them."""
    frame = next(pushers(), None)
    return iter(()) if frame is None else _arrays(frame.f_globals)


def locals_of_pusher() -> Iterator[tuple[str, Any]]:
    """Yield the arrays among all names of the frame that pushes."""
    frame = next(pushers(), None)
    if frame is not None:
        yield from _arrays(frame.f_locals)
        if frame.f_locals is not frame.f_globals:
            yield from _arrays(frame.f_globals)


def name_of(array: object) -> str:
    """Return an expression for an array in one of the frames that push; empty if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.frames import name_of
    >>> totals = np.zeros(3)
    >>> name_of(totals), name_of(np.zeros(3))
    ('totals', '')
    """
    for frame in pushers():
        for names in (frame.f_locals, frame.f_globals):
            for path, value in _arrays(names):
                if value is array:
                    return path
    return ""


def _arrays(names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in [*names.items()]:
        if is_array(value):
            yield name, value
        elif is_mapping(value):
            if value is not names:
                yield from ((f"{name}[{key!r}]", item) for key, item in [*value.items()][:_ITEMS] if is_array(item))
        else:
            row = as_row(value, _ITEMS)
            if row is not None:
                yield from ((f"{name}[{at}]", item) for at, item in enumerate(row) if is_array(item))
