"""Calls of programs that the tape listens to: one node each, with a program as its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import (
    NDArray,
    Scope,
    Signatures,
    bare,
    recording as open_recording,
    tape_apart,
    tape_check_target,
    tape_entry,
    tape_note,
    tape_note_call,
    tape_paused,
    whole,
)
from weft._ops.creation import zeros
from weft._ops.draws import drawn_from_by_replay
from weft._program.backward import Inseparable
from weft._registry.op import get_op
from weft._tape.backward import Head, walk
from weft._tape.modes import LISTENING, TRAINING
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol, TypeAlias

    from weft._core import Compiled, TapeNode
    from weft._program.backward import Pull
    from weft._program.guards import Name

    Arrays: TypeAlias = "Sequence[NDArray | None]"
    #: The compiled parts, the sources of the second's arguments, numbers of kept values, arguments that are written to,
    #: whether there are no other effects, and a number for the first part.
    Parted: TypeAlias = "tuple[Compiled | None, Compiled, list[tuple[str, int]], list[int], list[int], bool, int]"

    class Owner(Protocol):
        """The function of a program."""

        def pulled(self, taped: Taped, dys: Arrays, sums: Arrays) -> tuple[Pull, Parted]:
            """Record anew, for gradients and sums of these layouts; Inseparable if that is impossible."""
            ...

        def made(self, taped: Taped, given: Sequence[NDArray]) -> list[NDArray]:
            """Call the function itself, and return the arrays that a replay would have made."""
            ...

        def rebound(self, taped: Taped) -> str | None:
            """Return an outer name that was bound anew since the recording; None if there is none."""
            ...


class _Back:
    """A program that computes gradients, for gradients of its results of certain layouts."""

    def __init__(self, pull: Pull, parted: Parted) -> None:
        self.program, self.sources = parted[1], parted[2]
        self._there = [each is not None for each in pull.gradients]

    def run(self, values: Mapping[str, Any]) -> list[NDArray | None]:
        """Return a gradient, or None, for each wanted argument and each outside leaf."""
        made = iter(self.program.run(tuple(values[kind][number] for kind, number in self.sources)))
        return [next(made) if there else None for there in self._there]


class Taped:
    """The parts of a recording whose results have gradients.

    Parameters
    ----------
    name : str
        The function's.
    pull, parted
        The recorded walk, and the parts made from it.
    known : sequence of NDArray
        The arrays that the function refers to, as it knows them.
    names : sequence of Name
        The outer names in their bindings.
    function : callable
        The function with the variables of its closure as they were.
    template : object
        For the owner, to record again.
    """

    def __init__(
        self,
        name: str,
        pull: Pull,
        parted: Parted,
        known: Sequence[NDArray],
        names: Sequence[Name],
        function: Callable[..., Any],
        template: Any,
    ) -> None:
        assert parted[0] is not None  # both parts were requested
        self.name, self.pull, self.template = name, pull, template
        self.names, self.function = names, function
        self.first: Compiled = parted[0]
        self.kept, self.digest = parted[3], parted[6]
        self.is_pure = parted[5] and not parted[4]
        self._default = _Back(pull, parted)
        self._others: dict[Any, _Back | None] = {}
        self._training = TRAINING.get()
        read = [source for source in parted[2] if source[0] in {"argument", "result"}]
        self._arguments = {number for kind, number in read if kind == "argument"}
        self._results = {number for kind, number in read if kind == "result"}
        # Values that the gradient reads in place. The handle of the function notices later writes.
        states = self._default.program.states
        leaves = [node.leaf for node in pull.outside]
        self._states = [
            next((x for x in known if x._shares_buffer(state)), state)
            for state in states
            if not any(leaf is not None and leaf._shares_buffer(state) for leaf in leaves)
        ]

    def holds(self) -> bool:
        """Return whether the leaves that the function refers to are those of the recording."""
        return all(_is_leaf_of(node) for node in self.pull.outside)

    def run(self, owner: Owner, given: tuple[NDArray, ...]) -> tuple[NDArray, ...]:
        """Run the function's program with these arguments, and note it; return its results."""
        pull = self.pull
        for number in pull.targets:
            tape_check_target(self.name, given[number])
        call = _Call(self, owner, given)
        drawn_from_by_replay(self.first.states)
        made = self.first.run(given)
        results = made[: len(made) - len(self.kept)]
        call.kept = dict(zip(self.kept, made[len(results) :], strict=True))
        beside = sorted(self._results.difference(pull.outputs))  # a gradient reads them, and they have none
        inputs: list[tuple[Any, bool, bool]] = [
            (x, number in self._arguments, number in pull.wanted) for number, x in enumerate(given)
        ]
        inputs += [(node.leaf, True, True) for node in pull.outside]
        inputs.append((_Held(call), False, False))
        inputs += [(x, True, False) for x in self._states]
        inputs += [(results[number], True, False) for number in beside]
        outputs = [(results[number], number in self._results) for number in pull.outputs]
        outputs += [(given[number], False) for number in pull.targets]
        call.beside = {number: at - len(beside) for at, number in enumerate(beside)}
        tape_note_call(call, inputs, outputs, len(pull.targets))
        return results

    def gradients(
        self, owner: Owner, dys: Arrays, sums: Arrays, values: dict[str, Any], likes: Sequence[Any]
    ) -> list[NDArray | None]:
        """Return the gradients of the wanted arguments and of outside leaves, with the sums added."""
        others = [values[kind][number] for kind, number in self._default.sources if kind != "seed"]
        dys, sums = _disjoint(dys, others), _disjoint(sums, others)
        back = self._back(owner, dys, sums)
        if back is not None:
            return back.run({**values, "seed": [x for x in (*sums, *dys) if x is not None]})
        full = [_row_after_row(x, like) for x, like in zip(dys, likes, strict=True)]
        found = self._default.run({**values, "seed": full})
        return [_sum(one, other) for one, other in zip(sums, found, strict=True)]

    def _back(self, owner: Owner, dys: Arrays, sums: Arrays) -> _Back | None:
        seeds = [x for x in (*sums, *dys) if x is not None]
        overlaps = tuple(Signatures._overlaps(tuple(seeds)))
        plain = all(x is not None and x._contiguous for x in dys) and not any(x is not None for x in sums)
        if plain and not overlaps:
            return self._default
        key = tuple(None if x is None else x.strides for x in (*sums, *dys)), overlaps
        if key not in self._others:
            self._others[key] = self._recorded(owner, dys, sums)
        return self._others[key]

    def _recorded(self, owner: Owner, dys: Arrays, sums: Arrays) -> _Back | None:
        """Record the gradient for these layouts; None if the function has changed since."""
        if owner.rebound(self) is not None:
            return None
        try:
            with self.surroundings():
                pull, parted = owner.pulled(self, dys, sums)
        except Inseparable:
            return None
        same = parted[6] == self.digest and set(parted[3]) <= set(self.kept)
        known = {source for source in parted[2] if source[0] in {"argument", "result"}} <= set(self._default.sources)
        return _Back(pull, parted) if same and known else None

    def surroundings(self) -> Scope:
        """Restore the surroundings of the recording for the function."""
        return Scope((TRAINING, self._training), (LISTENING, True), paused=False)


def _is_leaf_of(node: TapeNode) -> bool:
    leaf: NDArray | None = node.leaf
    found = None if leaf is None else tape_entry(leaf)
    return found is not None and found[0] is node


def _disjoint(seeds: Arrays, others: Sequence[NDArray]) -> list[NDArray | None]:
    """Return copies in place of arrays that share memory with others: a program would have to know."""
    own = [x for x in seeds if x is not None]
    shared: set[int] = set()
    for one, other, _ in Signatures._overlaps((*own, *others)):
        if min(one, other) < len(own) <= max(one, other):
            shared.add(min(one, other))
    numbers = iter(range(len(own)))
    return [None if x is None else x.copy() if next(numbers) in shared else x for x in seeds]


def _row_after_row(x: NDArray | None, like: Any) -> NDArray:
    if x is None:
        return zeros(like.shape, like.dtype, engine=like.engine)
    return x.copy()


def _sum(one: NDArray | None, other: NDArray | None) -> NDArray | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


class _Held:
    """The values that a call keeps for its gradient, for as long as the tape keeps them."""

    __slots__ = ("arguments", "kept")

    def __init__(self, call: _Call) -> None:
        self.arguments, self.kept = call.arguments, call.kept
        call.arguments, call.kept = [], {}


class _Call:
    """The op of a node that stands for a call, as the tape sees it."""

    def __init__(self, taped: Taped, owner: Owner, given: Sequence[NDArray]) -> None:
        self.name = taped.name
        self._taped, self._owner = taped, owner
        self.kept: dict[int, NDArray] = {}
        # Only for gradients of gradients, which compute the function again.
        self.arguments = [(bare(x), x.version) for x in given]
        self.beside: dict[int, int] = {}

    def attribute(self, key: str, default: object = None) -> Any:
        """Return the rule, under the names of an op's attributes, and the form of its calls."""
        rules = {"gradient": self._rule, "gradient_takes_none": True, "gradient_takes_sums": True}
        return rules.get(key, default)

    def _rule(self, node: Any, grads: Sequence[Any]) -> Any:
        pull, inputs, outputs = self._taped.pull, node.inputs, node.outputs
        held = next(x for x in inputs if isinstance(x, _Held))
        count = len(held.arguments)
        places = [*pull.wanted, *range(count, count + len(pull.outside))]
        sums = [node.sums[place] for place in places]
        heard = not tape_paused()
        if heard or open_recording() is not None:
            found = self._again(node, held, grads, sums, heard=heard)
        else:
            results = {number: whole(outputs[at]) for at, number in enumerate(pull.outputs) if _is_array(outputs[at])}
            results |= {number: whole(inputs[at]) for number, at in self.beside.items()}
            values = {"argument": inputs, "result": results, "kept": held.kept}
            found = self._taped.gradients(self._owner, grads, sums, values, outputs)
        answer: list[NDArray | None] = [None] * len(inputs)
        for place, gradient in zip(places, found, strict=True):
            answer[place] = gradient
        return tuple(answer)

    def _again(
        self, node: Any, held: _Held, grads: Sequence[Any], sums: Arrays, *, heard: bool
    ) -> list[NDArray | None]:
        """Compute the function itself once more, and walk back through its ops, which the tape hears."""
        taped, pull = self._taped, self._taped.pull
        if not taped.is_pure:
            raise GradientError(
                f"the gradient of the gradient of the program {self.name!r} needs the values that it was computed from, "
                "and the program draws, calls Python, as a task does, or sort, roll or cumsum, or writes to arguments or to what "
                "it refers to: call it in a block of weft.eager()"
            )
        rebound = self._owner.rebound(taped)
        if rebound is not None:
            raise GradientError(
                f"the gradient of the gradient of the program {self.name!r} computes it once more, and {rebound} was bound "
                "anew since the call: pass it as an argument"
            )
        given: list[NDArray] = []
        nodes: list[TapeNode] = []
        for number, ((x, version), entry) in enumerate(zip(held.arguments, node.entries, strict=False)):
            if x.version != version:
                raise GradientError(
                    f"the gradient of the gradient of the program {self.name!r} needs its argument {number}, an array of "
                    f"shape {x.shape} and dtype {x.dtype}, which was overwritten since: write to a copy instead"
                )
            handle, leaf = tape_apart(x, None, leaf=number in pull.wanted and not heard)
            if number in pull.wanted and heard:
                tape_note(get_op("tape.identity"), None, (entry,), (handle,), 0, False)
                leaf = _node_of(handle)
            if leaf is not None:
                nodes.append(leaf)
            given.append(handle)
        with taped.surroundings():
            made = self._owner.made(taped, given)
            wanted = [*nodes, *pull.outside]
            heads: list[Head] = [(each, 0, x) for each, x in zip(wanted, sums, strict=True) if x is not None]
            for number, dy in zip(pull.outputs, grads, strict=True):
                found = tape_entry(made[number])
                if dy is not None and found is not None:
                    heads.append((*found, dy))
            answer = {each: gradient for each, _, gradient in walk(heads, wanted, heard=heard)}
        return [answer.get(each) for each in wanted]


def _is_array(x: object) -> bool:
    return isinstance(x, NDArray)


def _node_of(x: NDArray) -> TapeNode | None:
    found = tape_entry(x)
    return None if found is None else found[0]
