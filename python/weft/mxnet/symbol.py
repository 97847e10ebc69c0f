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

from typing import Any

from weft._graph.executor import Executor
from weft._graph.naming import AttrScope, NameManager, Prefix
from weft._mxnet.script_names import ScriptNames
from weft._mxnet.script_symbols import (
    Group,
    Symbol,
    Variable,
    arange,
    eye,
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

_names = ScriptNames("symbol", function, is_operand)


def __getattr__(name: str) -> Any:
    """Return the function of an op of this name, or one of MXNet's rooms of functions."""
    return _names.find(name)


def __dir__() -> list[str]:
    """Return the names of this module, and those of all ops."""
    return _names.names(__all__)
