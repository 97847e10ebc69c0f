"""How a task declares its accesses: `Read`, `Mutate` and `Overwrite`, as annotations of parameters.

Each is a generic alias of `typing.Annotated`: a type checker sees ``Read[numpy.ndarray]`` as ``numpy.ndarray`` and a
bare ``Read`` as any type; at run time the annotation carries an `Access`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast, get_args

from weft._core import Declared, _mutate, _overwrite, _read
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")


class Access(enum.Enum):
    """An op's access to a variable."""

    READ = "Read"
    MUTATE = "Mutate"
    OVERWRITE = "Overwrite"


Read: TypeAlias = Annotated[T, Access.READ]
"""The task reads the argument: many readers may run side by side."""

Mutate: TypeAlias = Annotated[T, Access.MUTATE]
"""The task changes the argument, alone, and sees what earlier tasks left in it."""

Overwrite: TypeAlias = Annotated[T, Access.OVERWRITE]
"""The task fills the argument, alone, and does not look at what was in it: it may clear an earlier failure."""

if not TYPE_CHECKING:  # to type checkers they are aliases alone: kernels take the lists reads= and mutates= as well

    class _Declaration:
        """The alias at run time: subscribed it is `typing.Annotated`, called it declares a kernel's argument."""

        __slots__ = ("__metadata__",)

        def __init__(self, access: Access) -> None:
            self.__metadata__ = (access,)

        def __getitem__(self, kind: object) -> object:
            return Annotated[kind, self.__metadata__[0]]

        def __or__(self, other: object) -> object:
            return self[Any] | other

        def __ror__(self, other: object) -> object:
            return other | self[Any]

        def __repr__(self) -> str:
            return f"weft.{self.__metadata__[0].value}"

        def __reduce__(self) -> tuple[object, ...]:
            return _declaration, (self.__metadata__[0],)

    def _declaring(access: Access, declare: Callable[[object], Declared]) -> _Declaration:
        # The core's own function: no line of Python runs per argument.
        return type("_Declaration", (_Declaration,), {"__slots__": (), "__call__": staticmethod(declare)})(access)

    def _declaration(access: Access) -> object:
        return {Access.READ: Read, Access.MUTATE: Mutate, Access.OVERWRITE: Overwrite}[access]

    Read = _declaring(Access.READ, _read)
    Mutate = _declaring(Access.MUTATE, _mutate)
    Overwrite = _declaring(Access.OVERWRITE, _overwrite)


def access_of(annotation: object) -> Access | None:
    """Return the access that an annotation declares.

    Parameters
    ----------
    annotation : object
        A parameter's annotation, evaluated.

    Returns
    -------
    Access or None
        The declared access; None where the annotation names none.

    Raises
    ------
    ArgumentTypeError
        If the annotation names two accesses, or one where no argument of the task corresponds to it, as in
        ``list[weft.Read]``. Ignoring either would let ops race.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._engine.access import access_of
    >>> access_of(weft.Read[numpy.ndarray])
    <Access.READ: 'Read'>
    """
    named = [mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, Access)]
    inner = get_args(annotation)[:1] if named else get_args(annotation)
    if len(named) > 1:
        raise ArgumentTypeError(
            f"{' and '.join(f'weft.{mark.value}' for mark in named)} exclude each other: declare one access"
        )
    for mark in _marks_within(inner):
        raise ArgumentTypeError(
            f"weft.{mark.value} stands inside another type, and a task follows its own arguments only: "
            f"write weft.{mark.value}[...] outermost, with one parameter for each object"
        )
    return named[0] if named else None


def _marks_within(annotations: tuple[object, ...] | list[object]) -> list[Access]:
    """Return every access named anywhere in type arguments."""
    marks: list[Access] = []
    for part in annotations:
        if isinstance(part, Access):
            marks.append(part)
        if not get_args(part):
            marks += [mark for mark in getattr(part, "__metadata__", ()) if isinstance(mark, Access)]
        inner = cast("list[object]", part) if isinstance(part, list) else get_args(part)  # Callable[[int], str]
        marks += _marks_within(inner)
    return marks
