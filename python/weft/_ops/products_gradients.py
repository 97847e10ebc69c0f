"""Rules of products: matrices, vectors, sums over pairs of axes, Einstein's notation."""

from __future__ import annotations

import string
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._ops.manipulation import broadcast_to
from weft._ops.manipulation_gradients import adjoint
from weft._ops.products import push_product
from weft._ops.unbroadcast import apply, conjugate, fit, is_known, shape_of, zeros_of
from weft._registry.avals import Aval, broadcast_shapes
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs, reading
from weft._registry.op import get_op, register_op
from weft._registry.shape_rules import rule_named

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._core import NDArray

#: The gradient of each factor of a product reads the other factor.
_OTHER = (reading([1]), reading([0]))


@gradient_of("matmul", each=_OTHER)
def _matmul(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    g = grads[0]
    first = _left(g, x2, x1) if needs(node, 0) else None
    return first, _right(x1, g, x2) if needs(node, 1) else None


def _left(g: Any, x2: Any, like: Any) -> Any:
    """Return the gradient of the left factor, of the shape of `like`: g times the adjoint of x2."""
    if not is_known(like):
        return get_op("matmul_left")(g, x2, like)
    if not (is_known(x2) and x2.ndim and like.ndim):
        return fit(g * conjugate(x2), like)
    if x2.ndim == 1:
        return fit(g[..., None] * conjugate(x2), like)
    if like.ndim == 1:
        return fit((conjugate(x2) @ g[..., None])[..., 0], like)
    return fit(g @ adjoint(x2), like)


def _right(x1: Any, g: Any, like: Any) -> Any:
    """Return the gradient of the right factor, of the shape of `like`: the adjoint of x1 times g."""
    if not is_known(like):
        return get_op("matmul_right")(x1, g, like)
    if x1.ndim == 1 and like.ndim == 1:
        return fit(conjugate(x1) * g, like)
    if x1.ndim == 1:
        return fit(conjugate(x1)[:, None] * g[..., None, :], like)
    if like.ndim == 1:
        return fit((adjoint(x1) @ g[..., None])[..., 0], like)
    return fit(adjoint(x1) @ g, like)


def _infer_factor(a: Aval, b: Aval, like: Aval) -> Aval:
    del a, b
    return Aval(like.shape, like.dtype)


@register_op("matmul_left", infer=_infer_factor)
def _matmul_left(out: Elements, g: Elements, x2: Elements, like: Elements) -> None:
    if x2.ndim == 1:
        found = g[..., None] * x2.conj()
    elif like.ndim == 1:
        found = (x2.conj() @ g[..., None])[..., 0]
    else:
        found = g @ np.swapaxes(x2, -1, -2).conj()
    _fitted(out, found)


state(_matmul_left, superlinear=True)


@register_op("matmul_right", infer=_infer_factor)
def _matmul_right(out: Elements, x1: Elements, g: Elements, like: Elements) -> None:
    if x1.ndim == 1:
        found = x1.conj() * g if like.ndim == 1 else x1.conj()[:, None] * g[..., None, :]
    elif like.ndim == 1:
        found = (np.swapaxes(x1, -1, -2).conj() @ g[..., None])[..., 0]
    else:
        found = np.swapaxes(x1, -1, -2).conj() @ g
    _fitted(out, found)


state(_matmul_right, superlinear=True)


def _fitted(out: Elements, x: Elements) -> None:
    lead = x.ndim - out.ndim
    repeated = (*range(lead), *(lead + i for i, n in enumerate(out.shape) if n == 1 and x.shape[lead + i] != 1))
    part = x if out.dtype.kind == "c" else x.real
    np.copyto(out, part.sum(repeated).reshape(out.shape), casting="unsafe")


for _name in ("matmul_left", "matmul_right"):
    get_op(_name).set_attribute("ignores", (2,))


def _push_left(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    g, x2, like = operands
    plain = min(g.ndim, x2.ndim, like.ndim) > 1 and x2.dtype.kind == "f"
    return plain and _push_product(outputs, g, x2.mT)


def _push_right(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    x1, g, like = operands
    plain = min(g.ndim, x1.ndim, like.ndim) > 1 and x1.dtype.kind == "f"
    return plain and _push_product(outputs, x1.mT, g)


def _push_product(outputs: tuple[NDArray], a: NDArray, b: NDArray) -> bool:
    """Push one native product, if nothing was broadcast."""
    out = outputs[0]
    same = a.dtype == b.dtype == out.dtype and rule_named("matmul")((a.shape, b.shape), {}) == out.shape
    return same and push_product(outputs, (a, b))


get_op("matmul_left").set_attribute("push", _push_left)
get_op("matmul_right").set_attribute("push", _push_right)


@gradient_of("matmul_left", inputs=[0, 1])
def _matmul_left_rule(node: Any, grads: Any) -> Any:
    g, x2, _ = node.inputs
    t = grads[0]
    return fit(get_op("matmul")(t, x2), g), _right(t, g, x2), None


@gradient_of("matmul_right", inputs=[0, 1])
def _matmul_right_rule(node: Any, grads: Any) -> Any:
    x1, g, _ = node.inputs
    t = grads[0]
    return _left(g, t, x1), fit(get_op("matmul")(x1, t), g), None


@gradient_of("tensordot", each=_OTHER)
def _tensordot(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    n1, n2 = len(shape_of(x1)), len(shape_of(x2))
    left = [i % n1 for i in node.attributes["axes"][0]]
    right = [i % n2 for i in node.attributes["axes"][1]]
    free1 = [i for i in range(n1) if i not in left]
    free2 = [i for i in range(n2) if i not in right]
    g, first, second = grads[0], None, None
    ahead = tuple(range(len(free1)))
    behind = tuple(range(len(free1), len(free1) + len(free2)))
    if needs(node, 0):
        found = get_op("tensordot")(g, conjugate(x2), axes=(behind, tuple(free2)))
        summed = sorted(range(len(right)), key=lambda at: right[at])  # in the order of the axes of x2
        first = _back(found, [*free1, *(left[at] for at in summed)])
    if needs(node, 1):
        found = get_op("tensordot")(conjugate(x1), g, axes=(tuple(free1), ahead))
        summed = sorted(range(len(left)), key=lambda at: left[at])
        second = _back(found, [*(right[at] for at in summed), *free2])
    return None if first is None else fit(first, x1), None if second is None else fit(second, x2)


def _back(x: Any, axes: list[int]) -> Any:
    """Return an array with axis `i` of `x` as its axis `axes[i]`."""
    return apply("permute_dims", x, axes=tuple(axes.index(at) for at in range(len(axes))))


@gradient_of("vecdot", each=_OTHER)
def _vecdot(node: Any, grads: Any) -> Any:
    """Sum conj(x1) x2 along an axis, which counts from the end if the numbers of axes differ."""
    x1, x2 = node.inputs
    axis = node.attributes["axis"]
    g = apply("expand_dims", grads[0], axes=(-1,))
    first = second = None  # each reads the other operand alone
    if needs(node, 0):
        first = _fit_last(conjugate(g) * _last(x2, axis), x1, axis)
    if needs(node, 1):
        second = _fit_last(g * _last(x1, axis), x2, axis)
    return first, second


def _last(x: Any, axis: int) -> Any:
    """Return a view with an axis at the end."""
    ndim = len(shape_of(x))
    at = axis % ndim
    return apply("permute_dims", x, axes=(*(i for i in range(ndim) if i != at), at))


def _fit_last(g: Any, like: Any, axis: int) -> Any:
    """Return the gradient of `like`, given its gradient with an axis at the end."""
    shape = shape_of(like)
    at = axis % len(shape)
    while g.ndim > len(shape):
        g = apply("sum", g, axis=(0,))
    order = [i for i in range(len(shape)) if i != at]
    return fit(_back(g, [*order, at]), like)


@gradient_of("einsum", inputs=None)
def _einsum(node: Any, grads: Any) -> Any:
    inputs, arrow, output = node.attributes["subscripts"].replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        counts: Counter[str] = Counter(inputs)
        letters = sorted(c for c in set(inputs) if c.isalpha() and counts[c] == 1)
        output = "..." * ("..." in inputs) + "".join(letters)
    return tuple(
        _einsum_of(at, terms, output, node.inputs, grads[0]) if needs(node, at) else None for at in range(len(terms))
    )


def _einsum_of(at: int, terms: list[str], output: str, operands: Any, g: Any) -> Any:
    """Return the gradient of one operand: letters that only it has are repeated, a letter twice in it is a diagonal."""
    term, x = terms[at], operands[at]
    named = [output, *(each for i, each in enumerate(terms) if i != at)]
    arrays = [g, *(conjugate(each) for i, each in enumerate(operands) if i != at)]
    known = set("".join(named))
    fresh = (c for c in string.ascii_letters if c not in known and c not in term)
    before, dots, after = term.partition("...")
    lengths: dict[str, int] = {}
    if len(set(before + after)) < len(before + after) or not set(before + after) <= known:
        shape = shape_of(x)
        hidden = len(shape) - len(before + after)
        middle = len(before)
        lengths = dict(zip(before + after, (*shape[:middle], *shape[middle + hidden :]), strict=True))
    wanted: list[str] = []
    for letter in before + after:
        if letter in wanted:
            other = next(fresh)
            named.append(letter + other)
            arrays.append(_constant(np.eye(lengths[letter]), x))
            wanted.append(other)
        else:
            wanted.append(letter)
            if letter not in known:
                named.append(letter)
                arrays.append(_constant(np.ones(lengths[letter]), x))
    lead = "..." if any("..." in each for each in named) else ""
    target = "".join(wanted[: len(before)]) + (lead if dots else "") + "".join(wanted[len(before) :])
    if lead and not dots:
        target = lead + target
    found: Any = get_op("einsum")(*arrays, subscripts=f"{','.join(named)}->{target}")
    if dots and found.ndim > len(shape_of(x)):  # the axes under the dots of others
        found = apply("sum", found, axis=tuple(range(len(before), len(before) + found.ndim - x.ndim)))
    if is_known(x) and found.shape != x.shape:  # an axis of length 1 that others have longer, or the reverse
        found = broadcast_to(found, broadcast_shapes(found.shape, x.shape))
    return fit(found if is_known(x) else found + zeros_of(x), x)


def _constant(values: Elements, like: Any) -> NDArray:
    from weft._call.devices import device_of  # noqa: PLC0415 - as above
    from weft._ops.creation import asarray  # noqa: PLC0415 - a circle at import

    if is_known(like):
        return asarray(values, dtype=like.dtype, device=device_of(like), engine=like.engine)
    return asarray(values)


@gradient_of("cross", each=_OTHER)
def _cross(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    axis, g = node.attributes["axis"], grads[0]
    first = _fit_axis(get_op("cross")(conjugate(x2), g, axis=axis), x1, axis) if needs(node, 0) else None
    return first, _fit_axis(get_op("cross")(g, conjugate(x1), axis=axis), x2, axis) if needs(node, 1) else None


def _fit_axis(g: Any, like: Any, axis: int) -> Any:
    if is_known(like) and axis >= 0 and g.ndim != like.ndim:
        return _fit_last(_last(g, axis), like, axis)
    return fit(g, like)
