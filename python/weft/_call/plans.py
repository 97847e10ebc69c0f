"""Plans: the dtypes and the loop of an op with a ufunc for one combination of operands.

The core makes and keeps them with the op.

If NumPy has an inner loop for exactly these dtypes, the plan holds it, and the call is a native op. Otherwise the ufunc
runs as a callable and casts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._call.scalars import number

if TYPE_CHECKING:
    from weft._call.operands import Operand
    from weft._core import Plan

#: Comparison operators.
COMPARISONS = frozenset(["lt", "le", "gt", "ge", "eq", "ne"])


def immediates(plan: Plan, given: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Return the operands with Python scalars as the loop takes them; OverflowError if one does not fit."""
    scalars = plan.scalars
    if not scalars:
        return given
    found = list(given)
    for position, dtype in scalars:
        found[position] = number(found[position], dtype)
    return tuple(found)
