"""`checkpoint`: the results of a function are computed again for its gradient, instead of kept."""

from __future__ import annotations

import contextlib
import functools
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from weft._core import (
    NDArray,
    Scope,
    TapeNode,
    beside,
    copy_elements,
    recording,
    tape_apart,
    tape_entry,
    tape_hears,
    tape_keep,
    tape_note,
    tape_paused,
)
from weft._ops.draws import Draws
from weft._registry.op import get_op
from weft._tape.backward import Head, walk
from weft._tape.leaves import apart
from weft._tape.modes import AGAIN, LISTENING, listening, paused
from weft._tape.pytree import flatten, map_arrays
from weft._tape.transforms import check_function
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(fn: Callable[P, R]) -> Callable[P, R]:
    """Return a function that computes the same as `fn`, and keeps only its arguments for its gradient.

    For the gradient, `fn` is called again: that takes its time once more, and saves the memory of all its intermediate
    values. In a program, ops with results that still exist are left out. Arrays that are not arguments, such as a
    layer's parameters, have their gradients too. Draws, as those of dropout, are the same again and leave generators as
    they are; so do layers with their running averages.

    Parameters
    ----------
    fn : callable
        Takes and returns arrays, or nested lists, tuples, dicts and dataclasses of them; called again, it computes the
        same: it writes to no arrays but those that it has made. Variables of the functions around it may be bound anew
        meanwhile, as in a loop.

    Returns
    -------
    callable
        The function; the new one takes the same arguments.

    Examples
    --------
    >>> import weft
    >>> block = weft.checkpoint(lambda x: weft.tanh(weft.sin(x) * x))
    >>> weft.grad(lambda x: weft.sum(block(block(x))))(weft.zeros(2))
    NDArray([0., 0.])
    """
    check_function("checkpoint(fn)(x)", fn)

    @functools.wraps(fn)
    def again(*args: P.args, **kw: P.kwargs) -> Any:
        return _call(fn, args, kw)

    return again


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    if LISTENING.get() is False:
        return fn(*args, **kw)
    leaves, build = flatten((args, kw))
    places = [at for at, x in enumerate(leaves) if isinstance(x, NDArray)]
    inputs: list[NDArray] = [leaves[at] for at in places]
    later = bound_now(fn)

    def run(arrays: Sequence[NDArray], *, heard: bool, fn: Callable[..., Any] = later) -> tuple[Any, list[TapeNode]]:
        """Call the function over handles of its own; return its result, and the nodes of those handles with gradients."""
        found = list(leaves)
        nodes: list[TapeNode] = []
        for at, x in zip(places, arrays, strict=True):
            op = get_op("tape.identity") if heard and tape_entry(x) is not None else None
            found[at], node = tape_apart(x, op, leaf=x.dtype.kind in "fc")
            if node is not None:
                nodes.append(node)
        given, named = build(found)
        return fn(*given, **named), nodes

    before = tape_keep(None, ()).order  # nodes of the call have larger numbers
    draws = Draws()
    with draws.first():
        result, nodes = run(inputs, heard=False, fn=fn)
    results, rebuild = flatten(result)
    heads = [found for y in results if isinstance(y, NDArray) and (found := tape_entry(y)) is not None]
    outside = outside_entries(heads, nodes, before)
    if not outside and not tape_hears(tuple(inputs)):
        return map_arrays(apart, result)
    floating = [x for x in inputs if x.dtype.kind in "fc"]
    made = [apart(y) if isinstance(y, NDArray) else y for y in results]
    arrays = tuple(y for y in made if isinstance(y, NDArray))
    # The arguments are saved, so that a write to them before the gradient is an error.
    reads = (1 << min(len(floating), 32)) - 1
    if recording() is not None:
        reads |= ((1 << min(len(arrays), 32)) - 1) << 32  # values that no rule reads are not kept in a program
    tape_note(_Again(run, inputs, outside, draws), None, (*floating, *outside), arrays, reads, False)
    return rebuild(made)


def bound_now(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose variables of enclosing functions stay as they are now.

    These may be bound anew, as in a loop, before it is called again for its gradient.

    Examples
    --------
    >>> from weft._tape.checkpoints import bound_now
    >>> factor = 2
    >>> def scaled_by(factor):
    ...     scaled = bound_now(lambda x: x * factor)
    ...     factor = 3
    ...     return scaled
    >>> scaled_by(2)(5)
    10
    """
    found: Callable[..., Any] = _bound_now(fn, {}, {})
    return found


def _bound_now(fn: Any, cells: dict[int, CellType], known: dict[int, Any]) -> Any:
    """Return the function with variables of its own, which functions among their values share."""
    if isinstance(fn, functools.partial):
        return functools.partial(_bound_now(fn.func, cells, known), *fn.args, **fn.keywords)
    if isinstance(fn, MethodType):
        return MethodType(_bound_now(fn.__func__, cells, known), fn.__self__)
    if not isinstance(fn, FunctionType) or not fn.__closure__:
        return fn
    if id(fn) not in known:
        own = [cells.setdefault(id(cell), CellType()) for cell in fn.__closure__]
        made = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, tuple(own))
        made.__kwdefaults__, made.__module__, made.__qualname__ = fn.__kwdefaults__, fn.__module__, fn.__qualname__
        made.__dict__.update(fn.__dict__)
        known[id(fn)] = made
        for cell, now in zip(own, fn.__closure__, strict=True):
            with contextlib.suppress(ValueError):  # a variable that is not bound yet
                value = now.cell_contents
                cell.cell_contents = _bound_now(value, cells, known) if isinstance(value, FunctionType) else value
    return known[id(fn)]


def _not_before(arrays: list[NDArray], dys: list[NDArray], *, heard: bool) -> list[NDArray]:
    """Return the arrays, some as copies that run after `dys`, so that the second computation does, too.

    Otherwise a program would compute it as early as possible, and keep more memory than without a checkpoint.
    """
    long = [at for at, x in enumerate(arrays) if x.ndim and x.shape[0] > 1 and x.size]
    entries = {at: tape_entry(arrays[at]) for at in long}
    chosen = [at for at, entry in entries.items() if entry is not None and not entry[0].is_leaf]
    chosen = chosen or [at for at, entry in entries.items() if entry is None]
    chosen = chosen or sorted(long, key=lambda at: arrays[at].nbytes)[:1]
    made = list(arrays)
    last = next((dy for dy in reversed(dys) if dy.size), None)
    if last is None:
        return made
    for at in chosen:
        x = arrays[at]
        with paused():
            made[at] = beside(x, x.shape, x.dtype)
            # The first row overwrites an element of the gradient: so its copy runs after the gradient.
            copy_elements(made[at].reshape(-1)[:1], last.reshape(-1)[:1].astype(x.dtype))
            copy_elements(made[at][:1], x[:1])
            copy_elements(made[at][1:], x[1:])
        entry = entries.get(at)
        if entry is not None and isinstance(entry[0].op, _Again):
            entry[0].assume(entry[1], made[at])  # the copy stays until then; the array itself need not
        if entry is not None and heard:
            tape_note(get_op("tape.identity"), None, (entry,), (made[at],), 0, False)
    return made


def outside_entries(
    heads: Iterable[tuple[TapeNode, int]], own: list[TapeNode], before: int
) -> list[tuple[TapeNode, int]]:
    """Return the entries from before the call that its results depend on, or are, besides its arguments."""
    found: dict[tuple[TapeNode, int], None] = {}
    known = set(own)
    rest: list[tuple[TapeNode, int] | None] = list(heads)
    while rest:
        entry = rest.pop()
        if entry is None or entry[0] in known:
            continue
        if entry[0].order < before:
            found[entry] = None
        else:
            known.add(entry[0])
            rest.extend(entry[0].entries)
    return list(found)


class _Again:
    """The op of a node that stands for a call, as the tape sees it."""

    name = "checkpoint"

    def __init__(
        self, run: Callable[..., Any], inputs: list[NDArray], outside: list[tuple[TapeNode, int]], draws: Draws
    ) -> None:
        self._run = run
        self._draws = draws
        self._others = [None if x.dtype.kind in "fc" else x for x in inputs]
        self._outside = outside

    def attribute(self, key: str, default: object = None) -> Any:
        """Return the rule, under the names of an op's attributes."""
        return self._rule if key == "gradient" else default

    def _rule(self, node: Any, grads: Sequence[Any]) -> Any:
        heard = not tape_paused()
        with listening(mode=True):
            results, nodes = self._computed(node, grads, heard=heard)
            heads: list[Head] = [
                (*found, g) for y, g in zip(results, grads, strict=True) if (found := tape_entry(y)) is not None
            ]
            wanted = [*nodes, *dict.fromkeys(entry[0] for entry in self._outside)]
            answer = {(each, index): gradient for each, index, gradient in walk(heads, wanted, heard=heard)}
        return (*(answer.get((each, 0)) for each in nodes), *(answer.get(entry) for entry in self._outside))

    def _computed(self, node: Any, grads: Sequence[Any], *, heard: bool) -> tuple[list[NDArray], list[TapeNode]]:
        """Call the function again; return its results, and the nodes of its arguments."""
        saved = iter(node.inputs)
        arrays = [next(saved) if x is None else x for x in self._others]
        recorded = recording() is not None
        if recorded:
            arrays = _not_before(arrays, [x for x in grads if x is not None], heard=heard)
        with self._draws.again(), Scope((AGAIN, True)):
            result, nodes = self._run(arrays, heard=heard)
        results = [y for y in flatten(result)[0] if isinstance(y, NDArray)]
        try:
            kept: tuple[Any, ...] = node.outputs if recorded else ()
        except GradientError:  # written to since
            kept = ()
        # Ops on the results mostly keep these. Then the last ops are not needed again, and a program drops them.
        for y, known in zip(results, kept, strict=False):
            entry = tape_entry(y)
            if entry is not None and isinstance(known, NDArray):
                entry[0].assume(entry[1], known)
        return results, nodes
