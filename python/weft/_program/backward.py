"""Recordings with gradients: the walk back is recorded behind the function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft._core import NDArray, Scope, recorded_calls, tape_apart, tape_entry, tape_keep, tape_walk
from weft._registry.op import get_op
from weft._tape.backward import BEYOND, Beyond, Head, walk
from weft._tape.checkpoints import outside_entries
from weft._tape.leaves import is_open, make_leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import Recording, TapeNode


class Inseparable(Exception):  # noqa: N818 - it stays inside: the call runs as Python
    """The function's gradient cannot be a program of its own."""


@dataclass(frozen=True, slots=True)
class Pull:
    """The recorded walk from a function's results back to its arguments.

    Parameters
    ----------
    at : int
        How many calls were recorded before it.
    outputs : tuple of int
        Which of the arrays that a replay makes have gradients.
    targets : tuple of int
        Which arguments have other gradients after the call than before.
    wanted : tuple of int
        The arguments that get gradients.
    outside : tuple of TapeNode
        Leaves that the function refers to; their gradients are computed, too.
    seeds : int
        The number of arrays that it takes: gradients of the outputs and targets, and sums so far, as far as they exist.
    gradients : tuple of (NDArray or None)
        Those of the arguments, then those of outside leaves.
    """

    at: int
    outputs: tuple[int, ...]
    targets: tuple[int, ...]
    wanted: tuple[int, ...]
    outside: tuple[TapeNode, ...]
    seeds: int
    gradients: tuple[NDArray | None, ...]


#: How the tape knows leaves.
_LEAVES = (1, 3)


class Graded:
    """The arguments of a recording, with leaves in place of those that the tape knows.

    Parameters
    ----------
    placeholders : sequence of NDArray
        The placeholders of the arguments.
    standings : sequence of int
        How the tape knows them: 0 not at all, 1 as leaves by `requires_grad`, 3 as those with gradients that are not stored, 2 as
        anything else.
    """

    def __init__(self, placeholders: Sequence[NDArray], standings: Sequence[int]) -> None:
        self._before = tape_keep(None, ()).order
        self.given = list(placeholders)
        self._nodes: list[TapeNode | None] = [None] * len(self.given)
        for at, standing in enumerate(standings):
            if standing in _LEAVES:
                make_leaf(placeholders[at], stores=standing == 1)
                found = tape_entry(placeholders[at])
                self._nodes[at] = None if found is None else found[0]
            elif standing:
                # An argument that is not a leaf may be written to.
                inner, self._nodes[at] = tape_apart(placeholders[at], None, leaf=True)
                self.given[at], _ = tape_apart(inner, get_op("tape.identity"))
        self._first = [tape_entry(x) for x in self.given]
        further = [
            node
            for node, standing in zip(self._nodes, standings, strict=True)
            if node is not None and standing not in _LEAVES
        ]
        self._beyond = Beyond(further)

    def bounded(self) -> Scope:
        """Notice walks in the block that would continue beyond the arguments."""
        return Scope((BEYOND, self._beyond))

    def check_bounds(self) -> None:
        """Raise `Inseparable` if there was such a walk."""
        if self._beyond.met:
            raise Inseparable

    def is_open(self, made: Sequence[NDArray]) -> bool:
        """Return whether a gradient can be requested of an array that the function made or changed."""
        return any(map(is_open, made)) or any(is_open(self.given[at]) for at in self._changed())

    def _changed(self) -> list[int]:
        return [at for at, x in enumerate(self.given) if tape_entry(x) != self._first[at]]

    def pull(
        self,
        recording: Recording,
        made: Sequence[NDArray],
        others: Sequence[NDArray],
        dys: Sequence[NDArray | None] | None = None,
        sums: Sequence[NDArray | None] = (),
    ) -> Pull:
        """Record the walk back.

        Parameters
        ----------
        recording : Recording
            The open recording.
        made : sequence of NDArray
            The results of a replay.
        others : sequence of NDArray
            The arrays that the function refers to.
        dys : sequence of (NDArray or None), optional
            Gradients of outputs and targets, for their layouts; by default one for each, row after row.
        sums : sequence of (NDArray or None), optional
            First sums, for their layouts: of the wanted arguments, then of outside leaves.
        """
        at = recorded_calls()
        outputs = tuple(number for number, x in enumerate(made) if is_open(x))
        targets = tuple(self._changed())
        shown = [*(made[number] for number in outputs), *(self.given[number] for number in targets)]
        if at is None or not all(map(is_open, shown)):
            raise Inseparable
        for number in outputs:  # the tape would not know that they share memory
            rest = (*self.given, *others, *made[:number], *made[number + 1 :])
            if any(made[number]._shares_buffer(x) for x in rest):
                raise Inseparable
        entries = [found for x in shown if (found := tape_entry(x)) is not None]
        reached = {leaf for leaf, _ in tape_walk([node for node, _ in entries])[1]}
        wanted = tuple(number for number, node in enumerate(self._nodes) if node in reached)
        nodes = [node for node in self._nodes if node is not None and node in reached]
        beside = outside_entries(entries, nodes, self._before)
        if any(node.leaf is None for node, _ in beside):
            raise Inseparable
        outside = tuple(node for node, _ in beside)
        seeds = 0
        heads: list[Head] = []
        first = [entry for at in wanted if (entry := self._first[at]) is not None]
        for (node, index), known in zip((*first, *((node, 0) for node in outside)), sums, strict=False):
            if known is not None:
                heads.append((node, index, recording.argument(known)))
                seeds += 1
        for place, ((node, index), x) in enumerate(zip(entries, shown, strict=True)):
            known = None if dys is None else dys[place]
            if dys is None or known is not None:
                heads.append((node, index, recording.seed(x) if known is None else recording.argument(known)))
                seeds += 1
        try:
            answer = {node: gradient for node, _, gradient in walk(heads, [*nodes, *outside], heard=False)}
        except Exception as error:  # a rule may raise any error: it raises again when gradients are requested
            raise Inseparable from error
        return Pull(
            at, outputs, targets, wanted, outside, seeds, tuple(answer.get(node) for node in (*nodes, *outside))
        )
