"""`weft.cond` in a recording: a choice as one op, and its gradient, which is another choice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import _core
from weft._call.operands import as_array
from weft._core import NDArray, tape_entry, tape_note, tape_paused
from weft._ops.creation import zeros
from weft._ops.elementwise import not_equal
from weft._ops.searching import where
from weft._program import record
from weft._program.subrecordings import (
    KEPT,
    Again,
    Heard,
    Referred,
    handle_of,
    heard_in,
    leaf_of,
    moment,
    note_names,
    own_result,
    shown,
)
from weft._program.trees import arrays_of, leaves_of, replaced
from weft._registry import hooks
from weft._registry.levels import is_examples
from weft._tape.backward import Head, walk
from weft._tape.checkpoints import bound_now
from weft._tape.modes import listening, paused
from weft._tape.pytree import unflattened
from weft.errors import ArgumentValueError, CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._core import TapeNode


@dataclass(slots=True)
class _Recorded:
    """A recorded branch."""

    part: _core.Part
    returned: Any
    leaves: list[Any]
    """The results: arrays and other values."""
    heard: Heard | None
    why: str | None
    """The reason why it cannot run as one op."""


def chosen(p: Any, f: Callable[..., Any], g: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the result of one of two branches: in a recording, with an unknown `p`, by an op that runs only one of them."""
    if not isinstance(p, NDArray) or not record.is_recording():
        return f(*args) if p else g(*args)
    if p.size != 1:
        raise ArgumentValueError(f"cond: p has one element, not the shape {p.shape}")
    choice = p.reshape(()) if p.dtype.kind == "b" else not_equal(p.reshape(()), 0)
    for branch in (f, g):
        note_names(branch)
    later = bound_now(f), bound_now(g)
    one = _recorded(f, args, None)
    other = _recorded(g, args, one.leaves)
    if any(map(is_examples, (*one.leaves, *other.leaves))):  # which the branches refer to
        return hooks.cond_examples(choice, f, g, args)
    if any(
        isinstance(theirs, NDArray) and not isinstance(ours, NDArray)
        for ours, theirs in pairs(one.leaves, other.leaves)
    ):
        one = _recorded(f, args, other.leaves)
    for ours, theirs in pairs(one.leaves, other.leaves):
        _check(ours, theirs)
    if one.why is not None or other.why is not None:
        return _both(choice, f, g, args)
    made = iter(one.part.or_else(choice, other.part))
    results = [next(made) if isinstance(x, NDArray) else x for x in one.leaves]
    if one.heard or other.heard:
        referred = Referred("a branch of a cond", (*one.part.outside, *other.part.outside))
        arrays = [x for x in results if isinstance(x, NDArray)]
        _note(choice, later, args, (one.heard, other.heard), arrays, referred)
    return unflattened(one.returned, iter(results))


def pairs(one: list[Any], other: list[Any]) -> list[tuple[Any, Any]]:
    """Return the values of two branches side by side."""
    if len(one) != len(other):
        raise ArgumentValueError(f"cond: one branch returns {len(one)} values, the other {len(other)}")
    return list(zip(one, other, strict=True))


def _check(one: Any, other: Any) -> None:
    if not isinstance(one, NDArray) and not isinstance(other, NDArray):
        return
    if one.shape != other.shape or one.dtype != other.dtype:
        raise ArgumentValueError(f"cond: one branch returns {shown([one])}, the other {shown([other])}")


def _recorded(branch: Callable[..., Any], args: tuple[Any, ...], others: Sequence[Any] | None) -> _Recorded:
    """Record a branch as a part. Its numbers become arrays like the other branch's results in their places."""
    part = _core.Part(record.engine_for(arrays_of(args)), "cond")
    part.begin()
    try:
        since = moment()
        own: list[TapeNode] = []

        def handle(x: Any) -> NDArray:
            made = as_array(x)
            return leaf_of(made, made, own)

        returned = branch(*(replaced(x, handle) for x in args))
        leaves = leaves_of(returned)
        if any(map(is_examples, (*leaves, *(others or ())))):
            part.abort()
            return _Recorded(part, returned, leaves, None, None)
        heard = heard_in(leaves, own, since)
        _refuse_changes(part)
        with paused():
            made: list[NDArray] = []
            for at, x in enumerate(leaves):
                theirs = others[at] if others is not None and at < len(others) else None
                if not isinstance(x, NDArray) and (x is None or not _is_number_beside(x, theirs)):
                    continue
                leaves[at] = own_result(part, _beside(x, theirs), made)
                made.append(leaves[at])
        why = part.end(tuple(made))
    except BaseException:
        part.abort()
        raise
    return _Recorded(part, returned, leaves, heard, why)


def _refuse_changes(part: _core.Part) -> None:
    if part.changes is not None:
        raise CaptureError(
            f"cond: {part.changes} changes an array that the branch did not make: let the branches return what is new, and "
            "write it afterwards"
        )


def _is_number_beside(x: object, theirs: object) -> bool:
    """Return whether a value must become an array: the other branch has an array there, or another value."""
    return isinstance(theirs, NDArray) or (theirs is not None and (type(theirs) is not type(x) or theirs != x))


def _beside(x: Any, theirs: Any) -> NDArray:
    """Return an array; a number becomes one like the other branch's result in its place."""
    if isinstance(x, NDArray):
        return x
    if isinstance(theirs, NDArray):
        return as_array(np.asarray(x, np.result_type(theirs.dtype, x)) if np.isscalar(x) else x, theirs)
    return as_array(np.asarray(x, np.result_type(np.asarray(x), np.asarray(theirs))))


def _both(choice: NDArray, f: Callable[..., Any], g: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the chosen results of both branches, which both run."""
    taken, other = f(*args), g(*args)
    results = [
        where(choice, as_array(one, two), as_array(two, one))
        if isinstance(one, NDArray) or isinstance(two, NDArray)
        else one
        for one, two in zip(leaves_of(taken), leaves_of(other), strict=True)
    ]
    return unflattened(taken, iter(results))


def _note(
    choice: NDArray,
    branches: tuple[Callable[..., Any], Callable[..., Any]],
    args: tuple[Any, ...],
    heard: tuple[Heard | None, Heard | None],
    results: Sequence[NDArray],
    referred: Referred,
) -> None:
    """Note a heard choice on the tape."""
    outside = list(dict.fromkeys(entry for each in heard if each is not None for entry in each.outside))
    given = [x for x in map(as_array, arrays_of(args)) if x.dtype.kind in "fc"]
    rule = _Again(choice, branches, args, outside, referred)
    tape_note(rule, None, (*given, *outside), tuple(results), (1 << min(len(given), KEPT)) - 1, False)


class _Again(Again):
    """The op of a node that stands for a choice, as the tape sees it; its rule computes the taken branch again."""

    name = "cond"

    def __init__(
        self,
        choice: NDArray,
        branches: tuple[Callable[..., Any], Callable[..., Any]],
        args: tuple[Any, ...],
        outside: list[tuple[TapeNode, int]],
        referred: Referred,
    ) -> None:
        self._choice, self._branches, self._args = choice, branches, args
        self._outside, self._referred = outside, referred

    def _rule(self, node: Any, grads: Sequence[Any]) -> Any:
        self._referred.check()
        kept = iter(node.inputs)
        given = [
            found if x.dtype.kind in "fc" and isinstance(found := next(kept), NDArray) else x
            for x in map(as_array, arrays_of(self._args))
        ]
        heard = not tape_paused()
        with listening(mode=True):
            one, other = (partial(self._back, branch, given, grads, heard=heard) for branch in self._branches)
            grown: Sequence[NDArray] = chosen(self._choice, one, other, ())
        return tuple(grown)

    def _back(
        self, branch: Callable[..., Any], given: Sequence[NDArray], grads: Sequence[Any], *, heard: bool
    ) -> list[NDArray]:
        """Walk back through a branch: return the gradients of its arguments and of the arrays that it refers to."""
        handles = [handle_of(x, leaf=x.dtype.kind in "fc", heard=heard) for x in given]
        passed = iter([x for x, _ in handles])
        with listening(mode=True):
            returned = branch(*(replaced(x, lambda _: next(passed)) for x in self._args))
        results = [x for x in leaves_of(returned) if isinstance(x, NDArray)]
        rest = iter(grads)
        heads: list[Head] = []
        for x in results:
            gradient = next(rest)
            if gradient is not None and (entry := tape_entry(x)) is not None:
                heads.append((*entry, gradient))
        nodes = [node for _, node in handles if node is not None]
        wanted = list(dict.fromkeys([*nodes, *(node for node, _ in self._outside)]))
        answer = {(node, index): gradient for node, index, gradient in walk(heads, wanted, heard=heard)}
        entries = [*((node, 0) for node in nodes), *self._outside]
        outlines = [node.outlines[index] for node, index in entries]
        found = [answer.get(entry) for entry in entries]
        return [
            zeros(outline.shape, outline.dtype, engine=outline.engine) if each is None else each
            for each, outline in zip(found, outlines, strict=True)
        ]
