"""The door: a call with all its places leaves for one of its destinations.

| destination | takes |
|---|---|
| a native loop | element-wise ops whose dtypes are those of one of NumPy's inner loops |
| the core's run of a way | ops of families that the core computes, on the host |
| the op's attribute "push" | ops that know a faster way than their `compute`, on the host |
| the same op in single precision | ops of half precision that the core computes in single precision, on the host |
| kernels of a device | what has some there, by the device's `Backend` |
| the op's attribute "push_on_device" | ops that are carried out by another library there |
| a callable, run by a worker with the GIL | everything else |

All of them push, in the order of the accesses. Nothing here waits or reads values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call import blas, callables, inline
from weft._call.backends import backend_of
from weft._call.copies import copy_cast
from weft._call.operands import share
from weft._call.outputs import check_writable
from weft._core import Input, NDArray, beside, note_call, push_compute, recorded_calls
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from weft._call.operands import Operand
    from weft._core import Plan, Way
    from weft._registry.avals import DType
    from weft._registry.op import Op

_INPUT = Input()
_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


@dataclass(slots=True)
class Call:
    """An op with its operands and results.

    Parameters
    ----------
    op : Op
        The op.
    given : tuple of NDArray or Python scalar
        The operands.
    results : tuple of NDArray
        The places of the results.
    attributes : dict
        The op's attributes.
    plan : Plan or None
        For an op with a ufunc: its dtypes and loop.
    way : Way or None
        For an op without one: its avals and the core's run.
    mask : NDArray or None
        For an op with a ufunc: a mask of the elements to compute.
    exact : bool, default: True
        For an op with a ufunc: whether the scalars have the plan's dtypes.
    fresh : bool, default: False
        Whether the results are new arrays without other users.
    """

    op: Op
    given: tuple[Operand, ...]
    results: tuple[NDArray, ...]
    attributes: dict[str, Any]
    plan: Plan | None = None
    way: Way | None = None
    mask: NDArray | None = None
    exact: bool = True
    fresh: bool = False


def submit(call: Call) -> None:
    """Push a call to its destination."""
    on_device = bool(call.results) and call.results[0]._elsewhere
    if call.plan is not None:
        if on_device:
            backend_of(call.results[0]).elementwise(call)
        else:
            _to_host(call, call.plan)
        return
    before = recorded_calls()
    if before is not None:
        _push(call, on_device=on_device)
        note_call(call.op, _noted(call), before)
        return
    _push(call, on_device=on_device)


def _noted(call: Call) -> dict[str, Any]:
    """Return a call's attributes, with its numbers among them, as symbols keep them."""
    if all(isinstance(x, NDArray) for x in call.given):
        return call.attributes
    return {**call.attributes, "operands": tuple(_INPUT if isinstance(x, NDArray) else x for x in call.given)}


def _push(call: Call, *, on_device: bool) -> None:
    """Push an op without a ufunc."""
    if on_device and backend_of(call.results[0]).launch(call.op, call.results, call.given, call.attributes):
        return
    if call.way is not None and call.way.push(call.results, call.given):
        return
    own = call.op.attribute("push_on_device" if on_device else "push", None)
    if own is not None and own(call.results, call.given, **call.attributes):
        return
    if not on_device and _in_single_precision(call):
        return
    _as_callable(call, on_device=on_device)


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


def _to_host(call: Call, plan: Plan) -> None:
    """Push an op with a ufunc on the CPU: by a loop, by its ufunc, or by a user's function."""
    op, given, results, mask = call.op, call.given, call.results, call.mask
    inputs = tuple([x for x in given if isinstance(x, NDArray)])
    if plan.native is not None and mask is None and call.exact and _writes_plainly(plan, results, inputs):
        plan.native.push(results, given)
        return
    if op.ufunc is None or op.compute["cpu"] is not op.ufunc:
        if mask is not None:
            raise ArgumentTypeError(
                f"{op.name}() for dtypes {', '.join(map(str, plan.inputs))} takes no where=, as it is no function of NumPy's"
            )
        _as_users(call, plan, inputs)
        return
    run = callables.of_ufunc(op.ufunc, plan.signature if call.exact else None, given, masked=mask is not None)
    if mask is None:
        if not (call.fresh and inline.computed(op, run, results, inputs)):
            push_compute(run, results, inputs, name=op.name)
    else:
        push_compute(run, (), (*inputs, mask), results, name=op.name)


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


def _as_callable(call: Call, *, on_device: bool) -> None:
    """Push an op as a Python callable."""
    op, given = call.op, call.given
    inputs = tuple([x for at, x in enumerate(given) if isinstance(x, NDArray) and at not in op.mutates])
    mutated: tuple[NDArray, ...] = ()
    if op.mutates:
        mutated = tuple([x for at, x in enumerate(given) if isinstance(x, NDArray) and at in op.mutates])
        for x in mutated:
            check_writable(x)
    compute = op.compute["cpu"]
    if on_device:
        compute = backend_of(call.results[0]).compute_of(op)
    run = callables.of_compute(compute, given, len(call.results), op.mutates, call.attributes)
    if not on_device and (call.results or inputs):
        run = blas.of_engine((call.results or inputs)[0].engine, op, run)
    if call.fresh and not mutated and not on_device and inline.computed(op, run, call.results, inputs):
        return
    push_compute(run, call.results, inputs, mutated, name=op.name)
