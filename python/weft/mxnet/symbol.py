"""Symbols for scripts that were written for MXNet: its names mean its ops here.

``import weft.mxnet.symbol as S`` in the place of ``mx.sym``: positional attributes, automatic names
(``fullyconnected0_weight``, ``_plus0``) and operators are MXNet's, and ``+`` does not broadcast. `weft.symbol` has NumPy's
functions under the names that both know.

>>> import weft.mxnet.symbol as S
>>> x = S.Variable("x")
>>> with S.NameManager():
...     y = S.FullyConnected(S.clip(x, 0, 6), num_hidden=2) + 1
>>> y.name, y.list_arguments()
('_plusscalar0', ['x', 'fullyconnected0_weight', 'fullyconnected0_bias'])
"""

from __future__ import annotations

from functools import cache
from typing import Any

from weft._graph.executor import Executor
from weft._graph.naming import AttrScope, NameManager, Prefix
from weft._mxnet.operator import BY_NAME
from weft._mxnet.script_draws import draw_function
from weft._mxnet.script_symbols import (
    ROOMS,
    Group,
    Symbol,
    Variable,
    arange,
    eye,
    found_op,
    full,
    function,
    histogram,
    hypot,
    is_operand,
    linspace,
    load,
    load_json,
    maximum,
    minimum,
    ones,
    power,
    split_v2,
    zeros,
)

__all__ = [
    "AttrScope", "Executor", "Group", "NameManager", "Prefix", "Symbol", "Variable", "arange", "eye", "fromjson", "full",
    "histogram", "hypot", "linspace", "load", "load_json", "maximum", "minimum", "ones", "pow", "power", "split_v2",
    "var", "zeros",
]  # fmt: skip

var = Variable
pow = power  # noqa: A001 - MXNet's name
fromjson = load_json


class _Room:
    """The functions of one of MXNet's modules, as ``symbol.contrib``."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        drawn = draw_function(name, function, is_operand) if self._name == "random" else None
        if drawn is not None:
            return drawn
        if name.startswith("__") or found_op(name, ROOMS[self._name]) is None:
            raise AttributeError(f"weft.mxnet.symbol.{self._name} has no {name!r}")
        return function(name, ROOMS[self._name])

    def __dir__(self) -> list[str]:
        prefix = ROOMS[self._name]
        return sorted(name[len(prefix) :] for name in BY_NAME if name.startswith(prefix))

    def __repr__(self) -> str:
        return f"<MXNet's symbol.{self._name}>"


_room = cache(_Room)


def __getattr__(name: str) -> Any:
    """Return the function of an op of this name, or one of MXNet's rooms of functions."""
    if name in ROOMS:
        return _room(name)
    if name.startswith("__") or found_op(name) is None:
        raise AttributeError(
            f"weft.mxnet.symbol has no {name!r}: weft.mxnet.list_ops() names MXNet's ops that are there"
        )
    return function(name)


def __dir__() -> list[str]:
    """Return the names of this module, and those of all ops."""
    return sorted({*__all__, *ROOMS, *(name for name in BY_NAME if not name.startswith("_"))})
