"""Rules of ops that join, repeat and extend arrays."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import device_of
from weft._ops.creation import asarray
from weft._ops.indexing_gradients import scatter_add
from weft._ops.unbroadcast import apply, cast_like, fit, is_known, shape_of, zeros_of
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of, needs
from weft._registry.hooks import vjp
from weft._registry.op import get_op, register_op
from weft._registry.shapes import axis_index

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._core import NDArray
    from weft._registry.avals import Aval
    from weft._registry.shapes import Shape


@gradient_of("concat")
def _concat(node: Any, grads: Any) -> Any:
    g, axis, start = grads[0], node.attributes["axis"], 0
    found: list[Any] = []
    for at, part in enumerate(node.inputs):
        if not is_known(part):
            found.append(get_op("concat_part")(g, *node.inputs, axis=axis, at=at))
            continue
        length = part.shape[axis]
        where = axis_index(axis, part.ndim)
        found.append(
            cast_like(apply("narrow", g, axis=where, start=start, length=length), part) if needs(node, at) else None
        )
        start += length
    return tuple(found)


def _infer_part(g: Aval, *parts: Aval, axis: int, at: int) -> Aval:
    del g, axis
    return parts[at]


@register_op("concat_part", infer=_infer_part)
def _concat_part(out: Elements, g: Elements, *parts: Elements, axis: int, at: int) -> None:
    start = sum(part.shape[axis] for part in parts[:at])
    along = np.moveaxis(g, axis, 0)[start : start + parts[at].shape[axis]]
    found = np.moveaxis(along, 0, axis)
    np.copyto(out, found if out.dtype.kind == "c" else found.real, casting="unsafe")


#: Only shapes and dtypes of the parts count; so many of them are marked.
get_op("concat_part").set_attribute("ignores", tuple(range(1, 1025)))


@gradient_of("concat_part")
def _concat_part_rule(node: Any, grads: Any) -> Any:
    g, *parts = node.inputs
    at = node.attributes["at"]
    filled = [grads[0] if i == at else zeros_of(part) for i, part in enumerate(parts)]
    return (cast_like(get_op("concat")(*filled, axis=node.attributes["axis"]), g), *(None,) * len(parts))


@gradient_of("stack")
def _stack(node: Any, grads: Any) -> Any:
    axis = node.attributes["axis"]
    if axis < 0:
        axis += len(shape_of(grads[0]))
    return tuple(
        cast_like(apply("select", grads[0], axis=axis, index=at), part) if needs(node, at) else None
        for at, part in enumerate(node.inputs)
    )


@gradient_of("tile")
def _tile(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    shape, repetitions = shape_of(x), node.attributes["repetitions"]
    ndim = max(len(shape), len(repetitions))
    lengths = (*(1,) * (ndim - len(shape)), *shape)
    counts = (*(1,) * (ndim - len(repetitions)), *repetitions)
    parted = apply("reshape", grads[0], shape=tuple(n for pair in zip(counts, lengths, strict=True) for n in pair))
    summed = apply("sum", parted, axis=tuple(range(0, 2 * ndim, 2)))
    return (fit(summed, x),)


@gradient_of("repeat")
def _repeat(node: Any, grads: Any) -> Any:
    x, g = node.inputs[0], grads[0]
    shape = shape_of(x)
    repeats: Shape = node.attributes["repeats"]
    axis: int = node.attributes["axis"] % len(shape)
    if len(repeats) == 1:
        parted = apply("reshape", g, shape=(*shape[: axis + 1], repeats[0], *shape[axis + 1 :]))
        return (apply("sum", parted, axis=(axis + 1,)),)
    origin = _constant(np.repeat(np.arange(shape[axis]), repeats), g)
    return (scatter_add(g, x, origin, key=(*((None, None, None),) * axis, "array")),)


def _constant(values: Elements, like: Any) -> NDArray:
    if is_known(like):
        return asarray(values, device=device_of(like), engine=like.engine)
    return asarray(values)


@gradient_of("pad", inputs=[0])
def _pad(node: Any, grads: Any) -> Any:
    x, g = node.inputs[0], grads[0]
    shape = shape_of(x)
    widths, mode = node.attributes["widths"], node.attributes["mode"]
    options = dict(node.attributes["options"])
    if mode in ("constant", "empty"):
        key = tuple((before, before + n, None) for n, (before, _) in zip(shape, widths, strict=True))
        return (get_op("getitem")(g, key=key),)
    if mode in ("maximum", "minimum", "median"):
        return vjp(partial(_pad_by, mode=mode, widths=widths, options=options), x)[1](g)
    # All other modes are linear, axis by axis: the gradient goes through the transposed maps.
    for axis, (n, width) in enumerate(zip(shape, widths, strict=True)):
        if any(width):
            one_axis: Any = {name: _of_axis(value, axis) for name, value in options.items()}
            if mode == "linear_ramp":
                one_axis = {}  # the ends' values are constants
            linear: Any = np.pad(np.eye(n), (width, (0, 0)), mode, **one_axis)
            matrix = cast_like(_constant(linear, g), g)
            moved = get_op("tensordot")(g, matrix, axes=((axis,), (0,)))
            order = [*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)]
            g = apply("permute_dims", moved, axes=tuple(order))
    return (g,)


def _of_axis(value: Any, axis: int) -> Any:
    """Return an option for one axis, together with that of the columns beside it, which are not padded."""
    if isinstance(value, str) or value is None:
        return value
    pairs = np.broadcast_to(np.asarray(value), (max(axis + 1, len(np.atleast_1d(value))), 2)).tolist()
    return (tuple(pairs[axis]), tuple(pairs[axis]))


def _pad_by(x: NDArray, mode: str, widths: tuple[tuple[int, int], ...], options: dict[str, Any]) -> NDArray:
    """Extend by the greatest, the least or the middle element of each line, as `numpy.pad` does."""
    from weft._ops.joining import concat  # noqa: PLC0415 - what is differentiated
    from weft._ops.manipulation import broadcast_to  # noqa: PLC0415 - as above
    from weft._ops.order_statistics import median  # noqa: PLC0415 - as above
    from weft._ops.reductions import (  # noqa: PLC0415 - what is differentiated
        max as greatest,
        min as least,
    )

    function: Any = {"maximum": greatest, "minimum": least, "median": median}[mode]
    lengths = options.get("stat_length")
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        either: tuple[int, int] = (n, n) if lengths is None else _of_axis(lengths, axis)[0]
        first, last = either
        ends: list[list[NDArray]] = []
        for width, start, length in ((before, 0, min(first, n)), (after, n - min(last, n), min(last, n))):
            value = function(apply("narrow", x, axis=axis, start=start, length=length), axis=axis, keepdims=True)
            ends.append([broadcast_to(value, (*x.shape[:axis], width, *x.shape[axis + 1 :]))] if width else [])
        parts = [*ends[0], x, *ends[1]]
        x = concat(parts, axis=axis)
    return x
