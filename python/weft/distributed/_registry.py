"""The communicators that are open, by name: ops refer to them so, and so graphs that hold them can be written down."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from weft.errors import CommunicatorError

if TYPE_CHECKING:
    from weft.distributed._communicator import Communicator

__all__ = ["enter", "find", "is_open", "leave", "names", "unused"]

_open: weakref.WeakValueDictionary[str, Communicator] = weakref.WeakValueDictionary()


def find(name: str) -> Communicator:
    """Return the open communicator of this name.

    Parameters
    ----------
    name : str
        What it was called when it was made.

    Raises
    ------
    CommunicatorError
        If there is none.

    Examples
    --------
    >>> import weft
    >>> weft.distributed.find("nobody's")
    Traceback (most recent call last):
    ...
    weft.errors.CommunicatorError: ...
    """
    found = _open.get(name)
    if found is None:
        known = ", ".join(map(repr, _open)) or "none"
        raise CommunicatorError(f"no communicator {name!r} is open in this process (open: {known}): make it first")
    return found


def names() -> list[str]:
    """Return the names of all that are open."""
    return list(_open)


def enter(comm: Communicator) -> None:
    """Let a communicator be found by its name."""
    _open[comm.name] = comm


def is_open(comm: Communicator) -> bool:
    """Return whether it was entered and has not left."""
    return _open.get(comm.name) is comm


def leave(comm: Communicator) -> None:
    """Let it be found no more."""
    del _open[comm.name]


def unused(name: str) -> str:
    """Return the name, with a number if another communicator has it."""
    number, found = 1, name
    while found in _open:
        number += 1
        found = f"{name}-{number}"
    return found
