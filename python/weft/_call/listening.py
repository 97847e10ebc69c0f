"""The tape's notes on a call: its op, the values that its rule will read, its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._call import operands, outputs
from weft._core import NDArray, Scope, tape_check_target, tape_entry, tape_hears, tape_note
from weft._registry.op import get_op
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from weft._registry.op import Op

    Push: TypeAlias = Callable[[Op, tuple[Any, ...], Any, dict[str, Any]], tuple[NDArray, ...]]


def _reads_of(op: Op, arrays: tuple[Any, ...]) -> int | None:
    """Return the values that the rule of `op` reads, as bits, or None without a gradient.

    Bits count operands, and from 32 on results.

    They may depend on the operands that need a gradient: for a product, each operand's gradient reads the other.
    """
    found = op.reads
    if not isinstance(found, tuple):
        return found
    mask = 0
    for x, reads in zip(arrays, found, strict=False):
        if isinstance(x, NDArray) and x._known and tape_entry(x) is not None:
            mask |= reads
    return mask


def hear(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    attributes: dict[str, Any],
    push: Push,
) -> tuple[NDArray, ...]:
    """Push a call by ``push(op, arrays, out, attributes)``, unheard, and note it."""
    if op.ufunc is not None and attributes.get("where") is not None:
        return _hear_masked(op, arrays, out, attributes, push)
    given = operands.coerce(arrays, out)
    reads = _reads_of(op, given)
    seen = given
    targets: tuple[NDArray, ...] = ()
    if out is not None:
        targets = tuple(x for x in operands.listed(out) if isinstance(x, NDArray))
        for target in targets:
            tape_check_target(op.name, target)
        if reads:
            seen = _kept(given, targets, reads)
    changed = [given[at] for at in op.mutates]
    check_changed(op.name, changed)
    with Scope(paused=True):
        results = push(op, given, out, attributes)
    if reads is not None:
        tape_note(op, attributes or None, seen, results, reads, bool(targets))
    elif targets:
        hear_nothing(op.name, given, targets, written=True)
    elif op.refused:
        hear_nothing(op.name, given, results)
    if changed:
        hear_nothing(op.name, given, changed, written=True)
    return results


class _Silent:
    """An op without a known gradient: a function that computes by NumPy, a draw."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def attribute(self, key: str, default: object = None) -> object:  # noqa: ARG002 - as `Op.attribute`
        """Return the default, for want of a rule."""
        return default


def hear_nothing(name: str, inputs: Iterable[Any], results: Iterable[Any], *, written: bool = False) -> None:
    """Note that `results` come from `inputs` without a gradient: a request for one raises.

    Parameters
    ----------
    name : str
        The op's name in the error.
    inputs, results : iterable
        Only the arrays among them count.
    written : bool, default: False
        Whether the results are existing places.
    """
    found = tuple([x for x in results if isinstance(x, NDArray) and x.dtype.kind in "fc"])
    if not found:
        return
    arrays = tuple([x for x in inputs if isinstance(x, NDArray)])
    if tape_hears((*arrays, *found) if written else arrays):
        tape_note(_Silent(name), None, arrays, found, 0, written)


def check_changed(name: str, targets: Iterable[Any]) -> None:
    """Raise if a target keeps its values for gradients."""
    for target in targets:
        if isinstance(target, NDArray) and target._known and tape_hears((target,)):
            tape_check_target(name, target)


def _hear_masked(
    op: Op,
    arrays: tuple[Any, ...],
    out: Any,
    attributes: dict[str, Any],
    push: Push,
) -> tuple[NDArray, ...]:
    """Push an op on some of the elements: the others are computed from ones, and a mask selects the results."""
    where: Any = get_op("where")
    given = operands.coerce(arrays, out)
    like = next(x for x in given if isinstance(x, NDArray))
    chosen = operands.as_array(attributes["where"], like)
    if chosen.dtype.kind != "b":
        raise ArgumentTypeError(f"where= takes booleans, and an array of dtype {chosen.dtype} was given")
    inputs = tuple(where(chosen, x, 1) if isinstance(x, NDArray) else x for x in given)
    results = hear(op, inputs, None, {name: value for name, value in attributes.items() if name != "where"}, push)
    final: list[NDArray] = []
    for result, target in zip(results, outputs.targets_of(out, len(results)), strict=True):
        if target is None:
            final.append(where(chosen, result, 0))
        else:
            outputs.check_target(op.name, target, result.shape, result.dtype)
            target[...] = where(chosen, result, target)
            final.append(target)
    return tuple(final)


def _kept(inputs: tuple[Any, ...], targets: tuple[NDArray, ...], reads: int) -> tuple[Any, ...]:
    """Return the operands, with copies of those that the call overwrites and the rule reads."""

    def kept(at: int, x: Any) -> Any:
        overwritten = isinstance(x, NDArray) and any(x._shares_buffer(target) for target in targets)
        return x.copy() if overwritten and reads >> at & 1 else x

    return tuple(kept(at, x) for at, x in enumerate(inputs))


def hear_write(
    op: Op,
    target: NDArray,
    inputs: tuple[Any, ...],
    attributes: dict[str, Any],
    push: Callable[[], None],
    reads: int = 0,
) -> None:
    """Push, by `push`, the overwriting of `target` with the value that `op` has for `inputs`, and note it."""
    tape_check_target(op.name, target)
    seen = _kept(inputs, (target,), reads)
    with Scope(paused=True):
        push()
    tape_note(op, attributes, seen, (target,), reads, True)
