"""Rules of layouts: those that MXNet's ops take for their data and weights, and those of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from weft._graph.layouts import along, axes_of, outer
from weft._mxnet.any_layout import weights_of
from weft._nn.facts import takes_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer: TypeAlias = tuple[list[Any], list[Any]]
    #: With the attributes of a call that does so, or None.
    Changed: TypeAlias = tuple[list[Any], list[Any], dict[str, Any] | None]
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
    """Follow the rule of ops that take data as the network was written for it, and leave results so."""
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


def blocked_channels(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer | Changed:
    """Follow the rule of a norm with blocked channels: these blocks go to the end, and its attributes say so.

    Numbers for channels lie plainly: some are changed in place, which a transformed copy would lose.
    """
    named = attributes.get("layout")
    names = _plain_axes(last[0]) if named is None else outer(named)
    axis = attributes.get("axis", 1)
    if not -len(names) <= axis < len(names):
        return along_channels(1)(attributes, ins, last, outs)
    channel, given = names[axis], last[0] if ins[0] is None else ins[0]
    blocks = [] if given is None else [each for each in axes_of(given) if each.block is not None]
    wanted, said = names, {key: each for key, each in attributes.items() if key != "layout"}
    if given is not None and [each.name for each in blocks] == [channel] and sorted(outer(given)) == sorted(names):
        wanted = f"{outer(given)}{blocks[0].block}{channel.lower()}"
        said |= {"layout": wanted, "axis": outer(given).index(channel)}
    elif named is None and (given is None or not blocks):
        wanted = last[0]  # as it was written
    others = [channel if each is None else each for each in last[1:]]
    return [wanted, *others], [wanted, *[channel] * (len(outs) - 1)], said if said != attributes else None


def _named(attributes: Any, ins: Any, last: Any, outs: Any) -> str | None:
    """Return the layout that an op over windows names, or the plain one of its data."""
    named = attributes.get("layout")
    if named not in (None, "None"):
        return str(named)
    found: Answer = takes_plain(attributes, ins, last, outs)
    return found[0][0] if ins[0] is not None else _PLAIN.get(len(attributes.get("kernel", ())) + 2)


def windows(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer:
    """Follow the rule of convolutions both ways: data, weights and results in the layouts that they name, or the plain one.

    Weights have outputs and inputs for batch and channels, in NNVM's letters.
    """
    named = _named(attributes, ins, last, outs)
    if named is None:
        return list(last), [None for _ in outs]
    result = attributes.get("out_layout") or named
    weight, bias = attributes.get("kernel_layout"), along(result, "C")
    others = [plain if each is None else each for each, plain in zip(last[1:], (weights_of(named), bias), strict=False)]
    for at, wanted in enumerate((weight, bias if bias != "C" else None)[: len(others)]):
        others[at] = wanted or others[at]
    return [named, *others], [result for _ in outs]


def pooling(attributes: Any, ins: Any, last: Any, outs: Any) -> Answer | Changed:
    """Follow the rule of pooling: data in the layout that it names, or in blocks that leave its windows where they are."""
    named = _named(attributes, ins, last, outs)
    given, wanted = ins[0], named
    if named is not None and given is not None and given != named:
        wanted = given if _leaves_windows(given, named) else outer(named)
    has = attributes.get("layout")
    is_said = wanted == named and (has is not None or wanted is None or outer(wanted) == wanted)
    said = None if is_said else {**attributes, "layout": wanted}
    return [wanted], [wanted for _ in outs], said


def _leaves_windows(given: str, named: str) -> bool:
    """Return whether axes but those of windows alone lie in blocks, and windows in the places where a layout has them."""
    own, wanted = ({axis: at for at, axis in enumerate(axes_of(each))} for each in (given, named))
    windows_ = {axis: at for axis, at in wanted.items() if axis.name not in "NC"}
    is_blocked = any(axis.block is not None for axis in own)
    return is_blocked and {axis: at for axis, at in own.items() if axis.name not in "NC"} == windows_


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
