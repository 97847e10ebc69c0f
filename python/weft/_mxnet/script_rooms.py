"""MXNet's modules of functions inside `weft.mxnet.ndarray` and `weft.mxnet.symbol`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.operator import BY_NAME
from weft._mxnet.script_draws import draw_function
from weft._mxnet.script_symbols import ROOMS, found_op

if TYPE_CHECKING:
    from collections.abc import Callable


class Room:
    """The functions of such a module, as ``symbol.contrib``."""

    __slots__ = ("_function", "_is_operand", "_module", "_name")

    def __init__(self, module: str, name: str, function: Callable[..., Any], is_operand: Callable[[Any], bool]) -> None:
        self._module, self._name, self._function, self._is_operand = module, name, function, is_operand

    def __getattr__(self, name: str) -> Any:
        drawn = draw_function(name, self._function, self._is_operand) if self._name == "random" else None
        if drawn is not None:
            return drawn
        if name.startswith("__") or found_op(name, ROOMS[self._name]) is None:
            raise AttributeError(f"weft.mxnet.{self._module}.{self._name} has no {name!r}")
        return self._function(name, ROOMS[self._name])

    def __dir__(self) -> list[str]:
        prefix = ROOMS[self._name]
        return sorted(name[len(prefix) :] for name in BY_NAME if name.startswith(prefix))

    def __repr__(self) -> str:
        return f"<MXNet's {self._module}.{self._name}>"
