"""Outputs: the places of a call's results, the checks on given ones, and new arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from weft._call.operands import listed, share
from weft._core import NDArray, beside, empty
from weft._registry.avals import broadcast_shapes
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._call.operands import Operand
    from weft._core import Engine
    from weft._registry.avals import Aval, DType
    from weft._registry.op import Op


def is_plain(out: object, dtypes: tuple[DType, ...], arrays: tuple[Any, ...]) -> TypeGuard[NDArray]:
    """Return whether `out` is one array without need for a check: of this dtype and shape, in memory of its own."""
    if not isinstance(out, NDArray) or len(dtypes) != 1 or out.dtype is not dtypes[0]:
        return False
    if out.readonly or 0 in out.strides:
        return False
    shape = out.shape
    return all(not isinstance(x, NDArray) or x is out or (x.shape == shape and not share(x, out)) for x in arrays)


def elementwise(
    name: str, given: tuple[Operand, ...], mask: NDArray | None, dtypes: tuple[DType, ...], out: object
) -> tuple[NDArray, ...]:
    """Return the places of an element-wise op's results: the arrays of `out`, or new ones of the broadcast shape."""
    arrays = [x for x in given if isinstance(x, NDArray)]
    shapes = [x.shape for x in arrays]
    shape = broadcast_shapes(*shapes) if mask is None else broadcast_shapes(*shapes, mask.shape)
    if out is None:
        return tuple([beside(arrays[0], shape, dtype) for dtype in dtypes])
    targets = targets_of(out, len(dtypes))
    for target, dtype in zip(targets, dtypes, strict=True):
        if target is not None:
            check_target(name, target, shape, dtype)
            shape = target.shape
    return tuple(
        beside(arrays[0], shape, dtype) if target is None else target
        for target, dtype in zip(targets, dtypes, strict=True)
    )


def computed(
    op: Op, given: tuple[Operand, ...], avals: tuple[Aval, ...], out: object, engine: Engine
) -> tuple[tuple[NDArray, ...], tuple[NDArray, ...]]:
    """Return the places where an op without a ufunc computes its results, and their final places, if others."""
    like = given[0] if given and isinstance(given[0], NDArray) else None
    if like is None:
        like = next((x for x in given if isinstance(x, NDArray)), None)
    if out is None and like is not None:
        made = tuple([beside(like, aval.shape, aval.dtype) for aval in avals])
        return made, made
    results: list[NDArray] = []
    final: list[NDArray] = []
    targets = targets_of(out, len(avals))
    for position, (target, aval) in enumerate(zip(targets, avals, strict=True)):
        if target is not None and _fits(op, position, target, aval, given):
            result = target
        elif like is not None:
            result = beside(like, aval.shape, aval.dtype)
        else:
            result = empty(aval.shape, aval.dtype, engine)
        results.append(result)
        final.append(result if target is None else target)
    return tuple(results), tuple(final)


def _fits(op: Op, position: int, target: NDArray, aval: Aval, given: tuple[Operand, ...]) -> bool:
    """Return whether the op may write straight into `target`; raise if its result may not go there at all."""
    check_target(op.name, target, aval.shape, aval.dtype, exact=True)
    if target.dtype != aval.dtype:
        return False
    if not any(share(x, target) for x in given if isinstance(x, NDArray)):
        return True
    return any(result == position and given[operand] is target for operand, result in op.inplace)


def targets_of(out: Any, count: int) -> tuple[NDArray | None, ...]:
    """Return `count` places for results, None for a new one."""
    given = (None,) * count if out is None else listed(out)
    if len(given) != count:
        raise ArgumentValueError(f"out= takes {count} array{'s' * (count != 1)}, and {len(given)} were given")
    for each in given:
        if each is not None and not isinstance(each, NDArray):
            raise ArgumentTypeError(f"return arrays must be of type NDArray, not {type(each).__name__}")
    return given


def check_target(name: str, target: NDArray, shape: tuple[int, ...], dtype: DType, *, exact: bool = False) -> None:
    """Raise NumPy's errors unless results of `shape` and `dtype` may be written to `target`."""
    check_writable(target)
    if target.shape != shape and (exact or broadcast_or_none(target.shape, shape) != target.shape):
        if exact:
            raise ArgumentValueError(f"{name}() gives an array of shape {shape}, and out= has the shape {target.shape}")
        raise ArgumentValueError(
            f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape {shape}"
        )
    if target.dtype != dtype and not np.can_cast(dtype, target.dtype, "same_kind"):
        raise ArgumentTypeError(
            f"Cannot cast {name}() output from {dtype!r} to {target.dtype!r} with casting rule 'same_kind'"
        )


def check_writable(x: NDArray) -> None:
    """Raise ValueError if `x` is read-only, or has several elements in one place, as broadcasting makes."""
    if x.readonly:
        raise ArgumentValueError(f"output array is read-only: an array of shape {x.shape} and dtype {x.dtype}")
    if x.size and 0 in x.strides and any(step == 0 and size > 1 for size, step in zip(x.shape, x.strides, strict=True)):
        raise ArgumentValueError(
            f"output array is read-only: a broadcast view of shape {x.shape}; write to a copy of it"
        )


def broadcast_or_none(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the broadcast shape of `shapes`, or None."""
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        return None
