"""Calls beyond the core's walk: array-likes, places to write to, masks, devices, computes in Python.

The core's `call` pushes all others. The calls that it passes on go through four stages:

1. `operands.coerce` makes arrays and Python scalars of the arguments; with these alone the core is asked again.
2. The op's plan, or its rule, gives dtypes and shapes.
3. `outputs` decides on the places of the results.
4. `door.submit` pushes.

It never waits, and touches no values except Python scalars.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._call import door, operands, outputs, plans
from weft._call.copies import copy_cast
from weft._call.listening import hear
from weft._core import (
    TAPE_ELSEWHERE,
    NDArray,
    call,
    set_carrier,
    tape_hears_all,
    tape_note_fresh,
    tape_opens,
    tape_pause,
    way_of,
)
from weft._registry.avals import Aval, as_dtype, scalar_dtype
from weft._registry.sieve import sifted
from weft.errors import ArgumentTypeError, ArgumentValueError, WeftError

if TYPE_CHECKING:
    from weft._core import Engine
    from weft._registry.op import Op

#: The errors that a rule raises about its operands, often without the op's name.
_REFUSALS = {ArgumentTypeError, ArgumentValueError}


def carry(op: Op, arrays: tuple[Any, ...], attributes: dict[str, Any], out: Any, engine: Engine | None) -> Any:
    """Push a call, and return its results, without waiting.

    Parameters
    ----------
    op : Op
        The op.
    arrays : tuple of array-like
        The operands.
    attributes : dict
        The op's attributes; for one with a ufunc, ``where`` and ``dtype`` as in NumPy.
    out : NDArray or tuple of NDArray or None
        The places for the results.
    engine : Engine or None
        For an op without operands, the engine; by default the default one.

    Examples
    --------
    >>> import weft
    >>> from weft._call.dispatch import carry
    >>> carry(weft.ops.get_op("add"), ([1, 2], 1), {}, None, None)
    NDArray([2, 3])
    """
    try:
        if op.mutates:
            _check_mutated(op, arrays)
        given = operands.coerce(arrays, out, some_array=op.ufunc is not None or op._prepare is not None)
        if given is not arrays:
            return call(op, *given, out=out, engine=engine, **attributes)
        return _carried(op, given, attributes, out, engine)
    except Exception as error:
        refusal = sifted(error)
        if refusal is error:
            raise
        raise refusal from error


def _check_mutated(op: Op, arrays: tuple[Any, ...]) -> None:
    """Refuse operands of which the op would change a copy that nobody sees."""
    for at in op.mutates:
        if at < len(arrays) and not isinstance(arrays[at], NDArray):
            raise ArgumentTypeError(
                f"op {op.name!r} changes its operand {at}, and this one is of the class {type(arrays[at]).__name__}, of which it "
                "would change a copy: give it an NDArray"
            )


def _carried(
    op: Op, given: tuple[operands.Operand, ...], attributes: dict[str, Any], out: Any, engine: Engine | None
) -> Any:
    """Push a call over arrays and Python scalars, and note it on the tape."""
    prepare = op._prepare
    if prepare is not None:
        attributes = prepare(*given, **attributes)
    if out is not None:
        return _written(op, given, out, attributes, engine)
    opened = 0
    try:
        opened = tape_opens(given)
        if opened == TAPE_ELSEWHERE:
            opened = 0
            return _stood_for(op, given, out, attributes, engine)
        if opened and (op.mutates or (attributes and op.ufunc is not None and attributes.get("where") is not None)):
            tape_pause(False)
            return _written(op, given, None, attributes, engine)
        results = _push(op, given, None, attributes, engine)
    except BaseException as error:
        if opened or not isinstance(error, Exception):  # an interrupt may come before `opened` is set
            tape_pause(False)
        raise
    if opened:
        tape_note_fresh(op, attributes or None, given, results)  # and resumes listening
    return results[0] if op.nout == 1 else results


def ask(
    op: Op, given: tuple[operands.Operand, ...], attributes: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Aval, ...]]:
    """Return the attributes of a call in the form that rules know, and the avals of its results by the op's rule.

    Examples
    --------
    >>> import weft
    >>> from weft._call.dispatch import ask
    >>> ask(weft.ops.get_op("sum"), (weft.asarray([1, 2]),), {"axis": -1})[0]
    {'axis': (0,)}
    """
    try:
        prepare = op._prepare
        normal = attributes if prepare is None else prepare(*given, **attributes)
        found = [
            Aval(x.shape, x.dtype) if isinstance(x, NDArray) else Aval((), scalar_dtype(x.__class__), weak=True)
            for x in given
        ]
        return normal, op._results_of(found, normal)
    except WeftError as error:
        raise _named(error, op) from None
    except Exception as error:
        refusal = sifted(error)
        if refusal is error:
            raise
        raise refusal from error


def _written(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    attributes: dict[str, Any],
    engine: Engine | None,
) -> Any:
    """Push a call that writes to existing places, or to some of the elements."""
    heard = tape_hears_all(arrays if out is None else (*arrays, *operands.listed(out)))
    if heard == TAPE_ELSEWHERE:
        return _stood_for(op, arrays, out, attributes, engine)
    results = hear(op, arrays, out, attributes, _push) if heard else _push(op, arrays, out, attributes, engine)
    return results[0] if op.nout == 1 else results


def _stood_for(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    attributes: dict[str, Any],
    engine: Engine | None,
) -> Any:
    """Make a call with the handles that stand for moved tensors; results in `out` are returned as the tensors."""
    named = operands.listed(out) if out is not None else ()
    known = [(x, x._now) for x in (*arrays, *named) if isinstance(x, NDArray)]

    def now(x: Any) -> Any:
        return next((there for given, there in known if given is x), x)

    def given(x: Any) -> Any:
        return next((tensor for tensor, there in known if there is x), x)

    places: Any = tuple(map(now, cast("Any", out))) if isinstance(out, tuple) else now(out)
    found: Any = call(op, *map(now, arrays), out=places, engine=engine, **attributes)
    return tuple(map(given, cast("Any", found))) if isinstance(found, tuple) else given(found)


def _push(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    attributes: dict[str, Any],
    engine: Engine | None = None,
) -> tuple[NDArray, ...]:
    """Push a call without a listener, or with a paused one."""
    if op.ufunc is None:
        return _computed(op, arrays, out, engine, attributes)
    return _elementwise(op, arrays, out, **attributes)


def _elementwise(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    where: Any = True,
    dtype: Any = None,
) -> tuple[NDArray, ...]:
    """Push an op with a ufunc, for any operands and results."""
    ufunc = op.ufunc
    assert ufunc is not None
    if len(arrays) != ufunc.nin:
        raise ArgumentTypeError(f"{op.name}() takes {ufunc.nin} arrays, and {len(arrays)} were given")
    given = operands.coerce(arrays, out, some_array=True)
    plan = op._plan(given, None if dtype is None else as_dtype(dtype))
    exact = True
    try:
        given = plans.immediates(plan, given)
    except OverflowError:
        if op.operator not in plans.COMPARISONS:
            raise
        exact = False  # NumPy compares with any integer
    mask = None if where is True else _mask(where, given)
    try:
        results = outputs.elementwise(op.name, given, mask, plan.outputs, out)
    except ArgumentValueError as error:
        raise _named(error, op) from None
    door.submit(door.Call(op, given, results, {}, plan, mask=mask, exact=exact, fresh=out is None))
    return results


def _mask(where: Any, given: tuple[Any, ...]) -> NDArray | None:
    """Return the array of ``where=``, or None if all elements are computed."""
    if where is np.True_:
        return None
    mask = operands.as_array(where, next(x for x in given if isinstance(x, NDArray)))
    if mask.dtype.kind != "b":
        raise ArgumentTypeError(f"where= takes booleans, and an array of dtype {mask.dtype} was given")
    return mask


def _named(error: WeftError, op: Op) -> WeftError:
    """Return a refusal of arguments with the op's name in front, unless it names the op already."""
    text = str(error)
    is_named = re.search(rf"\b{re.escape(op.name)}\b", text) is not None
    return error if is_named or error.__class__ not in _REFUSALS else error.__class__(f"{op.name}: {text}")


def _engine_of(given: tuple[operands.Operand, ...], out: object) -> Engine:
    return operands.engine_of(*given, *operands.listed(out))


def _computed(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    engine: Engine | None,
    attributes: dict[str, Any],
) -> tuple[NDArray, ...]:
    """Push an op without a ufunc."""
    given = operands.coerce(arrays, out)
    if engine is None:
        engine = given[0].engine if given and isinstance(given[0], NDArray) else _engine_of(given, out)
    way = way_of(op, given, attributes)
    results, final = outputs.computed(op, given, way.avals, out, engine)
    door.submit(door.Call(op, given, results, attributes, way=way, fresh=out is None))
    if final is not results:
        for target, result in zip(final, results, strict=True):
            if target is not result:
                copy_cast(target, result)
    return final


set_carrier(carry, ask)
