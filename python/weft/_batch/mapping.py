"""`weft.vmap`."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from weft._batch.control import applied, chosen, scanned
from weft._batch.examples import Example, check_open
from weft._batch.rules import batched, spread
from weft._call.operands import as_array
from weft._core import NDArray
from weft._ops.manipulation import moveaxis
from weft._registry import hooks
from weft._registry.brief import brief
from weft._registry.levels import LEVELS, Examples, Level, innermost, inside, is_array
from weft._registry.shapes import is_index
from weft._registry.sieve import sieved
from weft._registry.symbol_hook import is_symbol
from weft._tape.pytree import flatten, parts_of
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.op import Op

P = ParamSpec("P")
R = TypeVar("R")


@sieved
def vmap(fn: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]:
    """Return a function that computes for many examples at once the results of `fn` for one.

    `fn` is called once, with arrays of the shape of one example. Each op in it is pushed once for all of them. So it is
    for element-wise ops, reductions, products and einsum, ops of linear algebra, views, joins, indexing, sorting,
    softmax and the layers of networks. An op without such a rule is pushed once for each example. A rule is one attribute
    of the op, ``"batch"``.

    Parameters
    ----------
    fn : callable
        Takes arrays, or nested lists, tuples, dicts and dataclasses of them, and returns such. It may refer to other
        arrays, which are the same for all examples.
    in_axes : int, None, or structure of them, default: 0
        The axis of each argument along which the examples lie: one for all arguments, or a tuple with one for each; an
        argument that is a structure takes one axis for all of it, or a structure. None is for an argument that all
        examples share. Arguments by name have their examples along axis 0.
    out_axes : int, None, or structure of them, default: 0
        Where the examples lie in the results; None for a result that does not depend on the example.

    Returns
    -------
    callable
        A function with the arguments of `fn`, all with the axis of examples, and its results likewise.

    Raises
    ------
    ArgumentValueError
        From the returned function, if arguments have different numbers of examples, or lack the axis.
    ArgumentTypeError
        From it, if `fn` branches on values, or writes to an argument.

    See Also
    --------
    weft.scan : A loop over rows, each of which may depend on the one before.

    Notes
    -----
    It nests, takes `weft.grad` inside (a gradient for each example) and outside, and may be recorded by
    `weft.program`. Random numbers that `fn` draws are the same for all examples. Sums and products may differ in the
    last places from those of one example.

    Examples
    --------
    >>> import weft
    >>> rows = weft.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> weft.vmap(lambda row: row / row.sum())(rows).sum(axis=1)
    NDArray([1., 1.])

    The gradient of each example by itself:

    >>> loss = lambda w, x: weft.sum((x @ w) ** 2)
    >>> print(weft.vmap(weft.grad(loss), in_axes=(None, 0))(weft.ones(2), rows))
    [[ 6. 12.]
     [42. 56.]]
    """
    if not callable(fn):
        raise ArgumentTypeError(f"vmap() takes a function, not {type(fn).__name__}: write weft.vmap(fn)(x)")
    name, function = getattr(fn, "__name__", type(fn).__name__), cast("Callable[..., Any]", fn)

    @functools.wraps(fn)
    def mapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        inputs, build = flatten((args, kwargs))
        axes = [*_of_arguments(in_axes, args), *(0 for _ in flatten(kwargs)[0])]
        given = [x if axis is None else _array(x, axis) for x, axis in zip(inputs, axes, strict=True)]
        levels = LEVELS.get()
        level = Level(name, _size(name, given, axes), len(levels), spread, Example)
        seen = [x if axis is None else level.show(_to_front(x, axis)) for x, axis in zip(given, axes, strict=True)]
        positional, named = build(seen)
        try:
            with inside((*levels, level)):
                result = function(*positional, **named)
        finally:
            level.open = False
        outputs, rebuild = flatten(result)
        places = _along(out_axes, result, "out_axes", "the result")
        return rebuild([_returned(x, place, level) for x, place in zip(outputs, places, strict=True)])

    return mapped


# Axes


def _of_arguments(in_axes: Any, args: tuple[Any, ...]) -> list[int | None]:
    """Return the axis of each leaf of the positional arguments."""
    if in_axes.__class__ not in (tuple, list):
        return _along(in_axes, args, "in_axes", "the arguments")
    each: list[Any] = [*in_axes]
    if len(each) != len(args):
        raise ArgumentValueError(
            f"vmap: in_axes={in_axes!r} names {len(each)} arguments, and {len(args)} were given by position"
        )
    found: list[int | None] = []
    for at, (axes, value) in enumerate(zip(each, args, strict=True)):
        found += _along(axes, value, "in_axes", f"argument {at}")
    return found


def _along(axes: Any, value: Any, which: str, what: str) -> list[int | None]:
    """Return the axis of each leaf of a structure, from one for all of it, or from a structure of them."""
    if axes is None or (is_index(axes) and not isinstance(axes, bool)):
        axis = None if axes is None else operator.index(axes)
        return [axis] * len(flatten(value)[0])
    own, parts = parts_of(axes, exact=False), parts_of(value, exact=False)
    if own is None or parts is None or len(own) != len(parts):
        raise ArgumentTypeError(
            f"vmap: {which}={axes!r} does not suit {what}: an axis is an integer or None, or of each part of a structure one"
        )
    if isinstance(axes, dict):
        known: dict[Any, Any] = dict(axes)  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(value, dict) or known.keys() != value.keys():
            raise ArgumentTypeError(f"vmap: {which}={axes!r} has other keys than {what}")
        names: list[Any] = [*value]  # pyright: ignore[reportUnknownVariableType]
        own = [known[key] for key in names]
    found: list[int | None] = []
    for axis, part in zip(own, parts, strict=True):
        found += _along(axis, part, which, what)
    return found


def _array(x: Any, axis: int) -> Any:
    """Return an argument as an array with this axis."""
    if is_symbol(x) and not isinstance(x, Examples):
        raise ArgumentTypeError("vmap: a symbol has no examples: map functions of arrays")
    if isinstance(x, str | bytes) or callable(x):
        raise ArgumentTypeError(
            f"vmap: an argument is {brief(x)}, which has no axis of examples: in_axes names None for what all examples share"
        )
    array: Any = x if isinstance(x, Examples) else as_array(x)
    if not -array.ndim <= axis < array.ndim:
        given = repr(x) if array.ndim == 0 and not is_array(x) else f"an array of shape {array.shape}"
        raise ArgumentValueError(
            f"vmap: an argument is {given}, which has no axis {axis} for the examples: in_axes names another, or None for what "
            "all examples share"
        )
    return array


def _size(name: str, given: list[Any], axes: list[int | None]) -> int:
    """Return the number of examples."""
    sizes = [x.shape[axis] for x, axis in zip(given, axes, strict=True) if axis is not None]
    if not sizes:
        raise ArgumentValueError(
            f"vmap({name}): no argument has examples: in_axes names an axis of at least one of those that were given"
        )
    if len(set(sizes)) > 1:
        said = ", ".join(
            f"{x.shape[axis]} along axis {axis} of shape {x.shape}"
            for x, axis in zip(given, axes, strict=True)
            if axis is not None
        )
        raise ArgumentValueError(f"vmap({name}): arguments differ in their numbers of examples: {said}")
    found: int = sizes[0]
    return found


def _to_front(x: Any, axis: int) -> Any:
    return x if axis == 0 else moveaxis(x, axis, 0)


def _returned(x: Any, place: int | None, level: Level) -> Any:
    """Return a result of all examples with them along an axis."""
    if place is None:
        if isinstance(x, Examples) and x.level is level:
            shown: Any = x
            raise ArgumentValueError(
                f"vmap({level.name}): out_axes names None for a result of shape {shown.shape}, which differs from example to example"
            )
        return x
    if isinstance(x, str | bytes) or callable(x):
        raise ArgumentTypeError(f"vmap({level.name}): the function returned {brief(x)}, and arrays are returned")
    array: Any = x if isinstance(x, Examples) else as_array(x)
    value = level.value_of(array)
    if not -value.ndim <= place < value.ndim:
        raise ArgumentValueError(
            f"vmap({level.name}): a result of shape {array.shape} has no place {place} for the examples: out_axes is from "
            f"{-value.ndim} to {value.ndim - 1}"
        )
    return value if place == 0 else moveaxis(value, 0, place)


# Calls


def _called(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Return the results of a call of an op on what functions see."""
    level = innermost(operands)
    given: list[Any] = []
    mapped: list[bool] = []
    for x in operands:
        is_mapped = isinstance(x, Examples) and x.level is level
        if is_mapped:
            check_open(x)
        mapped.append(is_mapped)
        given.append(x.value if is_mapped else _operand(x))
    with inside(LEVELS.get()[: level.depth]):
        found = tuple(map(level.show, batched(op, level.size, given, mapped, attributes)))
    return found[0] if op.nout == 1 else found


def _operand(x: Any) -> Any:
    return x if isinstance(x, NDArray | Examples | bool | int | float | complex) else as_array(x)


hooks.compose_examples.set(_called)
hooks.apply_to_examples.set(applied)
hooks.scan_examples.set(scanned)
hooks.cond_examples.set(chosen)
