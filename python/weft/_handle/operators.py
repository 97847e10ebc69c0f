"""Operators: the calls that the type slots hand over when no loop is cached for their operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import call
from weft._call.filling import assign
from weft._call.outputs import check_target
from weft._call.plans import COMPARISONS
from weft._core import NDArray, Scope, tape_entry, tape_hears
from weft._ops import parts
from weft._registry.op import attribute_map, get_op
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from weft._registry.op import Op

_OPS: dict[str, Op] = {name: get_op(name) for name in attribute_map("operator")}
_UNARY = {name for name, op in _OPS.items() if op.ufunc is not None and op.ufunc.nin == 1}
_IN_PLACE = {f"i{name}": op for name, op in _OPS.items() if name not in _UNARY and op.operator not in COMPARISONS}

#: The exponents for which ``**`` is another function, as in NumPy: faster, and exact to the last bit.
_POWERS = {2: get_op("square"), 0.5: get_op("sqrt"), -1: get_op("reciprocal"), 1: get_op("positive")}

#: The operands that an operator takes beside an NDArray. Any other class gets the chance to do it itself, by its reflected method:
#: in-place operators too, which the core lets through with these alone.
TAKEN = (NDArray, bool, int, float, complex, np.ndarray, np.generic, list, tuple)


def dispatch_operator(name: str, left: Any, right: Any) -> Any:
    """Push the op of an operator.

    Parameters
    ----------
    name : str
        The op's name, with an "i" in front for an in-place operator.
    left, right : object
        The operands, at least one of them an NDArray; `right` is None for a unary operator.

    Returns
    -------
    NDArray or NotImplemented
        The result; `left` itself of an in-place operator.

    Examples
    --------
    >>> import weft
    >>> from weft._handle.operators import dispatch_operator
    >>> dispatch_operator("add", weft.asarray([1, 2]), 1)
    NDArray([2, 3])
    """
    if name in _UNARY:
        return call(_OPS[name], left)
    if not (_takes(left) and _takes(right)):
        if name == "multiply" and isinstance(right if isinstance(left, NDArray) else left, str | bytes | bytearray):
            _refuse_repetition(left, right)
        return NotImplemented
    if name in ("matmul", "imatmul"):
        return _matmul(name, left, right)
    op = _IN_PLACE.get(name)
    target = None if op is None else left
    if target is not None and _is_heard_tensor(target):
        with Scope(paused=True):
            return dispatch_operator(name, left, right)
    if op is None:
        op = _OPS[name]
    if op.name == "pow" and type(right) in (int, float) and right in _POWERS and left.dtype.kind in _kinds(right):
        return call(_POWERS[right], left, out=target)
    return call(op, left, right, out=target)


def _is_heard_tensor(x: NDArray) -> bool:
    """Return whether it is a tensor with a wanted gradient: SINGA's operators change its memory, and the tape does not hear them."""
    if type(x) is NDArray or not x._known or not tape_hears((x,)):
        return False
    found = tape_entry(x)
    return found is not None and found[0].leaf is x


def divmod_of(left: Any, right: Any) -> Any:
    """Return ``divmod(left, right)``, or NotImplemented."""
    if not (_takes(left) and _takes(right)):
        return NotImplemented
    return parts.divmod(left, right)


def _refuse_repetition(left: Any, right: Any) -> None:
    """Raise TypeError for text times an array that is no index: Python would take the array for a number of repetitions."""
    array = left if isinstance(left, NDArray) else right
    if array.ndim or array.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"unsupported operand type(s) for *: {type(left).__name__!r} and {type(right).__name__!r}"
        )


def _takes(operand: Any) -> bool:
    return isinstance(operand, TAKEN)


def _kinds(exponent: Any) -> str:
    """Return the kinds of dtype with a power of `exponent` that is another function's value, in the same dtype."""
    if exponent < 0:
        return "f" if isinstance(exponent, float) else "fc"
    return "fc" if isinstance(exponent, float) else "iufc"


def _matmul(name: str, left: Any, right: Any) -> Any:
    from weft._ops.products import matmul  # noqa: PLC0415 - products are imported after the operators

    if name == "imatmul" and left._known and tape_hears((left, right)):
        left, right, target = left.copy(), right.copy() if right is left else right, left  # the gradient needs both
        assign(target, matmul(left, right))
        return target
    result = matmul(left, right)
    if name == "matmul":
        return result
    check_target("matmul", left, result.shape, result.dtype, exact=True)
    assign(left, result)
    return left
