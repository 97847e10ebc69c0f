"""Symbols: computations that are composed first and run later.

Every op of the registry is a function here, by its name: ``weft.symbol.exp(x, name="e")``. An input that is not given
becomes a variable ``<node>_<input>``. weft's own functions take symbols as well: ``weft.exp(x)`` does the same.

>>> import weft
>>> x = weft.symbol.Variable("x", shape=(2, 3))
>>> y = weft.sum(weft.exp(x), axis=1)
>>> y.eval(x=weft.zeros((2, 3)))
[NDArray([3., 3.])]
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from weft._core import ArrayFunction as _ArrayFunction
from weft._graph.attach import attach as _attach
from weft._graph.composing import function_named, function_of
from weft._graph.executor import Executor
from weft._graph.making import Group, Variable, create, load, load_json
from weft._graph.naming import AttrScope, NameManager, Prefix
from weft._graph.symbols import Symbol
from weft._registry.op import get_op, list_ops

__all__ = [
    "AttrScope", "Executor", "Group", "NameManager", "Prefix", "Symbol", "Variable", "create", "load", "load_json",
    "var",
]  # fmt: skip

_attach()
var = Variable


class _Room:
    """Ops with names that begin alike, as `weft` has them in a module: ``weft.symbol.nn.conv``."""

    __slots__ = ("_prefix", "_room")

    def __init__(self, prefix: str, room: object) -> None:
        self._prefix, self._room = prefix, room

    def __getattr__(self, name: str) -> Any:
        return _found(f"{self._prefix}.{name}", getattr(self._room, name, None))

    def __dir__(self) -> list[str]:
        start = len(self._prefix) + 1
        return sorted({op[start:].partition(".")[0] for op in list_ops() if op.startswith(f"{self._prefix}.")})

    def __repr__(self) -> str:
        return f"<the ops of weft.symbol.{self._prefix}>"


def _meant(name: str) -> str:
    """Return the replacement of an unknown name, if that is clear."""
    from difflib import get_close_matches  # noqa: PLC0415 - for the mistaken

    if name[0].isupper() and "weft.mxnet" not in sys.modules:
        return ": MXNet's ops are there after import weft.mxnet"
    near = get_close_matches(name, list_ops(), 1)
    return f": did you mean {near[0]!r}?" if near else ""


def _found(name: str, function: object) -> Any:
    try:
        op = get_op(name)
    except KeyError:
        if any(each.startswith(f"{name}.") for each in list_ops()):
            return _Room(name, function)
        if not isinstance(function, FunctionType | _ArrayFunction) or not function.__module__.startswith(
            ("weft._ops.", "weft._call.")
        ):
            raise AttributeError(f"weft.symbol has no {name!r}, and no op is named so{_meant(name)}") from None
        return function_named(name, function)
    return function_of(op, function if callable(function) else None)


def __getattr__(name: str) -> Any:
    """Return the function that composes a call of the op of this name, or the ops with names that begin with it."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _found(name, getattr(sys.modules["weft"], name, None))


def __dir__() -> list[str]:
    """Return the names of this module, and those of all ops."""
    return sorted({*__all__, *(op.partition(".")[0] for op in list_ops())})
