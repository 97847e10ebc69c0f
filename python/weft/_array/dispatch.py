"""From a call to a push: operands become arrays, the result is inferred and allocated, the op is pushed.

The only way from an array function to the engine. It never waits and never touches values, but for Python scalars:

- An op with a ufunc has a *plan* for each combination of operand dtypes, found once. Where NumPy has an inner loop for
  exactly these dtypes the plan holds it, and the push is native; an operator's loop is given to the type slots, which
  then do without this module. Otherwise the ufunc runs as a callable and casts.
- Any other op runs its `compute` as a callable.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from weft._array import operands
from weft._array.blas import share_cores
from weft._array.devices import device_of, place
from weft._array.operands import as_array, engine_of, matches, number
from weft._array.rules import Aval, broadcast_shapes, kind_of, scalar_dtype, ufunc_dtypes
from weft._core import (
    Loop,
    NDArray,
    beside,
    cache_loop,
    copy_elements,
    empty,
    forget_loops,
    push_compute,
    tape_hears,
    tape_note,
    wrap,
)
from weft._tape.hearing import hear
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._array.operands import Operand
    from weft._array.rules import DType
    from weft._core import Engine
    from weft.ops import Op

__all__ = ["as_array", "call", "eager", "elementwise", "engine_of", "forget", "view"]

#: Operators whose loops the type slots may run. Not "pow": NumPy's integer loop raises, which a loop without the GIL cannot,
#: and its operator ** squares where the exponent is 2.
LOOPED = frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "floor_divide",
        "remainder",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "negative",
        "positive",
        "abs",
        "bitwise_invert",
    ]
)
_COMPARISONS = frozenset(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])


def call(
    op: Op,
    *arrays: Any,  # noqa: ANN401 - array-likes
    out: Any = None,  # noqa: ANN401 - an array or a tuple of them
    engine: Engine | None = None,
    **attributes: Any,  # noqa: ANN401 - the op's own
) -> NDArray | tuple[NDArray, ...]:
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
    if tape_hears(arrays if out is None else (*arrays, *operands.listed(out))):
        results = hear(op, arrays, out, attributes, _push_any)
    elif op.ufunc is not None:
        results = _push_ufunc(op, arrays, out, **attributes)
    else:
        results = _push_function(op, arrays, out, engine, attributes)
    return results[0] if op.nout == 1 else results


def _push_any(op: Op, arrays: tuple[Any, ...], out: Any, attributes: dict[str, Any]) -> tuple[NDArray, ...]:  # noqa: ANN401 - as above
    """Push an op of either kind."""
    if op.ufunc is not None:
        return _push_ufunc(op, arrays, out, **attributes)
    return _push_function(op, arrays, out, None, attributes)


def elementwise(
    op: Op,
    *arrays: Any,  # noqa: ANN401 - array-likes
    out: NDArray | None = None,
    where: Any = True,  # noqa: ANN401 - an array-like of bool
    dtype: Any = None,  # noqa: ANN401 - a dtype-like
) -> NDArray:
    """Push an op with a ufunc and one result, and return the result without waiting.

    Examples
    --------
    >>> import weft
    >>> from weft._array.dispatch import elementwise
    >>> elementwise(weft.ops.get_op("sqrt"), weft.asarray([4.0, 9.0]))
    NDArray([2., 3.])
    """
    if tape_hears(arrays if out is None else (*arrays, out)):
        given = {"where": where, "dtype": dtype}
        wanted = {name: each for name, each in given.items() if each is not None and each is not True}
        return hear(op, arrays, out, wanted, _push_any)[0]
    return _push_ufunc(op, arrays, out, where, dtype)[0]


def hear_view(op: Op, x: NDArray, result: NDArray, attributes: dict[str, Any]) -> None:
    """Let the tape hear, if it listens, that `result` is the view of `x` that `op` gives."""
    if tape_hears((x,)):
        tape_note(op, attributes, (x,), (result,), 0, False)


def eager(func: Callable[..., Any], *arrays: Any, **kw: Any) -> Any:  # noqa: ANN401 - as `func`
    """Wait for `arrays`, call NumPy's `func` on read-only views of them, and wrap the results.

    For results whose shape depends on values.

    Parameters
    ----------
    func : callable
        Takes the arrays as NumPy arrays, and `kw`.
    *arrays : array-like
        The operands.
    **kw
        Passed on.

    Returns
    -------
    NDArray or tuple of NDArray
        What `func` returned, as independent arrays on the first one's device; a named tuple stays one.

    Raises
    ------
    ArgumentValueError
        If an array is on a device whose memory is not the host's.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._array.dispatch import eager
    >>> eager(numpy.unique, weft.asarray([2, 1, 2]))
    NDArray([1, 2])
    """
    engine = engine_of(*arrays)
    found = [as_array(x, engine=engine) for x in arrays]
    where = device_of(found[0])
    if any(x._elsewhere for x in found):
        raise ArgumentValueError(
            f"the array is on {where}, and what this function returns depends on values, at which the CPU has to look: "
            "copy the array there by x.to_device('cpu')"
        )
    views = [operands.values(x) for x in found]
    with np.errstate(all="ignore"):
        result: object = func(*views, **kw)

    def own(value: Any) -> NDArray:  # noqa: ANN401 - an array or a scalar
        array = np.asarray(value)
        if not array.flags.writeable or any(np.may_share_memory(array, each) for each in views):
            array = array.copy()
        return place(wrap(array, engine), where)

    values = operands.listed(result)
    if values is not result:
        return own(result)
    make: Any = getattr(values, "_make", tuple)  # of a named tuple's class
    return make(map(own, values))


def view(
    x: NDArray, shape: Sequence[int], strides: Sequence[int], offset: int = 0, dtype: DType | None = None
) -> NDArray:
    """Return a view of `x`: same memory, no op.

    Parameters
    ----------
    x : NDArray
        The array.
    shape, strides : sequence of int
        The view's, the strides in bytes.
    offset : int, default: 0
        Where it starts, in bytes from the first element of `x`.
    dtype : numpy.dtype, optional
        As what its bytes are read; by default as those of `x`.

    Examples
    --------
    >>> import weft
    >>> from weft._array.dispatch import view
    >>> view(weft.asarray([1, 2, 3]), (2,), (16,))
    NDArray([1, 3])
    """
    return x._strided(tuple(shape), tuple(strides), offset, dtype)


def forget(op: Op, kind: str) -> None:
    """Find loops and kernels of `op` anew, as this kind of device is to compute it in another way.

    Examples
    --------
    >>> import weft
    >>> from weft._array.dispatch import forget
    >>> forget(weft.ops.get_op("sin"), "cpu")
    """
    if op.operator:
        forget_loops(op.name, kind)
    op.plans.clear()


class _Plan:
    """How an op runs for one combination of operand dtypes.

    `loop` computes it on every kind of device, `native` on the host.
    """

    __slots__ = ("inputs", "loop", "native", "outputs", "replaced", "scalars", "signature")

    def __init__(self, op: Op, kinds: tuple[Any, ...], dtype: DType | None) -> None:
        ufunc = op.ufunc
        assert ufunc is not None  # noqa: S101 - for the type checker: only such ops have plans
        self.replaced = op.replaced
        weak = [not isinstance(kind, np.dtype) for kind in kinds]
        avals = [Aval((), scalar_dtype(kind) if soft else kind, soft) for kind, soft in zip(kinds, weak, strict=True)]
        self.inputs, self.outputs = ufunc_dtypes(ufunc, [kind_of(aval) for aval in avals], dtype)
        if dtype is None:
            inferred = op.infer(*avals)  # a user's rule may refuse what the ufunc takes, or give another dtype
            self.outputs = tuple(each.dtype for each in (inferred if isinstance(inferred, tuple) else (inferred,)))
        self.signature = (*self.inputs, *self.outputs)
        self.scalars = tuple((position, self.inputs[position]) for position, soft in enumerate(weak) if soft)
        exact = all(soft or kind == each for kind, soft, each in zip(kinds, weak, self.inputs, strict=True))
        loop = Loop.of(ufunc, self.signature) if exact else None
        if loop is not None and op.operator and len(set(self.inputs)) == 1:
            cache_loop(op.name, self.inputs, loop, self.outputs[0])
        self.native = None if "cpu" in self.replaced else loop
        self.loop = None if "cuda" in self.replaced else self.native


def _push_ufunc(  # noqa: C901 - the way of every small op: another call would be felt
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,  # noqa: ANN401 - an array, or a tuple of arrays and None
    where: Any = True,  # noqa: ANN401, FBT002 - an array-like of bool
    dtype: Any = None,  # noqa: ANN401 - a dtype-like
) -> tuple[NDArray, ...]:
    """Push an op with a ufunc."""
    kinds = tuple([x.dtype if type(x) is NDArray else x.__class__ for x in arrays])
    plan: _Plan | None = op.plans.get(kinds) if dtype is None else None
    if plan is None:
        arrays, plan = _prepare(op, arrays, out, dtype)
    if plan.scalars:
        try:
            arrays = _immediates(plan, arrays)
        except OverflowError:
            if op.name not in _COMPARISONS:
                raise
            return _push_casting(op, plan, arrays, out, where, signed=False)  # NumPy compares with any integer
    if out is not None or where is not True or plan.loop is None:
        if plan.loop is not None and where is True and _is_plain(out, plan, arrays):
            given: tuple[NDArray] = (out,)
            plan.loop.push(given, arrays)
            return given
        return _push_casting(op, plan, arrays, out, where)
    shape: tuple[int, ...] | None = None
    first: NDArray | None = None
    for x in arrays:
        if type(x) is NDArray:
            if shape is None:
                shape, first = x.shape, x
            elif x.shape != shape:
                shape = broadcast_shapes(shape, x.shape)
    results = tuple([beside(first, shape, each) for each in plan.outputs])  # type: ignore[arg-type] # one is an array
    plan.loop.push(results, arrays)
    return results


def _is_plain(out: object, plan: _Plan, arrays: tuple[Any, ...]) -> TypeGuard[NDArray]:
    """Return whether `out` is one array that needs no check: of the right dtype and shape, and nobody else's memory."""
    if type(out) is not NDArray or len(plan.outputs) != 1 or out.dtype is not plan.outputs[0]:
        return False
    if out.readonly or 0 in out.strides:
        return False
    shape = out.shape
    return all(type(x) is not NDArray or x is out or (x.shape == shape and not operands.share(x, out)) for x in arrays)


def _prepare(op: Op, arrays: tuple[Any, ...], out: Any, dtype: Any) -> tuple[tuple[Operand, ...], _Plan]:  # noqa: ANN401 - as above
    """Make operands of whatever was given, and find their plan."""
    ufunc = op.ufunc
    assert ufunc is not None  # noqa: S101 - for the type checker
    if len(arrays) != ufunc.nin:
        raise TypeError(f"{op.name}() takes {ufunc.nin} arrays, and {len(arrays)} were given")
    found = operands.coerce(arrays, out)
    if not any(type(x) is NDArray for x in found):
        engine = engine_of(*operands.listed(out))
        found = tuple(as_array(x, engine=engine) for x in found)
    kinds = tuple([x.dtype if isinstance(x, NDArray) else x.__class__ for x in found])
    if dtype is not None:
        return found, _Plan(op, kinds, operands.as_dtype(dtype))
    plan = op.plans.get(kinds)
    while plan is None:
        made = op.plans[kinds] = _Plan(op, kinds, None)
        if made.replaced is op.replaced:
            plan = made
        else:  # another thread has registered a compute meanwhile
            op.plans.clear()
    return found, plan


def _immediates(plan: _Plan, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the operands with Python scalars as the loop takes them; OverflowError if one does not fit."""
    given = list(arrays)
    for position, dtype in plan.scalars:
        given[position] = number(given[position], dtype)
    return tuple(given)


def _push_casting(
    op: Op,
    plan: _Plan,
    arrays: tuple[Any, ...],
    out: Any,  # noqa: ANN401 - as above
    where: Any,  # noqa: ANN401 - as above
    *,
    signed: bool = True,
) -> tuple[NDArray, ...]:
    """Push an op with a ufunc where results are given, elements are chosen or operands must be cast."""
    inputs = [x for x in arrays if type(x) is NDArray]
    mask = None
    if where is not True and where is not np.True_:
        mask = as_array(where, inputs[0])
        if mask.dtype.kind != "b":
            raise TypeError(f"where= takes booleans, and an array of dtype {mask.dtype} was given")
    shapes = [x.shape for x in inputs]
    shape = broadcast_shapes(*shapes) if mask is None else broadcast_shapes(*shapes, mask.shape)
    targets = operands.targets(out, len(plan.outputs))
    for target, dtype in zip(targets, plan.outputs, strict=True):
        if target is not None:
            operands.check_target(op.name, target, shape, dtype)
            shape = target.shape
    results = tuple(
        beside(inputs[0], shape, dtype) if target is None else target
        for target, dtype in zip(targets, plan.outputs, strict=True)
    )
    if results[0]._elsewhere:
        from weft._cuda import elementwise as device  # noqa: PLC0415 - for those alone who have a device

        device.push(op, plan.inputs, plan.outputs, results, arrays, mask, signed=signed)
        return results
    exact = plan.native is not None and mask is None and all(map(matches, results, plan.outputs))
    if exact and signed and plan.native is not None and not _overlap(targets, inputs):
        plan.native.push(results, arrays)
        return results
    template = tuple(_ARRAY if type(x) is NDArray else x for x in arrays)
    if op.ufunc is None or op.compute["cpu"] is not op.ufunc:
        if mask is not None:
            raise TypeError(
                f"{op.name}() for dtypes {', '.join(map(str, plan.inputs))} takes no where=, as it is no function of NumPy's"
            )
        _push_users(op, plan, results, arrays, template)
        return results
    run = partial(_run_ufunc, op.ufunc, plan.signature if signed else None, template, mask is not None)
    if mask is None:
        push_compute(run, results, tuple(inputs), name=op.name)
    else:
        push_compute(run, (), (*inputs, mask), results, name=op.name)
    return results


def _push_users(
    op: Op, plan: _Plan, results: tuple[NDArray, ...], arrays: tuple[Any, ...], template: tuple[Any, ...]
) -> None:
    """Push a user's function for an op with a ufunc: through arrays beside `results` where it cannot write to these."""
    inputs = tuple(x for x in arrays if type(x) is NDArray)
    own = () if "cpu" in op.replaced else op.inplace  # said of another function

    def fits(position: int, result: NDArray, dtype: DType) -> bool:
        if not matches(result, dtype):
            return False
        if not any(operands.share(x, result) for x in inputs):
            return True
        return any(to == position and arrays[operand] is result for operand, to in own)

    made = tuple(
        result if fits(position, result, dtype) else beside(inputs[0], result.shape, dtype)
        for position, (result, dtype) in enumerate(zip(results, plan.outputs, strict=True))
    )
    push_compute(partial(_run_compute, op.compute["cpu"], template, len(made)), made, inputs, name=op.name)
    for result, each in zip(results, made, strict=True):
        if result is not each:
            copy_cast(result, each)


def _push_function(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,  # noqa: ANN401 - as above
    engine: Engine | None,
    attributes: dict[str, Any],
) -> tuple[NDArray, ...]:
    """Push an op that is a Python callable on the CPU."""
    given = operands.coerce(arrays, out)
    engine = engine_of(*given, *operands.listed(out)) if engine is None else engine
    share_cores(engine)
    avals = [
        Aval(x.shape, x.dtype) if isinstance(x, NDArray) else Aval((), scalar_dtype(x.__class__), weak=True)
        for x in given
    ]
    inferred = op.infer(*avals, **attributes)
    wanted = inferred if isinstance(inferred, tuple) else (inferred,)
    like = next((x for x in given if isinstance(x, NDArray)), None)
    final: list[NDArray] = []
    results: list[NDArray] = []
    for position, (target, aval) in enumerate(zip(operands.targets(out, len(wanted)), wanted, strict=True)):
        direct = target is None or _fits(op, position, target, aval, given)
        if target is not None and direct:
            result = target
        elif like is not None:
            result = beside(like, aval.shape, aval.dtype)
        else:
            result = empty(aval.shape, aval.dtype, engine)
        results.append(result)
        final.append(result if target is None else target)
    _push(op, tuple(results), given, attributes)
    for target, result in zip(final, results, strict=True):
        if target is not result:
            copy_cast(target, result)
    return tuple(final)


def _fits(op: Op, position: int, target: NDArray, aval: Aval, given: tuple[Operand, ...]) -> bool:
    """Return whether the op may write straight into `target`; raise if its result may not go there at all."""
    operands.check_target(op.name, target, aval.shape, aval.dtype, exact=True)
    if target.dtype != aval.dtype:
        return False
    if not any(operands.share(x, target) for x in given if isinstance(x, NDArray)):
        return True
    return any(result == position and given[operand] is target for operand, result in op.inplace)


def _push(op: Op, results: tuple[NDArray, ...], given: tuple[Operand, ...], attributes: dict[str, Any]) -> None:
    """Push a callable op over results and operands that fit."""
    faster = op.attribute("push", None)
    on_device = bool(results) and results[0]._elsewhere
    if faster is not None and not on_device and faster(results, given, **attributes):
        return
    if on_device and (kernels := op.attribute("kernels", None)) is not None:
        from weft._cuda import functions  # noqa: PLC0415 - for those alone who have a device

        if functions.push(kernels, results, given, attributes):
            return
    mutated = tuple(x for i, x in enumerate(given) if i in op.mutates and isinstance(x, NDArray))
    inputs = tuple(x for i, x in enumerate(given) if i not in op.mutates and isinstance(x, NDArray))
    template = tuple(
        _MUTATED if i in op.mutates else _ARRAY if isinstance(x, NDArray) else x for i, x in enumerate(given)
    )
    for x in mutated:
        operands.check_writable(x)
    compute = op.compute["cpu"]
    if on_device:
        from weft._cuda.hosted import compute_of  # noqa: PLC0415 - for those alone who have a device

        compute = compute_of(op)
    run = partial(_run_compute, compute, template, len(results), _mutated=len(mutated), **attributes)
    push_compute(run, results, inputs, mutated, name=op.name)


def copy_cast(target: NDArray, x: NDArray) -> None:
    """Push the copy of `x` into `target`, to whose shape it broadcasts, casting without a check."""
    if x.dtype == target.dtype:
        copy_elements(target, x)
    elif target._elsewhere or x._elsewhere:
        from weft._cuda import transfers  # noqa: PLC0415 - for those alone who have a device

        transfers.copy_cast(target, x)
    else:
        push_compute(_cast, (target,), (x,), name="astype")


def _cast(target: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    if x.dtype.kind == "c" and target.dtype.kind not in "cb":
        x = x.real  # said at the call, where it can be heard
    with np.errstate(all="ignore"):
        np.copyto(target, x, casting="unsafe")


_ARRAY, _MUTATED = object(), object()  # where the next array goes among an op's scalars


def _run_ufunc(
    ufunc: np.ufunc,
    signature: tuple[DType, ...] | None,
    template: tuple[Any, ...],
    masked: bool,  # noqa: FBT001 - bound by position, before the views
    *views: Any,  # noqa: ANN401 - views
) -> None:
    outs, ins = views[: ufunc.nout], iter(views[ufunc.nout :])
    args = [next(ins) if each is _ARRAY else each for each in template]
    options: dict[str, Any] = {"where": next(ins)} if masked else {}
    if signature is not None:
        options["signature"] = signature
    with np.errstate(all="ignore"):
        ufunc(*args, out=outs, **options)


def _run_compute(
    compute: Callable[..., object],
    template: tuple[Any, ...],
    nout: int,
    /,
    *views: Any,  # noqa: ANN401 - views
    _mutated: int = 0,
    **attributes: Any,  # noqa: ANN401 - the op's own
) -> None:
    changed, ins = iter(views[nout : nout + _mutated]), iter(views[nout + _mutated :])
    args = [next(ins) if each is _ARRAY else next(changed) if each is _MUTATED else each for each in template]
    with np.errstate(all="ignore"):
        compute(*views[:nout], *args, **attributes)


def _overlap(targets: tuple[NDArray | None, ...], inputs: list[NDArray]) -> bool:
    """Return whether an input may show elements of a target in another order, which NumPy handles by a copy."""
    return any(
        target is not None and x is not target and operands.share(x, target) for target in targets for x in inputs
    )
