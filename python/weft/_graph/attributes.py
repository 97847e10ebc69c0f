"""The attributes of a node as Python sees them: a dict that refuses to be written to."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.errors import ArgumentTypeError


class NodeAttributes(dict[str, Any]):
    """A dict that is read only: the computation of a node is fixed when it is made.

    Copies are plain dicts.

    Examples
    --------
    >>> import weft
    >>> node = weft.symbol.create("permute_dims", axes=(1, 0))(weft.symbol.Variable("x")).get_node()
    >>> node.attrs, {**node.attrs, "axes": (0, 1)}
    ({'axes': (1, 0)}, {'axes': (0, 1)})
    """

    __slots__ = ()

    def _refuse(self: Any, *_: object, **__: object) -> NoReturn:
        raise ArgumentTypeError(
            "the attributes of a node are read only: make another node, as in weft.graph.Node(node.op, node.name, "
            "{**node.attrs, key: value}, node.inputs, node.control_deps), or note a text by node.set_attr(key, text)"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def copy(self) -> dict[str, Any]:
        """Return a dict of them that may be written to."""
        return dict(self)

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle, and copy deeply, as a dict."""
        return dict, (dict(self),)
