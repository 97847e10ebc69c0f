"""The walk from results back to leaves: rules give gradients of inputs, which are summed where paths meet."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from weft._call.devices import device_of
from weft._core import NDArray, Outline, TapeNode, tape_entry, tape_walk
from weft._ops.creation import full, ones
from weft._ops.dtypes import astype
from weft._tape.modes import paused
from weft._tape.pytree import several
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: The start of a walk: a node's result, and its gradient.
Head = tuple[TapeNode, int, NDArray]


class Beyond:
    """Leaves of a recording for values from before it: a walk to all leaves would have continued beyond them."""

    __slots__ = ("met", "nodes")

    def __init__(self, nodes: Iterable[TapeNode]) -> None:
        self.nodes = frozenset(nodes)
        self.met = False


#: The leaves of the open recording.
BEYOND: ContextVar[Beyond | None] = ContextVar("weft.autograd.beyond", default=None)


class Seen:
    """A node of the tape as a rule sees it."""

    __slots__ = ("_node", "_outputs", "entries", "inputs", "sums")

    def __init__(self, node: TapeNode, entries: tuple[Any, ...], sums: list[NDArray | None]) -> None:
        self._node = node
        self.inputs: tuple[Any, ...] = node.inputs
        self.entries = entries
        """For each input, its node and result number, or None."""
        self.sums = sums
        """For rules that take them: for each input, the sum of its gradients so far."""
        self._outputs: tuple[Any, ...] | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """The op's attributes."""
        return self._node.attributes

    @property
    def needs(self) -> tuple[bool, ...]:
        """For each input, whether its gradient is wanted."""
        return tuple([entry is not None for entry in self.entries])

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The results."""
        if self._outputs is None:
            self._outputs = self._node.outputs
        return self._outputs


def entry_of(y: NDArray) -> tuple[TapeNode, int]:
    """Return the node that made `y`; GradientError if there is none."""
    found = tape_entry(y)
    if found is None:
        raise GradientError(
            f"an array of shape {y.shape} and dtype {y.dtype} depends on no array that requires a gradient: set "
            "x.requires_grad = True before it is computed from x, where the tape listens (autograd.training is not False, and no "
            "block of no_grad is open); or write weft.grad(function)(x)"
        )
    return found


def head_of(y: NDArray, dy: Any) -> Head:
    """Return the start of a walk from `y`; GradientError for a non-scalar without a gradient."""
    if not isinstance(y, NDArray):
        raise GradientError(f"gradients are those of an NDArray, not of {type(y).__name__}")
    node, index = entry_of(y)
    if dy is None:
        if y.size != 1:
            raise GradientError(
                f"the loss is no scalar: an array of shape {y.shape}. Reduce it, as by sum(), or give the gradient of it as dy"
            )
        return node, index, ones(y.shape, y.dtype, device=y.device, engine=y.engine)
    return node, index, like(dy, y, "dy")


def like(given: Any, y: NDArray | Outline, name: str) -> NDArray:
    """Return a given gradient of `y`; GradientError if its shape or dtype does not fit."""
    from weft._call.operands import as_array  # noqa: PLC0415 - as below

    found = given if isinstance(given, NDArray) else as_array(given, engine=y.engine)
    if found.shape != y.shape or (found.dtype.kind not in "fc" and not _is_plain(given)):
        raise GradientError(
            f"{name} has the shape {found.shape} and the dtype {found.dtype}, and what it is the gradient of the shape "
            f"{y.shape} and the dtype {y.dtype}"
        )
    if found.dtype.kind == "c" and y.dtype.kind != "c":
        raise GradientError(f"{name} is complex, and what it is the gradient of is of dtype {y.dtype}")
    return found if found.dtype == y.dtype else astype(found, y.dtype)


def _is_plain(given: object) -> bool:
    return not hasattr(given, "dtype")


def walk(
    heads: Sequence[Head], wanted: Iterable[TapeNode] | None = None, *, retain: bool = False, heard: bool | None = None
) -> Iterator[tuple[TapeNode, int, NDArray | None]]:
    """Yield each leaf, as node and result, with its gradient as soon as that is complete, the last layer's first.

    None is zero.

    Parameters
    ----------
    heads : sequence of (TapeNode, int, NDArray)
        The starts. A result named twice counts twice.
    wanted : iterable of TapeNode, optional
        The nodes to go to; by default all leaves.
    retain : bool
        Whether saved values stay, so that the same walk can be made again.
    heard : bool, optional
        Whether the tape hears the walk, so that its results have gradients; by default if other leaves are on the way.
    """
    targets = None if wanted is None else list(wanted)
    nodes, leaves, others = tape_walk([node for node, _, _ in heads], targets)
    heard = others and targets is not None if heard is None else heard
    beyond = BEYOND.get()
    if beyond is not None and targets is None and any(leaf in beyond.nodes for leaf, _ in leaves):
        beyond.met = True
    sums = _Sums(in_place=not heard)
    for node, index, gradient in heads:
        sums.add((node, index), gradient)
    ready: dict[int, list[TapeNode]] = {}
    for leaf, at in leaves:
        ready.setdefault(at, []).append(leaf)
    yield from _ready(ready.get(len(nodes), ()), sums)
    for at, node in enumerate(nodes):
        if heard:
            _step(node, sums)
        else:
            with paused():
                was_reached = _step(node, sums)
            # What lies behind a wanted node, on the way to another, is for whoever goes on from there.
            if not retain and (was_reached or targets is None):
                node.release()
        yield from _ready(ready.get(at, ()), sums)


def _ready(leaves: Iterable[TapeNode], sums: _Sums) -> Iterator[tuple[TapeNode, int, NDArray | None]]:
    for leaf in leaves:
        for index in range(len(leaf.outlines)):
            yield leaf, index, sums.take((leaf, index))


class _Sums:
    """Sums of gradients so far, by node and result."""

    def __init__(self, *, in_place: bool) -> None:
        self._held: dict[tuple[TapeNode, int], NDArray] = {}
        self._own: set[tuple[TapeNode, int]] = set()  # sums without other users
        self._in_place = in_place

    def add(self, entry: tuple[TapeNode, int], gradient: NDArray) -> None:
        known = self._held.get(entry)
        if known is None:
            self._held[entry] = gradient
        elif entry in self._own:
            with paused():
                known += gradient
        else:
            self._held[entry] = known + gradient
            if self._in_place:
                self._own.add(entry)

    def take(self, entry: tuple[TapeNode, int]) -> NDArray | None:
        return self._held.pop(entry, None)


def _step(node: TapeNode, sums: _Sums) -> bool:
    """Compute the gradients of the inputs of `node` by its rule, and add them up; return False if all its own are zero."""
    given = [sums.take((node, index)) for index in range(node.count)]
    missing = [at for at, each in enumerate(given) if each is None]
    if len(missing) == len(given):
        return False
    op: Any = node.op
    rule = op.attribute("gradient", None)
    if rule is None:
        raise GradientError(
            f"{_where(node)} has no gradient: give the op one by set_attribute('gradient', rule), or compute what it reads by "
            "weft.autograd.stop_gradient()"
        )
    if not callable(rule):
        raise GradientError(
            f"the attribute 'gradient' of the op {op.name!r} is {rule!r}, and no function: set it to a rule, which {_where(node)} "
            "needs for its gradient"
        )
    grads: list[Any] = list(given)
    if missing and not op.attribute("gradient_takes_none", False):
        outlines = node.outlines
        for at in missing:
            grads[at] = _zeros(outlines[at])
    entries = node.entries
    takes_sums = op.attribute("gradient_takes_sums", False)  # and returns them with its own addition
    so_far = [sums.take(entry) if takes_sums and entry is not None else None for entry in entries]
    found = several(rule(Seen(node, entries, so_far), grads))
    if not node.takes(found):
        found = _fitted(node, found)
    for entry, gradient in zip(entries, found, strict=True):
        if entry is not None and gradient is not None:
            sums.add(entry, gradient)
    return True


def _where(node: TapeNode) -> str:
    op: Any = node.op
    return f"{op.name}() at {node.place or 'an unknown place'}"


def _fitted(node: TapeNode, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return gradients in the dtypes of their inputs; GradientError if one is missing or has another shape."""
    entries = node.entries
    if len(found) != len(entries):
        raise GradientError(
            f"the gradient rule of {_where(node)} returned {len(found)} gradients for {len(entries)} inputs: it returns one "
            "for each, None where it is zero"
        )
    fitted: list[Any] = []
    for at, (entry, gradient, seen) in enumerate(zip(entries, found, node.input_outlines, strict=True)):
        if entry is None or gradient is None or seen is None:
            fitted.append(None)
            continue
        if not isinstance(gradient, NDArray):
            raise GradientError(
                f"the gradient rule of {_where(node)} returned {type(gradient).__name__} for input {at}: it returns "
                "arrays, as weft's own functions do, or None where the gradient is zero"
            )
        if gradient.shape != seen.shape:
            raise GradientError(
                f"the gradient rule of {_where(node)} returned an array of shape {gradient.shape} for input {at}, which "
                f"has the shape {seen.shape}"
            )
        if gradient.dtype != seen.dtype:
            if gradient.dtype.kind not in "fc" or (gradient.dtype.kind == "c" and seen.dtype.kind != "c"):
                raise GradientError(
                    f"the gradient rule of {_where(node)} returned a gradient of dtype {gradient.dtype} for input {at}, "
                    f"which has the dtype {seen.dtype}"
                )
            gradient = astype(gradient, seen.dtype)  # noqa: PLW2901 - the right one from here on
        fitted.append(gradient)
    return tuple(fitted)


def _zeros(outline: Outline) -> NDArray:
    return full(outline.shape, 0, outline.dtype, device=device_of(outline), engine=outline.engine)
