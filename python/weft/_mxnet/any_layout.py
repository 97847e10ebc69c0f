"""Data in any layout: ops that are written for the plain one infer shapes, compute and differentiate in it."""

from __future__ import annotations

from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from weft._graph.layouts import along, axes_of, brought, outer, relaid
from weft._mxnet.partial_shapes import Shapes, as_pair
from weft.errors import ArgumentValueError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Of: TypeAlias = "Callable[[Any], Lies | None]"
    ShapeRule: TypeAlias = Callable[[Any, Shapes, Shapes], None]

#: The axes of windows, by their number.
_SPATIAL = ("", "W", "HW", "DHW")
#: The letters of weights in the place of those of data: outputs and inputs for batch and channels.
_WEIGHTS = str.maketrans("NC", "OI")


class Laid(NamedTuple):
    """How an array lies, and in the place of this the plain layout: the one that an op is written for."""

    own: str
    plain: str


class Lies(NamedTuple):
    """How the first inputs of an op lie, and its first result; all others lie plainly."""

    inputs: tuple[Laid, ...]
    result: Laid


def _axes(first: str) -> Callable[[Any], str]:
    """Return a kind of settings: a layout of two axes and those of windows, in any order and in blocks."""

    def read(value: Any) -> str:
        example = f"{first}HW"
        wanted = (
            f"a layout of {first[0]}, {first[1]} and W, HW or DHW, such as {example}, {first[0]}HW{first[1]} or "
            f"{example}16{first[1].lower()}"
        )
        try:
            names = outer(value)
        except (ArgumentValueError, TypeError):
            raise ValueError(wanted) from None
        if sorted(names) not in [sorted(first + spatial) for spatial in _SPATIAL[1:]]:
            raise ValueError(wanted)
        return str(value)

    return read


#: Kinds of settings: layouts of data, and of weights.
data_layout, kernel_layout = _axes("NC"), _axes("OI")


def channel_layout(value: Any) -> str:
    """Read a layout of data with an axis of channels: any but one with blocks of two axes."""
    wanted = "a layout with blocks along one axis at most, such as NCHW or NCHW16c"
    try:
        axes = axes_of(value)
    except (ArgumentValueError, TypeError):
        raise ValueError(wanted) from None
    if sum(axis.block is not None for axis in axes) > 1:
        raise ValueError(wanted)
    return str(value)


def weights_of(layout: str) -> str:
    """Return the layout of weights for data of a layout where none is named: of the same order, without blocks.

    Examples
    --------
    >>> from weft._mxnet.any_layout import weights_of
    >>> weights_of("NHWC"), weights_of("NCHW16c")
    ('OHWI', 'OIHW')
    """
    return outer(layout).translate(_WEIGHTS)


def windows_lie(s: Any) -> Lies | None:
    """Return how data, weights, bias and results of windows lie; None if all of it is plain."""
    layout, weight, out = s.layout, getattr(s, "kernel_layout", None), getattr(s, "out_layout", None)
    if layout is None and weight is None and out is None:
        return None
    return _windows_lie(layout, weight, out, 0 if getattr(s, "global_pool", False) else len(s.kernel))


@lru_cache(maxsize=1024)
def _windows_lie(layout: str | None, weight: str | None, out: str | None, count: int) -> Lies | None:
    named = {"layout": layout, "kernel_layout": weight, "out_layout": out}
    count = count or max(len(outer(each)) - 2 for each in named.values() if each is not None)
    for key, each in named.items():
        if each is not None and len(outer(each)) != count + 2:
            raise GraphError(
                f"{key}={each!r} is of {len(outer(each)) - 2} axes of windows, and the others are of {count}"
            )
    plain = "NC" + _SPATIAL[count]
    data = layout or plain
    result = out or data
    weights = weight or weights_of(data)
    lies = Lies(
        (Laid(data, plain), Laid(weights, plain.translate(_WEIGHTS)), Laid(along(result, "C"), "C")),
        Laid(result, plain),
    )
    return lies if any(laid.own != laid.plain for laid in (*lies.inputs, lies.result)) else None


def channels_lie(s: Any) -> Lies | None:
    """Return how data and results of a norm lie; None if there are no blocks."""
    layout = getattr(s, "layout", None)
    if layout is None or outer(layout) == layout:
        return None
    laid = Laid(layout, outer(layout))
    return Lies((laid,), laid)


def to_plain(arrays: Sequence[Any], lies: Sequence[Laid]) -> list[Any]:
    """Return the first arrays in plain layouts, and the others."""
    return _moved(arrays, [(laid.own, laid.plain) for laid in lies])


def from_plain(arrays: Sequence[Any], lies: Sequence[Laid]) -> list[Any]:
    """Return the first arrays in the layouts in which they lie, and the others."""
    return _moved(arrays, [(laid.plain, laid.own) for laid in lies])


def _moved(arrays: Sequence[Any], ways: Sequence[tuple[str, str]]) -> list[Any]:
    pairs = zip_longest(arrays, ways[: len(arrays)])
    return [x if x is None or way is None else brought(x, *way) for x, way in pairs]


def in_plain(of: Of) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of computations on plain data that makes them take any layout, by transposes."""

    def decorate(apply: Callable[..., Any]) -> Callable[..., Any]:
        def either(s: Any, *arrays: Any) -> Any:
            lies = of(s)
            if lies is None:
                return apply(s, *arrays)
            found = apply(s, *to_plain(arrays, lies.inputs))
            first, *rest = from_plain(as_pair(found), [lies.result])
            return (first, *rest) if rest else first

        return either

    return decorate


def backward_in_plain(of: Of) -> Callable[[Callable[..., Sequence[Any]]], Callable[..., Sequence[Any]]]:
    """Return the same decorator of gradients: ``function(settings, grads, inputs, outputs)``."""

    def decorate(function: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        def either(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
            lies = of(s)
            if lies is None:
                return function(s, grads, inputs, outputs)
            result = [lies.result]
            given = to_plain(grads, result), to_plain(inputs, lies.inputs), to_plain(outputs, result)
            return from_plain(function(s, *given), lies.inputs)

        return either

    return decorate


def shapes_in_plain(of: Of) -> Callable[[ShapeRule], ShapeRule]:
    """Return the same decorator of rules for shapes."""

    def decorate(rule: ShapeRule) -> ShapeRule:
        def either(s: Any, ins: Shapes, outs: Shapes) -> None:
            lies = of(s)
            if lies is None:
                rule(s, ins, outs)
                return
            known = [(ins, lies.inputs[: len(ins)]), (outs, (lies.result,))]
            plain = [
                Shapes([_relaid(shape, laid) for shape, laid in zip_longest(own, laids)], kind)
                for (own, laids), kind in zip(known, ("input", "result"), strict=True)
            ]
            rule(s, *plain)
            for (own, laids), found in zip(known, plain, strict=True):
                for at, (shape, laid) in enumerate(zip_longest(found, laids)):
                    own.learn(at, _relaid(shape, None if laid is None else Laid(laid.plain, laid.own)))

        return either

    return decorate


def _relaid(shape: Any, laid: Laid | None) -> Any:
    return shape if laid is None else relaid(shape, *laid)
