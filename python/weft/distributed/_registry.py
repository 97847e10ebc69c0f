"""The communicators that are open, by name: ops refer to them so, and so graphs that hold them can be written down."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from weft.errors import CommunicatorError

if TYPE_CHECKING:
    from weft.distributed._communicator import Communicator

_open: weakref.WeakValueDictionary[str, Communicator] = weakref.WeakValueDictionary()


def find(name: str) -> Communicator:
    """Return the open communicator of this name.

    Parameters
    ----------
    name : str
        Its name from its making.

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


class Absent:
    """A communicator that was pickled, in a process that has none of its name: each use of it is an error.

    The error comes where it is used and not where it is unpickled: its carrier, such as a scheduler of Dask, would hide
    it behind one of its own.

    Parameters
    ----------
    name : str
        The name.
    rank, size : int
        Which rank it was where it was pickled, and of how many.
    """

    def __init__(self, name: str, rank: int, size: int) -> None:
        self._told = name, rank, size

    def __getattr__(self, name: str) -> NoReturn:
        """Raise CommunicatorError with the reason and the way out; AttributeError for the names of protocols."""
        if name.startswith("__") or name == "_told":
            raise AttributeError(name)
        self._refuse()

    def _refuse(self) -> NoReturn:
        name, rank, size = self._told
        raise CommunicatorError(
            f"communicator {name!r} was pickled by rank {rank} of {size}, and this process has none of that name: a communicator "
            "is the place of one process among its ranks, and goes by its name. Let each rank make its own, "
            f"weft.distributed.Communicator(name={name!r}), before it unpickles this one; code that runs elsewhere, such as a task of "
            "Dask, takes and returns arrays, and the ranks reduce them"
        )

    def __reduce__(self) -> tuple[Any, tuple[str, int, int]]:
        """Go on by name, to a process that may have it."""
        return unpickled, self._told

    def __repr__(self) -> str:
        """Return name and rank."""
        name, rank, size = self._told
        return f"<weft.distributed.Communicator {name!r}, rank {rank} of {size} of another process>"


def unpickled(name: str, rank: int, size: int) -> Communicator | Absent:
    """Return the open communicator of this name, or a stand-in where there is none.

    Examples
    --------
    >>> from weft.distributed import _registry
    >>> _registry.unpickled("theirs", 1, 2)
    <weft.distributed.Communicator 'theirs', rank 1 of 2 of another process>
    """
    return _open.get(name) or Absent(name, rank, size)
