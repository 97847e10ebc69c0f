"""The placeholder of an unregistered op that a file names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.errors import GraphError

if TYPE_CHECKING:
    from weft._core import OpEntry


class UnknownOp:
    """An op known by its name alone: it loads, prints and saves, and has no rules.

    Examples
    --------
    >>> from weft._core import OpEntry
    >>> from weft._graph.unregistered import UnknownOp
    >>> UnknownOp(OpEntry("Custom")).name
    'Custom'
    """

    __slots__ = ("_entry", "name")

    def __init__(self, entry: OpEntry) -> None:
        self._entry = entry
        self.name = entry.name

    def attribute(self, key: str, default: object = None) -> object:
        """Return `default`: nothing is known."""
        del key
        return default

    def __call__(self, *_arrays: object, **_attributes: object) -> object:
        """Raise GraphError: there is nothing to compute it with."""
        raise GraphError(f"no op {self.name!r} is registered: register one by weft.ops.register_op({self.name!r}, ...)")

    def __repr__(self) -> str:
        """Return its name and kind."""
        return f"<the unknown op {self.name!r}>"
