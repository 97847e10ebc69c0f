"""MXNet's functions of arrays under its names, for scripts that were written for it: ``mx.nd``.

Arrays are weft's own, with NumPy's methods: ``numpy()`` replaces `asnumpy`, and ``+`` broadcasts, as in MXNet.

>>> import weft.mxnet.ndarray as nd
>>> nd.FullyConnected(nd.ones((1, 3)), nd.ones((2, 3)), nd.zeros(2), num_hidden=2)
NDArray([[3., 3.]], dtype=float32)
"""

from __future__ import annotations

from functools import cache
from typing import Any

from weft._core import NDArray
from weft._engine.array_waits import wait_all as waitall
from weft._mxnet.operator import BY_NAME
from weft._mxnet.script_arithmetic import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    lesser,
    lesser_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    modulo,
    multiply,
    not_equal,
    power,
    subtract,
    true_divide,
)
from weft._mxnet.script_arrays import (
    arange,
    array,
    concatenate,
    eye,
    full,
    function,
    histogram,
    is_operand,
    linspace,
    moveaxis,
    ones,
    split_v2,
    zeros,
)
from weft._mxnet.script_draws import draw_function
from weft._mxnet.script_symbols import ROOMS, found_op

__all__ = [
    "NDArray", "add", "arange", "array", "concatenate", "divide", "empty", "equal", "eye", "full", "greater",
    "greater_equal", "histogram", "lesser", "lesser_equal", "linspace", "logical_and", "logical_or", "logical_xor",
    "maximum", "minimum", "modulo", "moveaxis", "multiply", "not_equal", "ones", "power", "split_v2", "subtract",
    "true_divide", "waitall", "zeros",
]  # fmt: skip

empty = zeros


class _Room:
    """The functions of one of MXNet's modules, as ``ndarray.contrib``."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        drawn = draw_function(name, function, is_operand) if self._name == "random" else None
        if drawn is not None:
            return drawn
        if name.startswith("__") or found_op(name, ROOMS[self._name]) is None:
            raise AttributeError(f"weft.mxnet.ndarray.{self._name} has no {name!r}")
        return function(name, ROOMS[self._name])

    def __repr__(self) -> str:
        return f"<MXNet's ndarray.{self._name}>"


_room = cache(_Room)


def __getattr__(name: str) -> Any:
    """Return the function of an op of this name, or one of MXNet's rooms of functions."""
    if name in ROOMS:
        return _room(name)
    if name.startswith("__") or found_op(name) is None:
        raise AttributeError(
            f"weft.mxnet.ndarray has no {name!r}: weft.mxnet.list_ops() names MXNet's ops that are there"
        )
    return function(name)


def __dir__() -> list[str]:
    """Return the names of this module, and those of all ops."""
    return sorted({*__all__, *ROOMS, *(name for name in BY_NAME if not name.startswith("_"))})
