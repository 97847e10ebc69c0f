"""Gradient rules of ops, and the values that a rule looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from weft._core import tape_operator
from weft._registry.op import get_op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._registry.op import Op

_RESULTS = 32


class Node(Protocol):
    """A rule's view of a call: on the tape, arrays and outlines; in a pass, symbols."""

    @property
    def inputs(self) -> Sequence[Any]: ...
    @property
    def outputs(self) -> Sequence[Any]: ...
    @property
    def attributes(self) -> dict[str, Any]: ...


Rule: TypeAlias = "Callable[[Node, Sequence[Any]], Sequence[Any]]"


def reading(inputs: Sequence[int] = (), outputs: Sequence[int] = ()) -> int:
    """Return the operands and results that a rule looks at as bits.

    Examples
    --------
    >>> from weft._registry.gradients import reading
    >>> reading(inputs=[0, 1]), hex(reading(outputs=[0]))
    (3, '0x100000000')
    """
    return sum(1 << at for at in inputs) | sum(1 << _RESULTS + at for at in outputs)


#: All operands, for ops that take any number of them.
ALL_INPUTS = (1 << _RESULTS) - 1


def gradient_of(
    *names: str,
    inputs: Sequence[int] | None = (),
    outputs: Sequence[int] = (),
    each: tuple[int, int] | None = None,
    takes_none: bool = False,
) -> Callable[[Rule], Rule]:
    """Give a rule to the ops of these names.

    Parameters
    ----------
    *names : str
        The ops.
    inputs, outputs : sequence of int
        The operands and results that the rule looks at the values of; None for all operands.
    each : (int, int), optional
        The same, as `reading` gives it, for the gradient of each of two operands: values for the other one alone are
        not kept.
    takes_none : bool, default: False
        Whether the rule takes None, rather than zeros, for the gradient of a result that nothing depends on.
    """
    mask = (ALL_INPUTS if inputs is None else reading(inputs)) | reading((), outputs)

    def register(rule: Rule) -> Rule:
        for name in names:
            give(get_op(name), rule, mask if each is None else each)
            if takes_none:
                get_op(name).set_attribute("gradient_takes_none", True)
        return rule

    return register


def give(op: Op, rule: Rule, reads: int | tuple[int, int]) -> None:
    """Give `op` a rule, and the values that it looks at."""
    op.set_attribute("gradient", rule)
    op.set_attribute("gradient_reads", reads)
    if op.operator or op.name == "square":  # as which the core pushes x ** 2
        tape_operator(op.name, op, reads if isinstance(reads, tuple) else (reads, reads))


def no_gradient(*names: str) -> None:
    """Say that results of these ops have no gradient: they are no numbers that change with the operands."""
    for name in names:
        get_op(name).set_attribute("gradient_reads", None)


def refuse_gradient(*names: str) -> None:
    """Say that the gradient of these ops is unknown: results change with the operands, and a request is refused."""
    no_gradient(*names)
    for name in names:
        get_op(name).set_attribute("gradient_refused", True)


def needs(node: Node, at: int) -> bool:
    """Return whether the gradient of input `at` is asked for; in a pass, unused gradients are dropped afterwards."""
    known: Sequence[bool] | None = getattr(node, "needs", None)
    return known is None or known[at]
