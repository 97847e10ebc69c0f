"""Parts of a recording that run as one op of it: the common base of loops and branches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft import _core
from weft._call.operands import as_array
from weft._core import NDArray, beside, copy_elements, tape_apart, tape_entry, tape_hears, tape_keep
from weft._program.record import inlining
from weft._program.trees import leaves_of, replaced
from weft._registry.op import get_op
from weft._tape.checkpoints import outside_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weft._core import TapeNode

#: Inputs of a node of the tape whose values it may keep.
KEPT = 32


@dataclass(frozen=True, slots=True)
class Heard:
    """What a part depends on from outside of it, beside its inputs: entries of the tape."""

    outside: list[tuple[TapeNode, int]]

    @property
    def nodes(self) -> list[TapeNode]:
        """The nodes of the entries, each once."""
        return list(dict.fromkeys(node for node, _ in self.outside))


def moment() -> int:
    """Return a number that nodes made from now on are above."""
    return tape_keep(None, ()).order


def heard_in(results: Iterable[Any], own: list[TapeNode], since: int) -> Heard | None:
    """Return what the tape has heard of results that were computed since, or None if that is nothing."""
    heads = [found[0] for y in results if isinstance(y, NDArray) and (found := tape_entry(y)) is not None]
    return Heard(outside_entries(heads, own, since)) if heads else None


def handle_of(x: NDArray, *, leaf: bool, heard: bool) -> tuple[NDArray, TapeNode | None]:
    """Return a handle of its own on an array, and the node by which its gradient is asked for."""
    op = get_op("tape.identity") if heard and tape_entry(x) is not None else None
    found: tuple[NDArray, TapeNode | None] = tape_apart(x, op, leaf=leaf)
    return found


def leaf_of(x: NDArray, given: NDArray, nodes: list[TapeNode]) -> NDArray:
    """Return what stands for an array in a part: where the tape would hear of `given`, a leaf, whose node `nodes` gets."""
    if not tape_hears((given,)):
        return x
    made, node = handle_of(x, leaf=True, heard=False)
    if node is not None:
        nodes.append(node)
    return made


def own_result(part: _core.Part, x: NDArray, made: Sequence[NDArray]) -> NDArray:
    """Return an array as a result of a part beside others: itself, if the part has made it, or a copy."""
    return x if part.makes(x) and not any(x._shares_buffer(other) for other in made) else fresh(x)


class Again:
    """The tape's op of a node that stands for a part: a loop or a choice, whose rule computes the part once more."""

    name = ""

    def attribute(self, key: str, default: object = None) -> Any:
        """Return the rule, as an op does, and that it takes None for the gradient of a result that nothing depends on."""
        return {"gradient": self._rule, "gradient_takes_none": True}.get(key, default)

    def _rule(self, node: Any, grads: Sequence[Any]) -> Any:
        raise NotImplementedError


def fresh(x: NDArray) -> NDArray:
    """Return a copy, row after row."""
    made = beside(x, x.shape, x.dtype)
    copy_elements(made, x)
    return made


def as_arrays(value: Any) -> Any:
    """Return a structure with NumPy's arrays as arrays."""
    return replaced(value, as_array)


def note_names(function: Callable[..., Any]) -> None:
    """Let the recording know what a function reads elsewhere."""
    inlining(getattr(function, "__func__", function), getattr(function, "__self__", None))


def once(name: str, run: Callable[[], Any], engine: _core.Engine) -> tuple[Any, dict[int, NDArray]]:
    """Record what `run` asks for, and run that once.

    Returns
    -------
    (object, dict)
        What `run` returned, and by identity of arrays in it those that have values. None in place of it if it returned
        that: then nothing is run.
    """
    recording = _core.Recording(engine, name)
    try:
        recording.begin()
        returned = run()
        made = () if returned is None else tuple(x for x in returned.arrays if x._recording is not None)
        recording.end()
        if returned is None:
            recording.abort()
            return None, {}
        compiled = recording.finish(made)
    except BaseException:
        recording.abort()
        raise
    return returned, {id(x): y for x, y in zip(made, compiled.run(()), strict=True)}


def shown(arrays: Sequence[Any]) -> str:
    """Return shapes and dtypes in words."""
    return ", ".join(f"{x.dtype}[{', '.join(map(str, x.shape))}]" for x in arrays) or "no arrays"


def form_of(value: Any) -> str:
    """Return what is the same for two structures that differ in their arrays alone."""
    kinds = [type(leaf).__name__ if isinstance(leaf, NDArray) else repr(leaf) for leaf in leaves_of(value)]
    return f"{replaced(value, lambda _: _ARRAY)!r} {kinds}"


class _Array:
    def __repr__(self) -> str:
        return "*"


_ARRAY: Any = _Array()
