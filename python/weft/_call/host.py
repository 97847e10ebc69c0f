"""The host as a destination.

| way | takes |
|---|---|
| a native loop | element-wise ops whose dtypes are those of one of NumPy's inner loops |
| the core's run of a way | ops of families that the core computes |
| the op's attribute "push" | ops that know a faster way than their `compute` |
| the same op in single precision | ops of half precision that the core computes in single precision |
| at this moment | short calls of weft's own functions, on arrays that are there (`inline`) |
| a callable | everything else |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft._call import blas, callables, inline
from weft._call.copies import copy_cast
from weft._call.destinations import Destination
from weft._call.operands import share
from weft._core import NDArray, beside, push_compute
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.door import Call
    from weft._call.operands import Operand
    from weft._core import Plan
    from weft._registry.avals import DType

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


class Host(Destination):
    """The host: its memory is NumPy's, too."""

    kind = "cpu"

    def elementwise(self, call: Call) -> None:
        """Push a call with a plan: by a loop, by its ufunc, or by a user's function."""
        op, plan, results, mask = call.op, call.plan, call.results, call.mask
        assert plan is not None
        inputs = tuple([x for x in call.given if isinstance(x, NDArray)])
        if plan.native is not None and mask is None and call.exact and _writes_plainly(plan, results, inputs):
            plan.native.push(results, call.given)
        elif op.ufunc is not None and op.compute["cpu"] is op.ufunc:
            super().elementwise(call)
        elif mask is None:
            _as_users(call, plan, inputs)
        else:
            raise ArgumentTypeError(
                f"{op.name}() for dtypes {', '.join(map(str, plan.inputs))} takes no where=, as it is no function of NumPy's"
            )

    def whole(self, call: Call) -> None:
        """Push a call of an op without a ufunc, natively where that is known."""
        if call.way is not None and call.way.push(call.results, call.given):
            return
        own = call.op.attribute("push", None)
        if own is not None and own(call.results, call.given, **call.attributes):
            return
        if not _in_single_precision(call):
            super().whole(call)

    def push(
        self, call: Call, run: Callable[..., None], inputs: tuple[NDArray, ...], mutated: tuple[NDArray, ...]
    ) -> None:
        """Compute at this moment what is short; push all else."""
        if call.results or inputs:
            run = blas.of_engine((call.results or inputs)[0].engine, call.op, run)
        if mutated or not call.fresh or not inline.computed(call.op, run, call.results, inputs):
            super().push(call, run, inputs, mutated)


HOST = Host()


def _in_single_precision(call: Call) -> bool:
    """Push an op of half precision as that of single precision, with casts around it; return whether that was done.

    NumPy computes halves one by one, in single precision; the core's kernels take that for many at once.
    """
    op = call.op
    if not call.results or call.results[0].dtype != _HALF or "cpu" in op.replaced or op.mutates:
        return False
    if not op.attribute("in_single_precision", False):
        return False
    found = op(*map(_widened, call.given), **call.attributes)
    for result, wide in zip(call.results, found if isinstance(found, tuple) else (found,), strict=True):
        copy_cast(result, wide)
    return True


def _widened(x: Operand) -> Operand:
    if not isinstance(x, NDArray) or x.dtype != _HALF:
        return x
    wide = beside(x, x.shape, _SINGLE)
    copy_cast(wide, x)
    return wide


def _writes_plainly(plan: Plan, results: tuple[NDArray, ...], inputs: tuple[NDArray, ...]) -> bool:
    """Return whether a loop may write to the results.

    It may if they need no cast, and no input overlaps them elsewhere.
    """
    typed = all(result.dtype == dtype for result, dtype in zip(results, plan.outputs, strict=True))
    return typed and not any(x is not result and share(x, result) for result in results for x in inputs)


def _as_users(call: Call, plan: Plan, inputs: tuple[NDArray, ...]) -> None:
    """Push a user's function for an op with a ufunc, through new arrays where it cannot write to the results."""
    op, given = call.op, call.given
    own = () if "cpu" in op.replaced else op.inplace  # the op's `inplace` describes weft's function

    def fits(position: int, result: NDArray, dtype: DType) -> bool:
        if result.dtype != dtype:
            return False
        if not any(share(x, result) for x in inputs):
            return True
        return any(to == position and given[operand] is result for operand, to in own)

    made = tuple(
        result if fits(position, result, dtype) else beside(inputs[0], result.shape, dtype)
        for position, (result, dtype) in enumerate(zip(call.results, plan.outputs, strict=True))
    )
    push_compute(callables.of_compute(op.compute["cpu"], given, len(made)), made, inputs, name=op.name)
    for result, each in zip(call.results, made, strict=True):
        if result is not each:
            copy_cast(result, each)
