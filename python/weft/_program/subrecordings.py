"""Parts of a recording that run as one op of it: the common base of loops and branches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft import _core
from weft._call.operands import as_array
from weft._core import NDArray, beside, copy_elements, tape_apart, tape_entry, tape_hears, tape_keep
from weft._program.record import inlining
from weft._program.trees import leaves_of, replaced
from weft._registry.op import get_op
from weft._tape.checkpoints import outside_entries
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weft._core import TapeNode

#: Inputs of a node at most that the tape can keep values of.
KEPT = 32


@dataclass(frozen=True, slots=True)
class Heard:
    """The entries of the tape from outside that a part depends on, besides its inputs."""

    outside: list[tuple[TapeNode, int]]

    @property
    def nodes(self) -> list[TapeNode]:
        """The nodes of the entries, each once."""
        return list(dict.fromkeys(node for node, _ in self.outside))


class Referred:
    """The arrays from around it that a part refers to: its gradient computes it again, and needs them as they were."""

    def __init__(self, what: str, arrays: Iterable[NDArray]) -> None:
        self._what = what
        self._known = [(x, None if x._recording else x.version, x._recorded_writes()) for x in arrays]

    def check(self) -> None:
        """Raise GradientError if one was written to since."""
        for x, version, written in self._known:
            now = x._recorded_writes()
            is_later = now is not None and written is not None and now[0] == written[0] and now[1] != written[1]
            if is_later or (version is not None and x.version != version):
                raise GradientError(
                    f"an array of shape {x.shape} that {self._what} refers to was written to since, and its gradient needs the "
                    "values from before: write to a copy, or pass the array as an argument"
                )


def moment() -> int:
    """Return a number below those of all nodes made from now on."""
    return tape_keep(None, ()).order


def heard_in(results: Iterable[Any], own: list[TapeNode], since: int) -> Heard | None:
    """Return the tape's entries behind results computed since, or None if there are none."""
    heads = [found for y in results if isinstance(y, NDArray) and (found := tape_entry(y)) is not None]
    return Heard(outside_entries(heads, own, since)) if heads else None


def handle_of(x: NDArray, *, leaf: bool, heard: bool) -> tuple[NDArray, TapeNode | None]:
    """Return a new handle on an array, and the node for its gradient."""
    op = get_op("tape.identity") if heard and tape_entry(x) is not None else None
    found: tuple[NDArray, TapeNode | None] = tape_apart(x, op, leaf=leaf)
    return found


def leaf_of(x: NDArray, given: NDArray, nodes: list[TapeNode]) -> NDArray:
    """Return an array's placeholder in a part: a leaf, with its node in `nodes`, if the tape would hear `given`."""
    if not tape_hears((given,)):
        return x
    made, node = handle_of(x, leaf=True, heard=False)
    if node is not None:
        nodes.append(node)
    return made


def own_result(part: _core.Part, x: NDArray, made: Sequence[NDArray]) -> NDArray:
    """Return an array as a result of a part beside others: itself, if the part has made it, or a copy."""
    return x if part.makes(x) and not any(x._shares_buffer(other) for other in made) else fresh(x)


class Again(ABC):
    """The op of a node that stands for a part, a loop or a choice: its rule computes the part once more."""

    name = ""

    def attribute(self, key: str, default: object = None) -> Any:
        """Return the rule, under the names of an op's attributes; it takes None as the gradient of an unused result."""
        return {"gradient": self._rule, "gradient_takes_none": True}.get(key, default)

    @abstractmethod
    def _rule(self, node: Any, grads: Sequence[Any]) -> Any:
        """Return the gradients of the arrays that the part reads."""


def fresh(x: NDArray) -> NDArray:
    """Return a contiguous copy."""
    made = beside(x, x.shape, x.dtype)
    copy_elements(made, x)
    return made


def as_arrays(value: Any) -> Any:
    """Return a structure with arrays in place of NumPy's."""
    return replaced(value, as_array)


def note_names(function: Callable[..., Any]) -> None:
    """Add a function's outer names to the recording."""
    inlining(getattr(function, "__func__", function), getattr(function, "__self__", None))


def once(name: str, run: Callable[[], Any], engine: _core.Engine) -> tuple[Any, dict[int, NDArray]]:
    """Record the calls of `run`, and run them once.

    Returns
    -------
    (object, dict)
        The result of `run`, and the arrays in it with values, by identity. None if `run` returned None: then nothing is
        run.
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
    """Return a text that is equal for two structures if they differ only in their arrays."""
    kinds = [type(leaf).__name__ if isinstance(leaf, NDArray) else repr(leaf) for leaf in leaves_of(value)]
    return f"{replaced(value, lambda _: _ARRAY)!r} {kinds}"


class _Array:
    def __repr__(self) -> str:
        return "*"


_ARRAY: Any = _Array()
