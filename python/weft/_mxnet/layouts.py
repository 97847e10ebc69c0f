"""Rules of layouts: which ones MXNet's ops take for their data and weights, and in which their results lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from weft._graph.layouts import axes_of
from weft._nn.facts import takes_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer: TypeAlias = tuple[list[Any], list[Any]]
    LayoutRule: TypeAlias = Callable[[Any, Any, Any, Any], Answer]

#: How data of so many axes lie where no layout is named.
_PLAIN = {3: "NCW", 4: "NCHW", 5: "NCDHW"}


def _plain_axes(layout: str | None) -> str:
    """Return the names of a layout's axes, nothing if there is no layout or one of blocks."""
    axes = () if layout is None else axes_of(layout)
    return "" if any(axis.block is not None for axis in axes) else "".join(axis.name for axis in axes)


def _layout(names: str) -> str | None:
    """Return names of axes as a layout: None if there are none, or one stands twice."""
    return names if names and len(set(names)) == len(names) else None


def as_written(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer:
    """Follow the rule of ops that take data as the network was written for it, and whose results lie so."""
    del attributes, ins
    return list(last), [last[0], *[None] * (len(outs) - 1)]


def along_channels(default: int) -> LayoutRule:
    """Return the rule of ops with one number for each channel: all other inputs and results have that axis alone."""

    def rule(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer:
        del ins
        names, axis = _plain_axes(last[0]), attributes.get("axis", default)
        one = names[axis] if -len(names) <= axis < len(names) else None
        others = [one if each is None else each for each in last[1:]]
        return [last[0], *others], [last[0], *[one] * (len(outs) - 1)]

    return rule


def windows(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer:
    """Follow the rule of ops over windows: data in the layout that they name, or the plain one.

    The weights of convolutions both ways have outputs and inputs for batch and channels, in NNVM's letters.
    """
    named = attributes.get("layout")
    if named in (None, "None"):
        found: Answer = takes_plain(attributes, ins, last, outs)
        named = found[0][0] if ins[0] is not None else _PLAIN.get(len(attributes.get("kernel", ())) + 2)
    if named is None:
        return list(last), [None for _ in outs]
    weights = [str(named).translate(str.maketrans("NC", "OI")), "C"]
    others = [plain if each is None else each for each, plain in zip(last[1:], weights, strict=False)]
    return [named, *others], [named for _ in outs]


def dense(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer:
    """Follow the rule of a product with weights: rows stay rows, unless more than two axes are taken together."""
    del ins, outs
    names = _plain_axes(last[0])
    is_matrix = len(names) == 2  # rows and columns
    return list(last), [last[0] if is_matrix or not attributes.get("flatten", True) else None]


def dot(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer:
    """Follow the rule of a product along the last axis of one operand and the first of the other."""
    del ins, outs
    one, other = map(_plain_axes, last)
    if not one or not other:
        return list(last), [None]
    left = one[1:] if attributes.get("transpose_a") else one[:-1]
    right = other[:-1] if attributes.get("transpose_b") else other[1:]
    return list(last), [_layout(left + right)]


def batch_dot(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer:
    """Follow the rule of products of matrices, one for each element of a batch."""
    del ins, outs
    one, other = map(_plain_axes, last)
    if len(one) < 2 or len(other) < 2:  # rows and columns
        return list(last), [None]
    row = one[-1] if attributes.get("transpose_a") else one[-2]
    column = other[-2] if attributes.get("transpose_b") else other[-1]
    return list(last), [_layout(one[:-2] + row + column)]
