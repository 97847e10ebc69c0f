"""Names of nodes, and notes on all nodes that are made in a block."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from weft._core import Scope
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from typing import Self

#: Notes that may be written without their underscores.
HIDDEN = frozenset(["ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"])


class NameManager(Scope):
    """Names nodes that are given no name: the op's name and a number, counted in the block of the manager.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> with weft.symbol.NameManager():
    ...     print((x + 1).name, (x + 1).name)
    add0 add1
    """

    __slots__ = ("_counts",)

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Return a manager: its arguments are for its class's `__init__`."""
        return super().__new__(cls)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """Return `name`, or a new one that begins with `hint`."""
        if name:
            return name
        counts = self._counts
        number = counts[hint] = counts.get(hint, -1) + 1
        return f"{hint}{number}"

    def _changes(self) -> list[tuple[ContextVar[Any], Any]]:
        """Return the changes of a block: this manager names the nodes that are made there."""
        return [(_manager, self)]


class Prefix(NameManager):
    """Puts a prefix before the names of all nodes that are made in its block, given ones too.

    Examples
    --------
    >>> import weft
    >>> with weft.symbol.Prefix("net_"):
    ...     weft.symbol.exp(weft.symbol.Variable("x"), name="e").name
    'net_e'
    """

    __slots__ = ("_prefix",)

    def __init__(self, prefix: str) -> None:
        super().__init__()
        if not isinstance(prefix, str):
            raise ArgumentTypeError(f"Prefix takes the text that names begin with, and {prefix!r} was given")
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """Return a name with the prefix."""
        return self._prefix + super().get(name, hint)


class AttrScope(Scope):
    """Notes texts on all nodes and variables that are made in its block.

    Parameters
    ----------
    **attrs : str
        The notes, by key. Inner blocks count before outer ones, and a node's own notes before either.

    Examples
    --------
    >>> import weft
    >>> with weft.symbol.AttrScope(ctx_group="first"):
    ...     x = weft.symbol.Variable("x")
    >>> x.attr("ctx_group")
    'first'
    """

    __slots__ = ("_texts",)

    def __new__(cls, **_attrs: str) -> Self:
        """Return a scope; its arguments are for `__init__`."""
        return super().__new__(cls)

    def __init__(self, **attrs: str) -> None:
        for key, text in attrs.items():
            if not isinstance(text, str):
                raise ArgumentTypeError(
                    f"AttrScope({key}=...) takes a text, and {text!r} was given: write {key}={str(text)!r}"
                )
        self._texts = attrs

    def _changes(self) -> list[tuple[ContextVar[Any], Any]]:
        """Return the changes of a block: these texts, and those of the blocks around it."""
        return [(_texts, {**_texts.get(), **self._texts})]


def chosen(name: str | None, texts: dict[str, Any]) -> Scope:
    """Let the first node that is made in the block have this name and these texts.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.naming import chosen
    >>> with chosen("total", {}):
    ...     (weft.symbol.Variable("x") + 1).name
    'total'
    """
    return Scope((_given, [name, texts, name, texts]))


class _Hint(str):
    """The beginning of a name, in the place of one."""

    __slots__ = ()


def hinted(hint: str) -> Scope:
    """Let the first node that is made in the block be named after this, and not after its op.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.naming import hinted
    >>> with weft.symbol.Prefix("net_"), hinted("total"):
    ...     (weft.symbol.Variable("x") + 1).name
    'net_total0'
    """
    return chosen(_Hint(hint), {})


_manager: ContextVar[NameManager] = ContextVar("weft_names", default=NameManager())  # noqa: B039 - shared on purpose
_nothing: dict[str, str] = {}
_texts: ContextVar[dict[str, str]] = ContextVar("weft_texts", default=_nothing)
_given: ContextVar[list[Any] | None] = ContextVar("weft_given", default=None)


def next_name(hint: str, *, instead: bool = False) -> tuple[str, dict[str, Any] | None]:
    """Return the name of the node that is made now, and its notes; `instead` of nodes made before in its block."""
    given = _given.get()
    if given is None:
        return _manager.get().get(None, hint), _texts.get() or None
    name, texts = given[2:] if instead else given[:2]
    given[0], given[1] = None, {}
    if type(name) is _Hint:
        name, hint = None, str(name)
    return _manager.get().get(name, hint), {**_texts.get(), **texts} or None


def named(name: str | None, hint: str) -> str:
    """Return `name` as the manager of this block has it, or a new one."""
    return _manager.get().get(name, hint)


def current_texts() -> dict[str, str]:
    """Return the notes on nodes that are made now."""
    return _texts.get()
