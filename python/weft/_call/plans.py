"""Plans: how an op with a ufunc runs for one combination of operand dtypes, found once and kept with the op.

Where NumPy has an inner loop for exactly these dtypes the plan holds it, and the call is a native op; an operator's loop
is given to the type slots too, which then do without Python. Otherwise the ufunc runs as a callable and casts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.scalars import number
from weft._core import Loop, cache_loop, forget_loops
from weft._registry.avals import Aval, kind_of, scalar_dtype, ufunc_dtypes

if TYPE_CHECKING:
    from weft._call.operands import Operand
    from weft._registry.avals import DType
    from weft._registry.op import Op

#: Operators that compare.
COMPARISONS = frozenset(["lt", "le", "gt", "ge", "eq", "ne"])


class Plan:
    """What an op computes in, and by which loop, for operands of some dtypes.

    `loop` computes it on every kind of device, `native` on the host; either is None where there is none.
    """

    __slots__ = ("inputs", "loop", "native", "outputs", "replaced", "scalars", "signature")

    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]
    signature: tuple[DType, ...] | None

    def __init__(self, op: Op, kinds: tuple[Any, ...], dtype: DType | None) -> None:
        ufunc = op.ufunc
        assert ufunc is not None  # only such ops have plans
        self.replaced = op.replaced
        weak = [not isinstance(kind, np.dtype) for kind in kinds]
        avals = [Aval((), scalar_dtype(kind) if soft else kind, soft) for kind, soft in zip(kinds, weak, strict=True)]
        self.inputs, self.outputs = ufunc_dtypes(ufunc, [kind_of(aval) for aval in avals], dtype)
        if dtype is None:
            inferred = op.infer(*avals)  # a user's rule may refuse what the ufunc takes, or give another dtype
            self.outputs = tuple(each.dtype for each in (inferred if isinstance(inferred, tuple) else (inferred,)))
        #: None where NumPy has a loop for the operands alone: it compares int64 with uint64, but casts nothing to them.
        mixed = op.operator in COMPARISONS and len(set(self.inputs)) > 1
        self.signature = None if mixed else (*self.inputs, *self.outputs)
        self.scalars = tuple((position, self.inputs[position]) for position, soft in enumerate(weak) if soft)
        exact = all(soft or kind == each for kind, soft, each in zip(kinds, weak, self.inputs, strict=True))
        loop = Loop.of(ufunc, (*self.inputs, *self.outputs)) if exact else None
        if loop is not None and op.operator and len(set(self.inputs)) == 1:
            cache_loop(op.name, self.inputs, loop, self.outputs[0])
        elif op.operator and not any(weak) and len(kinds) == 2 and len(set(self.inputs)) == 1:  # a pair
            find(op, self.inputs, None)  # small operands are cast by themselves, and take the loop then
        self.native = None if "cpu" in self.replaced else loop
        self.loop = None if self.replaced - {"cpu"} else self.native

    def immediates(self, given: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Return the operands with Python scalars as the loop takes them; OverflowError if one does not fit."""
        if not self.scalars:
            return given
        found = list(given)
        for position, dtype in self.scalars:
            found[position] = number(found[position], dtype)
        return tuple(found)


def find(op: Op, kinds: tuple[Any, ...], dtype: DType | None) -> Plan:
    """Return the plan of an op for operands of dtypes, or of types of Python scalars; `dtype` is what a caller asks for."""
    if dtype is not None:
        return Plan(op, kinds, dtype)
    plan: Plan | None = op.plans.get(kinds)
    while plan is None:
        made = op.plans[kinds] = Plan(op, kinds, None)
        if made.replaced is op.replaced:
            plan = made
        else:  # another thread has registered a compute meanwhile
            op.plans.clear()
    return plan


def remember(op: Op, plan: Plan) -> None:
    """Let calls of one array of the plan's dtype take its loop without being asked for the plan."""
    loop = plan.loop
    if loop is None or op.replaced:
        return
    op.loops[loop._place] = loop
    if op.replaced:  # another thread has registered a compute meanwhile
        op.loops[loop._place] = None


def forget(op: Op, kind: str) -> None:
    """Find loops and kernels of `op` anew, as this kind of device is to compute it in another way.

    Examples
    --------
    >>> import weft
    >>> from weft._call.plans import forget
    >>> forget(weft.ops.get_op("sin"), "cpu")
    """
    if op.operator:
        forget_loops(op.name, kind)
    op.loops[:] = [None] * len(op.loops)
    op.plans.clear()
