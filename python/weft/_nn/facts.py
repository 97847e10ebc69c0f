"""Facts for graphs that several families state: shapes that are known in part, layouts, costs of products.

A shape is a tuple, with None for an unknown length, or None where even the number of axes is not known. Inference goes both
ways: shapes of parameters follow from those of data, and the batch from the results.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from weft._graph.layouts import axes_of
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Partial: TypeAlias = "tuple[int | None, ...] | None"
Shapes: TypeAlias = "list[Partial]"
Layouts: TypeAlias = "Sequence[str | None]"


def join(op: str, name: str, known: Partial, follows: Partial) -> Partial:
    """Return the union of the facts of two shapes of one operand."""
    if known is None or follows is None:
        return follows if known is None else known
    if len(known) != len(follows) or any(
        a != b for a, b in zip(known, follows, strict=True) if a is not None and b is not None
    ):
        raise ShapeError(f"{op}: {name} has shape {known}, and {follows} follows from the other shapes")
    return tuple(b if a is None else a for a, b in zip(known, follows, strict=True))


def along(shape: Partial, axis: int) -> int | None:
    """Return a length, if it is known."""
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def first(*values: int | None) -> int | None:
    """Return the first known one of some lengths."""
    return next((each for each in values if each is not None), None)


def rank_of(*shapes: Partial) -> int | None:
    """Return the number of axes, if one of these shapes tells it."""
    return next((len(each) for each in shapes if each is not None), None)


def times(value: int | None, by: int) -> int | None:
    """Return a multiple of a length, if it is known."""
    return None if value is None else value * by


def divided(value: int | None, by: int) -> int | None:
    """Return a part of a length, if it is known and divides."""
    return None if value is None or by < 1 or value % by else value // by


def _plain_layout(layout: str | None) -> str | None:
    """Return a layout of the same axes without blocks, in the kernels' order: batch, channels, others."""
    if layout is None:
        return None
    names = {axis.name for axis in axes_of(layout)}
    return "".join([each for each in "NC" if each in names] + sorted(names - {"N", "C"}))


def takes_plain(attributes: dict[str, Any], ins: Layouts, last: Layouts, outs: Layouts) -> tuple[Any, Any]:
    """Follow the rule of ops with the layout of their data in their results, the plain one."""
    del attributes
    wanted = _plain_layout(ins[0])
    return [wanted, *last[1:]], [wanted for _ in outs]


def takes_any(attributes: dict[str, Any], ins: Layouts, last: Layouts, outs: Layouts) -> tuple[Any, Any]:
    """Follow the rule of ops that take data in any layout."""
    del attributes, last
    return ins, [ins[0] for _ in outs]


def elements(shape: Any) -> float:
    """Return the number of elements."""
    return float(math.prod(shape))


def cost_of(products: Callable[[Any, Any], float]) -> Callable[..., tuple[float, float]]:
    """Return the cost of an op of products, as many as the shapes of two operands say: (flops, bytes)."""

    def cost(attributes: dict[str, Any], shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[float, float]:
        del attributes
        touched = sum(
            elements(shape) * (4 if dtype is None else dtype.itemsize)
            for shape, dtype in zip(shapes, dtypes, strict=False)
        )
        return 2 * products(shapes[0], shapes[1]), touched

    return cost
