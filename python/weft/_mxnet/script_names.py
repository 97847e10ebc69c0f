"""The functions of all ops by MXNet's names, for ``ndarray`` and ``symbol`` alike: of the module itself, and of its rooms, as ``contrib``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft._mxnet.operator import BY_NAME
from weft._mxnet.script_control import CONTROL, control_function
from weft._mxnet.script_draws import draw_function
from weft._mxnet.script_symbols import ROOMS, found_op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class ScriptNames:
    """The names of one of the two modules.

    Attributes
    ----------
    module : str
        Its name, ``"ndarray"`` or ``"symbol"``.
    function : callable
        Returns the function of an op, by its name and by the prefix of its room.
    is_operand : callable
        Says whether a value is an array, or a symbol.
    """

    module: str
    function: Callable[..., Callable[..., Any]]
    is_operand: Callable[[Any], bool]
    _rooms: dict[str, ScriptRoom] = field(default_factory=dict[str, "ScriptRoom"], repr=False)

    def find(self, name: str) -> Any:
        """Return the function of an op, or a room of functions.

        Raises
        ------
        AttributeError
            If there is none of this name.

        Examples
        --------
        >>> import weft.mxnet.symbol as S
        >>> S.contrib, S.no_op
        Traceback (most recent call last):
        ...
        AttributeError: weft.mxnet.symbol has no 'no_op': weft.mxnet.list_ops() names MXNet's ops that are there
        """
        if name in ROOMS:
            return self._rooms.setdefault(name, ScriptRoom(self, name))
        if name.startswith("__") or found_op(name) is None:
            raise AttributeError(
                f"weft.mxnet.{self.module} has no {name!r}: weft.mxnet.list_ops() names MXNet's ops that are there"
            )
        return self.function(name)

    def names(self, own: Iterable[str]) -> list[str]:
        """Return the module's own names, and those of all rooms and ops."""
        return sorted({*own, *ROOMS, *(name for name in BY_NAME if not name.startswith("_"))})


class ScriptRoom:
    """The functions of one of MXNet's rooms.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> nd.contrib, "box_nms" in dir(nd.contrib)
    (<MXNet's ndarray.contrib>, True)
    """

    __slots__ = ("_name", "_names")

    def __init__(self, names: ScriptNames, name: str) -> None:
        self._names, self._name = names, name

    def __getattr__(self, name: str) -> Any:
        function, is_operand = self._names.function, self._names.is_operand
        own = None
        if self._name == "random":
            own = draw_function(name, function, is_operand)
        elif self._name == "contrib":
            own = control_function(name, self._names.module)
        if own is not None:
            return own
        if name.startswith("__") or found_op(name, ROOMS[self._name]) is None:
            raise AttributeError(f"weft.mxnet.{self._names.module}.{self._name} has no {name!r}")
        return function(name, ROOMS[self._name])

    def __dir__(self) -> list[str]:
        prefix = ROOMS[self._name]
        own = CONTROL if self._name == "contrib" else ()
        return sorted((*own, *(name[len(prefix) :] for name in BY_NAME if name.startswith(prefix))))

    def __repr__(self) -> str:
        return f"<MXNet's {self._names.module}.{self._name}>"
