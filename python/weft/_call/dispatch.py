"""From a call to a push: the only way from an array function to the engine.

A call walks one way, and each stage hands on the operands of the next one:

1. `operands.coerce` makes arrays and Python scalars of the arguments.
2. `plans.find`, or the op's own rule, infers dtypes and shapes.
3. `places` finds out where the results go.
4. `door.submit` pushes.

It never waits and never touches values, but for Python scalars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._call import door, operands, outputs, plans
from weft._call.copies import copy_cast
from weft._call.listening import hear
from weft._core import (
    TAPE_COERCED,
    TAPE_ELSEWHERE,
    NDArray,
    answer_here,
    beside,
    fresh_elements,
    tape_hears_all,
    tape_note_fresh,
    tape_opens,
    tape_pause,
)
from weft._registry.avals import Aval, as_dtype, avals_of, broadcast_shapes, scalar_dtype
from weft._registry.op import set_dispatcher
from weft._registry.sieve import sifted
from weft._registry.symbol_hook import Composing, compose
from weft.errors import ArgumentTypeError, ArgumentValueError, WeftError

if TYPE_CHECKING:
    from weft._call.plans import Plan
    from weft._core import Engine
    from weft._registry.avals import DType
    from weft._registry.op import Op

#: For how many combinations of operands and attributes an op remembers what its rule has said.
_REMEMBERED = 256
#: What a rule raises of its operands, and may leave to others to name the op.
_REFUSALS = {ArgumentTypeError, ArgumentValueError}


def call(  # noqa: C901 - the ways out are short
    op: Op,
    *arrays: Any,
    out: Any = None,
    engine: Engine | None = None,
    **attributes: Any,
) -> Any:
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
    >>> from weft._call.dispatch import call
    >>> call(weft.ops.get_op("add"), weft.asarray([1, 2]), 1)
    NDArray([2, 3])
    """
    opened = 0
    try:
        if out is not None:
            return _written(op, arrays, out, attributes, engine)
        if (made := _shortly(op, arrays, attributes)) is not None:
            return made
        opened = tape_opens(arrays)
        if opened == TAPE_ELSEWHERE:
            opened = 0
            return _stood_for(op, arrays, out, attributes, engine)
        if opened and (op.mutates or (attributes and op.ufunc is not None and attributes.get("where") is not None)):
            tape_pause(False)
            return _written(op, arrays, None, attributes, engine)
        if opened == TAPE_COERCED:
            arrays = operands.coerce(arrays)
        results = _push(op, arrays, None, attributes, engine)
    except BaseException as error:
        if opened or not isinstance(error, Exception):  # an interrupt may come before it is known
            tape_pause(False)
        if isinstance(error, Composing):
            return compose(op, arrays, attributes, out)
        refusal = sifted(error)
        if refusal is error:
            raise
        raise refusal from error
    if opened:
        # Here, and in no function of its own: the tape walks back through weft's frames to the caller's line.
        tape_note_fresh(op, attributes or None, arrays, results)  # and goes on listening
    return results[0] if op.nout == 1 else results


def _written(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    attributes: dict[str, Any],
    engine: Engine | None,
) -> Any:
    """Push a call that writes to places which were there, or to some of the elements."""
    try:
        heard = tape_hears_all(arrays if out is None else (*arrays, *operands.listed(out)))
        if heard == TAPE_ELSEWHERE:
            return _stood_for(op, arrays, out, attributes, engine)
        results = hear(op, arrays, out, attributes, _push) if heard else _push(op, arrays, out, attributes, engine)
    except Composing:
        return compose(op, arrays, attributes, out)
    return results[0] if op.nout == 1 else results


def _stood_for(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    attributes: dict[str, Any],
    engine: Engine | None,
) -> Any:
    """Make a call with the handles that stand for tensors that were moved; the tensors are its results where they are `out`."""
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
    """Push a call that nobody listens to, or whose listener has paused."""
    if op.ufunc is None:
        return _computed(op, arrays, out, engine, attributes)
    if attributes:
        return _elementwise(op, arrays, out, **attributes)
    return _straight(op, arrays, out) or _elementwise(op, arrays, out)


def _shortly(op: Op, arrays: tuple[Any, ...], attributes: dict[str, Any]) -> NDArray | None:
    """Push a call by its loop in one step, or answer it, of which the tape is told; return None if there is more to it."""
    if op.ufunc is None:
        return None if op.answer is None else answer_here(op, arrays, attributes)
    if attributes:
        return None
    plan: Plan | None = op.plans.get(tuple([x.dtype if isinstance(x, NDArray) else x.__class__ for x in arrays]))
    if plan is None or plan.loop is None or len(plan.outputs) != 1:
        return None
    if not plan.scalars:
        return fresh_elements(plan.loop, arrays, op)
    try:
        return fresh_elements(plan.loop, plan.immediates(arrays), op, arrays)
    except OverflowError:
        return None


def _straight(op: Op, arrays: tuple[Any, ...], out: Any) -> tuple[NDArray, ...] | None:
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
        if not outputs.is_plain(out, plan.outputs, arrays):
            return None
        results: tuple[NDArray, ...] = (out,)
    else:
        try:
            results = _beside(arrays, plan.outputs)
        except ArgumentValueError as error:
            raise _named(error, op) from None
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
    out: Any,
    where: Any = True,
    dtype: Any = None,
) -> tuple[NDArray, ...]:
    """Push an op with a ufunc, whatever its operands and its results are."""
    ufunc = op.ufunc
    assert ufunc is not None
    if len(arrays) != ufunc.nin:
        raise ArgumentTypeError(f"{op.name}() takes {ufunc.nin} arrays, and {len(arrays)} were given")
    given = operands.coerce(arrays, out, some_array=True)
    kinds = tuple([x.dtype if isinstance(x, NDArray) else x.__class__ for x in given])
    plan = plans.find(op, kinds, None if dtype is None else as_dtype(dtype))
    exact = True
    try:
        given = plan.immediates(given)
    except OverflowError:
        if op.operator not in plans.COMPARISONS:
            raise
        exact = False  # NumPy compares with any integer
    mask = None if where is True else _mask(where, given)
    try:
        results = outputs.elementwise(op.name, given, mask, plan.outputs, out)
    except ArgumentValueError as error:
        raise _named(error, op) from None
    door.submit(door.Call(op, given, results, {}, plan, mask, exact, fresh=out is None))
    return results


def _mask(where: Any, given: tuple[Any, ...]) -> NDArray | None:
    """Return the array of ``where=``, or None where all elements are computed."""
    if where is np.True_:
        return None
    mask = operands.as_array(where, next(x for x in given if isinstance(x, NDArray)))
    if mask.dtype.kind != "b":
        raise ArgumentTypeError(f"where= takes booleans, and an array of dtype {mask.dtype} was given")
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
        found = [
            Aval(x.shape, x.dtype) if isinstance(x, NDArray) else Aval((), scalar_dtype(x.__class__), weak=True)
            for x in given
        ]
        try:
            inferred = op.infer(*found, **attributes)
        except WeftError as error:
            raise _named(error, op) from None
        avals = avals_of(op.name, inferred)
        if whole is not None:
            if len(op.plans) >= _REMEMBERED:
                op.plans.clear()
            op.plans[whole] = avals
    return avals


def _named(error: WeftError, op: Op) -> WeftError:
    """Return a refusal of arguments with the op's name before it, unless it is told already."""
    text = str(error)
    return error.__class__(f"{op.name}: {text}") if error.__class__ in _REFUSALS and op.name not in text else error


def _engine_of(given: tuple[operands.Operand, ...], out: object) -> Engine:
    return operands.engine_of(*given, *operands.listed(out))


def _computed(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    engine: Engine | None,
    attributes: dict[str, Any],
) -> tuple[NDArray, ...]:
    """Push an op that has no ufunc."""
    given = operands.coerce(arrays, out)
    if engine is None:
        engine = given[0].engine if given and isinstance(given[0], NDArray) else _engine_of(given, out)
    avals = _infer(op, given, attributes)
    results, final = outputs.computed(op, given, avals, out, engine)
    door.submit(door.Call(op, given, results, attributes, fresh=out is None))
    if final is not results:
        for target, result in zip(final, results, strict=True):
            if target is not result:
                copy_cast(target, result)
    return final


set_dispatcher(call, plans.forget)
