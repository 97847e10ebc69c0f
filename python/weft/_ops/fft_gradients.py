"""Rules of Fourier transforms: the adjoint is the inverse with the scale of the other direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import device_of
from weft._ops.creation import asarray
from weft._ops.manipulation_gradients import pad_axis
from weft._ops.unbroadcast import cast_like, conjugate, is_known, shape_of
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.shapes import Shape

_OTHER = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
_INVERSE = {"fft": "ifft", "ifft": "fft", "fftn": "ifftn", "ifftn": "fftn"}


def _points(node: Any) -> tuple[Shape, Shape]:
    """Return the axes of a transform and the number of its points along each."""
    known = node.attributes
    return (known["axes"], known["s"]) if "axes" in known else ((known["axis"],), (known["n"],))


def _options(axes: Shape, lengths: Shape, norm: str | None, *, many: bool) -> dict[str, Any]:
    if many:
        return {"axes": axes, "s": lengths, "norm": norm}
    return {"axis": axes[0], "n": lengths[0], "norm": norm}


def _cut(g: Any, x: Any, axes: Shape, lengths: Shape) -> Any:
    """Return the gradient of an input that was cut, or padded with zeros, to the points of a transform."""
    shape = shape_of(x)
    for axis, n in zip(axes, lengths, strict=True):
        if shape[axis] != n:
            g = pad_axis(g, axis, 0, shape[axis] - n)
    return cast_like(g, x)


def _complex(name: str) -> None:
    @gradient_of(f"fft.{name}")
    def rule(node: Any, grads: Any) -> Any:
        axes, lengths = _points(node)
        options = _options(axes, lengths, _OTHER[node.attributes["norm"]], many=name.endswith("n"))
        return (_cut(get_op(f"fft.{_INVERSE[name]}")(grads[0], **options), node.inputs[0], axes, lengths),)


for _name in _INVERSE:
    _complex(_name)


def _of_real(name: str, prepare: Callable[[Any], Any], *, swapped: bool) -> None:
    """Register the rule of a transform of real numbers, which omits half of the values."""

    @gradient_of(f"fft.{name}")
    def rule(node: Any, grads: Any) -> Any:
        axes, lengths = _points(node)
        g = prepare(grads[0])
        many = name.endswith("n")
        if axes:
            last, n = axes[-1], lengths[-1]
            g = pad_axis(g, last, 0, n - (n // 2 + 1))
        norm = _OTHER[node.attributes["norm"]] if swapped else node.attributes["norm"]
        options = _options(axes, lengths, norm, many=many)
        return (_cut(get_op("fft.ifftn" if many else "fft.ifft")(g, **options), node.inputs[0], axes, lengths),)


_of_real("rfft", lambda g: g, swapped=True)
_of_real("rfftn", lambda g: g, swapped=True)
_of_real("ihfft", conjugate, swapped=False)


def _to_real(name: str, finish: Callable[[Any], Any], *, swapped: bool) -> None:
    """Register the rule of a transform to real numbers: a value that stands for two, one omitted, counts twice."""

    @gradient_of(f"fft.{name}")
    def rule(node: Any, grads: Any) -> Any:
        axes, lengths = _points(node)
        g = grads[0]
        many = name.endswith("n")
        norm = _OTHER[node.attributes["norm"]] if swapped else node.attributes["norm"]
        if not axes:
            return (cast_like(g, node.inputs[0]),)
        found = get_op("fft.rfftn" if many else "fft.rfft")(g, **_options(axes, lengths, norm, many=many))
        n = lengths[-1]
        weights = np.full(n // 2 + 1, 2.0)
        weights[0] = 1
        if n % 2 == 0:
            weights[-1] = 1
        ndim = len(shape_of(node.inputs[0]))
        shape = [-1 if at == axes[-1] % ndim else 1 for at in range(ndim)]
        found = finish(found * _constant(weights.reshape(shape), g))
        halves = (*lengths[:-1], n // 2 + 1)
        return (_cut(found, node.inputs[0], axes, halves),)


def _constant(values: Any, like: Any) -> Any:
    if is_known(like):
        return asarray(values, dtype=like.dtype, device=device_of(like), engine=like.engine)
    return asarray(values)


_to_real("irfft", lambda g: g, swapped=True)
_to_real("irfftn", lambda g: g, swapped=True)
_to_real("hfft", conjugate, swapped=False)
