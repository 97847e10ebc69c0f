"""MXNet's functions of two arrays, or of an array and a number: they broadcast, and comparisons are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._mxnet.script_arrays import function
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The op of an array and a number, and that of a number and an array, where the op itself does not name them.
_SCALARS: dict[str, tuple[str, str]] = {
    "add": ("_plus_scalar", "_plus_scalar"),
    "sub": ("_minus_scalar", "_rminus_scalar"),
    "mul": ("_mul_scalar", "_mul_scalar"),
    "div": ("_div_scalar", "_rdiv_scalar"),
    "mod": ("_mod_scalar", "_rmod_scalar"),
    "power": ("_power_scalar", "_rpower_scalar"),
    "greater": ("_greater_scalar", "_lesser_scalar"),
    "greater_equal": ("_greater_equal_scalar", "_lesser_equal_scalar"),
    "lesser": ("_lesser_scalar", "_greater_scalar"),
    "lesser_equal": ("_lesser_equal_scalar", "_greater_equal_scalar"),
}


def _of_two(name: str, op: str) -> Callable[[Any, Any], NDArray]:
    right, left = _SCALARS.get(op, (f"_{op}_scalar", f"_{op}_scalar"))

    def call(lhs: Any, rhs: Any) -> NDArray:
        of_arrays = [isinstance(each, NDArray | np.ndarray) for each in (lhs, rhs)]
        if all(of_arrays):
            found: NDArray = function(f"broadcast_{op}")(lhs, rhs)
        elif of_arrays[0]:
            found = function(right)(lhs, scalar=rhs)
        elif of_arrays[1]:
            found = function(left)(rhs, scalar=lhs)
        else:
            raise ArgumentTypeError(f"{name}(): one operand at least is an array, and {lhs!r} and {rhs!r} were given")
        return found

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return {name} of two arrays that broadcast, or of an array and a number, in the array's dtype."
    return call


add = _of_two("add", "add")
subtract = _of_two("subtract", "sub")
multiply = _of_two("multiply", "mul")
divide = true_divide = _of_two("divide", "div")
modulo = _of_two("modulo", "mod")
power = _of_two("power", "power")
maximum = _of_two("maximum", "maximum")
minimum = _of_two("minimum", "minimum")
equal = _of_two("equal", "equal")
not_equal = _of_two("not_equal", "not_equal")
greater = _of_two("greater", "greater")
greater_equal = _of_two("greater_equal", "greater_equal")
lesser = _of_two("lesser", "lesser")
lesser_equal = _of_two("lesser_equal", "lesser_equal")
logical_and = _of_two("logical_and", "logical_and")
logical_or = _of_two("logical_or", "logical_or")
logical_xor = _of_two("logical_xor", "logical_xor")
