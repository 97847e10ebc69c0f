"""MXNet's functions of arrays under its names, for scripts that were written for it: ``mx.nd``.

Arrays are weft's own, with NumPy's methods: ``numpy()`` replaces `asnumpy`, and ``+`` broadcasts, as in MXNet.

>>> import weft.mxnet.ndarray as nd
>>> nd.FullyConnected(nd.ones((1, 3)), nd.ones((2, 3)), nd.zeros(2), num_hidden=2)
NDArray([[3., 3.]], dtype=float32)
"""

from __future__ import annotations

from typing import Any

from weft._core import NDArray
from weft._engine.array_waits import wait_all as waitall
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
from weft._mxnet.script_names import ScriptNames

__all__ = [
    "NDArray", "add", "arange", "array", "concatenate", "divide", "empty", "equal", "eye", "full", "greater",
    "greater_equal", "histogram", "lesser", "lesser_equal", "linspace", "logical_and", "logical_or", "logical_xor",
    "maximum", "minimum", "modulo", "moveaxis", "multiply", "not_equal", "ones", "power", "split_v2", "subtract",
    "true_divide", "waitall", "zeros",
]  # fmt: skip

empty = zeros

_names = ScriptNames("ndarray", function, is_operand)


def __getattr__(name: str) -> Any:
    """Return the function of an op of this name, or one of MXNet's rooms of functions."""
    return _names.find(name)


def __dir__() -> list[str]:
    """Return the names of this module, and those of all ops."""
    return _names.names(__all__)
