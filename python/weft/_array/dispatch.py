"""From a call to a push: the only way from an array function to the engine.

A call walks one way, and each stage hands on what the next one needs:

1. `operands.coerce` makes arrays and Python scalars of whatever was given.
2. `plans.find`, or the op's own rule, infers dtypes and shapes.
3. `places` finds out where the results go.
4. `door.submit` pushes.

It never waits and never touches values, but for Python scalars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._array import door, operands, places, plans
from weft._array.copies import copy_cast
from weft._array.rules import Aval, avals_of, broadcast_shapes, scalar_dtype
from weft._array.symbolic import Composing, compose
from weft._core import NDArray, beside, fresh_elements, tape_hears, tape_note_fresh, tape_pause
from weft._tape.hearing import hear

if TYPE_CHECKING:
    from weft._array.plans import Plan
    from weft._array.rules import DType
    from weft._core import Engine
    from weft.ops import Op

__all__ = ["call"]

#: What is an operand as it is.
_PLAIN = frozenset([NDArray, float, int])
#: For how many combinations of operands and attributes an op remembers what its rule has said.
_REMEMBERED = 256


def call(
    op: Op,
    *arrays: Any,  # noqa: ANN401 - array-likes
    out: Any = None,  # noqa: ANN401 - an array or a tuple of them
    engine: Engine | None = None,
    **attributes: Any,  # noqa: ANN401 - the op's own
) -> Any:  # noqa: ANN401 - one array where the op has one result, else a tuple of them
    """Push `op` over `arrays` and return its results, without waiting.

    Parameters
    ----------
    op : Op
        What to compute.
    *arrays : array-like
        The operands.
    out : NDArray or tuple of NDArray, optional
        Where to write the results.
    engine : Engine, optional
        For an op without operands, the engine; by default the default one.
    **attributes
        The op's attributes; for one with a ufunc, ``where`` and ``dtype`` as in NumPy.

    Returns
    -------
    NDArray or tuple of NDArray
        The results; a tuple where the op has not exactly one.

    Examples
    --------
    >>> import weft
    >>> from weft._array.dispatch import call
    >>> call(weft.ops.get_op("add"), weft.asarray([1, 2]), 1)
    NDArray([2, 3])
    """
    try:
        if tape_hears(arrays if out is None else (*arrays, *operands.listed(out))):
            if out is None and not op.mutates and attributes.get("where") is None:
                results = _heard(op, arrays, attributes)
            else:
                results = hear(op, arrays, out, attributes, _push)
        elif op.ufunc is None:
            results = _computed(op, arrays, out, engine, attributes)
        elif attributes:
            results = _elementwise(op, arrays, out, **attributes)
        else:
            results = _straight(op, arrays, out) or _elementwise(op, arrays, out)
    except Composing:
        return compose(op, arrays, attributes, out)
    return results[0] if op.nout == 1 else results


def _heard(op: Op, arrays: tuple[Any, ...], attributes: dict[str, Any]) -> tuple[NDArray, ...]:
    """Push a call that the tape hears and whose results are new, and note it."""
    for x in arrays:
        if x.__class__ not in _PLAIN:
            arrays = operands.coerce(arrays)
            break
    tape_pause(True)
    try:
        results = _push(op, arrays, None, attributes)
    except BaseException:
        tape_pause(False)
        raise
    tape_note_fresh(op, attributes or None, arrays, results)  # and goes on listening
    return results


def _push(op: Op, arrays: tuple[Any, ...], out: Any, attributes: dict[str, Any]) -> tuple[NDArray, ...]:  # noqa: ANN401 - as above
    """Push a call that the tape hears."""
    if op.ufunc is None:
        return _computed(op, arrays, out, None, attributes)
    if attributes:
        return _elementwise(op, arrays, out, **attributes)
    return _straight(op, arrays, out) or _elementwise(op, arrays, out)


def _straight(op: Op, arrays: tuple[Any, ...], out: Any) -> tuple[NDArray, ...] | None:  # noqa: ANN401 - as above
    """Take all four stages in one, for a call whose loop is known and of which nothing has to be cast; else return None."""
    plan: Plan | None = op.plans.get(tuple([x.dtype if isinstance(x, NDArray) else x.__class__ for x in arrays]))
    if plan is None or plan.loop is None:
        return None
    if plan.scalars:
        try:
            arrays = plan.immediates(arrays)
        except OverflowError:
            return None
    if out is not None:
        if not places.is_plain(out, plan.outputs, arrays):
            return None
        results: tuple[NDArray, ...] = (out,)
    else:
        made = fresh_elements(plan.loop, arrays, op) if len(plan.outputs) == 1 else None
        if made is not None:
            return (made,)
        results = _beside(arrays, plan.outputs)
    plan.loop.push(results, arrays)
    return results


def _beside(arrays: tuple[Any, ...], outputs: tuple[DType, ...]) -> tuple[NDArray, ...]:
    """Return new arrays of the shape to which `arrays` broadcast."""
    shape: Any = None
    first: Any = None
    for x in arrays:
        if isinstance(x, NDArray):
            if first is None:
                shape, first = x.shape, x
            elif x.shape != shape:
                shape = broadcast_shapes(shape, x.shape)
    return tuple([beside(first, shape, each) for each in outputs])


def _elementwise(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,  # noqa: ANN401 - an array, or a tuple of arrays and None
    where: Any = True,  # noqa: ANN401, FBT002 - an array-like of bool
    dtype: Any = None,  # noqa: ANN401 - a dtype-like
) -> tuple[NDArray, ...]:
    """Push an op with a ufunc, whatever its operands and its results are."""
    ufunc = op.ufunc
    assert ufunc is not None  # noqa: S101 - for the type checker
    if len(arrays) != ufunc.nin:
        raise TypeError(f"{op.name}() takes {ufunc.nin} arrays, and {len(arrays)} were given")
    given = operands.coerce(arrays, out, some_array=True)
    kinds = tuple([x.dtype if isinstance(x, NDArray) else x.__class__ for x in given])
    plan = plans.find(op, kinds, None if dtype is None else operands.as_dtype(dtype))
    exact = True
    try:
        given = plan.immediates(given)
    except OverflowError:
        if op.name not in plans.COMPARISONS:
            raise
        exact = False  # NumPy compares with any integer
    mask = None if where is True else _mask(where, given)
    results = places.elementwise(op.name, given, mask, plan.outputs, out)
    door.submit(door.Call(op, given, results, {}, plan, mask, exact, fresh=out is None))
    return results


def _mask(where: Any, given: tuple[Any, ...]) -> NDArray | None:  # noqa: ANN401 - as above
    """Return the array of ``where=``, or None where all elements are computed."""
    if where is np.True_:
        return None
    mask = operands.as_array(where, next(x for x in given if isinstance(x, NDArray)))
    if mask.dtype.kind != "b":
        raise TypeError(f"where= takes booleans, and an array of dtype {mask.dtype} was given")
    return mask


def _infer(op: Op, given: tuple[operands.Operand, ...], attributes: dict[str, Any]) -> tuple[Aval, ...]:
    """Return what the op's rule says of its results; rules are asked once for the same operands and attributes."""
    try:
        key = tuple([(x.shape, x.dtype) if isinstance(x, NDArray) else x.__class__ for x in given])
        whole = (key, *attributes.items(), *map(type, attributes.values())) if attributes else key
        avals: tuple[Aval, ...] | None = op.plans.get(whole)
    except TypeError:  # an attribute that is not hashable
        whole, avals = None, None
    if avals is None:
        inferred = op.infer(
            *[
                Aval(x.shape, x.dtype) if isinstance(x, NDArray) else Aval((), scalar_dtype(x.__class__), weak=True)
                for x in given
            ],
            **attributes,
        )
        avals = avals_of(op.name, inferred)
        if whole is not None:
            if len(op.plans) >= _REMEMBERED:
                op.plans.clear()
            op.plans[whole] = avals
    return avals


def _engine_of(given: tuple[operands.Operand, ...], out: object) -> Engine:
    return operands.engine_of(*given, *operands.listed(out))


def _computed(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,  # noqa: ANN401 - as above
    engine: Engine | None,
    attributes: dict[str, Any],
) -> tuple[NDArray, ...]:
    """Push an op that has no ufunc."""
    given = operands.coerce(arrays, out)
    if engine is None:
        engine = given[0].engine if given and isinstance(given[0], NDArray) else _engine_of(given, out)
    avals = _infer(op, given, attributes)
    results, final = places.computed(op, given, avals, out, engine)
    door.submit(door.Call(op, given, results, attributes, fresh=out is None))
    if final is not results:
        for target, result in zip(final, results, strict=True):
            if target is not result:
                copy_cast(target, result)
    return final
