"""`grad`, `value_and_grad`, `vjp` and `jvp`: functions that return gradients of functions."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsIndex, TypeVar

import numpy as np

from weft._call.operands import as_array
from weft._core import NDArray, TapeNode, tape_entry, tape_walk
from weft._ops.creation import ones_like, zeros_like
from weft._registry import hooks
from weft._registry.levels import LEVELS, Examples, held, inside, is_array, raised, shown, within
from weft._tape.backward import Head, head_of, like, walk
from weft._tape.leaves import apart, as_leaf, is_constant
from weft._tape.modes import listening
from weft._tape.pytree import flatten, map_arrays
from weft.errors import ArgumentTypeError, GradientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

P = ParamSpec("P")
R = TypeVar("R")

_A_VALUE = "a plain value, which does not tell how it was computed: return the array itself, without item(), float() or numpy()"


def check_function(usage: str, fn: object) -> None:
    """Reject an argument that is not a function where it is given, not where it would be called."""
    if not callable(fn):
        name = usage.partition("(")[0]
        raise ArgumentTypeError(f"{name}() takes a function, not {type(fn).__name__}: write weft.{usage}")


def grad(fn: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[P, Any]:
    """Return a function that returns the gradients of `fn`, which returns a scalar.

    Parameters
    ----------
    fn : callable
        Takes arrays, or nested lists, tuples, dicts and dataclasses of them, and returns a real scalar.
    argnums : int or sequence of int, default: 0
        Which positional arguments to differentiate by: their gradients have their structure, and those of several come
        as a tuple.
    has_aux : bool, default: False
        Whether `fn` returns ``(scalar, aux)``; then the result is ``(gradients, aux)``.

    Returns
    -------
    callable
        A function with the arguments of `fn`. The gradient of a complex argument is that of the real and the imaginary
        part, as the real and the imaginary part of one number.

    Raises
    ------
    GradientError
        From the returned function, if `fn` returns no scalar, an argument is of integers, an op on the way has no
        gradient, or a value that is needed was overwritten.

    Examples
    --------
    >>> import weft
    >>> weft.grad(lambda x: weft.sum(x**3))(weft.asarray([1.0, 2.0]))
    NDArray([ 3., 12.])
    >>> weft.grad(weft.grad(lambda x: x**3))(2.0)
    NDArray(12.)
    """
    check_function("grad(fn)(x)", fn)
    both = value_and_grad(fn, argnums, has_aux)

    @functools.wraps(fn)
    def gradient(*args: P.args, **kw: P.kwargs) -> Any:
        value, found = both(*args, **kw)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(
    fn: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]:
    """Return a function that returns the results of `fn` and its gradients; parameters as in `grad`.

    Examples
    --------
    >>> import weft
    >>> weft.value_and_grad(lambda p: weft.sum(p["w"] * p["b"]))({"w": weft.ones(2), "b": 3.0})
    (NDArray(6.), {'w': NDArray([3., 3.]), 'b': NDArray(2.)})
    """
    check_function("value_and_grad(fn)(x)", fn)
    several = not isinstance(argnums, SupportsIndex)
    try:
        numbers = (
            (operator.index(argnums),) if isinstance(argnums, SupportsIndex) else tuple(map(operator.index, argnums))
        )
    except TypeError:
        raise ArgumentTypeError(
            f"argnums={argnums!r} is no position of an argument, and no sequence of positions: they are integers"
        ) from None

    @functools.wraps(fn)
    def both(*args: P.args, **kw: P.kwargs) -> Any:
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise GradientError(
                    f"argnums={argnums} names argument {number}, and {len(args)} were given by position"
                )
        places = [number % len(args) for number in numbers]
        if len(set(places)) < len(places):
            raise GradientError(f"argnums={argnums} names an argument twice: name each once")
        call = _Call(fn, args, kw, places, has_aux=has_aux)
        found = call.gradients([_scalar(call.result, fn)])
        value = (call.value, call.aux) if has_aux else call.value
        return value, found if several else found[0]

    return both


def _scalar(y: Any, fn: Callable[..., Any]) -> Any:
    if is_array(y):
        if y.size != 1:
            raise GradientError(
                f"grad() takes functions that return a scalar, and this one returned an array of shape {y.shape}: use "
                "vjp(), or sum it"
            )
        if y.dtype.kind == "c":
            raise GradientError(
                "grad() takes functions that return a real scalar, and this one returned a complex one: use vjp()"
            )
        if y.dtype.kind != "f":
            raise GradientError(
                f"grad() takes functions that return a real scalar, and this one returned one of dtype {y.dtype}, through "
                "which no gradient goes: compute it in floating-point numbers"
            )
    else:
        name = getattr(fn, "__name__", "the function")
        kind = type(y).__name__
        hint = ""
        if kind == "tuple":
            hint = ": has_aux=True hands on what comes beside the scalar"
        elif isinstance(y, (float, np.number, np.ndarray)):
            hint = f", {_A_VALUE}"
        raise GradientError(
            f"grad() takes functions that return a scalar as an array, and {name} returned {kind}{hint}"
        )
    return None


def _check_arrays(usage: str, result: Any, fn: Callable[..., Any]) -> None:
    """Reject a result with values and no array: all its gradients would be zeros."""
    kinds = {type(leaf).__name__: is_array(leaf) for leaf in flatten(result)[0]}
    if kinds and not any(kinds.values()):
        name = getattr(fn, "__name__", "the function")
        raise GradientError(
            f"{usage}() takes functions that return arrays, and {name} returned {', '.join(kinds)}, {_A_VALUE}"
        )


def entry(x: Any) -> tuple[TapeNode, int] | None:
    """Return the node that made an array, and the number of the result."""
    own = held(x)
    return tape_entry(own) if isinstance(own, NDArray) else None


class _Call:
    """One call of a function over new leaves. Under `weft.vmap` they are those of all examples, each with a gradient of its own."""

    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], kw: dict[str, Any], places: Sequence[int], *, has_aux: bool
    ) -> None:
        given = list(args)
        self._levels = LEVELS.get()
        self.nodes: list[TapeNode] = []
        self.handles: list[Any] = []
        self._builds: list[tuple[Callable[[list[Any]], Any], int]] = []
        for place in places:
            leaves, build = flatten(given[place])
            if len(leaves) == 1 and leaves[0] is given[place]:
                made = [self.leaf(leaves[0], f"argument {place}")]
            else:
                where = (f"what argument {place} holds", "give it in an argument that argnums does not name")
                made = [self.leaf(leaf, *where) for leaf in leaves]
            self.handles.extend(handle for handle, _ in made)
            self.nodes.extend(node for _, node in made)
            self._builds.append((build, len(made)))
            given[place] = build([handle for handle, _ in made])
        with listening(mode=True):
            returned: Any = fn(*given, **kw)
        self.aux: Any = None
        if has_aux:
            if returned.__class__ is not tuple or len(returned) != 2:  # a pair
                raise GradientError(
                    "with has_aux=True the function returns a pair: what is differentiated, and the rest"
                )
            returned, aux = returned
            self.aux = map_arrays(self._outer, aux)
        self.result: Any = returned
        self.value = map_arrays(self._outer, returned)

    def leaf(self, x: Any, name: str, *instead: str) -> tuple[Any, TapeNode]:
        """Return a new leaf and its node."""
        if not self._levels or is_constant(x):
            return as_leaf(x, name, *instead)
        array = x if isinstance(x, Examples) else as_array(x)
        handle, node = as_leaf(raised(array, self._levels), name, *instead)
        return self.shown(handle), node

    def _outer(self, x: Any) -> Any:
        """Return a result for the code outside of the call: without the leaves of this call."""
        found = entry(x)
        return within(x, apart) if found is None or not tape_walk([found[0]], self.nodes)[2] else x

    def _head(self, y: Any, dy: Any) -> Head:
        """Return the start of a walk from a result."""
        if isinstance(dy, Examples) and dy.level not in self._levels:
            raise GradientError(
                "the gradient of a result is one of many examples, and the function was called outside of weft.vmap: call vjp() "
                "inside, as in weft.vmap(lambda dy: weft.vjp(fn, x)[1](dy))"
            )
        if not self._levels:
            return head_of(y, dy)
        own = raised(y, self._levels)
        if dy is None:
            return head_of(own, ones_like(own))
        return head_of(own, raised(dy if isinstance(dy, Examples) else as_array(dy), self._levels))

    def build(self, found: list[Any]) -> tuple[Any, ...]:
        """Return one structure for each argument."""
        rest = iter(found)
        return tuple(build([next(rest) for _ in range(count)]) for build, count in self._builds)

    def gradients(self, dys: list[Any], *, retain: bool = False, heard: bool | None = None) -> tuple[Any, ...]:
        """Return the gradients in the arguments' structures, given those of each result."""
        heads: list[Head] = []
        for y, dy in zip(flatten(self.result)[0], dys, strict=True):
            if entry(y) is not None:
                heads.append(self._head(y, dy))
        with listening(mode=True), inside(()):
            by_node = {node: gradient for node, _, gradient in walk(heads, self.nodes, retain=retain, heard=heard)}
            found = [by_node.get(node) for node in self.nodes]
            made = [zeros_like(held(x)) if each is None else each for each, x in zip(found, self.handles, strict=True)]
        return self.build([self.shown(each) for each in made])

    def shown(self, x: NDArray) -> Any:
        """Return what the function sees of an array of all examples."""
        return shown(x, self._levels)

    def tangent(self, change: Any, x: Any) -> NDArray:
        """Return a change of `x`, of all examples."""
        if self._levels:
            change = raised(change if isinstance(change, Examples) else as_array(change), self._levels)
        return like(change, held(x), "a tangent")


def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Call `fn`, and return its result and a function from gradients of the result to gradients of the arguments.

    Parameters
    ----------
    fn : callable
        Takes arrays, or structures of them, and returns such.
    *primals : array-like or structure of them
        Its arguments.
    has_aux : bool, default: False
        Whether `fn` returns ``(result, aux)``; then so does this, with the function between them.

    Returns
    -------
    (result, callable)
        The callable takes gradients in the result's structure and returns a tuple with one gradient for each argument.
        It may be called several times, and keeps the values that it needs for its own lifetime.

    Examples
    --------
    >>> import weft
    >>> y, pull = weft.vjp(lambda x: x * x, weft.asarray([1.0, 2.0]))
    >>> pull(weft.asarray([1.0, 10.0]))
    (NDArray([ 2., 40.]),)
    """
    check_function("vjp(fn, x)", fn)
    call = _Call(fn, primals, {}, range(len(primals)), has_aux=has_aux)
    _check_arrays("vjp", call.result, fn)

    def pull(dy: Any) -> tuple[Any, ...]:
        dys = _matching(call.result, dy, "the gradient of the result")
        return call.gradients(dys, retain=True)

    return (call.value, pull, call.aux) if has_aux else (call.value, pull)


def jvp(
    fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Call `fn` and return its result with the result's change for a change of the arguments.

    It differentiates the gradient in turn: rules are written once, for gradients.

    Parameters
    ----------
    fn : callable
        Takes arrays, or structures of them, and returns such.
    primals, tangents : sequence of array-like, or of structures of them
        The arguments, and their changes.
    has_aux : bool, default: False
        Whether `fn` returns ``(result, aux)``; then `aux` comes third.

    Examples
    --------
    >>> import weft
    >>> weft.jvp(lambda x: x**3, (2.0,), (1.0,))
    (NDArray(8.), NDArray(12.))
    """
    check_function("jvp(fn, (x,), (dx,))", fn)
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list) or len(primals) != len(tangents):
        raise GradientError(
            "jvp() takes a tuple of arguments and one of as many tangents: jvp(fn, (x, y), (dx, dy)), or (x,) and (dx,)"
        )
    call = _Call(fn, tuple(primals), {}, range(len(primals)), has_aux=has_aux)
    _check_arrays("jvp", call.result, fn)
    changes = _matching(call.build(list(call.handles)), tuple(tangents), "tangents")
    results, build = flatten(call.result)
    made = [call.leaf(zeros_like(within(y, apart)), "a result") for y in results]
    with listening(mode=True):
        gradients = flatten(call.gradients([handle for handle, _ in made], retain=True, heard=True))[0]
        heads = [
            (*found, call.tangent(change, gradient))
            for gradient, change in zip(gradients, changes, strict=True)
            if (found := entry(gradient)) is not None
        ]
        with inside(()):
            by_node = {node: change for node, _, change in walk(heads, [node for _, node in made])}
        changed = [by_node.get(node) for _, node in made]
        moved = [
            zeros_like(within(y, apart)) if each is None else call.shown(each)
            for each, y in zip(changed, results, strict=True)
        ]
    return (call.value, build(moved), call.aux) if has_aux else (call.value, build(moved))


def _matching(result: Any, given: Any, name: str) -> list[Any]:
    """Return the leaves of `given`, which must have the structure of `result`."""
    wanted, build = flatten(result)
    leaves, _ = flatten(given)
    if len(leaves) != len(wanted) or repr(_shape_of(given)) != repr(_shape_of(result)):
        raise GradientError(
            f"{name} has another structure than what it belongs to: {_shape_of(given)} for {_shape_of(result)}"
        )
    del build
    return leaves


def _shape_of(tree: Any) -> Any:
    """Return the structure without its leaves."""
    leaves, build = flatten(tree)
    return build([_Place()] * len(leaves))


class _Place:
    def __repr__(self) -> str:
        return "*"


hooks.vjp.set(vjp)
