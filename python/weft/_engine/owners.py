"""Which object stands for the memory that an object shows: `owner_of`.

Memory without an object that can be weakly referenced (`bytes`, `bytearray`, a capsule) is represented by a token
that lives as long as the objects through which it was seen.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any

import numpy as np

# NumPy puts the second between an array made by as_strided or sliding_window_view and the one that it shows.
_WITH_BASE: tuple[type[object], ...] = (np.ndarray, type(np.lib.stride_tricks.as_strided(np.empty(1)).base))


def owner_of(obj: object) -> object:
    """Return the object that stands for the memory of `obj`.

    Parameters
    ----------
    obj : object
        Any object.

    Returns
    -------
    object
        For NumPy arrays and memoryviews, the object at the end of the chain of bases, or a token where that object
        cannot be weakly referenced; for anything else, `obj`.

    Notes
    -----
    Memory that was imported twice through DLPack or by address has two owners: nothing links the imports.

    Examples
    --------
    >>> import numpy
    >>> from weft._engine.owners import owner_of
    >>> a = numpy.zeros((4, 4))
    >>> owner_of(a[1:].T) is a
    True
    >>> buffer = bytearray(32)
    >>> one, other = numpy.frombuffer(buffer), numpy.frombuffer(buffer, offset=16)
    >>> owner_of(one) is owner_of(other)
    True
    """
    holder, owner = obj, obj
    while (base := _base_of(owner)) is not None:
        holder, owner = owner, base
    if owner is obj or weakly_referenceable(owner):
        return owner
    return _token_of(holder, owner)


def _base_of(obj: object) -> object:
    """Return the owner of the memory that `obj` shows, if that is another object."""
    if isinstance(obj, memoryview):
        return obj.obj
    return getattr(obj, "base", None) if isinstance(obj, _WITH_BASE) else None


def weakly_referenceable(obj: object) -> bool:
    """Return whether `weakref.ref` takes `obj`."""
    return type(obj).__weakrefoffset__ != 0


class _Token:
    """Stands for memory of an object without weak references."""

    __slots__ = ("__weakref__",)


_tokens: dict[int, weakref.ref[_Token]] = {}  # by the id of the memory's object
_holders: dict[int, tuple[weakref.ref[Any], _Token]] = {}  # by the id of an object that keeps that object alive
registry_lock = threading.RLock()  # reentrant: the collector may run a callback under it


def _token_of(holder: object, owner: object) -> _Token:
    """Return the token of `owner`, kept alive by `holder`.

    The token lives while one of its holders does; so does `owner`, and its id is not used again.
    """
    key = id(holder)
    held = _holders.get(key)
    if held is None:
        token = _living_token(id(owner))
        held = _holders.setdefault(key, (weakref.ref(holder, lambda _: _holders.pop(key, None)), token))
    return held[1]


def _living_token(key: int) -> _Token:
    """Return the token at `key`, a new one where there is none."""

    def forget(dead: weakref.ref[_Token]) -> None:
        with registry_lock:
            if _tokens.get(key) is dead:
                del _tokens[key]

    fresh = _Token()
    reference = weakref.ref(fresh, forget)
    with registry_lock:
        present = _tokens.get(key)
        token = None if present is None else present()
        if token is None:
            _tokens[key] = reference
            token = fresh
    return token


def _after_fork_child() -> None:
    """Give the child a lock that no vanished thread holds."""
    global registry_lock  # noqa: PLW0603 - a module's lock is a global
    registry_lock = threading.RLock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_child)
